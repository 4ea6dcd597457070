"""The ways in which one known value may be written.

Decides which texts give a value away: as it is, in base64 at every alignment (both alphabets), base32, hexadecimal
(also byte by byte), URL, JSON, HTML and shell escapes. Trusts the caller for the values; below `SHORTEST_SECRET`
characters there are none, since they would match everywhere. It does not look for encryption, compression or an
encoding of the program's own.

`Forms` is for whole texts, where a reader also folds what is hidden; for bytes that pass through see `secret_stream`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
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
                yield from occurrences(image, form)
        for form in self.folded:
            if not any(sign in form for sign in signs):
                yield from occurrences(folded, form)
        for written in self.other:
            yield from occurrences(text, written)

    @property
    def longest(self) -> int:
        """Characters of the longest form; 0 if there is none."""
        return max(map(len, (*self.ascii, *self.folded, *self.other)), default=0)


def occurrences(text: str | bytes, form: str | bytes) -> Iterator[tuple[int, int]]:
    """Where the form stands, one behind the other."""
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
