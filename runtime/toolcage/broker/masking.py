"""Takes a resource's secret out of what its server sends back, in every usual spelling, wherever a chunk ends.

A server may echo the key (an error page, a debug route, a mirror of the request's headers), and the cage must not learn
it. Found are the plain text, also where characters of it are percent-encoded, escaped as in JSON or written as HTML
character references, in UTF-16, its hex form, and its base64 forms at each of the three offsets inside a longer
text. A find is overwritten with as many asterisks: lengths stay as they are announced. Spellings beyond these
(compression, a cipher) are not found: the broker asks for plain content and refuses any other.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

_Form: TypeAlias = tuple[tuple[bytes, ...], ...]
"""Places in order, each with the spellings that it may have, the longest first."""
_LEAST: Final = 6
_LONG: Final = 512
"""From this many bytes on, only spellings that change every character in the same way are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sought:
    pattern: re.Pattern[bytes] = re.compile(rb"(?!)")
    forms: tuple[_Form, ...] = ()
    firsts: frozenset[int] = frozenset()
    longest: int = 0


class Mask:
    """Over one stream of bytes. `pass_on` gives what may go on now, `rest` what was still held back at the end."""

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._sought = _sought(secrets)
        self._held = b""
        self.count = 0

    def pass_on(self, piece: bytes) -> bytes:
        """`piece` behind what was held, masked, without an end that could be the beginning of the secret."""
        if not self._sought.forms:
            return piece
        text = self.whole(self._held + piece)
        decided = _undecided_from(self._sought, text)
        self._held = text[decided:]
        return text[:decided]

    def rest(self) -> bytes:
        """What was held back. It is no secret: the stream is over."""
        held, self._held = self._held, b""
        return held

    def whole(self, text: bytes) -> bytes:
        """A text of its own, a header for instance, masked."""
        masked, count = self._sought.pattern.subn(lambda found: b"*" * len(found[0]), text)
        self.count += count
        return masked


@lru_cache(maxsize=64)
def _sought(secrets: tuple[str, ...]) -> _Sought:
    forms = tuple(form for secret in secrets for form in _forms_of(secret))
    if not forms:
        return _Sought()
    firsts = frozenset(spelling[0] for form in forms for spelling in form[0])
    begin = b"".join(re.escape(bytes([first])) for first in sorted(firsts))
    written = b"|".join(b"".join(map(_alternatives, form)) for form in forms)
    return _Sought(
        pattern=re.compile(b"(?=[%b])(?:%b)" % (begin, written), re.DOTALL),
        forms=forms,
        firsts=firsts,
        longest=max(sum(len(spellings[0]) for spellings in form) for form in forms),
    )


def _alternatives(spellings: tuple[bytes, ...]) -> bytes:
    escaped = b"|".join(map(re.escape, spellings))
    return escaped if len(spellings) == 1 else b"(?:%b)" % escaped


def _undecided_from(sought: _Sought, text: bytes) -> int:
    """The first place from which the text, as far as it goes, reads like the beginning of a form."""
    for start in range(max(0, len(text) - sought.longest + 1), len(text)):
        if text[start] in sought.firsts and any(_begins(form, text, start) for form in sought.forms):
            return start
    return len(text)


def _begins(form: _Form, text: bytes, start: int) -> bool:
    """Whether the text ends somewhere inside the form."""
    places = {start}
    for spellings in form:
        following = set()
        for at in places:
            for spelling in spellings:
                if text.startswith(spelling, at):
                    following.add(at + len(spelling))
                elif spelling.startswith(text[at:]):
                    return True
        if not following:
            return False
        places = following
    return False


def _forms_of(secret: str) -> tuple[_Form, ...]:
    """How the secret may be spelled. A form too short to tell from ordinary text is left out."""
    raw = secret.encode()
    mixed = len(raw) <= _LONG
    found: list[_Form] = [tuple(_spellings(byte) if mixed else (bytes([byte]),) for byte in raw)]
    # each way once: two equal ones double the work at every digit of a text that ends within the secret
    found.append(tuple(_longest_first([digit.upper().encode(), digit.encode()]) for digit in raw.hex()))
    wide = secret.encode("utf-16-le").strip(b"\0")  # either order of bytes: the NULs between them are the same
    found.append(tuple((bytes([byte]),) for byte in wide))
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + raw)
        first, behind = -(-offset * 8 // 6), (offset + len(raw)) * 8 // 6
        if behind - first >= _LEAST:
            found.append(tuple(_base64_spellings(byte) for byte in encoded[first:behind]))
    return tuple(found)


def _spellings(byte: int) -> tuple[bytes, ...]:
    low, high = f"{byte:02x}".encode(), f"{byte:02X}".encode()
    found = [bytes([byte]), b"%" + low, b"%" + high]
    if byte < 0x80:
        found += [b"\\u00" + low, b"\\u00" + high, b"&#%d;" % byte, b"&#x" + low + b";", b"&#x" + high + b";"]
        found += [b"&#0%d;" % byte, b"\\x" + low, b"\\x" + high]
    if byte in b'"\\/\'':
        found.append(b"\\" + bytes([byte]))
    found += _NAMED.get(byte, [])
    return _longest_first(found)


_NAMED: Final[dict[int, list[bytes]]] = {
    0x20: [b"+", b"&nbsp;"], 0x22: [b"&quot;"], 0x26: [b"&amp;"], 0x27: [b"&apos;"], 0x3C: [b"&lt;"], 0x3E: [b"&gt;"],
}  # fmt: skip
"""What forms and HTML write for single characters."""


def _base64_spellings(byte: int) -> tuple[bytes, ...]:
    plain = bytes([byte])
    also = {b"+": [b"-", b"%2B", b"%2b"], b"/": [b"_", b"%2F", b"%2f", b"\\/"]}.get(plain, [])
    return _longest_first([plain, *also])


def _longest_first(spellings: list[bytes]) -> tuple[bytes, ...]:
    return tuple(sorted(set(spellings), key=lambda spelling: (-len(spelling), spelling)))
