"""The ways in which one known value may be written, and their removal from a stream of bytes.

Decides which texts give a value away: as it is, in base64 at every alignment (both alphabets), base32, hexadecimal
(also byte by byte), URL, JSON, HTML and shell escapes. Trusts the caller for the values; below `SHORTEST_SECRET`
characters there are none, since they would match everywhere. It does not look for encryption, compression (a caller
that forwards a compressed body must unpack it first) or an encoding of the program's own.

`Forms` is for whole texts, where a reader also folds what is hidden; `SecretRemover` is for bytes that pass through,
as in a portal: nothing is decoded, a form split over any number of chunks is removed, and only bytes that could be the
beginning of one are held back.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Final
from urllib.parse import quote, quote_plus

SHORTEST_SECRET: Final = 4
"""A shorter value cannot be looked for."""
_SHORTEST_ENCODED: Final = 6
_SHELL_SPECIAL: Final = re.compile(r"[^\w@%+=:,./-]")
# What the common encoders leave as it is: Python and RFC 3986, paths, browsers' encodeURIComponent and encodeURI, none.
_LEFT_BY_URLS: Final = ("", "/", "!'()*~", ";,/?:@&=+$#!'()*~")
_MARK: Final = b"[redacted:secret]"
_MOST_HELD_FORMS: Final = 4


@dataclass(frozen=True, slots=True)
class Forms:
    """`ascii` are searched for in the ASCII image of a text, `folded` in its lower case, `other` in the text itself."""

    ascii: tuple[bytes, ...] = ()
    folded: tuple[bytes, ...] = ()
    other: tuple[str, ...] = ()

    def find(self, text: str, image: bytes, folded: bytes) -> Iterator[tuple[int, int]]:
        """Where one of the forms stands."""
        # Each search of a megabyte costs: a form with a percent sign or a backslash is not in a text without one.
        signs = [sign for sign in b"%\\" if sign not in image]
        for form in self.ascii:
            if not any(sign in form for sign in signs):
                yield from _occurrences(image, form)
        for form in self.folded:
            if not any(sign in form for sign in signs):
                yield from _occurrences(folded, form)
        for written in self.other:
            yield from _occurrences(text, written)

    @property
    def longest(self) -> int:
        """Characters of the longest form; 0 if there is none."""
        return max(map(len, (*self.ascii, *self.folded, *self.other)), default=0)


class SecretRemover:
    """Takes known values out of bytes that pass through, in all their forms.

    Each is replaced by `[redacted:secret]`, or with `same_length` by as many asterisks, so that lengths announced
    before stay true. `removed` counts. Memory: at most a few times the longest form is held back.

    Raises:
        ValueError: a value is shorter than `SHORTEST_SECRET`; to ignore it would let it pass.
    """

    __slots__ = ("_closed", "_forms", "_held", "_longest", "_same_length", "removed")

    def __init__(self, secrets: Iterable[str], *, same_length: bool = False) -> None:
        known = tuple(secrets)
        if any(len(secret) < SHORTEST_SECRET for secret in known):
            raise ValueError(f"a secret of fewer than {SHORTEST_SECRET} characters cannot be taken out of a stream")
        self._forms = tuple(sorted({form for secret in known for form in byte_forms(secret)}))
        self._longest = max(map(len, self._forms), default=0)
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
        if not self._forms:
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
        merged: list[tuple[int, int]] = []
        for start, end in sorted(span for form in self._forms for span in _occurrences(data, form)):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _begins(self, data: bytes) -> int:
        """Where the first form begins that the end of the data cuts off; the end itself if there is none."""
        first = len(data)
        for form in self._forms:
            place = data.find(form[:1], max(0, len(data) - len(form) + 1), first)
            while place >= 0:
                if form.startswith(data[place : place + 8]) and form.startswith(data[place:]):
                    first = place
                    break
                place = data.find(form[:1], place + 1, first)
        return first

    def _without(self, spans: list[tuple[int, int]], data: bytes) -> bytes:
        self.removed += len(spans)
        pieces, position = [], 0
        for start, end in spans:
            pieces += [data[position:start], b"*" * (end - start) if self._same_length else _MARK]
            position = end
        return b"".join([*pieces, data[position:]])


def byte_forms(secret: str) -> tuple[bytes, ...]:
    """Every way to write the value as bytes, in UTF-8."""
    found = forms(secret)
    upper = (form.upper().replace(b"\\X", b"\\x") for form in found.folded)
    return (*found.ascii, *found.folded, *upper, *(one.encode("utf-8", "surrogatepass") for one in found.other))


def _occurrences(text: str | bytes, form: str | bytes) -> Iterator[tuple[int, int]]:
    start = text.find(form)  # type: ignore[arg-type]
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + len(form))  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def forms(secret: str) -> Forms:
    """Every way to write the value; none for a value too short to be one."""
    if len(secret) < SHORTEST_SECRET:
        return Forms()
    raw = secret.encode("utf-8", "surrogatepass")
    encoded = _url_encoded(raw) | _base64_encoded(raw) | {base64.b32encode(raw).decode().rstrip("=")}
    written = _escaped(secret) | {one for one in encoded if len(one) >= _SHORTEST_ENCODED}
    # The image shows every character beyond ASCII as a question mark, so a form that holds one is not looked for there.
    plain = {form for form in written if form.isascii() and "?" not in form}
    return Forms(
        ascii=tuple(sorted(form.encode() for form in plain)),
        folded=tuple(form.encode() for form in _hexadecimal(raw)),
        other=tuple(sorted(written - plain)),
    )


def _hexadecimal(raw: bytes) -> tuple[str, ...]:
    """The digits, and byte by byte as dumps, fingerprints, string literals and URLs write them."""
    return (
        raw.hex(),
        raw.hex(" "),
        raw.hex(":"),
        *("".join(f"{sign}{byte:02x}" for byte in raw) for sign in ("\\x", "%")),
    )


def _base64_encoded(raw: bytes) -> set[str]:
    made: set[str] = set()
    for shift in range(3):
        code = base64.b64encode(b"\0" * shift + raw).decode()
        # The first and last characters also carry bits of the neighbours: only what is the secret's alone is compared.
        core = code[(0, 2, 3)[shift] : len(code) - (0, 3, 2)[(shift + len(raw)) % 3]]
        made |= {core, core.replace("+", "-").replace("/", "_"), quote(core, safe="")}
    return made


def _url_encoded(raw: bytes) -> set[str]:
    quoted = {quote(raw, safe=left) for left in _LEFT_BY_URLS} | {quote_plus(raw)}
    return {*quoted, *(re.sub("%..", lambda match: match[0].lower(), one) for one in quoted)}


def _escaped(secret: str) -> set[str]:
    """The value as it is and with the characters escaped that a JSON string, a page or a shell would escape."""
    once = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    once.add(json.dumps(secret)[1:-1].replace("/", "\\/"))
    twice = {json.dumps(one)[1:-1] for one in once}
    return {secret, escape(secret), _SHELL_SPECIAL.sub(r"\\\g<0>", secret), *once, *twice}
