"""Full-text, R-tree and other virtual tables of a SQLite file: made ready before the guard, and read through.

A virtual table keeps its rows in *shadow* tables (`docs_content`, `docs_data` …) and reads them with statements of its
own, which the engine's authorizer is asked about like the caller's. So whoever may read the table may have it read its
shadows; a statement that names a shadow itself opens its pages and is refused there, unless the policy names it.

A shadow holds all columns, so one column of a virtual table cannot be excepted: the whole table is closed then. The
modules are those that the cage's SQLite was built with. Standard library only; sent into the cage beside the tools
that use it. Source: sqlite.org/vtab.html, "Shadow Tables".
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from toolcage.tools.sqlite_rows import OLDEST, fold, quoted

ASKED = frozenset({"data_version", "page_size"})
"""PRAGMAs by which FTS5 and FTS4 see whether the file has changed, and how it is cut; they set nothing."""


@dataclass(frozen=True)
class Virtual:
    """Names as SQLite compares them: the virtual tables, and for each shadow the table that it belongs to."""

    tables: frozenset[str] = frozenset()
    shadows: Mapping[str, str] = field(default_factory=dict)

    def reads_for(self, table: str, granted: frozenset[str]) -> bool:
        """Whether `table` is a shadow of a granted one."""
        return self.shadows.get(table) in granted


def virtual_tables(connection: sqlite3.Connection) -> Virtual:
    """The virtual tables of the file."""
    if sqlite3.sqlite_version_info < OLDEST:
        return _by_their_names(connection)
    rows = connection.execute("SELECT name, type FROM pragma_table_list WHERE schema = 'main'").fetchall()
    tables = frozenset(fold(name) for name, kind in rows if kind == "virtual")
    shadows = {}
    for name in (fold(name) for name, kind in rows if kind == "shadow"):
        owners = [table for table in tables if name.startswith(f"{table}_")]
        if owners:
            shadows[name] = max(owners, key=len)
    return Virtual(tables=tables, shadows=shadows)


def _by_their_names(connection: sqlite3.Connection) -> Virtual:
    """For an engine that does not tell what kind of table each one is: what is called like a part of a virtual table
    may be one, and nobody reads through it."""
    rows = connection.execute("SELECT name, sql FROM main.sqlite_master WHERE type = 'table'").fetchall()
    tables = frozenset(fold(name) for name, sql in rows if str(sql).upper().startswith("CREATE VIRTUAL"))
    names = (fold(name) for name, _ in rows)
    prefixes = tuple(f"{table}_" for table in tables)
    return Virtual(tables=tables, shadows={name: "" for name in names if name.startswith(prefixes)})


def connect(connection: sqlite3.Connection, stored: Iterable[str]) -> None:
    """A first use of each, which the guard would refuse as a change of the schema. Names as stored."""
    for name in stored:
        with contextlib.suppress(sqlite3.Error):  # a module that is not here: the caller's statement will say so
            connection.execute(f"EXPLAIN SELECT * FROM main.{quoted(name)}").fetchall()  # noqa: S608

