"""One call's session at a PostgreSQL server: what is fixed before the caller's statement, and what its errors tell.

The layer that holds without the parser's gate: a connection of its own that nothing outlasts, the extended protocol
with one statement, names looked up in `pg_catalog` and `public` alone, a transaction that may only read and that has
begun to (it cannot be turned), ROLLBACK at the end. It does not know which tables are granted: behind the gate, that is
what the database's own role may read.

Errors say enough to repair the statement. What does not exist and what the role may not read answer alike; the server's
details, hints and places are dropped, because they name what the statement did not. Standard library only; runs in a
cage.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from toolcage.tools.base import ToolFailure
from toolcage.tools.portal_end import portal_end
from toolcage.tools.postgres_client import Client, Late, Lost, Prepared, ServerError, TooLarge, Value
from toolcage.tools.postgres_values import bound, cell, type_name
from toolcage.tools.sql_answer import Answer, first_word

READING_WORDS = ("select", "with", "values", "table")
# Whatever the role or the database has as its own settings. A name without a schema is one of `public`; temporary
# tables come last, so none stands for a granted one. The quotes mean what the gate took them for.
_FIXED = """
SET search_path = pg_catalog, public, pg_temp;
SET standard_conforming_strings = on;
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
SET bytea_output = 'hex';
SET extra_float_digits = 1;
"""
# The SELECT takes the transaction's snapshot, after which the server lets nobody turn it to writing.
_BEGIN = {"read": "BEGIN READ ONLY; SELECT 1", "change": "BEGIN READ WRITE"}


@contextlib.contextmanager
def open_session(context: Mapping[str, Any], purpose: Literal["read", "change"]) -> Iterator[Client]:
    """A session in a transaction that the end of the block undoes, unless it was committed. Raises ToolFailure, also
    for what the server said within the block."""
    end = portal_end(context, "postgres")
    wall_s = float((context.get("limits") or {}).get("wall_s") or 5.0)
    deadline = time.monotonic() + max(0.05, wall_s * 0.8)  # before the cage's own end, for a better answer
    try:
        client = Client(str(end["host"]), int(end["port"]), deadline)
    except ServerError as error:
        raise _unreachable(error.message) from None
    except (Lost, Late):
        raise _unreachable("it does not answer") from None
    try:
        client.run(_FIXED + _BEGIN[purpose])
        yield client
        if not client.closed:
            client.run("ROLLBACK")
    except (ServerError, Lost, Late, TooLarge) as error:
        raise failure(error, purpose) from None
    finally:
        client.close()


def read_rows(client: Client, sql: str, parameters: Any, answer: Answer) -> dict[str, Any]:
    """The rows of one statement of the caller. Raises ToolFailure and what `open_session` makes one of."""
    if first_word(sql) not in READING_WORDS:
        raise ToolFailure("sql.not_select", "Only a SELECT can be run.", "Send one SELECT statement.")
    prepared, values = prepare(client, sql, parameters)
    if not prepared.columns:
        raise ToolFailure("sql.not_allowed", "The statement does more than read.", "Send a plain SELECT.")
    return gather(client, prepared, values, answer)


def prepare(client: Client, sql: str, parameters: Any) -> tuple[Prepared, Sequence[Value]]:
    """The statement as the server read it, with its values. Raises ToolFailure where they do not belong together."""
    if isinstance(parameters, dict) and parameters:
        raise ToolFailure("sql.bad_parameters", "PostgreSQL takes values by number.", "Write $1, $2 … and pass a list.")
    pairs = [bound(value) for value in parameters or ()]
    try:
        prepared = client.prepare(sql, [oid for oid, _ in pairs])
    except ServerError as error:
        if error.sqlstate == "42601" and pairs and "$1" not in sql:
            raise ToolFailure(
                "sql.bad_parameters", "The SQL holds no place for its values.", "Write $1, $2 … and pass a list."
            ) from None
        raise
    if prepared.parameters != len(pairs):
        raise ToolFailure(
            "sql.bad_parameters",
            f"The SQL has places for {prepared.parameters} values, and {len(pairs)} were passed.",
            "Write $1, $2 … and pass a list with one value for each.",
        )
    return prepared, [value for _, value in pairs]


def gather(client: Client, prepared: Prepared, values: Sequence[Value], answer: Answer) -> dict[str, Any]:
    """Rows until a cap is reached."""
    names = [column.name for column in prepared.columns]
    answer.begin(names)
    truncated = False
    for row in client.rows(values, answer.wanted()):
        if len(answer.rows) >= answer.max_rows or not answer.took(
            [cell(content, column.oid, answer) for content, column in zip(row, prepared.columns, strict=True)]
        ):
            truncated = True
            client.close()  # what the server would still send is not read: closing undoes the transaction too
            break
    return answer.finished([(column.name, type_name(column.oid)) for column in prepared.columns], truncated=truncated)


_NOT_GRANTED = frozenset({"42P01", "42501", "42703", "3F000", "0LP01"})
_TIMEOUTS = frozenset({"57014", "55P03", "25P03", "25P04"})
_TOO_BIG = ("53", "54")
_GONE = ("08", "28", "57")


def failure(error: ServerError | Lost | Late | TooLarge, purpose: Literal["read", "change"]) -> ToolFailure:
    """What went wrong, for the model."""
    statement = "SELECT" if purpose == "read" else "INSERT, UPDATE or DELETE"
    if isinstance(error, TooLarge):
        return ToolFailure("sql.too_big", "A row is too large.", "Select fewer columns, or parts with left().")
    if isinstance(error, Lost):
        return _unreachable("the connection ended")
    if isinstance(error, Late) or error.sqlstate in _TIMEOUTS:
        hint = "Narrow it with WHERE or LIMIT, or aggregate less."
        return ToolFailure("sql.timeout", "The statement took too long.", hint)
    state, text = error.sqlstate, error.message.strip().rstrip(".")[:300] or "the statement failed"
    if state in _NOT_GRANTED:
        return ToolFailure(
            "sql.not_granted",
            "A table or column of the statement does not exist or is not granted.",
            "Use describe_database to see tables and columns.",
        )
    if state in ("25006", "0A000", "25000", "25001"):
        return ToolFailure("sql.not_allowed", f"Not allowed here: {text}.", f"Send a plain {statement}.")
    if state == "42601" and not error.position:
        text, hint = "One statement at a time is possible.", f"Send one {statement} per call."
        return ToolFailure("sql.multiple_statements", text, hint)
    if state == "42P18":
        return ToolFailure("sql.bad_parameters", f"{text}.", "Say what a value is, as in $1::text.")
    if state.startswith(_TOO_BIG):
        return ToolFailure("sql.too_big", f"The query goes beyond a limit: {text}.", "Read less, or split the query.")
    if state.startswith(_GONE):
        return _unreachable(text)
    if state.startswith("23"):
        hint = "Change the values so that the database's rules hold."
        return ToolFailure("sql.constraint", f"Against a rule of the database: {text}.", hint)
    if state.startswith("XX"):
        return ToolFailure("sql.error", "The database failed.", "Write the statement in another way.")
    return ToolFailure("sql.error", f"{text}.", "Correct the statement.")


def _unreachable(why: str) -> ToolFailure:
    return ToolFailure("sql.unreachable", f"The database cannot be reached now: {why[:300]}.", "Try again later.")
