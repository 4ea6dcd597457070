"""Known values taken out of bytes that pass through, as in a portal, wherever the chunks end.

A server may echo a key (an error page, a debug route, a mirror of the request's headers), and whoever reads the answer
must not learn it. Removed are all forms of `secret_forms`, UTF-16, and forms whose characters are each written in a way
of its own: in UTF-8 or Latin-1, percent-encoded once or twice, escaped as in JSON, SQL or programs, as HTML references,
in hex of either case, in base64 with some signs encoded. Nothing is decoded, a form split over any number of chunks is
removed, and only bytes that could be the beginning of one are held back. A caller that forwards a compressed body must
unpack it first.

No text makes the search double its work: a pattern goes as far as it can be read in few ways, and behind that a form is
walked once, all its spellings side by side.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from html.entities import codepoint2name
from typing import Final, TypeAlias

from toolcage.facts.secret_forms import SHORTEST_SECRET, forms, occurrences

_Places: TypeAlias = tuple[tuple[bytes, ...], ...]
"""The characters of a form in order, each with the spellings that it may have."""
_MARK: Final = b"[redacted:secret]"
_MOST_HELD_FORMS: Final = 4
_LONG: Final = 512
"""From this many bytes on, a value is looked for only as it is and in the forms that change every byte alike."""
_LEAST: Final = 6
_MOST_DOUBTFUL: Final = 6
"""So many characters with one spelling that begins another may stand in a pattern: each may double its work."""
_OWN: Final[dict[str, list[bytes]]] = {
    " ": [b"+", b"&nbsp;"], "\t": [b"\\t"], "\n": [b"\\n"], "\r": [b"\\r"], "\\": [b"\\\\"], "/": [b"\\/"],
    "'": [b"\\'", b"''", b"'\\''", b"&apos;", b"\\&#39;", b"\\&#039;", b"\\&#x27;"],
    '"': [b'\\"', b'""', b"\\&quot;", b"\\&#34;"],
}  # fmt: skip
"""What forms, strings of programs and those in a page write for single characters."""


@dataclass(frozen=True, slots=True)
class _Spelled:
    """One form whose characters are each spelled in one of several ways. `pattern` finds where all of it stands
    (`is_whole`), or where it may begin."""

    places: _Places
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


class SecretRemover:
    """Takes known values out of bytes that pass through, in all their forms.

    Each is replaced by `[redacted:secret]`, or with `same_length` by as many asterisks, so that lengths announced
    before stay true. `removed` counts. Memory: at most a few times the longest form is held back.

    Raises:
        ValueError: a value is shorter than `SHORTEST_SECRET`; to ignore it would let it pass.
    """

    __slots__ = ("_closed", "_exact", "_held", "_longest", "_same_length", "_spelled", "removed")

    def __init__(self, secrets: Iterable[str], *, same_length: bool = False) -> None:
        known = tuple(secrets)
        if any(len(secret) < SHORTEST_SECRET for secret in known):
            raise ValueError(f"a secret of fewer than {SHORTEST_SECRET} characters cannot be taken out of a stream")
        self._exact = tuple(sorted({form for secret in known for form in _exact(secret)}))
        self._spelled = tuple(form for secret in known for form in _spelled(secret))
        self._longest = max((*map(len, self._exact), *(form.longest for form in self._spelled)), default=0)
        self._same_length = same_length
        self._held = b""
        self._closed = False
        self.removed = 0

    def feed(self, chunk: bytes) -> bytes:
        """The bytes that are surely no part of a secret that goes on, without the secrets in them.

        Raises:
            ValueError: the stream was closed.
        """
        if self._closed:
            raise ValueError("the stream was closed")
        if not self._longest:
            return bytes(chunk)
        data = self._held + chunk
        spans = self._spans(data)
        cut = begins = self._begins(data)
        for start, end in reversed(spans):
            if start < cut < end:
                cut = start
        if len(data) - cut > _MOST_HELD_FORMS * self._longest:  # a chain of overlapping forms without an end
            cut = next((end for start, end in spans if start < begins < end), begins)
        self._held = data[cut:]
        return self._without([span for span in spans if span[1] <= cut], data[:cut])

    def close(self) -> bytes:
        """What was held back, without secrets. Closing twice gives nothing."""
        data, self._held, self._closed = self._held, b"", True
        return self._without(self._spans(data), data)

    def remove(self, data: bytes) -> bytes:
        """Whole bytes without secrets; independent of the stream, for headers and the like."""
        return self._without(self._spans(data), data)

    def _spans(self, data: bytes) -> list[tuple[int, int]]:
        found = [span for form in self._exact for span in occurrences(data, form)]
        found += (span for form in self._spelled for span in form.spans(data))
        merged: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _begins(self, data: bytes) -> int:
        """Where the first form begins that the end of the data cuts off; the end itself if there is none."""
        first = len(data)
        for form in self._exact:
            place = data.find(form[:1], max(0, len(data) - len(form) + 1), first)
            while place >= 0:
                if form.startswith(data[place : place + 8]) and form.startswith(data[place:]):
                    first = place
                    break
                place = data.find(form[:1], place + 1, first)
        for spelled in self._spelled:
            may_begin = range(max(0, len(data) - spelled.longest + 1), first)
            first = next((place for place in may_begin if spelled.is_cut_off(data, place)), first)
        return first

    def _without(self, spans: list[tuple[int, int]], data: bytes) -> bytes:
        self.removed += len(spans)
        pieces, position = [], 0
        for start, end in spans:
            pieces += [data[position:start], b"*" * (end - start) if self._same_length else _MARK]
            position = end
        return b"".join([*pieces, data[position:]])


@lru_cache(maxsize=64)
def _exact(secret: str) -> tuple[bytes, ...]:
    """The forms that are one run of bytes each, but for those that are a spelling of `_spelled`."""
    found = forms(secret)
    upper = (form.upper().replace(b"\\X", b"\\x") for form in found.folded)
    wide = secret.encode("utf-16-le", "surrogatepass").strip(b"\0")  # either order: the NULs between them are the same
    other = (one.encode("utf-8", "surrogatepass") for one in found.other)
    every = (*found.ascii, *found.folded, *upper, *other, wide)
    return tuple(one for one in every if not any((0, len(one)) in form.spans(one) for form in _spelled(secret)))


@lru_cache(maxsize=64)
def _spelled(secret: str) -> tuple[_Spelled, ...]:
    raw = secret.encode("utf-8", "surrogatepass")
    narrow = _latin_1(secret)
    found: list[_Places] = [tuple(_cases(digit) for digit in one.hex()) for one in (raw, narrow) if one]
    if len(raw) <= _LONG:
        found.append(tuple(map(_spellings, secret)))
    for offset in range(3):
        found += _base64_places(raw, offset)
        found += _base64_places(narrow, offset) if narrow else []
    return tuple(map(_compiled, found))


def _base64_places(raw: bytes, offset: int) -> list[_Places]:
    """What stands for `raw` alone, behind so many bytes of something else; nothing where that is too little."""
    encoded = base64.b64encode(bytes(offset) + raw)
    first, behind = -(-offset * 8 // 6), (offset + len(raw)) * 8 // 6
    return [tuple(map(_base64_spellings, encoded[first:behind]))] if behind - first >= _LEAST else []


def _compiled(places: _Places) -> _Spelled:
    doubtful = [place for place, spellings in enumerate(places) if _is_doubtful(spellings)]
    sure = places[: doubtful[_MOST_DOUBTFUL]] if len(doubtful) > _MOST_DOUBTFUL else places
    head = b"".join(b"(?:%b)" % b"|".join(map(re.escape, spellings)) for spellings in sure)
    whole = len(sure) == len(places)
    return _Spelled(
        places=places,
        pattern=re.compile(head if whole else b"(?=%b)" % head, re.DOTALL),
        is_whole=whole,
        longest=sum(max(map(len, spellings)) for spellings in places),
    )


def _is_doubtful(spellings: tuple[bytes, ...]) -> bool:
    return any(one != other and other.startswith(one) for one in spellings for other in spellings)


def _cases(digit: str) -> tuple[bytes, ...]:
    return tuple({digit.upper().encode(), digit.encode()})


def _latin_1(text: str) -> bytes:
    """The text as older servers write it, where that is something else than UTF-8."""
    try:
        return b"" if text.isascii() else text.encode("latin-1")
    except UnicodeEncodeError:
        return b""


def _spellings(character: str) -> tuple[bytes, ...]:
    code, wide = ord(character), character.encode("utf-16-be", "surrogatepass").hex()
    found: set[bytes] = set()
    for raw in filter(None, (character.encode("utf-8", "surrogatepass"), _latin_1(character))):
        found |= {raw, *_of_each_byte("%", raw), *_of_each_byte("%25", raw), *_of_each_byte("\\x", raw)}
    for digits in {wide, wide.upper()}:
        found.add("".join(f"\\u{digits[at : at + 4]}" for at in range(0, len(digits), 4)).encode())
    for digits in {f"{code:x}", f"{code:X}", f"{code:02x}", f"{code:02X}"}:
        found |= {f"&#x{digits};".encode(), f"&#X{digits};".encode()}
    found |= {b"&#%d;" % code, b"&#0%d;" % code}
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
