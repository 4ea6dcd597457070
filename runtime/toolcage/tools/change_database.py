"""`change_database`: one INSERT, UPDATE or DELETE of rows, made final only if no more rows changed than expected.

The declaration is read on the host; the body runs in a cage. It reaches a PostgreSQL database through a portal, whose
session for this one tool may write; of a SQLite database it has a copy, works out there which rows would change, and
proposes them to the host, which makes the change or refuses it. Values go in as bound parameters. The body does not
trust that the SQL passed the parser's gate: `postgres_change` and `sqlite_change` demand the statement's kind and its
WHERE, and count before anything is final.
"""

from typing import Any, Final

from toolcage.tools.base import Tool
from toolcage.tools.sql_answer import PARAMETERS_SCHEMA, bindable

PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "database": {"type": "string", "minLength": 1, "maxLength": 64, "description": "Name of the database."},
        "sql": {
            "type": "string",
            "minLength": 1,
            "maxLength": 20000,
            "description": "One INSERT, UPDATE or DELETE; UPDATE and DELETE with WHERE. Write values as ? or :name"
            " (SQLite) or $1 (PostgreSQL) and pass them in `parameters`.",
        },
        "parameters": PARAMETERS_SCHEMA,
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100000,
            "default": 1,
            "description": "How many rows may change at most; if it would be more, none does.",
        },
    },
    "required": ["database", "sql"],
    "additionalProperties": False,
}
_KINDS: Final = {"sql": "sql"}
_RESOURCES: Final = {"database": "database"}


class ChangeDatabase(Tool):
    """Runs one statement that changes rows, all or nothing."""

    name = "change_database"
    description = (
        "Changes rows of a database with one INSERT, UPDATE or DELETE, all or nothing. Use it to add a "
        "record, to correct the rows that a condition names, or to remove them. Do not use it to read (use "
        "query_database), to change the schema (it cannot), or to try out a condition (count the rows with "
        "query_database first). Input: the database's name, one statement in its dialect (describe_database tells "
        "which) with ? or :name (SQLite) or $1, $2 (PostgreSQL) for values, the values as `parameters`, and as `limit` "
        "how many rows you expect to change at most. Output: operation, changed_rows, which counts those that the "
        "database changes by itself too, and the rows of RETURNING with their columns."
    )
    parameters = PARAMETERS
    kinds = _KINDS
    effects = frozenset({"reads_private", "writes"})
    resources = _RESOURCES
    isolation = "namespace"
    wall_s = 10.0
    ships = (
        "toolcage.facts.sql_functions",
        "toolcage.tools.portal_end",
        "toolcage.tools.postgres_change",
        "toolcage.tools.postgres_client",
        "toolcage.tools.postgres_session",
        "toolcage.tools.postgres_values",
        "toolcage.tools.sql_answer",
        "toolcage.tools.sqlite_change",
        "toolcage.tools.sqlite_derived",
        "toolcage.tools.sqlite_reading",
        "toolcage.tools.sqlite_rows",
        "toolcage.tools.sqlite_virtual",
    )

    def execute(self, database: str, sql: str, parameters: object = None, limit: int = 1) -> dict[str, Any]:
        """What was changed, or would be. Raises ToolFailure with a `sql.*` code; then nothing was, but for
        `sql.outcome_unknown`."""
        bound = bindable(parameters)
        kind = ((self.context.get("resources") or {}).get("database") or {}).get("kind")
        if kind == "postgres":
            from toolcage.tools.postgres_change import change  # a call of SQLite does without

            return change(self.context, sql, bound, limit)
        from toolcage.tools.sqlite_change import propose

        return propose(self.context, sql, bound, limit)
