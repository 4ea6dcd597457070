"""`describe_database`: which tables and columns of a database a query may read, without any of their contents.

Shows exactly what the grant lets `query_database` read and nothing else: a table or column outside it is absent, as
if it did not exist. Runs in a cage, on a snapshot of a SQLite database or through a portal to a PostgreSQL server. The
table's name is looked up in the list of granted ones and then bound as a parameter of fixed statements; it never
becomes part of SQL text.
"""

from collections.abc import Mapping
from typing import Any, Final

from toolcage.tools.base import Tool, ToolFailure
from toolcage.tools.sql_answer import no_such_table
from toolcage.tools.sqlite_reading import DATABASE_ERRORS, Reading, failure, open_reading

MAX_TABLES = 200
MAX_COLUMNS = 500
MAX_COUNTED_PAGES = 20_000

_COLUMNS = "SELECT name, type, \"notnull\", pk, hidden FROM pragma_table_xinfo(?, 'main') ORDER BY cid"
_FOREIGN = 'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?, \'main\') ORDER BY id, seq'
_KIND = "SELECT type FROM main.sqlite_master WHERE name = ? AND type IN ('table', 'view')"
_ESTIMATE = "SELECT stat FROM main.sqlite_stat1 WHERE tbl = ? LIMIT 1"


PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "database": {"type": "string", "minLength": 1, "maxLength": 64, "description": "Name of the database."},
        "table": {
            "type": "string",
            "minLength": 1,
            "maxLength": 128,
            "description": "Only this table. Absent: all tables that may be queried.",
        },
    },
    "required": ["database"],
    "additionalProperties": False,
}
_KINDS: Final = {"table": "identifier"}
_RESOURCES: Final = {"database": "database"}


class DescribeDatabase(Tool):
    """Lists the readable tables and columns of a database."""

    name = "describe_database"
    description = (
        "Lists the tables of a database that may be queried, with columns, types, keys and a row count. Use it "
        "before the first query on a database, when a query failed because a name was wrong, or to find which "
        "columns join two tables. Do not use it to read data (use query_database). Input: the database's name "
        "and, for one table only, the table's name. Output: dialect; tables with name, kind, columns (name, type, "
        "nullable, primary_key), foreign_keys and row_count, which is an estimate where rows_estimated is true."
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
        "toolcage.tools.postgres_schema",
        "toolcage.tools.postgres_session",
        "toolcage.tools.postgres_values",
        "toolcage.tools.sql_answer",
        "toolcage.tools.sqlite_derived",
        "toolcage.tools.sqlite_reading",
        "toolcage.tools.sqlite_rows",
        "toolcage.tools.sqlite_virtual",
    )

    def execute(self, database: str, table: str | None = None) -> dict[str, Any]:
        """The granted tables, or one of them. Raises ToolFailure with a `sql.*` code."""
        if self.context.get("sql") is None:  # no bounds were fixed for this call: not the same as a grant of everything
            raise ToolFailure("sql.not_granted", "No query on this database is granted.")
        if ((self.context.get("resources") or {}).get("database") or {}).get("kind") == "postgres":
            return _of_postgres(self.context, table)
        reading = open_reading(self.context)
        try:
            chosen = _chosen(reading, table)
            described = [_described(reading, name) for name in chosen[:MAX_TABLES]]
        except DATABASE_ERRORS as error:
            raise failure(reading, "", error) from None
        finally:
            reading.close()
        return answered("SQLite", described, len(chosen))


def _of_postgres(context: Mapping[str, Any], table: str | None) -> dict[str, Any]:
    from toolcage.tools.postgres_schema import described  # a call of SQLite does without
    from toolcage.tools.postgres_session import open_session

    with open_session(context, "read") as session:
        tables, count = described(session, context["sql"], table, MAX_TABLES, MAX_COLUMNS)
    return answered("PostgreSQL", tables, count)


def answered(dialect: str, tables: list[dict[str, Any]], count: int) -> dict[str, Any]:
    """The whole. `count` is of all tables, those left out too."""
    return {"dialect": dialect, "tables": tables, "table_count": count, "truncated": count > len(tables)}


def _chosen(reading: Reading, table: str | None) -> list[str]:
    granted = sorted(reading.grant.tables)
    if table is None:
        return granted
    name = table.translate({upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}).removeprefix("main.")
    if name in reading.grant.tables:
        return [name]
    raise no_such_table()


def _described(reading: Reading, table: str) -> dict[str, Any]:
    stored = reading.names[table]
    execute = reading.connection.execute
    (kind,) = execute(_KIND, (stored,)).fetchone()
    rows = execute(_COLUMNS, (stored,)).fetchmany(MAX_COLUMNS)
    columns = [
        {"name": name, "type": declared or "any", "nullable": not required and not key, "primary_key": bool(key)}
        for name, declared, required, key, hidden in rows
        if hidden != 1 and reading.grant.column(table, name)
    ]
    described = {
        "name": stored,
        "kind": kind,
        "columns": columns,
        "foreign_keys": _foreign_keys(reading, table, stored),
    }
    if kind == "table":
        count, estimated = _row_count(reading, stored)
        described |= {"row_count": count, "rows_estimated": estimated}
    return described


def _foreign_keys(reading: Reading, table: str, stored: str) -> list[dict[str, str]]:
    """Keys whose both ends may be read."""
    found = []
    for _, other, column, target in reading.connection.execute(_FOREIGN, (stored,)):
        other_name = other.lower()
        readable = reading.grant.column(table, column) and other_name in reading.grant.tables
        if readable and (target is None or reading.grant.column(other_name, target)):
            found.append({"column": column, "references": f"{other}.{target}" if target else other})
    return found


def _row_count(reading: Reading, stored: str) -> tuple[int | None, bool]:
    """The exact count of a small table; of a large one what ANALYZE once found, or None."""
    (pages,) = reading.connection.execute("SELECT page_count FROM pragma_page_count()").fetchone()
    if pages <= MAX_COUNTED_PAGES:
        quoted = stored.replace('"', '""')  # the schema's own spelling, never the caller's
        (count,) = reading.connection.execute(f'SELECT count(*) FROM main."{quoted}"').fetchone()  # noqa: S608
        return count, False
    try:
        row = reading.connection.execute(_ESTIMATE, (stored,)).fetchone()
    except DATABASE_ERRORS:
        row = None  # never analysed
    first = str(row[0]).split(" ")[0] if row else ""
    return (int(first), True) if first.isdigit() else (None, True)
