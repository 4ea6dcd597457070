"""Where known values stand in a text, in any of their `secret_spellings`.

A sieve of how each may begin tells the blocks of the text in which one can be; only there is every spelling sought.
Places are characters of the text, lone surrogates included. Trusts the caller for the values, and for showing it the
text as a reader sees it: it does not look behind what hides a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from toolcage.facts.secret_forms import SHORTEST_SECRET
from toolcage.facts.secret_spellings import Spellings, text_spellings
from toolcage.facts.sieve import Sieve

_BEGINNING: Final = 12
"""Of so many characters is the beginning by which a value is noticed."""
_NOTHING: Final = r"[^\s\S]"
_Span = tuple[int, int]


class KnownValues:
    """One value's spellings and the sieve of their beginnings."""

    def __init__(self, secret: str) -> None:
        self._spellings = text_spellings(secret)
        self.longest = self._spellings.longest
        self._sieve = Sieve(_beginnings(self._spellings), reach=self._longest_beginning())

    def find(self, text: str) -> Iterator[_Span]:
        """Where it stands; spans may overlap."""
        for start, end in self._sieve.regions(text):
            piece = text[start : end + self.longest]
            for first, last in self._spans(piece):
                if start + first < end:
                    yield start + first, start + last

    def _spans(self, piece: str) -> Iterator[_Span]:
        data = piece.encode("utf-8", "surrogatepass")
        if len(data) == len(piece):
            yield from self._spellings.spans(data)
            return
        for start, end in self._spellings.spans(data):
            first = len(data[:start].decode("utf-8", "surrogatepass"))
            yield first, first + len(data[start:end].decode("utf-8", "surrogatepass"))

    def _longest_beginning(self) -> int:
        per_place = (max(map(len, one)) for form in self._spellings.spelled for one in form.places)
        return _BEGINNING * max((1, *per_place))


def find_known(text: str, secrets: Sequence[str]) -> Iterator[_Span]:
    """Where one of the values stands; those too short to be looked for do not. Spans may overlap."""
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            yield from known_values(secret).find(text)


@lru_cache(maxsize=256)
def known_values(secret: str) -> KnownValues:
    """What to look for, prepared once."""
    return KnownValues(secret)


def _beginnings(spellings: Spellings) -> str:
    """How each spelling may begin. One that begins with a lone surrogate stands in a text that no sieve can read."""
    runs = {run.decode("utf-8", "surrogatepass")[:_BEGINNING] for run in spellings.runs}
    spelled = {"".join(map(_one_of, form.places[:_BEGINNING])) for form in spellings.spelled}
    return "|".join(sorted({_literal(run) for run in runs if _is_readable(run)} | spelled)) or _NOTHING


def _one_of(place: tuple[bytes, ...]) -> str:
    written = (one.decode("utf-8", "surrogatepass") for one in place)
    return f"(?:{'|'.join(_literal(one) for one in written if _is_readable(one)) or _NOTHING})"


def _is_readable(written: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in written)


def _literal(written: str) -> str:
    return "".join(one if one.isalnum() and one.isascii() else rf"\x{{{ord(one):x}}}" for one in written)
