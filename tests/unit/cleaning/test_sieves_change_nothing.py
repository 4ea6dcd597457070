# ruff: noqa: E501 - a table of pieces reads better in long lines
"""With sieves that let everything through, every step looks at the whole text: what comes out must be the same."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcage.cleaning import neutralise
from toolcage.cleaning.delimiters import show_delimiters
from toolcage.cleaning.marks import _HIDDEN, _SEQUENCES, views
from toolcage.cleaning.unicode import show_invisibles
from toolcage.facts.sieve import BLOCK, Innocent, Sieve
from toolcage.types import OutputTerms

KEY = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
PIECES = [
    "<", ">", "＜", "＞", "〈", "《", "|", "｜", "[", "]", "［", "］", "/", " ", "\n", "_", "-", ":", "(", "=", "ı", "İ", "ſ", "\u212a",
    "assistant", "aſſiſtant", "ｔool", "call", "tool_result", "funct\u0131on use", "end of", "untrusted", "im_start", "INST",
    "SYS", "system", "thınking", "\u0430ssistant", "<|im_end|>", "</tool_call>", "[/INST]", "\x1c", "\x1f", "\u00a0", "\u2003",
    KEY, "AKIAQ7ZX3WPLM4TNB6VD", "hunter2!", "hunter", "2!", "password", "pa\u017fsword", "to\u212aen", "=\x1f'hunter2x'", "api_key",
    '": "', "'", "\\", "://a:b@", "sk-", "eyJhbGciOiJub25lIn0.eyJhIjoxfQ.abcdef", "Bearer ", "0123456789abcdefghijK", "%21", "&#33;",
    "\x1b[31m", "␛[0m", "␛", "\x1b]0;", "\x07", "\x9b", "[U+009B]", "[U+200B]", "[U+FE0F +3 invisible]", "\r", "\u200b", "\u202e", "\ud800",
    "👨", "👩", "\u200d", "\ufe0f", "\ufe0e", "❤", "1", "#", "\u20e3", "🏴", "\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "می", "خ", "\u200c", "क", "्", "ल", "\u180b", "ᠠ", "中", "　", "\ufe00", "\U000e0100", "é", "a", "·", "\U000e0041",
    "](", "http:", "]:", "&lt;", "‹", "x" * (BLOCK - 20),
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=2), max_size=16).map("".join)
TERMS = OutputTerms()


def without_sieves(monkeypatch: pytest.MonkeyPatch, step: object, *arguments: object) -> object:
    with monkeypatch.context() as patched:
        patched.setattr(Sieve, "may_hold", lambda self, text: True)
        patched.setattr(Sieve, "regions", lambda self, text: [(0, len(text))] if text else [])
        patched.setattr(Innocent, "is_surely", lambda self, text: False)
        return step(*arguments)  # type: ignore[operator]


SETTINGS = settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SETTINGS
@given(TEXTS)
def test_a_text_is_cleaned_the_same_without_any_sieve(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    fast = neutralise(text, TERMS, ("hunter2!",))
    assert fast == without_sieves(monkeypatch, neutralise, text, TERMS, ("hunter2!",))


@SETTINGS
@given(TEXTS)
def test_frames_and_invisible_characters_are_shown_the_same_without_any_sieve(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    for step in (show_delimiters, show_invisibles):
        assert step(text) == without_sieves(monkeypatch, step, text)


COLOURED = st.lists(
    st.sampled_from(["␛[0m", "␛[31m", "␛[", "3", "1m", "␛", "\ue000", "\u200b", "[U+009B]", "[U+200B]", "␛]0;", "␛\\", "␇", "a", "\x9b", "\ud800"]),
    max_size=12,
).map("".join)  # fmt: skip


def two_views(text: str) -> list[str]:
    return [view.text for view in views(text)]


@settings(max_examples=1500, deadline=None)
@given(COLOURED)
def test_sequences_are_left_out_one_kind_after_the_other_as_they_are_one_by_one(text: str) -> None:
    assert two_views(text + "␛") == [_HIDDEN.sub("", text + "␛"), _SEQUENCES.sub("", text + "␛")]


def test_leaving_out_one_sequence_does_not_make_another_of_what_stood_around_it() -> None:
    assert two_views("␛[3␛[0m1m")[1] == _SEQUENCES.sub("", "␛[3␛[0m1m") == "[31m"
    assert two_views("a␛[0mb␛[1;31mc␛[0m")[1] == "abc"
    assert two_views("␛[0m")[1] == ""
