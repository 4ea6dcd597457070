"""Makes one change of rows at a PostgreSQL server final, or none: the layer that holds without the parser's gate.

The statement's first word must be INSERT, UPDATE or DELETE, and the server must say that it did just that; UPDATE and
DELETE need a WHERE. Before COMMIT the rows that the transaction changed are counted by the server, with those that
triggers and cascading keys changed; checks that would wait for COMMIT are brought forward, so that nothing changes
after the count. More rows than expected, or any error, and all of it is undone. Which tables may be changed is, behind
the gate, what the database's own role may change. Standard library only; runs in a cage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolcage.tools.base import ToolFailure
from toolcage.tools.postgres_client import Client, Late, Lost, Prepared, ServerError, TooLarge, Value
from toolcage.tools.postgres_session import open_session, prepare
from toolcage.tools.postgres_values import cell, type_name
from toolcage.tools.sql_answer import Answer, first_word

OPERATIONS: Final = ("insert", "update", "delete")
_WHERE = re.compile(r"\bwhere\b", re.IGNORECASE)
_TAG = re.compile(r"(INSERT 0|UPDATE|DELETE) ([0-9]{1,18})")
# Tables of users only: a long value is a row of a table of the database's own as well.
_CHANGED = "SELECT COALESCE(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_xact_user_tables"


def change(context: Mapping[str, Any], sql: str, parameters: Any, limit: int) -> dict[str, Any]:
    """The change that was made. Raises ToolFailure."""
    terms = context.get("sql") or {}
    operation = first_word(sql)
    granted = terms.get("operations")
    if operation not in OPERATIONS or (granted is not None and operation not in granted):
        raise ToolFailure(
            "sql.not_allowed", "This is not a change that is granted.", "Send one INSERT, UPDATE or DELETE."
        )
    if operation != "insert" and not _WHERE.search(sql):
        raise ToolFailure("sql.no_where", f"The {operation.upper()} has no WHERE.", "Say which rows.")
    most = max(1, min(int(limit), int(terms.get("max_rows") or 1000)))
    with open_session(context, "change") as session:
        prepared, values = prepare(session, sql, parameters)
        answer = Answer(context, most)
        returned = _returned(session, prepared, values, answer, most)
        changed = _counted(session, operation, most)
        _make_final(session)
    columns = [(column.name, type_name(column.oid)) for column in prepared.columns]
    told = answer.finished(columns, truncated=returned > len(answer.rows))
    return {"operation": operation, "changed_rows": changed, **told}


def _returned(client: Client, prepared: Prepared, values: Sequence[Value], answer: Answer, most: int) -> int:
    """Runs the statement to its end. How many rows it returned; those that fit are in `answer`."""
    answer.begin([column.name for column in prepared.columns])
    count, fits = 0, True
    for row in client.rows(values):
        count += 1
        if count > most:
            raise _too_many(most)
        cells = [cell(content, column.oid, answer) for content, column in zip(row, prepared.columns, strict=True)]
        fits = fits and answer.took(cells)
    return count


def _counted(client: Client, operation: str, most: int) -> int:
    """How many rows the transaction has changed. Raises ToolFailure where it is too many or something else was done."""
    done = _TAG.fullmatch(client.tag)
    if done is None or not done[1].lower().startswith(operation):
        raise ToolFailure("sql.not_allowed", "The statement did something else than it began with.")
    client.run("SET CONSTRAINTS ALL IMMEDIATE")
    ((counted,),) = client.ask(_CHANGED)
    changed = max(int(done[2]), int(counted or 0))
    if changed > most:
        raise _too_many(most)
    return changed


def _make_final(client: Client) -> None:
    try:
        client.run("COMMIT")
    except (Lost, Late, TooLarge) as error:
        raise _unknown() from error
    except ServerError as error:
        if error.sqlstate.startswith(("08", "57")):  # the portal's or the server's last words
            raise _unknown() from error
        raise
    if client.tag != "COMMIT":
        raise ToolFailure("sql.error", "The database undid the change.", "Look at the rows before you try again.")
    client.close()


def _too_many(most: int) -> ToolFailure:
    return ToolFailure(
        "sql.too_many_rows",
        f"More rows than {most} would change, so none did.",
        "Narrow the WHERE; if that many are meant, pass `limit`, as far as the grant allows.",
    )


def _unknown() -> ToolFailure:
    return ToolFailure(
        "sql.outcome_unknown",
        "The connection was lost while the change was being made final: it may have been made.",
        "Look at the rows with query_database before you send it again.",
    )
