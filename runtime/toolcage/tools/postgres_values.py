"""Values of PostgreSQL as JSON, without losing one, and back: from the server's own text, by the column's type.

Exact decimals, dates, times, UUIDs and JSON documents stay the texts that the server writes; arrays become lists. What
has no better form in JSON (ranges, enumerations, geometry, types of the operator's own) is text too. Decides nothing.
Standard library only; sent into the cage beside the tools that use it.
"""

from __future__ import annotations

import math
from typing import Any

from toolcage.tools.base import ToolFailure
from toolcage.tools.sql_answer import MAX_CELL_CHARACTERS, Answer

BOOL, BYTEA, INT8, INT4, NUMERIC = 16, 17, 20, 23, 1700
NAMES = {
    BOOL: "boolean", BYTEA: "blob", INT8: "bigint", 21: "smallint", INT4: "integer", 26: "oid", 700: "real",
    701: "double precision", NUMERIC: "numeric", 1082: "date", 1083: "time", 1266: "timetz", 1114: "timestamp",
    1184: "timestamptz", 1186: "interval", 2950: "uuid", 114: "json", 3802: "jsonb",
}  # fmt: skip
_INTEGERS = frozenset({INT8, 21, INT4, 26})
_FLOATS = frozenset({700, 701})
# The array type of each type whose elements are not simply text.
_ARRAYS = {
    1000: BOOL, 1001: BYTEA, 1016: INT8, 1005: 21, 1007: INT4, 1028: 26, 1021: 700, 1022: 701, 1231: NUMERIC,
    1182: 1082, 1183: 1083, 1270: 1266, 1115: 1114, 1185: 1184, 1187: 1186, 2951: 2950, 199: 114, 3807: 3802,
    1009: 25, 1015: 1043, 1014: 1042, 1003: 19,
}  # fmt: skip
MAX_ARRAY_DEPTH = 6


def type_name(oid: int) -> str:
    """The type's name in an answer: `text` for whatever comes as text."""
    element = _ARRAYS.get(oid)
    return NAMES.get(oid, "text") if element is None else f"{NAMES.get(element, 'text')}[]"


def cell(content: bytes | None, oid: int, answer: Answer) -> Any:
    """One value as JSON; what was changed on the way is noted in `answer`."""
    if content is None:
        return None
    element = _ARRAYS.get(oid)
    if element is None:
        return _plain(content, oid, answer)
    text = content.decode("utf-8", "replace")
    if len(text) > MAX_CELL_CHARACTERS:
        return answer.text(text)
    try:
        return _array(text, element, answer)
    except (ValueError, IndexError):
        return text  # bounds of its own, or a form that is not known here


def bound(value: object) -> tuple[int, bytes | None]:
    """The type and the text with which a plain value is bound. The server finds the type of a text by its place.

    A whole number is as narrow as it can be, since a wider one fits fewer functions; one with a point is an exact
    decimal, as it was written.
    """
    if value is None:
        return 0, None
    if isinstance(value, bool):
        return BOOL, b"true" if value else b"false"
    if isinstance(value, int):
        return (INT4 if -(2**31) <= value < 2**31 else INT8), str(value).encode()
    if isinstance(value, float):
        return NUMERIC, repr(value).encode()
    text = str(value)
    if "\0" in text:
        raise ToolFailure("sql.bad_parameters", "A parameter holds a NUL character, which PostgreSQL cannot hold.")
    return 0, text.encode()


def _plain(content: bytes, oid: int, answer: Answer) -> Any:
    if oid == BYTEA:
        return answer.blob(bytes.fromhex(content[2:].decode("ascii", "replace")))
    text = content.decode("utf-8", "replace")
    if oid == BOOL:
        return text == "t"
    if oid in _INTEGERS:
        return answer.integer(int(text))
    if oid in _FLOATS:
        number = float(text)
        if math.isfinite(number):
            return number
        answer.infinite()
        return None
    if oid == NUMERIC:
        answer.note("exact decimals are given as text")
    return answer.text(text)


def _array(text: str, element: int, answer: Answer) -> list[Any]:
    """`{1,NULL,"a \\"b\\""}`, nested too. Raises ValueError or IndexError for anything else."""
    made, at = _items(text, 0, element, answer, 0)
    if at != len(text):
        raise ValueError(text)
    return made


def _items(text: str, at: int, element: int, answer: Answer, depth: int) -> tuple[list[Any], int]:
    if text[at] != "{" or depth > MAX_ARRAY_DEPTH:
        raise ValueError(text)
    at += 1
    made: list[Any] = []
    if text[at] == "}":
        return made, at + 1
    while True:
        if text[at] == "{":
            inner, at = _items(text, at, element, answer, depth + 1)
            made.append(inner)
        else:
            word, at = _word(text, at)
            made.append(None if word is None else _plain(word.encode(), element, answer))
        if text[at] == "}":
            return made, at + 1
        if text[at] != ",":
            raise ValueError(text)
        at += 1


def _word(text: str, at: int) -> tuple[str | None, int]:
    """One element and where it ends; None for an unquoted NULL."""
    if text[at] != '"':
        end = at
        while text[end] not in ",}":
            end += 1
        return (None if text[at:end] == "NULL" else text[at:end]), end
    parts: list[str] = []
    at += 1
    while text[at] != '"':
        at += text[at] == "\\"
        parts.append(text[at])
        at += 1
    return "".join(parts), at + 1
