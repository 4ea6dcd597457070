"""Every spelling of one known value: the one list for texts that are shown and for bytes that pass through.

Beside the runs of `secret_forms` these are UTF-16 and the forms whose characters are each written in a way of its own:
in UTF-8 or Latin-1 (also where a decoder has put U+FFFD for it), percent-encoded once or twice, escaped as in JSON, SQL
or programs, as HTML references, in hex of either case and with separators, in base64 with some signs encoded. Nothing
is decoded.

No text makes a search double its work: a pattern goes as far as it can be read in few ways, and behind that a form is
walked once, all its spellings side by side.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from html.entities import codepoint2name
from typing import Final, TypeAlias

from toolcage.facts.secret_forms import forms, occurrences

Places: TypeAlias = tuple[tuple[bytes, ...], ...]
"""The characters of a form in order, each with the spellings that it may have."""
_LONG: Final = 512
"""From this many bytes on, a value is looked for only as it is and in the forms that change every byte alike."""
_LEAST: Final = 6
_MOST_DOUBTFUL: Final = 6
"""So many characters with one spelling that begins another may stand in a pattern: each may double its work."""
_LOST: Final = "\ufffd".encode()
_OWN: Final[dict[str, list[bytes]]] = {
    " ": [b"+", b"&nbsp;"], "\t": [b"\\t"], "\n": [b"\\n"], "\r": [b"\\r"], "\\": [b"\\\\"], "/": [b"\\/"],
    "'": [b"\\'", b"''", b"'\\''", b"&apos;", b"\\&#39;", b"\\&#039;", b"\\&#x27;"],
    '"': [b'\\"', b'""', b"\\&quot;", b"\\&#34;"],
}  # fmt: skip
"""What forms, strings of programs and those in a page write for single characters."""


@dataclass(frozen=True, slots=True)
class Spelled:
    """One form whose characters are each spelled in one of several ways. `pattern` finds where all of it stands
    (`is_whole`), or where it may begin."""

    places: Places
    pattern: re.Pattern[bytes]
    is_whole: bool
    longest: int

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where the form stands, whole."""
        behind = 0
        for match in self.pattern.finditer(data):
            start, end = match.span()
            if not self.is_whole:
                end = self._walk(data, start)[0]
            if start >= behind and end:
                behind = end
                yield start, end

    def is_cut_off(self, data: bytes, start: int) -> bool:
        """Whether the data ends somewhere inside the form that may begin at `start`."""
        return self._walk(data, start)[1]

    def _walk(self, data: bytes, start: int) -> tuple[int, bool]:
        """Where the form that begins at `start` ends at the latest (0: it does not stand there), and whether it may go
        on behind the data."""
        at, cut_off = {start}, False
        for spellings in self.places:
            following = set()
            for place in at:
                for spelling in spellings:
                    if data.startswith(spelling, place):
                        following.add(place + len(spelling))
                    elif len(data) - place < len(spelling) and spelling.startswith(data[place:]):
                        cut_off = True
            if not following:
                return 0, cut_off
            at = following
        return max(at), cut_off


@dataclass(frozen=True, slots=True)
class Spellings:
    """All spellings of one value: those that are one run of bytes each, and the others."""

    runs: tuple[bytes, ...]
    spelled: tuple[Spelled, ...]

    @property
    def longest(self) -> int:
        """Bytes of the longest."""
        return max((*map(len, self.runs), *(form.longest for form in self.spelled)), default=0)

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where one of them stands; they may overlap."""
        for run in self.runs:
            yield from occurrences(data, run)
        for form in self.spelled:
            yield from form.spans(data)


@lru_cache(maxsize=256)
def spellings(secret: str) -> Spellings:
    """Every spelling in bytes."""
    spelled = tuple(map(_compiled, _all_places(secret)))
    wide = secret.encode("utf-16-le", "surrogatepass").strip(b"\0")  # either order: the NULs between them are the same
    runs = (*forms(secret), wide)
    return Spellings(tuple(sorted({run for run in runs if not _is_one_of(run, spelled)})), spelled)


@lru_cache(maxsize=256)
def text_spellings(secret: str) -> Spellings:
    """Every spelling in the UTF-8 of a text: what is no UTF-8 cannot stand in it, and NULs are not seen in it."""
    spelled = tuple(
        _compiled(tuple(tuple(filter(_is_text, one)) for one in places))
        for places in _all_places(secret)
        if all(any(map(_is_text, one)) for one in places)
    )
    return Spellings(tuple(run for run in forms(secret) if not _is_one_of(run, spelled)), spelled)


def _is_text(written: bytes) -> bool:
    try:
        written.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _is_one_of(run: bytes, spelled: tuple[Spelled, ...]) -> bool:
    return any((0, len(run)) in form.spans(run) for form in spelled)


def _all_places(secret: str) -> Iterator[Places]:
    raw = secret.encode("utf-8", "surrogatepass")
    narrow = _latin_1(secret)
    for one in filter(None, (raw, narrow)):
        for separator in ("", " ", ":"):
            yield tuple(_cases(digit) for digit in (one.hex(separator) if separator else one.hex()))
    if len(raw) <= _LONG:
        lost = sum(map(str.isascii, secret)) >= _LEAST
        yield tuple(_spellings(character, lost=lost) for character in secret)
    for offset in range(3):
        yield from _base64_places(raw, offset)
        yield from _base64_places(narrow, offset) if narrow else []


def _base64_places(raw: bytes, offset: int) -> list[Places]:
    """What stands for `raw` alone, behind so many bytes of something else; nothing where that is too little."""
    encoded = base64.b64encode(bytes(offset) + raw)
    first, behind = -(-offset * 8 // 6), (offset + len(raw)) * 8 // 6
    return [tuple(map(_base64_spellings, encoded[first:behind]))] if behind - first >= _LEAST else []


def _compiled(places: Places) -> Spelled:
    doubtful = [place for place, spellings in enumerate(places) if _is_doubtful(spellings)]
    sure = places[: doubtful[_MOST_DOUBTFUL]] if len(doubtful) > _MOST_DOUBTFUL else places
    # The longest first: at the last place nothing follows that would ask for more than one that begins another.
    longest_first = (sorted(spellings, key=len, reverse=True) for spellings in sure)
    head = b"".join(b"(?:%b)" % b"|".join(map(re.escape, spellings)) for spellings in longest_first)
    whole = len(sure) == len(places)
    return Spelled(
        places=places,
        pattern=re.compile(head if whole else b"(?=%b)" % head, re.DOTALL),
        is_whole=whole,
        longest=sum(max(map(len, spellings)) for spellings in places),
    )


def _is_doubtful(spellings: tuple[bytes, ...]) -> bool:
    return any(one != other and other.startswith(one) for one in spellings for other in spellings)


def _cases(digit: str) -> tuple[bytes, ...]:
    return tuple(sorted({digit.upper().encode(), digit.encode()}))


def _latin_1(text: str) -> bytes:
    """The text as older servers write it, where that is something else than UTF-8."""
    try:
        return b"" if text.isascii() else text.encode("latin-1")
    except UnicodeEncodeError:
        return b""


def _spellings(character: str, *, lost: bool) -> tuple[bytes, ...]:
    """`lost`: what a decoder puts for a character of Latin-1 counts as one."""
    code, wide = ord(character), character.encode("utf-16-be", "surrogatepass").hex()
    found: set[bytes] = set()
    for raw in filter(None, (character.encode("utf-8", "surrogatepass"), _latin_1(character))):
        found |= {raw, *_of_each_byte("%", raw), *_of_each_byte("%25", raw), *_of_each_byte("\\x", raw)}
    for digits in {wide, wide.upper()}:
        found.add("".join(f"\\u{digits[at : at + 4]}" for at in range(0, len(digits), 4)).encode())
    for digits in {f"{code:x}", f"{code:X}", f"{code:02x}", f"{code:02X}"}:
        found |= {f"&#x{digits};".encode(), f"&#X{digits};".encode()}
    found |= {b"&#%d;" % code, b"&#0%d;" % code}
    if lost and _latin_1(character):
        found.add(_LOST)
    if code in codepoint2name:
        found.add(f"&{codepoint2name[code]};".encode())
    return tuple(sorted({*found, *_OWN.get(character, [])}))


def _of_each_byte(sign: str, raw: bytes) -> tuple[bytes, bytes]:
    """The sign and two digits for each byte, in either case."""
    low = "".join(f"{sign}{byte:02x}" for byte in raw)
    return low.encode(), "".join(f"{sign}{byte:02X}" for byte in raw).encode()


def _base64_spellings(byte: int) -> tuple[bytes, ...]:
    plain = bytes([byte])
    also = {b"+": [b"-", b"%2B", b"%2b"], b"/": [b"_", b"%2F", b"%2f", b"\\/"]}.get(plain, [])
    return (plain, *also)
