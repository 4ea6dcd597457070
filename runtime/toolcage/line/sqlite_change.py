"""Makes the change that a cage proposes for a SQLite database: all of it in one transaction, or nothing.

The statement of the model has run in the cage, on a copy; it never runs here. What runs here is made from the facts of
the call and the database's own schema: names quoted, values bound, one row each. Under the write lock each row must
still be what it was in the snapshot, and meet the plain conditions of the call; then the rows are written, where the
database's triggers, constraints and foreign keys take effect, and counted with all that those changed; then COMMIT.
Anything else undoes it: too many rows, a rule of the database, a trigger that changes what a later row is made from, a
lock that does not come free, the deadline, a call that was cancelled. A process that dies before COMMIT leaves a
journal, which the next one to open the file rolls back.

A statement that looks at more than the rows it changes is made only if nobody wrote to the file since the snapshot.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from toolcage.cage.pool import GivenUp
from toolcage.errors import ResourceError
from toolcage.facts.sql_change import SqlChange
from toolcage.line.sqlite_plan import Plan, read_plan
from toolcage.line.sqlite_refusals import (
    BUSY,
    failure,
    meanwhile,
    moved,
    primary,
    refused,
    too_slow,
    unknown,
    unusable,
)
from toolcage.line.sqlite_report import BadReport, Parameters, Row, read_report
from toolcage.tools.sql_answer import Answer
from toolcage.tools.sqlite_rows import cell, fingerprint, fold, paired, parts_of, quoted
from toolcage.types import JSON, SqlTerms

PROGRESS_OPS: Final = 1000
MAX_CELL_BYTES: Final = 64 * 1024 * 1024
LOOK_AGAIN_S: Final = 0.02
TOLD_KEYS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the call may change, and what its answer may hold. `unchanged` says whether nobody has written to the file
    since the snapshot that the cage saw; `given_up` whether the call is no longer wanted."""

    path: Path
    change: SqlChange
    terms: SqlTerms | None
    parameters: Parameters
    limit: int
    max_bytes: int
    unchanged: Callable[[], bool]
    given_up: GivenUp
    seconds: float

    @property
    def most(self) -> int:
        """How many rows may change, with those that the database changes by itself."""
        granted = None if self.terms is None else self.terms.max_rows
        return max(1, min(self.limit, granted or 1000))


@dataclass(slots=True)
class Account:
    """What was done, for the audit. `state` is `undone` until COMMIT has been asked for."""

    state: str = "undone"
    rows: int = 0
    changed: int = 0
    keys: list[int] = field(default_factory=list)
    detail: str = ""

    def text(self) -> str:
        """For the operator."""
        keys = f"; rowids {', '.join(map(str, self.keys))}" if self.keys else ""
        told = f"{self.state}: {self.rows} rows by the statement, {self.changed} in all{keys}"
        return f"{told}; {self.detail}" if self.detail else told


def make_change(order: Order, data: JSON, account: Account) -> dict[str, Any]:
    """The answer to a change that was made. Raises Refused, and nothing was changed then, but for
    `sql.outcome_unknown`."""
    try:
        rows = read_report(data, order.change, order.parameters, order.most)
        file = _identity(order.path)
        connection = _connect(order)
        try:
            return _Transaction(connection, order, account, file).run(rows)
        finally:
            connection.close()
    except BadReport as error:
        account.detail = f"the cage's report was refused: {error}"
        raise refused("sql.bad_report", "The sandbox proposed another change than the call's, so none was made.",
                       None, operator=str(error)) from None  # fmt: skip


def _connect(order: Order) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(order.path))}?mode=rw", uri=True, isolation_level=None, cached_statements=8, timeout=0
        )
    except sqlite3.Error as error:
        raise unusable(error) from error
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.text_factory = lambda content: content.decode("utf-8", "replace")
    until = time.monotonic() + order.seconds
    connection.set_progress_handler(lambda: int(order.given_up() or time.monotonic() > until), PROGRESS_OPS)
    return connection


class _Transaction:
    def __init__(self, connection: sqlite3.Connection, order: Order, account: Account, file: tuple[int, int]) -> None:
        self._connection = connection
        self._file = file
        self._order = order
        self._account = account
        self._until = time.monotonic() + order.seconds
        self._unchanged = False
        self._seen: dict[Row, Any] = {}
        self._moved: set[str] = set()
        self._hidden: frozenset[str] = frozenset()

    def run(self, rows: Sequence[Row]) -> dict[str, Any]:
        try:
            for setting in ("foreign_keys=ON", "trusted_schema=OFF", "cell_size_check=ON", "temp_store=MEMORY"):
                self._connection.execute(f"PRAGMA {setting}")
            self._patiently("BEGIN IMMEDIATE")
            self._demand_file()
            answer = self._answer(rows)
            self._demand_time()
            self._demand_file()
            self._commit()
        except sqlite3.Error as error:
            self._account.detail = str(error)
            raise failure(error, self._hidden, self._unchanged) from error
        except UnicodeDecodeError as error:  # the engine's message names something of a broken schema
            self._account.detail = "the engine's message is no text"
            raise ResourceError("a database file cannot be changed: its schema is broken") from error
        finally:
            if self._connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):  # closing the connection undoes it too
                    self._connection.execute("ROLLBACK")
        return answer

    def _answer(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Everything but the end."""
        order, change = self._order, self._order.change
        self._unchanged = order.unchanged()
        if change.reads_others and not self._unchanged:
            raise meanwhile()
        plan = read_plan(self._connection, change, order.terms, order.parameters)
        self._hidden = plan.hidden
        for row in rows:
            self._verify(row, plan)
        before = self._connection.total_changes
        self._watch(plan)
        returned = [self._write(row, plan) for row in rows]
        self._connection.set_authorizer(None)
        if len(rows) > 1 and change.reads_others and change.computes and self._moved & change.tables:
            raise moved()
        self._account.rows, self._account.changed = len(rows), self._connection.total_changes - before
        if self._account.changed > order.most:
            raise refused(
                "sql.too_many_rows", f"More rows than {order.most} would change, so none did.",
                "Count what the database changes by itself too; if that many are meant, pass `limit`, as far as the"
                " grant allows.",
            )  # fmt: skip
        return self._told(returned, rows, plan)

    # -- rows

    def _verify(self, row: Row, plan: Plan) -> None:
        """The row is there, is what it was, and is one that the call speaks of."""
        self._demand_time()
        if self._order.change.operation == "insert":
            return
        if len(row.key) != len(plan.table.key):
            raise BadReport("a key has another number of parts")
        selected = ", ".join([plan.tests, *map(quoted, plan.table.key), parts_of(plan.table.columns)])
        text = f"SELECT {selected} FROM main.{quoted(plan.table.name)} WHERE {plan.where}"  # noqa: S608 - quoted names
        found = self._connection.execute(text, (*plan.bound, *row.key)).fetchall()
        was_at = 1 + len(row.key)
        if len(found) != 1 or fingerprint(plan.table.columns, paired(found[0][was_at:])) != row.before:
            raise meanwhile()
        meets, *key = found[0][:was_at]
        if not meets:
            raise BadReport("a row does not meet the conditions of the call")
        if [(type(part), part) for part in key] != [(type(part), part) for part in row.key]:
            raise BadReport("a row has another key than its own")  # so that none is there twice
        self._seen[row] = self._named(row, plan)

    def _named(self, row: Row, plan: Plan) -> Any:
        """The columns of a row that an expression of the statement may look at, now."""
        if not plan.looked_at:
            return None
        text = f"SELECT {parts_of(plan.looked_at)} FROM main.{quoted(plan.table.name)} WHERE {plan.where}"  # noqa: S608
        return self._connection.execute(text, row.key).fetchall()

    def _watch(self, plan: Plan) -> None:
        """Notes the tables that the database changes by itself, with each statement of ours. Forbids nothing: what
        triggers do is the owner's."""
        own = {"insert": sqlite3.SQLITE_INSERT, "update": sqlite3.SQLITE_UPDATE, "delete": sqlite3.SQLITE_DELETE}
        written = {fold(column) for column in plan.columns}

        def note(action: int, first: str | None, second: str | None, _: str | None, source: str | None) -> int:
            if action in own.values() and first is not None:
                mine = action == own[self._order.change.operation] and fold(first) == self._order.change.table
                if source is not None or not mine or (second is not None and fold(second) not in written):
                    self._moved.add(fold(first))
            return sqlite3.SQLITE_OK

        self._connection.set_authorizer(note)

    def _write(self, row: Row, plan: Plan) -> tuple[Any, ...]:
        """What RETURNING gives."""
        if self._order.change.operation != "delete" and len(row.values) != len(plan.columns):
            raise BadReport("a row has another number of values")
        if self._seen.get(row) != self._named(row, plan):
            raise moved()
        self._demand_time()
        text = plan.statement(self._order.change.operation)
        rows = self._connection.execute(text, (*row.values, *row.key)).fetchall()
        if len(rows) == 1:
            self._note(row.key or rows[0][len(plan.returning) :])
            return tuple(rows[0][: len(plan.returning)])
        if self._order.change.operation == "delete" and not self._is_there(row, plan):
            self._note(row.key)
            return ()  # a key deleted it with another row of this change
        raise refused("sql.constraint", "The database itself kept a row from being changed.", None)

    def _is_there(self, row: Row, plan: Plan) -> bool:
        text = f"SELECT 1 FROM main.{quoted(plan.table.name)} WHERE {plan.where}"  # noqa: S608 - quoted names
        return bool(self._connection.execute(text, row.key).fetchall())

    def _told(self, returned: Sequence[tuple[Any, ...]], rows: Sequence[Row], plan: Plan) -> dict[str, Any]:
        """The answer. Rows stand in the order of their keys: that in which the engine met them may tell of a column
        that is not granted."""
        change, order = self._order.change, self._order
        context = {"sql": {"max_rows": order.most}, "limits": {"max_bytes": order.max_bytes}}
        answer = Answer(context, order.most)
        answer.begin(plan.returning)
        kinds = ["null"] * len(plan.returning)
        truncated = False
        if plan.returning:
            paired_rows = sorted(zip(rows, returned, strict=True), key=lambda both: [_sortable(k) for k in both[0].key])
            for _, values in paired_rows:
                cells = [cell(value, kinds, place, answer) for place, value in enumerate(values)]
                truncated = truncated or (bool(cells) and not answer.took(cells))
        told = answer.finished(list(zip(plan.returning, kinds, strict=True)), truncated=truncated)
        return {"operation": change.operation, "changed_rows": self._account.changed, **told}

    # -- the ends

    def _note(self, key: Sequence[Any]) -> None:
        """For the audit: numbers only, a text may be what nobody but the database should hold."""
        room = TOLD_KEYS - len(self._account.keys)
        self._account.keys += [part for part in key if isinstance(part, int)][:room]

    def _demand_time(self) -> None:
        """Between rows: the engine asks its own handler only in statements that are long."""
        if self._order.given_up():
            raise refused("call.cancelled", "the call was cancelled", None, status="cancelled", retryable=True)
        if time.monotonic() > self._until:
            raise too_slow()

    def _demand_file(self) -> None:
        """What is open is still the file of that name: a change of one that was replaced would be lost."""
        if _identity(self._order.path) != self._file:
            raise meanwhile()

    def _patiently(self, text: str) -> None:
        """Runs a statement that needs a lock, again and again until the deadline."""
        while True:
            try:
                self._connection.execute(text)
                return
            except sqlite3.OperationalError as error:
                if primary(error) not in BUSY:
                    raise
                if self._order.given_up() or time.monotonic() > self._until:
                    raise
            time.sleep(LOOK_AGAIN_S)

    def _commit(self) -> None:
        self._account.state = "unknown"
        try:
            self._patiently("COMMIT")
        except sqlite3.Error as error:
            if primary(error) == sqlite3.SQLITE_IOERR:
                self._account.detail = str(error)
                text = "The disk failed while the change was made final: it may have been made."
                raise unknown(text, str(error)) from error
            self._account.state = "undone"
            raise
        self._account.state = "committed"
        with contextlib.suppress(ResourceError):
            if _identity(self._order.path) == self._file:
                return
        self._account.detail = "to a file that was replaced meanwhile"
        raise unknown("The file was replaced while the change was made final: it may be lost.", None)


def _sortable(value: Any) -> tuple[int, Any]:
    if isinstance(value, int | float):
        return 1, value
    return (2, value) if isinstance(value, str) else (3, value) if isinstance(value, bytes) else (0, 0)


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError as error:
        raise ResourceError(f"a database file cannot be changed: {error}") from error
    return found.st_dev, found.st_ino
