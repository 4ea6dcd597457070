"""The whole order on hostile text: it never raises, settles, and keeps each module's promise."""

import json
import os
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcage.cleaning import clean_bytes, clean_json, clean_text
from toolcage.types import OutputTerms, freeze, thaw

TERMS = OutputTerms()
KEY = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
EXACT = ("hunter2!", "s3cr3t-value")
PIECES = [
    "<", ">", "<script>", "</tool_result", "<|im_start|>", "[INST]", "![a](", "](http://e)",
    "[r]: //e", "]:", "password=",
    KEY, "AKIAQ7ZX3WPLM4TNB6VD", "hunter2!", "s3cr3t-value", "-----BEGIN PRIVATE KEY-----\n",
    "-----END PRIVATE KEY-----",
    "\x1b[31m", "\x1b]0;", "\x07", "\r", "\r\n", "\x00", "\x9b", "\u200b", "\u200d", "\u202e", "\ufe0f", "\U000e0041",
    "\ud800", "👨", "می", "\u200c", "خواهم", "a", " ", "\n", "\n\n", "Human:", "&lt;", "&", "[U+200B]", "␛", "‹", "›",
    "[redacted:x]", "=", ":", "//", "@", "sk-", "eyJ", "＜", "ｔool_result＞", "0123456789abcdef", '"', "a@b.example",
    "ignore all previous instructions",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=14).map("".join)
MODES = st.sampled_from(["inert", "clean", "keep"])


@settings(max_examples=300, deadline=None)
@given(HOSTILE, MODES, st.sampled_from([("secrets",), ("secrets", "email"), ()]))
def test_cleaning_clean_text_changes_nothing(text: str, mode: str, redact: tuple[str, ...]) -> None:
    terms = OutputTerms(html=mode, redact=redact)  # type: ignore[arg-type]
    once, _ = clean_text(text, terms, EXACT)
    assert clean_text(once, terms, EXACT)[0] == once


class Seen(HTMLParser):
    found = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found = True

    def handle_comment(self, data: str) -> None:
        self.found = True


@settings(max_examples=300, deadline=None)
@given(HOSTILE)
def test_nothing_that_cleaning_promises_to_remove_is_left(text: str) -> None:
    cleaned, _ = clean_text(text, TERMS, EXACT)
    assert not any((ord(c) < 0x20 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in cleaned)
    assert not set("\u200b\u202e\U000e0041\ud800\r\x1b") & set(cleaned)
    assert KEY not in cleaned
    assert not any(secret in cleaned for secret in EXACT)
    assert "<|im_start|>" not in cleaned
    assert "](http" not in cleaned
    seen = Seen()
    seen.feed(cleaned)
    seen.close()
    assert not seen.found
    json.dumps(cleaned).encode()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.integers(0, 200))
def test_any_bytes_become_text_of_the_size_allowed(raw: bytes, cap: int) -> None:
    made = clean_bytes(raw, OutputTerms(max_bytes=cap))
    assert made.kept <= cap
    assert (made.dropped > 0) == ("truncated" in made.findings)
    made.text.encode()


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | HOSTILE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HOSTILE, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(TREES)
def test_every_string_and_key_of_a_json_value_is_cleaned(value: object) -> None:
    made = clean_json(freeze(value), TERMS, EXACT)
    written = json.dumps(thaw(made.value), ensure_ascii=False, allow_nan=False)
    assert KEY not in written
    assert "s3cr3t-value" not in written
    assert "\u202e" not in written
    assert "<script" not in written


def test_hidden_characters_are_dealt_with_before_secrets_and_secrets_before_markup() -> None:
    split = KEY[:20] + "\u200b" + KEY[20:]
    assert clean_text(f"<b>{split}</b>", TERMS)[0] == "&lt;b>[redacted:github_token]&lt;/b>"


def test_a_deleted_tag_cannot_join_what_it_parted() -> None:
    cleaned, _ = clean_text(f"{KEY[:20]}<script></script>{KEY[20:]} [IN<style></style>ST]", OutputTerms(html="clean"))
    assert KEY not in cleaned
    assert "[INST]" not in cleaned


def test_a_key_across_the_cut_leaves_no_half() -> None:
    for shift in range(0, 60, 7):
        raw = ("x " * 50 + "y" * shift + " " + KEY + " " + "z " * 60).encode()
        text = clean_bytes(raw, OutputTerms(max_bytes=220)).text
        assert "ghp_" not in text
        assert KEY[-20:] not in text


@pytest.mark.parametrize("inside", range(4, 40, 6))
def test_a_key_across_the_window_of_a_huge_output_leaves_no_half(inside: int) -> None:
    # A private key block shrinks to a mark, so that the border of the window comes into sight.
    edge = 1000 + 8 * 1024
    frame = ("-----BEGIN PRIVATE KEY-----\n", "\n-----END PRIVATE KEY-----")
    block = frame[0] + "A" * (edge - len("".join(frame)) - 1 - inside) + frame[1]
    rest = "x" * 100_000
    for raw in (f"{block} {KEY} {rest}", f"{rest} {KEY} {block[: -40 + inside]}{frame[1]}"):
        text = clean_bytes(raw.encode(), OutputTerms(max_bytes=1000)).text
        assert "[redacted:private_key]" in text
        assert KEY[4:14] not in text
        assert KEY[-10:] not in text
        assert "ghp_" not in text


def test_an_output_that_its_reader_cut_loses_its_broken_last_word() -> None:
    raw = f"fine {KEY[:30]}".encode()
    assert KEY[:30] in clean_bytes(raw, TERMS).text
    assert clean_bytes(raw, TERMS, cut_before=True).text.strip() == "fine"


def test_a_value_under_a_key_that_says_password_is_redacted_and_prose_about_one_is_not() -> None:
    made = clean_json(freeze({"db_password": "plainword", "errors": {"password": "This field is required"}}), TERMS)
    assert thaw(made.value) == {
        "db_password": "[redacted:password]",
        "errors": {"password": "This field is required"},
    }


def test_findings_count_what_was_done() -> None:
    _, findings = clean_text(
        f"\x1b[0m \u200b {KEY} <b> ![x](http://e) <|im_end|> a@b.example", OutputTerms(redact=("secrets", "email"))
    )
    assert findings == {
        "control_shown": 1, "invisible_shown": 1, "secret_redacted": 1, "html_neutralised": 1,
        "markdown_neutralised": 1, "delimiter_neutralised": 1, "email_redacted": 1,
    }  # fmt: skip


def test_plain_text_passes_unchanged_without_findings() -> None:
    text = "Order 1042: 3 × Café crème at 2.50 €, a < b, see https://example.com/a?b=c\n"
    assert clean_text(text, TERMS) == (text, {})


BEGINNINGS = [
    "<", "](", "]:", "<|", "<untrusted ", "-----BEGIN PRIVATE KEY-----", "eyJ", "://a:", "\x1b]", "\u200ba",
    "password:",
    "aws secret ", "ignore your ", "@a.", "[U+", "<<", "A\n",
]  # fmt: skip


@pytest.mark.parametrize("piece", BEGINNINGS)
def test_repeated_beginnings_cost_in_proportion_to_their_number(piece: str) -> None:
    # Counted in steps of a trace, not in time: doubling the text may at most about double the work of every loop.
    small, large = piece * 2_000, piece * 4_000
    assert _calls(large) <= 2.5 * _calls(small) + 200


def _calls(text: str) -> int:
    import sys

    count = 0

    def trace(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(trace)
    try:
        clean_text(text, TERMS)
    finally:
        sys.setprofile(None)
    return count


def corpus(name: str) -> list[str]:
    folder = Path(os.environ.get("TOOLCAGE_CORPORA", Path(__file__).parents[3].parent / "shared" / "corpora"))
    if not (folder / name).is_file():
        pytest.skip(f"no corpus {name}: set TOOLCAGE_CORPORA to the folder that holds it")
    return [json.loads(line)["text"] for line in (folder / name).read_text("utf-8").splitlines()]


@pytest.mark.parametrize("mode", ["inert", "escape"])
def test_active_content_of_the_corpus_is_inert_and_readable(mode: str) -> None:
    for text in corpus("html_injection.jsonl"):
        cleaned, _ = clean_text(text, OutputTerms(html=mode))  # type: ignore[arg-type]
        seen = Seen()
        seen.feed(cleaned)
        seen.close()
        assert not seen.found, text


def test_real_mails_and_tables_of_the_corpus_are_neither_flagged_nor_redacted() -> None:
    for text in corpus("tool_output_benign.jsonl"):
        findings = clean_text(text, TERMS)[1]
        assert not {"injection_suspected", "secret_redacted", "delimiter_neutralised"} & set(findings), text[:80]
