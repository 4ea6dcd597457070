"""What a cage may ask of a mailbox, read by a small grammar and written anew: nothing that leaves a trace.

A command is taken apart into words, strings and lists; strings are values that are written to the server again in one
form, so no byte of the cage's own spelling reaches it. Search keys and fetch items are allowlists: no `BODY[…]` that
marks a message as read, no keys of extensions. Source: RFC 3501; folder names are modified UTF-7 (its 5.1.3). Pure.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Part: TypeAlias = "str | bytes"
"""`str` is a word of the protocol, `bytes` the value of a string."""

MAX_STRING: Final = 1024
MAX_PARTS: Final = 200
_TOKEN: Final = re.compile(rb'[ ]*(?:"((?:[^"\\\r\n\0]|\\["\\])*)"|([()])|([^ "()\\{\x00-\x1f\x7f-\xff]+))')
_FLAGS: Final = frozenset(
    ["ALL", "ANSWERED", "DELETED", "DRAFT", "FLAGGED", "NEW", "OLD", "RECENT", "SEEN", "UNANSWERED", "UNDELETED",
     "UNDRAFT", "UNFLAGGED", "UNSEEN"]
)  # fmt: skip
_TEXTS: Final = frozenset(["BCC", "BODY", "CC", "FROM", "SUBJECT", "TEXT", "TO", "KEYWORD", "UNKEYWORD"])
_DATES: Final = frozenset(["BEFORE", "ON", "SENTBEFORE", "SENTON", "SENTSINCE", "SINCE"])
_SIZES: Final = frozenset(["LARGER", "SMALLER"])
_DATE: Final = re.compile(r"[0-9]{1,2}-[A-Za-z]{3}-[0-9]{4}")
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_SOME: Final = r"(?:[0-9]{1,10}|\*)(?::(?:[0-9]{1,10}|\*))?"
_SET: Final = re.compile(rf"{_SOME}(?:,{_SOME}){{0,999}}")
_ITEMS: Final = frozenset(["UID", "FLAGS", "INTERNALDATE", "RFC822.SIZE", "ENVELOPE", "BODYSTRUCTURE"])
_SECTION: Final = re.compile(
    r"BODY\.PEEK\[(?:(?:[0-9]{1,4}(?:\.[0-9]{1,4}){0,9}\.)?(?:HEADER|TEXT|MIME)|[0-9]{1,4}(?:\.[0-9]{1,4}){0,9}"
    r"|HEADER\.FIELDS \([A-Za-z0-9-]{1,64}(?: [A-Za-z0-9-]{1,64}){0,29}\))?\](?:<[0-9]{1,10}\.[1-9][0-9]{0,9}>)?",
    re.IGNORECASE,
)


class Unreadable(Exception):
    """It is not one of the commands that pass; the text is for the tool."""


def words(line: bytes) -> list[Part]:
    """The parts of a line or of a piece between literals. Raises Unreadable."""
    parts: list[Part] = []
    at = 0
    while at < len(line):
        found = _TOKEN.match(line, at)
        if found is None or len(parts) >= MAX_PARTS:
            if not line[at:].strip(b" "):
                break
            raise Unreadable("this command cannot be read with certainty")
        if found[1] is not None:
            value = re.sub(rb"\\(.)", rb"\1", found[1])
            if len(value) > MAX_STRING:
                raise Unreadable(f"a string is longer than {MAX_STRING} bytes")
            parts.append(value)
        else:
            parts.append((found[2] or found[3]).decode("ascii"))
        at = found.end()
    return parts


def search(parts: list[Part]) -> list[Part]:
    """The checked keys of a `UID SEARCH`, in their one form. Raises Unreadable."""
    left = list(parts)
    charset: list[Part] = []
    if left and _word(left[0]) == "CHARSET":
        if len(left) < 2 or _word(_as_text(left[1])) != "UTF-8":
            raise Unreadable("search in UTF-8 or without CHARSET")
        charset, left = ["CHARSET", "UTF-8"], left[2:]
    if not left:
        raise Unreadable("say what to search for, such as ALL")
    out: list[Part] = []
    while left:
        out += _key(left, 0)
    needed = any(isinstance(part, bytes) and not part.isascii() for part in out)
    return [*(charset or (["CHARSET", "UTF-8"] if needed else [])), *out]


def _key(left: list[Part], depth: int) -> list[Part]:
    """Takes one search key off `left`."""
    if depth > 10:
        raise Unreadable("the search is nested too deeply")
    if not left:
        raise Unreadable("the search ends too early")
    word = _word(left.pop(0))
    if word in _FLAGS:
        return [word]
    if word in _TEXTS:
        value = _take(left)
        return [word, value if isinstance(value, bytes) else value.encode()]
    if word in _DATES:
        return [word, _matching(_take(left), _DATE, "write a date such as 1-May-2026")]
    if word in _SIZES:
        return [word, _matching(_take(left), _NUMBER, "write a number")]
    if word == "UID":
        return [word, _matching(_take(left), _SET, "write numbers such as 1:9")]
    if word == "HEADER":
        name, value = _as_text(_take(left)), _take(left)
        return [word, _matching(name, re.compile(r"[A-Za-z0-9-]{1,64}"), "write a field's name"),
                value if isinstance(value, bytes) else value.encode()]  # fmt: skip
    if word == "NOT":
        return [word, *_key(left, depth + 1)]
    if word == "OR":
        return [word, *_key(left, depth + 1), *_key(left, depth + 1)]
    if word == "(":
        inner: list[Part] = []
        while left and left[0] != ")":
            inner += _key(left, depth + 1)
        if not inner or _take(left) != ")":
            raise Unreadable("a parenthesis does not close")
        return ["(", *inner, ")"]
    raise Unreadable(f"the search key {word[:40] or 'that was given'} does not pass this portal")


def fetch(text: bytes) -> str:
    """The checked `SET ITEMS` of a `UID FETCH`, in one form. Raises Unreadable."""
    try:
        numbers, _, items = text.decode("ascii").strip(" ").partition(" ")
    except UnicodeDecodeError:
        raise Unreadable("this command cannot be read with certainty") from None
    if not _SET.fullmatch(numbers):
        raise Unreadable("write message numbers such as 1:9 or 4,7")
    items = items.strip(" ")
    inner = items[1:-1] if items.startswith("(") and items.endswith(")") else items
    found = [item.upper() if not item.upper().startswith("BODY.PEEK") else item for item in _items(inner)]
    if not found:
        raise Unreadable("say what to fetch, such as (UID BODY.PEEK[HEADER])")
    for item in found:
        if item not in _ITEMS and not _SECTION.fullmatch(item):
            raise Unreadable(f"{item[:60]} does not pass this portal; use BODY.PEEK[], which marks nothing as read")
    return f"{numbers} ({' '.join(found)})"


def _items(text: str) -> list[str]:
    """Split at blanks outside brackets. Linear."""
    items, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == " " and depth == 0:
            items.append(text[start:at])
            start = at + 1
    return [item for item in (*items, text[start:]) if item][:MAX_PARTS]


def _take(left: list[Part]) -> Part:
    if not left:
        raise Unreadable("the search ends too early")
    return left.pop(0)


def _word(part: Part) -> str:
    return part.upper() if isinstance(part, str) else ""


def _as_text(part: Part) -> str:
    return part if isinstance(part, str) else part.decode("ascii", "replace")


def _matching(part: Part, form: re.Pattern[str], otherwise: str) -> str:
    text = _as_text(part)
    if not form.fullmatch(text):
        raise Unreadable(otherwise)
    return text


def quoted(value: bytes) -> bytes | None:
    """The value as a quoted string, or None where only a literal can carry it."""
    if not all(32 <= byte < 127 for byte in value):
        return None
    return b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
