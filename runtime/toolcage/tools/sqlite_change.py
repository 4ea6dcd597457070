"""Works out what one INSERT, UPDATE or DELETE would do to a SQLite database, on a copy, and proposes just that.

Runs in a cage. Nothing here changes the operator's file: the snapshot is copied into memory, the statement runs there
under an authorizer that lets it change the one table and read what is granted, and triggers of ours note each row that
it changes. The proposal is a list of rows: which one, what it was (a digest), what its written columns become. The host
holds it against the call and makes the change itself, where the database's own triggers and keys take effect; here
they are off, so that nothing is noted that the statement did not do itself.

Like the reading guard this holds without the parser's gate: first word, WHERE, the engine's authorizer, the compiled
program's pages, and what was really changed. Standard library only.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from toolcage.facts.sql_functions import SQLITE_FUNCTIONS
from toolcage.tools.base import ToolFailure
from toolcage.tools.sql_answer import first_word
from toolcage.tools.sqlite_reading import (
    DATABASE_ERRORS,
    LIMITS,
    PROGRESS_OPS,
    Reading,
    demand_no_index_choice,
    demand_pages,
    demand_plain_joins,
    described,
    failure,
    may_read,
    not_granted,
    open_reading,
    shows_hidden,
    tables_behind,
    views_believed,
)
from toolcage.tools.sqlite_rows import (
    PROPOSAL_BYTES,
    NoPlainTable,
    Table,
    encode,
    fingerprint,
    fold,
    paired,
    parts_of,
    plan_of,
    quoted,
    read_table,
)

OPERATIONS: Final = ("insert", "update", "delete")
_WHERE: Final = re.compile(r"\bwhere\b", re.IGNORECASE)
_SEQUENCE: Final = "sqlite_sequence"


@dataclass(frozen=True)
class _Copy:
    """The database in memory. `log` is the table of ours that the triggers write, `marks` are their names, which no
    statement can know."""

    reading: Reading
    table: Table
    columns: tuple[str, ...]
    operation: str
    log: str
    marks: frozenset[str]


def propose(context: Mapping[str, Any], sql: str, parameters: Any, limit: int) -> dict[str, Any]:
    """The rows that would change. Raises ToolFailure with a `sql.*` code."""
    operation = _operation(context, sql)
    most = max(1, min(int(limit), int((context.get("sql") or {}).get("max_rows") or 1000)))
    reading = open_reading(context, more_heap=True)
    try:
        copy = _copied(reading, plan_of(context), operation)
        try:
            _run(copy, sql, parameters)
            return _proposal(copy, reading, most)
        finally:
            copy.reading.close()
    finally:
        reading.close()


def _operation(context: Mapping[str, Any], sql: str) -> str:
    operation = first_word(sql)
    granted = (context.get("sql") or {}).get("operations")
    planned = plan_of(context).get("operation")
    if operation not in OPERATIONS or operation != planned or (granted is not None and operation not in granted):
        text = "This is not a change that is granted."
        raise ToolFailure("sql.not_allowed", text, "Send one INSERT, UPDATE or DELETE.")
    if operation != "insert" and not _WHERE.search(sql):
        raise ToolFailure("sql.no_where", f"The {operation.upper()} has no WHERE.", "Say which rows.")
    return operation


def _copied(reading: Reading, plan: Mapping[str, Any], operation: str) -> _Copy:
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
    try:
        table = read_table(reading.connection, str(plan.get("table")))
        if fold(table.name) not in reading.grant.tables:
            raise not_granted()
        columns = _written(table, plan.get("columns"))
        reading.connection.backup(connection)
        log, marks = _watched(connection, table, columns)
    except NoPlainTable:
        connection.close()
        text = "What the statement would change is no ordinary table, or does not exist."
        raise ToolFailure("sql.not_changeable", text, "Use describe_database to see the tables.") from None
    except DATABASE_ERRORS as error:
        connection.close()
        raise failure(reading, "", error) from None
    except BaseException:
        connection.close()
        raise
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    connection.text_factory = lambda content: content.decode("utf-8", "replace")
    connection.set_progress_handler(lambda: int(time.monotonic() > reading.deadline), PROGRESS_OPS)
    # Other tables than the one that changes are read as the grant of reading says; the copy has the same pages.
    copied = replace(reading, connection=connection, denied=[])
    return _Copy(reading=copied, table=table, columns=columns, operation=operation, log=log, marks=marks)


def _written(table: Table, planned: Any) -> tuple[str, ...]:
    if planned is None:
        return table.columns
    found = [table.column(str(name)) for name in planned]
    columns = tuple(name for name in found if name is not None)
    if len(columns) < len(found):
        raise not_granted()
    return columns


def _watched(connection: sqlite3.Connection, table: Table, columns: tuple[str, ...]) -> tuple[str, frozenset[str]]:
    """Takes the database's own triggers away and sets ours."""
    for setting in ("trusted_schema=OFF", "cell_size_check=ON", "temp_store=MEMORY", "journal_mode=MEMORY",
                    "foreign_keys=OFF", "recursive_triggers=ON"):  # fmt: skip
        connection.execute(f"PRAGMA {setting}")
    for (name,) in connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER main.{quoted(name)}")
    log = f"log_{secrets.token_hex(8)}"
    keys = [f"k{place}" for place in range(len(table.key))]
    values = [f"v{place}" for place in range(len(columns))]
    names = ", ".join(["n INTEGER PRIMARY KEY", "what", *keys, *values])
    connection.execute(f"CREATE TEMP TABLE {log} ({names})")
    marks = set()
    for event, old, new in (("insert", False, True), ("update", True, True), ("delete", True, False)):
        noted = [f"'{event}'"]
        noted += [f"OLD.{quoted(key)}" if old else "NULL" for key in table.key]
        noted += [f"NEW.{quoted(column)}" if new else "NULL" for column in columns]
        mark = f"mark_{secrets.token_hex(16)}"
        note = f"INSERT INTO {log} ({', '.join(['what', *keys, *values])}) VALUES ({', '.join(noted)})"  # noqa: S608
        begun = f"CREATE TEMP TRIGGER {mark} AFTER {event.upper()} ON main.{quoted(table.name)}"
        connection.execute(f"{begun} BEGIN {note}; END")
        marks.add(mark)
    return log, frozenset(marks)


def _run(copy: _Copy, sql: str, parameters: Any) -> None:
    reading = copy.reading
    demand_no_index_choice(sql)
    demand_plain_joins(reading, sql)
    views = views_believed(reading, sql)
    behind = frozenset().union(*(tables_behind(reading, view) for view in views))
    _guard(copy, views)
    written = {fold(copy.table.name)} | ({_SEQUENCE} if copy.operation == "insert" else set())
    try:
        # EXPLAIN is put in front here, after the first word was checked; it compiles and lists, and runs nothing.
        program = reading.connection.execute("EXPLAIN " + sql, parameters).fetchall()
        demand_pages(reading, program, behind, frozenset(written))
        with contextlib.closing(reading.connection.execute(sql, parameters)) as cursor:
            for _ in cursor:  # RETURNING is answered by the host, from the database itself
                pass
    except sqlite3.IntegrityError as error:
        hidden = shows_hidden(reading, str(error))
        text = "A rule of the database is against the change." if hidden else f"{error}."
        raise ToolFailure("sql.constraint", text, "Correct the values.") from None
    except DATABASE_ERRORS as error:
        raise failure(reading, sql, error) from None
    finally:
        reading.connection.set_authorizer(None)


def _guard(copy: _Copy, views: frozenset[str]) -> None:
    """From here on SQLite compiles nothing but reading what is granted and the one change. What a trigger of ours does
    is ours."""
    reading, target = copy.reading, fold(copy.table.name)
    changing = {"insert": sqlite3.SQLITE_INSERT, "update": sqlite3.SQLITE_UPDATE, "delete": sqlite3.SQLITE_DELETE}
    columns = {fold(column) for column in copy.columns}

    def authorize(action: int, first: str | None, second: str | None, schema: str | None, source: str | None) -> int:
        if source in copy.marks or action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and second is not None and fold(second) in SQLITE_FUNCTIONS:
            return sqlite3.SQLITE_OK
        if reads(action, first, second, schema, source) or changes(action, first, second, schema):
            return sqlite3.SQLITE_OK
        reading.denied.append(described(action, first, second))
        return sqlite3.SQLITE_DENY

    def reads(action: int, first: str | None, second: str | None, schema: str | None, source: str | None) -> bool:
        if action != sqlite3.SQLITE_READ or first is None or schema not in ("main", None):
            return False
        return may_read(reading, fold(first), second or "", through_view=fold(source or "") in views)

    def changes(action: int, first: str | None, second: str | None, schema: str | None) -> bool:
        if action != changing[copy.operation] or schema != "main" or fold(first or "") != target:
            return False
        return action != sqlite3.SQLITE_UPDATE or fold(second or "") in columns

    reading.connection.set_authorizer(authorize)


def _proposal(copy: _Copy, before: Reading, most: int) -> dict[str, Any]:
    connection = copy.reading.connection
    connection.text_factory = bytes
    before.connection.text_factory = bytes
    names = [f"k{place}" for place in range(len(copy.table.key))] + [f"v{place}" for place in range(len(copy.columns))]
    selected = ", ".join(f"typeof({name}), {name}" for name in names)
    rows = connection.execute(
        f"SELECT what{', ' if selected else ''}{selected} FROM {copy.log} ORDER BY n LIMIT ?",  # noqa: S608
        (most + 1,),
    ).fetchall()
    if len(rows) > most:
        raise too_many(most)
    if any(row[0] != copy.operation.encode() for row in rows):
        text = "The statement would replace or remove other rows than it names."
        raise ToolFailure("sql.not_allowed", text, "Send one plain INSERT, UPDATE or DELETE.")
    try:
        changes = [_change(copy, before, row) for row in rows]
    except DATABASE_ERRORS as error:
        raise failure(copy.reading, "", error) from None
    size = sum(len(part) for _, _, values in changes for value in values for part in value)
    if size > PROPOSAL_BYTES:
        text = f"The values to write are larger than {PROPOSAL_BYTES} bytes in all."
        raise ToolFailure("sql.too_big", text, "Change fewer rows at a time.")
    return {"operation": copy.operation, "table": fold(copy.table.name), "rows": changes}


def _change(copy: _Copy, before: Reading, row: tuple[Any, ...]) -> list[Any]:
    """[key, digest of the row as it was, values]; of a new row neither of the first two."""
    cells = [_value(row[at], row[at + 1]) for at in range(1, len(row), 2)]
    key, values = cells[: len(copy.table.key)], cells[len(copy.table.key) :]
    written = [encode(value) for value in values]
    if copy.operation == "insert":
        return [None, None, written]
    where = " AND ".join(f"{quoted(name)} = ?" for name in copy.table.key)
    table = copy.table
    found = before.connection.execute(
        f"SELECT {parts_of(table.columns)} FROM main.{quoted(table.name)} WHERE {where}", key  # noqa: S608
    ).fetchall()
    if len(found) != 1:
        raise ToolFailure("sql.error", "The statement changes one row more than once.", "Write it without that.")
    return [[encode(value) for value in key], fingerprint(table.columns, paired(found[0])),
            written if copy.operation == "update" else []]  # fmt: skip


def _value(kind: bytes, content: Any) -> Any:
    if kind != b"text":
        return content
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        text = "A text that would be written, or that tells the row, is not UTF-8."
        raise ToolFailure("sql.error", text, "Write another value.") from None


def too_many(most: int) -> ToolFailure:
    """For a change of more rows than the call or the grant allows."""
    return ToolFailure(
        "sql.too_many_rows",
        f"More rows than {most} would change, so none did.",
        "Narrow the WHERE; if that many are meant, pass `limit`, as far as the grant allows.",
    )
