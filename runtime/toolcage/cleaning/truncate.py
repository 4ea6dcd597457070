"""Long text cut to its beginning and end.

Danger: output that fills a context window or a screen, and a cut that splits a key so that its half is no longer
recognised. Protects: the model's context, logs, screens.

Text is first narrowed to a `window` (so that the work of cleaning is bounded), cleaned, and only then cut to size: keys
are redacted whole. Where the window itself cuts, the broken word at the border is dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SLACK_BYTES = 8 * 1024
_BROKEN_END = re.compile(r"\S{1,1024}\Z")
_BROKEN_START = re.compile(r"\S{1,1024}")


def window(raw: bytes, max_bytes: int) -> tuple[bytes, bytes, int]:
    """Beginning, end, and the number of bytes between that were dropped. The end is empty when nothing was."""
    keep = max_bytes + SLACK_BYTES
    if len(raw) <= 2 * keep:
        return raw, b"", 0
    return raw[:keep], raw[-keep:], len(raw) - 2 * keep


def without_broken_end(text: str) -> str:
    """The text up to the last whitespace, if that is near: what follows may be half of a key."""
    near = text[-1024:]
    match = _BROKEN_END.search(near)
    return text[: len(text) - len(match[0])] if match else text


def without_broken_start(text: str) -> str:
    """The text from the first whitespace, if that is near."""
    match = _BROKEN_START.match(text)
    return text[match.end() :] if match else text


@dataclass(frozen=True, slots=True)
class Cut:
    """A text cut to size; `kept` and `dropped` count bytes of UTF-8, without the mark between beginning and end."""

    text: str
    kept: int
    dropped: int


def cut(text: str, max_bytes: int) -> Cut:
    """The text, or its beginning and end with a mark between them that says how many bytes are missing.

    The mark comes on top of `max_bytes`.
    """
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= max_bytes:
        return Cut(text, len(encoded), 0)
    return _around_gap(encoded, encoded, len(encoded), max_bytes)


def join(head: str, tail: str, dropped: int, max_bytes: int) -> Cut:
    """The two sides of a window that dropped `dropped` bytes between them, cut further where they are too long."""
    first, last = head.encode("utf-8", "replace"), tail.encode("utf-8", "replace")
    return _around_gap(first, last, len(first) + len(last) + dropped, max_bytes)


def _around_gap(head: bytes, tail: bytes, total: int, max_bytes: int) -> Cut:
    of_tail = min(max_bytes // 2, len(tail))
    first = head[: max_bytes - of_tail].decode("utf-8", "ignore")
    last = tail[len(tail) - of_tail :].decode("utf-8", "ignore")
    kept = len(first.encode()) + len(last.encode())
    return Cut(f"{first}\n[… {total - kept} bytes dropped …]\n{last}", kept, total - kept)
