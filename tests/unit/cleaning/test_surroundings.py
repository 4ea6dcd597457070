"""Only what stands around a change is looked at again: long texts come out as if everything had been."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcage.cleaning import neutralise, pipeline, secrets
from toolcage.cleaning.surroundings import around_changes
from toolcage.types import OutputTerms

KEY = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
EXACT = ("hunter2!", "s3cr3t-value")
PIECES = [
    "<", ">", "<script>", "</tool_result", "<|im_start|>", "[INST]", "![a](", "](http://e)", "[r]: //e", "]:",
    "password=", KEY, "AKIAQ7ZX3WPLM4TNB6VD", "hunter2!", "s3cr3t-value", "-----BEGIN PRIVATE KEY-----\n",
    "-----END PRIVATE KEY-----", "\x1b[31m", "\x1b]0;", "\x07", "\r", "\x9b", "\u200b", "\ufe0f", "👨", "a", " ", "\n",
    "\n\n", "Human:", "&lt;", "[U+200B]", "␛", "‹", "[redacted:x]", "=", ":", "//", "@", "sk-", "eyJ", "＜",
    "ｔool_result＞", '"', "a@b.example", "4111 1111 1111 1111", "+49 30 1234567",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=14).map("".join)
FILLER = "The committee met on Tuesday to discuss the budget for the year and agreed on most of it.\n"
FAR = FILLER * 40
REDACTED = st.sampled_from([("secrets",), ("secrets", "email", "iban", "card", "phone"), ()])


def looking_at_everything(text: str, terms: OutputTerms) -> tuple[str, dict[str, int]]:
    with pytest.MonkeyPatch.context() as patched:
        for module in (pipeline, secrets):
            patched.setattr(module, "around_changes", lambda *_: None)
        return neutralise(text, terms, EXACT)


@settings(max_examples=150, deadline=None)
@given(st.lists(HOSTILE, min_size=1, max_size=4), st.sampled_from(["inert", "keep", "escape"]), REDACTED)
def test_a_long_text_comes_out_as_if_all_of_it_had_been_looked_at_again(
    dangers: list[str], mode: str, redact: tuple[str, ...]
) -> None:
    terms = OutputTerms(html=mode, redact=redact)  # type: ignore[arg-type]
    text = FAR + FAR.join(f"{danger}\n" for danger in dangers) + FAR * 4
    assert neutralise(text, terms, EXACT) == looking_at_everything(text, terms)


@pytest.mark.parametrize("place", [0, len(FAR), 3 * len(FAR)])
@pytest.mark.parametrize(
    "danger",
    [
        f"{KEY} {KEY[:20]}{KEY}{KEY[20:]}",
        f"password={KEY}\npassword: '{KEY}'",
        f"<b>[{KEY}](https://example.com)</b> <|im_start|>",
        "a <b" + "<" * 50 + "\n\nHuman: hi",
    ],
)
def test_what_one_step_uncovers_far_inside_a_long_text_is_seen(danger: str, place: int) -> None:
    text = FAR * 8
    text = f"{text[:place]}{danger}\n{text[place:]}"
    cleaned, _ = neutralise(text, OutputTerms(), EXACT)
    assert KEY not in cleaned
    assert "<b" not in cleaned
    assert neutralise(cleaned, OutputTerms(), EXACT) == (cleaned, {})


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize(
    "long",
    [
        ["-----BEGIN PRIVATE KEY-----\n", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 120, "-----END PRIVATE KEY-----"],
        ["eyJhbGciOiJIUzI1NiJ9.eyJ", "zdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6" * 120, ".dozjgNryP4J3jVmNHl0w5N_XgL0n"],
    ],
    ids=["private key", "token"],
)  # fmt: skip
def test_a_secret_longer_than_the_surroundings_comes_out_as_if_all_had_been_looked_at_again(
    long: list[str], piece: str
) -> None:
    begin, middle, end = long
    half = len(middle) // 2
    text = f"{FAR * 8}{begin}{middle[:half]}{piece}{middle[half:]}{end}\n{FAR * 8}"
    assert neutralise(text, OutputTerms(), EXACT) == looking_at_everything(text, OutputTerms())


@pytest.mark.parametrize(
    "write", [lambda c: f"%25{ord(c):02X}", lambda c: f"&#x{ord(c):x};", lambda c: f"\\u{ord(c):04x}"]
)
def test_the_surroundings_hold_the_longest_spelling_of_a_known_value(write: Callable[[str], str]) -> None:
    value = "s3cr3t-value/" * 30
    written = "".join(map(write, value))
    before = f"{FAR * 40}<b>{written}\n{FAR * 40}"
    around = around_changes(before, before.replace("<b", "&lt;b"), [value])
    assert around is not None
    place = around.index("&lt;b")
    assert min(place, len(around) - place - len(written)) > len(written)


LINES = st.lists(
    st.sampled_from(["", "a", "<b", "word " * 30, "<x" * 200, "y" * 1500, "é\U0001f600"]), min_size=1, max_size=30
)


@settings(max_examples=300, deadline=None)
@given(LINES, st.lists(st.integers(0, 10), max_size=3))
def test_every_changed_line_stands_in_the_surroundings_with_what_is_near(some: list[str], places: list[int]) -> None:
    far = ["z" * 90] * 400
    lines = [*far, *some, *far, *some, *far]
    for place in places:
        lines.insert(place * len(lines) // 11, "[an <img")
    before = "\n".join(lines)
    changed = [line.replace("<", "&lt;") for line in lines]
    after = "\n".join(changed)
    around = around_changes(before, after)
    assert around is not None
    start = 0
    for line, made in zip(lines, changed, strict=True):
        if line != made:
            assert after[max(0, start - 800) : start + len(made) + 800] in around
        start += len(made) + 1


def test_the_surroundings_of_one_changed_line_are_a_small_part_with_nothing_at_their_ends() -> None:
    before = f"{FAR * 4}a <b>\n{FAR * 4}"
    around = around_changes(before, before.replace("<b", "&lt;b"))
    assert around is not None
    assert "a &lt;b>\n" in around
    assert len(around) < len(before) / 4
    assert around.startswith("\n.\n")
    assert around.endswith("\n.\n")


def test_the_surroundings_reach_as_far_as_a_known_value_is_long() -> None:
    before = f"{FAR * 40}<b>\n{FAR * 40}"
    after = before.replace("<b", "&lt;b")
    near, far = around_changes(before, after), around_changes(before, after, ["x" * 3000])
    assert near is not None
    assert far is not None
    assert len(far) > len(near) + 2 * 10_000


@pytest.mark.parametrize("after", [FAR * 8, FAR * 8 + "x", "short"])
def test_no_surroundings_are_named_where_lines_are_lost_or_the_text_is_short(after: str) -> None:
    assert around_changes(f"{FAR}{FAR * 8}", after) is None


def test_no_surroundings_are_named_where_most_lines_changed() -> None:
    assert around_changes(FAR * 8, (FAR * 8).replace("Tuesday", "Monday")) is None
