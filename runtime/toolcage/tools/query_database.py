"""`query_database`: one SELECT on a granted database, answered with rows. Reading only; no grant opens writing here.

The declaration is read on the host; the body runs in a cage, on a snapshot of a SQLite database or through a portal to
a PostgreSQL server. The body trusts neither the SQL nor that it passed the parser's gate: `sqlite_reading` holds alone,
`postgres_session` together with the rights of the database's role. Values go in as bound parameters only.

What the model gets is JSON that loses nothing silently: integers beyond 2^53 come as text, blobs as their size and
first bytes, infinities as null, and each of these is noted. Rows, cells and the whole are capped, and cuts are
marked.
"""

import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from toolcage.tools.base import Tool
from toolcage.tools.sql_answer import DEFAULT_ROWS, PARAMETERS_SCHEMA, Answer, bindable
from toolcage.tools.sqlite_reading import DATABASE_ERRORS, Reading, failure, open_reading, run_query
from toolcage.tools.sqlite_rows import cell

PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "database": {"type": "string", "minLength": 1, "maxLength": 64, "description": "Name of the database."},
        "sql": {
            "type": "string",
            "minLength": 1,
            "maxLength": 20000,
            "description": "One SELECT statement. Write values as ? or :name (SQLite) or $1 (PostgreSQL) and pass them"
            " in `parameters`.",
        },
        "parameters": PARAMETERS_SCHEMA,
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
        "(use calculate_expression). Input: the database's name, one SELECT in its dialect (describe_database tells "
        "which) with ? or :name (SQLite) or $1, $2 (PostgreSQL) for values, the values as `parameters`. Output: "
        "columns (name and type), rows as lists in column order, row_count, truncated, and notes on values that JSON "
        "cannot hold."
    )
    parameters = PARAMETERS
    kinds = _KINDS
    effects = frozenset({"reads_private"})
    resources = _RESOURCES
    isolation = "namespace"
    wall_s = 5.0
    idempotent = True
    ships = (
        "toolcage.facts.sql_functions",
        "toolcage.tools.portal_end",
        "toolcage.tools.postgres_client",
        "toolcage.tools.postgres_session",
        "toolcage.tools.postgres_values",
        "toolcage.tools.sql_answer",
        "toolcage.tools.sqlite_derived",
        "toolcage.tools.sqlite_reading",
        "toolcage.tools.sqlite_rows",
        "toolcage.tools.sqlite_virtual",
    )

    def execute(self, database: str, sql: str, parameters: object = None, limit: int = DEFAULT_ROWS) -> dict[str, Any]:
        """Rows of `sql`. Raises ToolFailure with a `sql.*` code."""
        bound = bindable(parameters)
        if speaks_postgres(self.context):
            return _rows_of_postgres(self.context, sql, bound, limit)
        reading = open_reading(self.context)
        try:
            return _SqliteAnswer(reading, self.context, limit).filled(run_query(reading, sql, bound), sql)
        finally:
            reading.close()


def speaks_postgres(context: Mapping[str, Any]) -> bool:
    """Whether the call's database is PostgreSQL."""
    return ((context.get("resources") or {}).get("database") or {}).get("kind") == "postgres"


def _rows_of_postgres(context: Mapping[str, Any], sql: str, bound: Any, limit: int) -> dict[str, Any]:
    from toolcage.tools.postgres_session import open_session, read_rows  # a call of SQLite does without

    with open_session(context, "read") as session:
        return read_rows(session, sql, bound, Answer(context, limit))


class _SqliteAnswer(Answer):
    """Rows of a cursor."""

    def __init__(self, reading: Reading, context: Mapping[str, Any], limit: int) -> None:
        super().__init__(context, limit)
        self._reading = reading
        self._types: list[str] = []

    def filled(self, cursor: sqlite3.Cursor, sql: str) -> dict[str, Any]:
        names = [column[0] for column in cursor.description or ()]
        self._types = ["null"] * len(names)
        self.begin(names)
        truncated = False
        try:
            while not truncated and (batch := cursor.fetchmany(self.wanted())):
                truncated = not all(self._took_row(row) for row in batch)
        except DATABASE_ERRORS as error:
            raise failure(self._reading, sql, error) from None
        if self._reading.undecodable:
            self.note("text that was not UTF-8 was decoded with replacement characters", self._reading.undecodable)
        return self.finished(list(zip(names, self._types, strict=True)), truncated=truncated)

    def _took_row(self, row: tuple[Any, ...]) -> bool:
        if len(self.rows) >= self.max_rows:
            return False
        return self.took([cell(value, self._types, place, self) for place, value in enumerate(row)])
