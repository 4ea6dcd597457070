"""The ways in which one known value may be written.

Decides which texts give a value away: as it is, in base64 at every alignment (both alphabets), base32, hexadecimal,
URL, JSON, HTML and shell escapes. Trusts the caller for the values; below four characters there are none, since they
would match everywhere. It does not look for encryption, compression or an encoding of the program's own.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from urllib.parse import quote, quote_plus

_SHORTEST_EXACT = 4
_SHORTEST_ENCODED = 6
_SHELL_SPECIAL = re.compile(r"[^\w@%+=:,./-]")


@dataclass(frozen=True, slots=True)
class Forms:
    """`ascii` are searched for in the ASCII image of a text, `folded` in its lower case, `other` in the text itself."""

    ascii: tuple[bytes, ...] = ()
    folded: tuple[bytes, ...] = ()
    other: tuple[str, ...] = ()

    def find(self, text: str, image: bytes, folded: bytes) -> Iterator[tuple[int, int]]:
        """Where one of the forms stands."""
        for form in self.ascii:
            yield from _occurrences(image, form)
        for form in self.folded:
            yield from _occurrences(folded, form)
        for written in self.other:
            yield from _occurrences(text, written)


def _occurrences(text: str | bytes, form: str | bytes) -> Iterator[tuple[int, int]]:
    start = text.find(form)  # type: ignore[arg-type]
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + len(form))  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def forms(secret: str) -> Forms:
    """Every way to write the value; none for a value too short to be one."""
    if len(secret) < _SHORTEST_EXACT:
        return Forms()
    raw = secret.encode("utf-8", "surrogatepass")
    quoted = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    encoded = {*quoted, *(re.sub("%..", lambda match: match[0].lower(), one) for one in quoted)}
    encoded.add(base64.b32encode(raw).decode().rstrip("="))
    for shift in range(3):
        code = base64.b64encode(b"\0" * shift + raw).decode()
        # The first and last characters also carry bits of the neighbours: only what is the secret's alone is compared.
        core = code[(0, 2, 3)[shift] : len(code) - (0, 3, 2)[(shift + len(raw)) % 3]]
        encoded |= {core, core.replace("+", "-").replace("/", "_")}
    written = _escaped(secret) | {one for one in encoded if len(one) >= _SHORTEST_ENCODED}
    # The image shows every character beyond ASCII as a question mark, so a form that holds one is not looked for there.
    plain = {form for form in written if form.isascii() and "?" not in form}
    return Forms(
        ascii=tuple(sorted(form.encode() for form in plain)),
        folded=(raw.hex().encode(),),
        other=tuple(sorted(written - plain)),
    )


def _escaped(secret: str) -> set[str]:
    """The value as it is and with the characters escaped that a JSON string, a page or a shell would escape."""
    once = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    twice = {json.dumps(one)[1:-1] for one in once}
    return {secret, escape(secret), _SHELL_SPECIAL.sub(r"\\\g<0>", secret), *once, *twice}
