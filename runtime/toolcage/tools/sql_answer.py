"""What both kinds of database have in common in an answer: rows under caps, notes on what was changed, bound values.

Rows, cells and the whole are capped, cuts are marked, and what JSON cannot hold is noted. Decides nothing about which
statement may run. Standard library only; sent into the cage beside the tools that use it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolcage.tools.base import ToolFailure

DEFAULT_ROWS = 100
MAX_CELL_CHARACTERS = 8_000
MAX_PARAMETERS = 100
MAX_SQL_BYTES = 20_000
EXACT_INTEGER = 2**53
BLOB_HEAD_BYTES = 16
FETCH_ROWS = 50
VALUE = {"type": ["string", "number", "integer", "boolean", "null"]}
PARAMETERS_SCHEMA = {
    "description": "Values for the places in the SQL: a list, in order; with SQLite's :name, an object.",
    "anyOf": [
        {"type": "array", "items": VALUE, "maxItems": MAX_PARAMETERS},
        {"type": "object", "additionalProperties": VALUE, "maxProperties": MAX_PARAMETERS},
    ],
}

_PARAMETER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_FRAME_BYTES = 512


class Answer:
    """Collects rows until a cap is reached."""

    def __init__(self, context: Mapping[str, Any], limit: int) -> None:
        terms = context.get("sql") or {}
        self.max_rows = max(1, min(int(limit), int(terms.get("max_rows") or 1000)))
        # Leaves room for the frame around the rows.
        self._bytes_left = max(1024, int((context.get("limits") or {}).get("max_bytes") or 64 * 1024)) - _FRAME_BYTES
        self.rows: list[list[Any]] = []
        self._notes: dict[str, int] = {}

    def begin(self, names: Sequence[str]) -> None:
        """Counts the columns' names."""
        self._bytes_left -= sum(len(json.dumps(name)) + 30 for name in names)

    def wanted(self) -> int:
        """How many rows to ask for next: one more than may be kept tells that there are more."""
        return min(FETCH_ROWS, self.max_rows + 1 - len(self.rows))

    def took(self, cells: list[Any]) -> bool:
        """Adds one row, unless a cap is reached."""
        if len(self.rows) >= self.max_rows:
            return False
        size = len(json.dumps(cells)) + 2
        if size > self._bytes_left:
            return False
        self._bytes_left -= size
        self.rows.append(cells)
        return True

    def integer(self, value: int) -> int | str:
        """A number that every reader of JSON reads exactly, or its text."""
        if abs(value) <= EXACT_INTEGER:
            return value
        self.note("integers beyond 2^53 are given as text")
        return str(value)

    def text(self, value: str) -> str:
        """The text, cut where it is too long for a cell."""
        if len(value) <= MAX_CELL_CHARACTERS:
            return value
        self.note(f"texts longer than {MAX_CELL_CHARACTERS} characters were cut")
        return value[:MAX_CELL_CHARACTERS]

    def blob(self, value: bytes) -> dict[str, Any]:
        """The size and the first bytes."""
        return {"blob_bytes": len(value), "hex_head": value[:BLOB_HEAD_BYTES].hex()}

    def infinite(self) -> None:
        """What stands for a number that JSON has not."""
        self.note("infinite numbers are given as null")

    def note(self, text: str, count: int = 1) -> None:
        self._notes[text] = self._notes.get(text, 0) + count

    def finished(self, columns: Sequence[tuple[str, str]], *, truncated: bool) -> dict[str, Any]:
        """The whole. `columns` are names with types."""
        return {
            "columns": [{"name": name, "type": kind} for name, kind in columns],
            "rows": self.rows,
            "row_count": len(self.rows),
            "truncated": truncated,
            "notes": [f"{text} ({count}x)" for text, count in self._notes.items()],
        }


def bindable(parameters: object) -> dict[str, Any] | tuple[Any, ...]:
    """The parameters as they can be bound: plain values only, no type that could adapt itself. Raises ToolFailure."""
    if parameters is None:
        return ()
    if isinstance(parameters, dict):
        if len(parameters) > MAX_PARAMETERS or not all(_PARAMETER_NAME.fullmatch(str(name)) for name in parameters):
            raise ToolFailure("sql.bad_parameters", "A parameter's name is not usable.", "Use names like :city.")
        return {str(name): _value(value) for name, value in parameters.items()}
    if isinstance(parameters, list | tuple) and len(parameters) <= MAX_PARAMETERS:
        return tuple(_value(value) for value in parameters)
    raise ToolFailure("sql.bad_parameters", "Parameters must be a list or an object of plain values.")


def _value(value: object) -> object:
    if value is None or type(value) in (float, bool):
        return value
    if type(value) is str and not any("\ud800" <= character <= "\udfff" for character in value):
        return value
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    raise ToolFailure(
        "sql.bad_parameters",
        "A parameter is not a text, number, boolean or null that the database can hold.",
        "Pass whole numbers beyond 64 bits as text.",
    )


def first_word(sql: str) -> str:
    """The first word of a statement, lower case, behind blanks, comments and parentheses; "" where there is none.
    Raises ToolFailure for what cannot be sent, is too long, or begins with a comment that ends in two places."""
    if "\x00" in sql or any("\ud800" <= character <= "\udfff" for character in sql):
        raise ToolFailure("sql.unreadable", "The SQL holds a NUL character or half a character.")
    if len(sql.encode()) > MAX_SQL_BYTES:
        raise ToolFailure("sql.too_long", f"The SQL is longer than {MAX_SQL_BYTES} bytes.")
    blanks = " \t\r\n\f"
    rest = sql.lstrip(blanks)
    while rest.startswith(("--", "/*", "(")):
        if rest.startswith("("):
            rest = rest[1:].lstrip(blanks)
            continue
        comment, ended, after = rest.partition("\n" if rest.startswith("--") else "*/")
        if rest.startswith("/*") and "/*" in comment[2:]:
            raise ToolFailure("sql.unreadable", "The SQL begins with a comment in a comment.", "Leave comments out.")
        rest = after.lstrip(blanks) if ended else ""
    word = re.match(r"[A-Za-z]*", rest)
    return "" if word is None else word.group().lower()


def no_such_table() -> ToolFailure:
    """For a table that is not there and for one that is not granted."""
    return ToolFailure(
        "sql.not_granted",
        "The table does not exist or is not granted.",
        "Leave `table` out to list the tables that may be queried.",
    )
