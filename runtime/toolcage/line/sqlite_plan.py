"""What a change of a SQLite database may do, read from the call's facts and terms and the schema as it is now.

A plan names one ordinary table and its columns as they are stored, and makes the statements that change one row each:
names quoted, values bound. What is not granted and what does not exist are refused alike.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolcage.facts.sql_change import Condition, Joined, SqlChange
from toolcage.line.sqlite_refusals import not_granted, refused
from toolcage.line.sqlite_report import Parameters, plain_value
from toolcage.tools.sqlite_derived import derived_columns, excepted_columns
from toolcage.tools.sqlite_rows import ROWID_NAMES, NoPlainTable, Table, fold, quoted, read_table
from toolcage.types import SqlTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One call's table and columns, by their stored names. `looked_at` are those that an expression may depend on;
    `tests` is one that tells whether a row meets the conditions of the call, `bound` are the values in it.
    `hidden` are names that nothing may tell the caller."""

    table: Table
    columns: tuple[str, ...]
    returning: tuple[str, ...]
    looked_at: tuple[str, ...]
    tests: str
    bound: tuple[Any, ...]
    hidden: frozenset[str]

    @property
    def where(self) -> str:
        """One row, by its key."""
        return " AND ".join(f"{quoted(name)} = ?" for name in self.table.key)

    def statement(self, operation: str) -> str:
        """The statement for one row: values first, then the key. ABORT: whatever the schema says of conflicts, no other
        row is replaced and none left out."""
        name = f"main.{quoted(self.table.name)}"
        told = [*self.returning, *(self.table.key if operation == "insert" else ())]
        returning = f" RETURNING {', '.join(map(quoted, told)) if told else '1'}"
        if operation == "insert":
            listed = ", ".join(map(quoted, self.columns))
            marks = ", ".join("?" * len(self.columns))
            values = f"({listed}) VALUES ({marks})" if self.columns else "DEFAULT VALUES"
            return f"INSERT OR ABORT INTO {name} {values}{returning}"
        if operation == "update":
            sets = ", ".join(f"{quoted(column)} = ?" for column in self.columns)
            return f"UPDATE OR ABORT {name} SET {sets} WHERE {self.where}{returning}"  # noqa: S608 - quoted names
        return f"DELETE FROM {name} WHERE {self.where}{returning}"  # noqa: S608 - quoted names


def read_plan(
    connection: sqlite3.Connection, change: SqlChange, terms: SqlTerms | None, parameters: Parameters
) -> Plan:
    """The plan of a change. Raises Refused for what is not granted, does not exist or is no ordinary table."""
    try:
        table = read_table(connection, change.table)
    except NoPlainTable as error:
        raise refused("sql.not_changeable", "What would change is no ordinary table, or does not exist.",
                      "Use describe_database to see the tables.", operator=str(error)) from None  # fmt: skip
    names = _names(connection)
    excepted = _excepted(connection, terms, names)
    columns = table.columns if change.columns is None else [_known(table.column(name)) for name in change.columns]
    returning = [name for word in change.returning for name in _returned(word, table)]
    asked = {*change.names, *(name for condition in change.conditions for name in condition.columns())}
    _demand_grant(change, terms, table, excepted, [*columns, *returning, *asked])
    for name in asked:
        _known(table.readable(name))  # what is no column would be read as a text
    looked_at = [column for column in table.columns if change.reads_others or fold(column) in change.names]
    tests, bound = _conditions(change.conditions, table, parameters)
    return Plan(
        table=table, columns=tuple(columns), returning=tuple(returning), tests=tests, bound=bound,
        looked_at=tuple(looked_at) if change.computes and change.operation == "update" else (),
        hidden=frozenset(name for name in names if not _is_granted(terms, name)) | {name for _, name in excepted},
    )  # fmt: skip


def _demand_grant(
    change: SqlChange, terms: SqlTerms | None, table: Table, excepted: frozenset[tuple[str, str]], named: Sequence[str]
) -> None:
    kinds = None if terms is None else terms.operations
    hidden = {column for name, column in excepted if name == change.table}
    if hidden & {name.lower() for name in table.primary}:
        hidden |= {fold(word) for word in ROWID_NAMES}  # it may be another name of the rowid
    if (
        (kinds is not None and change.operation not in kinds)
        or not _is_granted(terms, change.table)
        or hidden & {name.lower() for name in named}
        or not _may_write(change, terms)
    ):
        raise not_granted()


def _may_write(change: SqlChange, terms: SqlTerms | None) -> bool:
    """A DELETE and an INSERT that name no column write whole rows."""
    if terms is None or terms.writes is None:
        return True
    columns = change.columns or ()
    return bool(columns) and {f"{change.table}.{column}" for column in columns} <= terms.writes


def _names(connection: sqlite3.Connection) -> dict[str, str]:
    """Tables and views: their stored names by their folded ones."""
    rows = connection.execute("SELECT name FROM main.sqlite_master WHERE type IN ('table', 'view')")
    return {fold(str(name)): str(name) for (name,) in rows.fetchall()}


def _excepted(
    connection: sqlite3.Connection, terms: SqlTerms | None, names: dict[str, str]
) -> frozenset[tuple[str, str]]:
    """Table and column of what is not granted, and of what is made from that."""
    written = excepted_columns(terms.columns_except if terms else (), names)
    return written | derived_columns(connection, names, written)


def _is_granted(terms: SqlTerms | None, table: str) -> bool:
    return terms is None or terms.tables is None or table in terms.tables


def _returned(word: str, table: Table) -> Sequence[str]:
    return (*table.columns, *table.derived) if word == "*" else [_known(table.readable(word))]


def _conditions(
    conditions: Sequence[Condition | Joined], table: Table, parameters: Parameters
) -> tuple[str, tuple[Any, ...]]:
    """One SQL expression that is true for a row that meets them all."""
    bound: list[Any] = []
    tests = ["1", *(_test(condition, table, parameters, bound) for condition in conditions)]
    return f"({' AND '.join(tests)})", tuple(bound)


def _test(condition: Condition | Joined, table: Table, parameters: Parameters, bound: list[Any]) -> str:
    if isinstance(condition, Joined):
        parts = [_test(part, table, parameters, bound) for part in condition.parts]
        return f"(NOT {parts[0]})" if condition.word == "NOT" else f"({f' {condition.word} '.join(parts)})"
    values = [plain_value(plain, parameters) for plain in condition.values]
    bound += values
    marks = {"IN": f"({', '.join('?' * len(values))})", "BETWEEN": "? AND ?"}.get(condition.comparison, "?")
    return f"({quoted(_known(table.readable(condition.column)))} {condition.comparison} {marks})"


def _known(name: str | None) -> str:
    if name is None:
        raise not_granted()
    return name
