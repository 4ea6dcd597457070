"""Bytes become text whatever they are, and what was damaged is counted."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcage.cleaning.decode import Utf8Decoder, decode


def test_characters_split_over_chunks_are_joined() -> None:
    decoder = Utf8Decoder()
    raw = "ключ 🔑".encode()
    text = "".join(decoder.feed(raw[i : i + 1]) for i in range(len(raw))) + decoder.close()
    assert (text, decoder.replaced) == ("ключ 🔑", 0)


@pytest.mark.parametrize("raw", [b"\xc0\xafx", b"\xed\xa0\x80x", b"\xffx", b"\xf8\x88\x80\x80\x80x"])
def test_overlong_forms_surrogates_and_stray_bytes_are_replaced_and_counted(raw: bytes) -> None:
    text, replaced, _ = decode(raw)
    assert text.endswith("x")
    assert replaced == text.count("\ufffd") > 0


def test_a_replacement_character_of_the_text_itself_is_not_counted() -> None:
    assert decode("a\ufffdb".encode()) == ("a\ufffdb", 0, 0)


def test_bytes_beyond_the_cap_are_dropped_and_counted() -> None:
    assert decode(b"a" * 100, max_bytes=10) == ("a" * 10, 0, 90)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_the_chunks_do_not_matter(raw: bytes, cuts: list[int]) -> None:
    decoder = Utf8Decoder()
    edges = [0, *sorted(cuts), len(raw)]
    text = "".join(decoder.feed(raw[a:b]) for a, b in pairwise(edges)) + decoder.close()
    assert (text, decoder.replaced, 0) == decode(raw)
