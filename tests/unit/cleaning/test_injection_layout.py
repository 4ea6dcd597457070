"""What only lays a text out hides no sentence: line ends of narrow pages, tags, links, subtitles, encodings of mail."""

import textwrap

import pytest
from benchmarks.carriers import CARRIERS
from benchmarks.injection import sections
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcage.cleaning.injection import suspect
from toolcage.cleaning.injection.layout import flowing
from toolcage.cleaning.injection.wording import sentences, tokens

SENTENCE = "the committee met on tuesday to discuss the budget of the year and agreed that most of it be spent on roofs"
LINES = textwrap.wrap(SENTENCE, 40)


def words(text: str) -> list[list[str]]:
    return [tokens(sentence) for _, sentence in sentences(flowing(text))]


@pytest.mark.parametrize(
    "laid_out",
    [
        "\n".join(LINES),
        "\n".join(f"> {line}" for line in LINES),
        "\n".join(f"   # {line}" for line in LINES),
        "\n".join(f"+{line}" for line in LINES),
        "\n".join(f" * {line}" for line in LINES),
        "<br>\n".join(LINES),
        "<br/>".join(LINES),
        "=\n".join(f"{line} " for line in LINES),
        SENTENCE.replace("tuesday", "<b>tuesday</b>").replace("year", '<span class="a b" style="x: y">year</span>'),
        SENTENCE.replace("tuesday", "tuesday[12]").replace("most", "<a href=/x>most</a>"),
        SENTENCE.replace("tuesday", "**tuesday**").replace("year", "*year*"),
        SENTENCE.replace("year and", "[year] and").replace("met", "{met}"),
        f"7\n00:00:01,000 --> 00:00:02,500\n{LINES[0]}\n\n8\n00:00:03,000 --> 00:00:04,000\n{' '.join(LINES[1:])}",
    ],
)  # fmt: skip
def test_a_sentence_is_one_however_it_is_laid_out(laid_out: str) -> None:
    assert tokens(SENTENCE) in words(laid_out)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("the first item of a list\nanother one\na third item of it\nthe last", 4),
        ("the roof was repaired on monday and on tuesday.\nthe committee was pleased\nthe end", 3),
        ("\n".join(["2026-11-30 10:00:01 the worker has started with a job", "2026-11-30 10:00:02 done"] * 2), 4),
        ("\n\n".join(LINES), len(LINES)),
        ("\n".join(f"{line} {SENTENCE} {SENTENCE}" for line in LINES), len(LINES)),
    ],
)
def test_lines_that_were_not_wrapped_stay_apart(text: str, count: int) -> None:
    assert len(sentences(flowing(text))) == count


def test_what_tags_say_in_words_is_no_layout() -> None:
    page = "<b title=\"say the word now\">yes</b> <img src='a.png' alt='look at it'>"
    told = [sentence for _, sentence in sentences(flowing(page))]
    assert "say the word now" in told
    assert "look at it" in told
    assert [s for _, s in sentences("<p>one thing</p><!-- and another -->")] == ["one thing", " and another "]
    assert [s for _, s in sentences("<please send it to all of them>")] == ["<please send it to all of them>"]


@settings(max_examples=500, deadline=None)
@given(
    st.lists(
        st.sampled_from(["<b>", "</i>", "<br>", "\n", "\n\n", "[", "]", "](", ")", "{", "}", "=\n", "> ", *LINES])
        | st.sampled_from("aé漢.?* "),
        max_size=40,
    ).map("".join)
)  # fmt: skip
def test_every_letter_stays_in_its_order(text: str) -> None:
    def letters(of: str) -> str:
        return "".join(filter(str.isalnum, of.replace("<b>", "").replace("</i>", "").replace("<br>", "")))

    assert letters(flowing(text)) == letters(text)


@pytest.mark.parametrize(
    "unit", ["\n", "<b ", "[a](", " --> \n", '"a ', "=\n", "a b\n" * 9 + "\n", "'" + " " * 9, "< b=c" * 9]
)
def test_layout_is_taken_out_in_linear_steps(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    assert len(flowing(text)) <= len(text)
    assert sentences(text) is not None


ATTACKS = [
    text.replace("\\n", " ")
    for name in ("held_out_direct_2.txt", "held_out_direct_3.txt", "held_out_jailbreak_2.txt")
    for lines in sections(name).values()
    for text in lines
    if 60 < len(text) < 300
][::2]


ALONE = [attack for attack in ATTACKS if suspect(attack).suspected]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_what_carries_an_attack_hides_hardly_any(carrier: str) -> None:
    assert len(ALONE) > 60
    missed = [attack for attack in ALONE if not suspect(CARRIERS[carrier](attack)).suspected]
    assert len(missed) <= 0.07 * len(ALONE), missed
