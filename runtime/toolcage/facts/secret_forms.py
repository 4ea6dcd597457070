"""The forms of one known value that encoders give to it as a whole.

Decides which runs of characters give a value away: as it is, in base64 at every alignment (both alphabets), base32,
byte by byte, URL, JSON, HTML and shell escapes. Trusts the caller for the values; below `SHORTEST_SECRET` characters
there are none, since they would match everywhere. It does not look for encryption, compression or an encoding of the
program's own.

`secret_spellings` adds the forms that are put together character by character; searches go there.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
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


def occurrences(text: str | bytes, form: str | bytes) -> Iterator[tuple[int, int]]:
    """Where the form stands, one behind the other."""
    start = text.find(form)  # type: ignore[arg-type]
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + len(form))  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def forms(secret: str) -> tuple[bytes, ...]:
    """The forms in UTF-8; none for a value too short to be one."""
    if len(secret) < SHORTEST_SECRET:
        return ()
    raw = secret.encode("utf-8", "surrogatepass")
    encoded = _url_encoded(raw) | _base64_encoded(raw) | {base64.b32encode(raw).decode().rstrip("=")}
    written = _escaped(secret) | {one for one in encoded if len(one) >= _SHORTEST_ENCODED}
    written |= {spelled for one in _by_byte(raw) for spelled in (one, one.upper().replace("\\X", "\\x"))}
    return tuple(sorted(one.encode("utf-8", "surrogatepass") for one in written))


def _by_byte(raw: bytes) -> tuple[str, ...]:
    """As string literals and URLs write it. Dumps and fingerprints in any case are among the `secret_spellings`."""
    return tuple("".join(f"{sign}{byte:02x}" for byte in raw) for sign in ("\\x", "%"))


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
