"""A known value is found in a text in every spelling that is taken out of a stream, wherever it stands."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcage.facts.known_values import find_known, known_values
from toolcage.facts.secret_spellings import spellings, text_spellings
from toolcage.facts.secret_stream import SecretRemover
from toolcage.facts.sieve import BLOCK

SECRETS = [
    "hunter2!", "p\u00e4ssw\u00f6rd-\u00c3/7+x", "sk-<a>&b'c\"d e&f", "\\\\%&%%\"'", "пароль-42", "a\ud800b-c",
    "line\nbreak",
]  # fmt: skip
AROUND = st.sampled_from(["", " ", "é ", "\ud800", "👩", "x" * (BLOCK - 9), "é" * (BLOCK - 3)])


@settings(max_examples=600, deadline=None)
@given(st.data(), st.sampled_from(SECRETS) | st.text(min_size=6, max_size=20), AROUND, AROUND)
def test_every_spelling_of_a_value_is_found_at_its_place(
    data: st.DataObject, secret: str, before: str, after: str
) -> None:
    known = text_spellings(secret)
    forms = [tuple((run,) for run in known.runs[at : at + 1]) for at in range(len(known.runs))]
    forms += [form.places for form in known.spelled]
    places = data.draw(st.sampled_from(forms))
    written = b"".join(data.draw(st.sampled_from(place)) for place in places).decode("utf-8", "surrogatepass")
    spans = [*find_known(before + written + after, (secret,))]
    assert any(start <= len(before) and end >= len(before) + len(written) for start, end in spans)
    assert all(end <= len(before) + len(written) + len(after) for _, end in spans)


@settings(max_examples=400, deadline=None)
@given(st.text(min_size=4, max_size=12), st.text(max_size=300))
def test_where_no_sieve_looks_first_the_same_is_found(secret: str, text: str) -> None:
    for content in (text, text + secret + text, text + "".join(f"%{byte:02x}" for byte in secret.encode()) + text):
        data = content.encode()
        plain = {
            (len(data[:start].decode()), len(data[:end].decode())) for start, end in text_spellings(secret).spans(data)
        }
        assert {*find_known(content, (secret,))} == plain


@pytest.mark.parametrize("secret", SECRETS)
def test_what_is_taken_out_of_a_stream_is_found_in_a_text(secret: str) -> None:
    for form in spellings(secret).spelled:
        for choose in (min, max):
            written = b"".join(choose(place, key=len) for place in form.places)
            assert SecretRemover((secret,)).remove(written) == b"[redacted:secret]"
            text = written.decode("utf-8", "replace")
            assert "\ufffd" in text or [*find_known(text, (secret,))] == [(0, len(text))]


@pytest.mark.parametrize("written", ["%C3%83", "%25C3%2583", "\\xc3\\x83", "%C3", "\u00c3"])
def test_of_a_last_character_whose_one_spelling_begins_another_nothing_is_left(written: str) -> None:
    text = f"it is password{written}."
    assert (6, len(text) - 1) in [*find_known(text, ("password\u00c3",))]


def test_what_a_decoder_puts_for_latin_1_counts_beside_enough_of_the_value_and_not_alone() -> None:
    decoded = "p\u00e4ssw\u00f6rd".encode("latin-1").decode("utf-8", "replace")
    assert [*find_known(f"it is {decoded}.", ("p\u00e4ssw\u00f6rd",))] == [(6, 14)]
    assert [*find_known("\ufffd" * 8, ("\u00e4\u00f6\u00fc\u00df",))] == []


def test_values_too_short_to_be_looked_for_are_not_and_an_ordinary_text_holds_none() -> None:
    assert [*find_known("abc abc", ("abc", "", "hunter2!"))] == []
    assert known_values("hunter2!").longest >= 8 * len("%2568")
