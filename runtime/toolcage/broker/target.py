"""Whether the path of a request lies within the granted prefixes, whatever a server makes of its spelling.

A path is judged only when there is one way to read it. Refused before any comparison: dot segments, also encoded ones
and those before a `;`, encoded slashes, backslashes, controls and percent signs that would decode once more, empty
segments, anything that is not UTF-8, and characters that some server would fold into a slash, a dot or a percent sign.
Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote_to_bytes

from toolcage.broker.stream import Denied

_PATH: Final = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)+")
_QUERY: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/?\[\]|^{}\"<>`\\%-]*")
_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f/\\]")


def split_target(target: str) -> tuple[str, str]:
    """Path and query (with its `?`, or '') of a request's target. Raises Denied for anything but a path."""
    path, mark, query = target.partition("?")
    if not _PATH.fullmatch(path):
        raise _refused("the request must name a plain path, not a whole URL")
    if not _QUERY.fullmatch(query):
        raise _refused("the request's query holds characters that must be percent-encoded")
    return path, mark + query


def check_path(path: str, prefixes: Iterable[str]) -> None:
    """Raises Denied unless there is one reading of `path`, and by it the path is one of `prefixes` or below one."""
    decoded = "/".join(_segment(segment) for segment in path.split("/"))
    if "//" in decoded:
        raise _refused("the path has an empty segment")
    if not any(_beneath(decoded, prefix) for prefix in prefixes):
        raise Denied("egress.path_not_granted", "this path of the resource is not granted", f"path {path[:300]}")


def _segment(segment: str) -> str:
    try:
        decoded = unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        raise _refused("the path is not UTF-8") from None
    folded = unicodedata.normalize("NFKC", decoded)
    for text in (decoded, folded):
        if _FORBIDDEN.search(text):
            raise _refused("the path has an encoded slash, backslash or control")
        if text.partition(";")[0].strip() in (".", ".."):
            raise _refused("the path has a dot segment")
        if _ENCODED.search(text):
            raise _refused("the path is encoded twice")
    return decoded


def _beneath(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(prefix if prefix.endswith("/") else f"{prefix}/")


def _refused(message: str) -> Denied:
    return Denied("egress.bad_path", message)
