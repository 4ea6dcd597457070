"""Random changes of a SQLite file: worked out on a copy and written by the host they leave what the statement itself
leaves, count the same rows, and fail where it fails. Only a text that is no UTF-8 may be refused besides."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from toolcage.errors import Refused
from toolcage.facts.sql import read
from toolcage.line.sqlite_change import Account, Order, make_change
from toolcage.screens import screen_facts
from toolcage.tools.base import ToolFailure, body_of
from toolcage.tools.change_database import ChangeDatabase
from toolcage.types import freeze

SCHEMA = """
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT COLLATE NOCASE, c REAL, d BLOB, e NUMERIC, f);
CREATE TABLE u (id INTEGER PRIMARY KEY, t INTEGER REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE, x);
CREATE TABLE w (k TEXT, n INT, v, PRIMARY KEY (k, n)) WITHOUT ROWID;
"""
COLUMNS = {"t": ["id", "a", "b", "c", "d", "e", "f"], "w": ["k", "n", "v"]}
VALUES: list[Any] = [
    None, 0, 1, 2, -1, 3.5, -0.5, 1e300, "a", "A", "b", "1", "1.0", "-1", " 1", "it's", "x\\y", "\n", "é", "1e2",
    b"\0\xff", 2**62, -(2**63), "\t", "--x", "/* */", '"', "?",
]  # fmt: skip


class Writer:
    """Statements within the screen's rules, with their parameters."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.parameters: list[Any] = []

    def statement(self) -> str:
        self.parameters = []
        table = self.random.choice(["t", "t", "w"])
        columns, kind = COLUMNS[table], self.random.choice(["insert", "update", "update", "delete"])
        if kind == "insert":
            named = [column for column in columns if self.random.random() < 0.6] or columns[-1:]
            rows = [f"({', '.join(self.value() for _ in named)})" for _ in range(self.random.randint(1, 2))]
            return f"INSERT INTO {table} ({', '.join(named)}) VALUES {', '.join(rows)}"
        start = f"DELETE FROM {table}"
        if kind == "update":
            written = self.random.sample(columns[self.random.random() < 0.8 :], self.random.randint(1, 2))
            start = f"UPDATE {table} SET {', '.join(f'{name} = {self.computed(columns)}' for name in written)}"
        count = self.random.randint(1, 3)
        return f"{start} WHERE {' AND '.join(self.condition(columns) for _ in range(count))}"

    def computed(self, columns: list[str]) -> str:
        name = self.random.choice(columns)
        return self.random.choice([self.value(), self.value(), f"{name} + 1", f"{name} || 'z'", f"coalesce({name}, 5)"])

    def condition(self, columns: list[str]) -> str:
        name = self.random.choice([(column := self.random.choice(columns)), f'"{column}"'])
        compared = self.random.choice(["=", "==", "<>", "!=", "<", ">=", "<=", ">"])
        return self.random.choice(
            [
                lambda: f"{name} IS NULL",
                lambda: f"{name} IS NOT NULL",
                lambda: f"{name} IN ({self.value()}, {self.value()})",
                lambda: f"{name} BETWEEN {self.value()} AND {self.value()}",
                lambda: f"{name} IS {self.value()}",
                lambda: f"({name} {compared} {self.value()})",
                lambda: f"NOT {name} = {self.value()}",
                lambda: f"({name} = {self.value()} OR {name} > {self.value()})",
            ]
        )()

    def value(self) -> str:
        if self.random.random() < 0.35:
            usable = [value for value in VALUES if not isinstance(value, bytes)]
            self.parameters.append(self.random.choice([*usable, True, False]))
            return "?"
        value = self.random.choice([*VALUES, True, "computed"])
        if value == "computed":
            return self.random.choice(["FALSE", "0x1f", "1 + 1", "lower('X')", "abs(-3)"])
        if isinstance(value, bytes):
            return f"x'{value.hex()}'"
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        return "NULL" if value is None else "TRUE" if value is True else repr(value)


def filled(path: Path, chosen: random.Random) -> None:
    with sqlite3.connect(path) as connection:
        connection.executescript(SCHEMA)
        for number in range(1, 9):
            row = [number, *(chosen.choice(VALUES) for _ in range(6))]
            connection.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            connection.execute("INSERT INTO u VALUES (?, ?, 1)", [number, chosen.randint(1, 8)])
            connection.execute("INSERT INTO w VALUES (?, ?, ?)", [f"k{number % 3}", number, chosen.choice(VALUES)])
    connection.close()


def directly(path: Path, sql: str, parameters: list[Any]) -> int | None:
    """How many rows the engine itself changes; None where it refuses."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    try:
        connection.execute(sql, parameters)
    except sqlite3.Error:
        return None
    else:
        return connection.total_changes
    finally:
        connection.close()


def in_two_halves(path: Path, sql: str, parameters: list[Any]) -> int:
    facts = read(sql, "sqlite", "change")
    screen_facts(facts)
    change = facts.change
    assert change is not None
    tool = ChangeDatabase()
    columns = None if change.columns is None else list(change.columns)
    tool.context = {
        "resources": {"database": {"kind": "sqlite", "path": str(path)}},
        "change": {"operation": change.operation, "table": change.table, "columns": columns},
    }
    report = body_of(tool)(database="x", sql=sql, parameters=parameters, limit=1000)
    order = Order(
        path=path, change=change, terms=None, parameters=freeze(parameters), limit=1000, max_bytes=65536,
        unchanged=lambda: True, given_up=lambda: False, seconds=30,
    )  # fmt: skip
    changed: int = make_change(order, freeze(json.loads(json.dumps(report))), Account())["changed_rows"]
    return changed


def attempted(path: Path, sql: str, parameters: list[Any]) -> tuple[int | None, str]:
    """How many rows changed, or None and why."""
    try:
        return in_two_halves(path, sql, parameters), ""
    except (ToolFailure, Refused) as error:
        return None, str(error)


def dump(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_random_change_leaves_what_the_statement_itself_leaves(tmp_path: Path, seed: int) -> None:
    writer, path, other = Writer(seed), tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    made = 0
    for number in range(80):
        if number % 10 == 0:
            path.unlink(missing_ok=True)
            filled(path, writer.random)
        other.write_bytes(path.read_bytes())
        sql = writer.statement()
        before, expected = dump(path), directly(other, sql, writer.parameters)
        changed, why = attempted(path, sql, writer.parameters)
        if changed is None and "not UTF-8" in why:
            other.write_bytes(path.read_bytes())
            expected = None
        assert (changed, dump(path)) == (expected, dump(other)), (sql, why)
        assert changed is not None or dump(path) == before, sql
        made += changed is not None
    assert made > 20
