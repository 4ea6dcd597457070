"""A sieve says yes wherever its pattern matches, and where it cannot tell."""

import itertools
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from toolcage.facts.sieve import BLOCK, Innocent, Sieve

SIEVE = Sieve("ab{1,3}c", reach=5)


class Word(str):
    __slots__ = ()


def test_it_tells_texts_apart() -> None:
    assert SIEVE.may_hold("xxabbcxx")
    assert SIEVE.may_hold("é abc 👩")
    assert SIEVE.may_hold(Word("abc"))
    assert not SIEVE.may_hold("xxacxx")
    assert not SIEVE.may_hold("é ab 👩 c")
    assert not SIEVE.may_hold("")


def test_a_text_that_the_engine_cannot_read_passes() -> None:
    assert SIEVE.may_hold("\ud800")
    assert SIEVE.regions("x" * (BLOCK + 5) + "\udfff") == [(BLOCK, BLOCK + 6)]


def test_only_the_blocks_in_which_something_begins_are_searched() -> None:
    text = "x" * (3 * BLOCK - 2) + "abbbc" + "x" * BLOCK + "abc"
    assert SIEVE.regions(text) == [(2 * BLOCK, 3 * BLOCK), (4 * BLOCK, len(text))]
    assert SIEVE.regions("x" * (3 * BLOCK)) == []
    assert SIEVE.regions("abc" * (2 * BLOCK)) == [(0, 6 * BLOCK)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["abc", "ab", "bbbc", "é", "👩", "\ud800", "x" * (BLOCK - 3), "xx"]), max_size=12))
def test_every_match_begins_in_a_region(pieces: list[str]) -> None:
    text = "".join(pieces)
    regions = SIEVE.regions(text)
    for match in re.finditer("ab{1,3}c", text):
        assert any(start <= match.start() < end for start, end in regions)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(regions))


def test_a_text_is_innocent_only_as_a_whole_and_if_it_can_be_read() -> None:
    letters = Innocent("[a-zé]*|9")
    assert letters.is_surely("abcé")
    assert letters.is_surely("")
    assert letters.is_surely("9")
    assert not letters.is_surely("abc9")
    assert not letters.is_surely("9\n")
    assert not letters.is_surely("abc\ud800")
