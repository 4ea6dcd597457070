"""`query_database`: one SELECT on a granted database, answered with rows. Reading only; no grant opens writing here.

The declaration is read on the host; the body runs in a cage on a snapshot of the database. The body trusts neither
the SQL nor that it passed the parser's gate: `sqlite_reading` holds alone. Values go in as bound parameters only.

What the model gets is JSON that loses nothing silently: integers beyond 2^53 come as text, blobs as their size and
first bytes, infinities as null, and each of these is noted. Rows, cells and the whole are capped, and cuts are
marked.
"""

import json
import math
import re
import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from toolcage.tools.base import Tool, ToolFailure
from toolcage.tools.sqlite_reading import DATABASE_ERRORS, Reading, failure, open_reading, run_query

DEFAULT_ROWS = 100
MAX_CELL_CHARACTERS = 8_000
MAX_PARAMETERS = 100
EXACT_INTEGER = 2**53
BLOB_HEAD_BYTES = 16
FETCH_ROWS = 50

_PARAMETER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_VALUE = {"type": ["string", "number", "integer", "boolean", "null"]}


PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "database": {"type": "string", "minLength": 1, "maxLength": 64, "description": "Name of the database."},
        "sql": {
            "type": "string",
            "minLength": 1,
            "maxLength": 20000,
            "description": "One SELECT statement. Write values as ? or :name and pass them in `parameters`.",
        },
        "parameters": {
            "description": "Values for ? (a list, in order) or :name (an object).",
            "anyOf": [
                {"type": "array", "items": _VALUE, "maxItems": MAX_PARAMETERS},
                {"type": "object", "additionalProperties": _VALUE, "maxProperties": MAX_PARAMETERS},
            ],
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100000,
            "default": DEFAULT_ROWS,
            "description": "How many rows to return at most; the grant may allow fewer.",
        },
    },
    "required": ["database", "sql"],
    "additionalProperties": False,
}
_KINDS: Final = {"sql": "sql"}
_RESOURCES: Final = {"database": "database"}


class QueryDatabase(Tool):
    """Runs one read-only statement and returns its rows."""

    name = "query_database"
    description = (
        "Runs one read-only SQL SELECT on a database and returns the rows. Use it to count or add up records, to "
        "look up rows that match a condition, or to join tables. Do not use it to change data (it cannot), to "
        "learn table and column names (use describe_database), or for arithmetic on numbers that you already have "
        "(use calculate_expression). Input: the database's name, one SELECT in SQLite's dialect with ? or :name "
        "for values, the values as `parameters`. Output: columns (name and type), rows as lists in column order, "
        "row_count, truncated, and notes on values that JSON cannot hold."
    )
    parameters = PARAMETERS
    kinds = _KINDS
    effects = frozenset({"reads_private"})
    resources = _RESOURCES
    isolation = "namespace"
    wall_s = 5.0
    idempotent = True
    ships = ("toolcage.facts.sql_functions", "toolcage.tools.sqlite_derived", "toolcage.tools.sqlite_reading")

    def execute(self, database: str, sql: str, parameters: object = None, limit: int = DEFAULT_ROWS) -> dict[str, Any]:
        """Rows of `sql`. Raises ToolFailure with a `sql.*` code."""
        bound = _bindable(parameters)
        reading = open_reading(self.context)
        try:
            cursor = run_query(reading, sql, bound)
            return _Answer(reading, self.context, limit).filled(cursor, sql)
        finally:
            reading.close()


class _Answer:
    """Collects rows until a cap is reached."""

    def __init__(self, reading: Reading, context: Mapping[str, Any], limit: int) -> None:
        terms = context.get("sql") or {}
        self.reading = reading
        self.max_rows = max(1, min(int(limit), int(terms.get("max_rows") or 1000)))
        # Leaves room for the frame around the rows.
        self.bytes_left = max(1024, int((context.get("limits") or {}).get("max_bytes") or 64 * 1024)) - 512
        self.rows: list[list[Any]] = []
        self.types: list[str] = []
        self.notes: dict[str, int] = {}

    def filled(self, cursor: sqlite3.Cursor, sql: str) -> dict[str, Any]:
        names = [column[0] for column in cursor.description or ()]
        self.types = ["null"] * len(names)
        self.bytes_left -= sum(len(json.dumps(name)) + 30 for name in names)
        truncated = False
        try:
            while not truncated and (batch := cursor.fetchmany(min(FETCH_ROWS, self.max_rows + 1 - len(self.rows)))):
                truncated = not all(self._took(row) for row in batch)
        except DATABASE_ERRORS as error:
            raise failure(self.reading, sql, error) from None
        if self.reading.undecodable:
            self._note("text that was not UTF-8 was decoded with replacement characters", self.reading.undecodable)
        return {
            "columns": [{"name": name, "type": kind} for name, kind in zip(names, self.types, strict=True)],
            "rows": self.rows,
            "row_count": len(self.rows),
            "truncated": truncated,
            "notes": [f"{text} ({count}x)" for text, count in self.notes.items()],
        }

    def _took(self, row: tuple[Any, ...]) -> bool:
        """Adds one row, unless a cap is reached."""
        if len(self.rows) >= self.max_rows:
            return False
        cells = [self._cell(place, value) for place, value in enumerate(row)]
        size = len(json.dumps(cells)) + 2
        if size > self.bytes_left:
            return False
        self.bytes_left -= size
        self.rows.append(cells)
        return True

    def _cell(self, place: int, value: object) -> object:
        kind = {int: "integer", float: "real", str: "text", bytes: "blob"}.get(type(value), "null")
        if kind != "null" and self.types[place] != kind:
            self.types[place] = kind if self.types[place] == "null" else "mixed"
        if isinstance(value, int) and abs(value) > EXACT_INTEGER:
            self._note("integers beyond 2^53 are given as text")
            return str(value)
        if isinstance(value, float) and not math.isfinite(value):
            self._note("infinite numbers are given as null")
            return None
        if isinstance(value, bytes):
            return {"blob_bytes": len(value), "hex_head": value[:BLOB_HEAD_BYTES].hex()}
        if isinstance(value, str) and len(value) > MAX_CELL_CHARACTERS:
            self._note(f"texts longer than {MAX_CELL_CHARACTERS} characters were cut")
            return value[:MAX_CELL_CHARACTERS]
        return value

    def _note(self, text: str, count: int = 1) -> None:
        self.notes[text] = self.notes.get(text, 0) + count


def _bindable(parameters: object) -> dict[str, Any] | tuple[Any, ...]:
    """The parameters as SQLite takes them: plain values only, no type that could adapt itself."""
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
