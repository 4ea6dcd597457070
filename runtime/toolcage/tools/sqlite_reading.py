"""Opens a SQLite file so that nothing can be done with it but read what was granted. Runs in a cage.

This is the engine-side layer. It holds without the parser's gate in front of it: the file is opened read-only, and
SQLite asks an authorizer (an allowlist) before it compiles any access at all, so ATTACH, PRAGMA, VACUUM INTO, every
write, extension loading and tables outside the grant never get as far as running. What an authorizer is not asked about
(EXPLAIN, which shows internals) is refused by the first word of the statement.

The authorizer is not asked about everything: SQLite (3.40) joins by USING or NATURAL without asking for the column, and
tells of a view by a name that a CTE can take. So the compiled program is looked at too, and may only open the pages of
granted tables; and where excepted columns could be joined on, the statement is refused by its words. What is derived
from an excepted column is excepted with it: a generated column by its own expression, and an index by the order in
which it would hand out rows.

Deliberately never opens with `immutable`, never runs a script, never puts a value or a name into SQL text.
Standard library only; sent into the cage beside the tools that use it.

Sources: sqlite.org/security.html, sqlite.org/c3ref/set_authorizer.html, sqlite.org/limits.html.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcage.facts.sql_functions import SQLITE_FUNCTIONS, SQLITE_TABLE_FUNCTIONS
from toolcage.tools.base import ToolFailure
from toolcage.tools.sql_answer import MAX_SQL_BYTES, first_word
from toolcage.tools.sqlite_derived import derived_columns, excepted_columns, telling_pages
from toolcage.tools.sqlite_rows import fold
from toolcage.tools.sqlite_virtual import ASKED, Virtual, connect, virtual_tables

MAX_CELL_BYTES = 1_000_000
HEAP_BYTES = 64 * 1024 * 1024
PROGRESS_OPS = 1000

LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_CELL_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: MAX_SQL_BYTES,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 30,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 250,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}

DATABASE_ERRORS = (sqlite3.Error, sqlite3.Warning, MemoryError, OverflowError, UnicodeDecodeError)
"""The last where the engine's message names something of a broken schema that is no text."""

_PLAIN_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./")
_GAP = r"(?:[\s\ufeff]|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)"
_INDEX_CHOICE = re.compile(rf"(?<![\w$])(?:indexed{_GAP}*by|not{_GAP}*indexed)(?![\w$])", re.IGNORECASE | re.ASCII)
_READING_WORDS = ("select", "with", "values")
_ENGINE_PREFIXES = ("sqlite_", "pragma_")
# Rows of temporary indexes are inserted and deleted while reading; these occur only where something changes.
_CHANGING = """
    OpenWrite Destroy Clear CreateBtree ParseSchema DropTable DropIndex DropTrigger Vacuum IncrVacuum JournalMode
    SetCookie VUpdate VCreate VDestroy VRename AutoCommit Savepoint Checkpoint
"""
_TEMPORARY = 1
_NEVER_OPCODES = frozenset(_CHANGING.split())


@dataclass
class Grant:
    """What may be read: real tables and views by lower-case name, and `table.column` pairs that may not."""

    tables: frozenset[str]
    columns_except: frozenset[tuple[str, str]]

    def column(self, table: str, column: str) -> bool:
        """Whether that column may be read. Exceptions compare in every case form, so that none slips through."""
        return table in self.tables and (table, column.lower()) not in self.columns_except


@dataclass
class Reading:
    """One open database. `names` maps each table and view to its name as stored, `pages` the root page of each
    table and index to its table; `telling` are the pages whose order tells of an excepted column; `virtual` are the
    virtual tables; `grant` is what of it may be read."""

    connection: sqlite3.Connection
    names: Mapping[str, str]
    pages: Mapping[int, str]
    telling: frozenset[int]
    virtual: Virtual
    grant: Grant
    deadline: float
    denied: list[str] = field(default_factory=list)
    undecodable: int = 0

    def close(self) -> None:
        self.connection.close()


def open_reading(context: Mapping[str, Any], argument: str = "database", more_heap: bool = False) -> Reading:
    """Opens what the call's `argument` names, guarded against everything but reading. The caller's own fixed queries
    come first, then `guard` is set and the caller's SQL may run. `more_heap` leaves room for a copy of the file in
    memory: the engine's bound holds for the process. Raises ToolFailure."""
    resource = (context.get("resources") or {}).get(argument)
    if not resource or resource.get("kind") not in ("sqlite", "database") or not resource.get("path"):
        raise ToolFailure("sql.no_database", "This call has no database attached.", "Name a database that is granted.")
    wall_s = float((context.get("limits") or {}).get("wall_s") or 5.0)
    try:
        path = str(resource["path"])
        connection = _connect(path, HEAP_BYTES + (os.path.getsize(path) if more_heap else 0))
        names, pages = _schema(connection)
        virtual = virtual_tables(connection)
        grant = _grant(connection, context.get("sql") or {}, names, virtual)
        connect(connection, (names[table] for table in grant.tables & virtual.tables))
        telling = telling_pages(connection, names, grant.columns_except)
    except (*DATABASE_ERRORS, OSError) as error:
        raise ToolFailure("sql.unusable_database", f"The database cannot be opened: {plain(error)}") from None
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    reading = Reading(
        connection=connection,
        names=names,
        pages=pages,
        telling=telling,
        virtual=virtual,
        grant=grant,
        deadline=time.monotonic() + max(0.05, wall_s * 0.8),  # before the cage's own end, for a better answer
    )
    connection.set_progress_handler(lambda: int(time.monotonic() > reading.deadline), PROGRESS_OPS)
    connection.text_factory = lambda content: _decoded(reading, content)
    return reading


def run_query(reading: Reading, sql: str, parameters: Any) -> sqlite3.Cursor:
    """Runs one statement of the caller under the grant. Raises ToolFailure for all that is not a permitted read."""
    _demand_query(sql)
    demand_no_index_choice(sql)
    demand_plain_joins(reading, sql)
    views = views_believed(reading, sql)
    through = {view: tables_behind(reading, view) for view in views}
    _guard(reading, views)
    try:
        # EXPLAIN is put in front here, after the first word was checked; it compiles and lists, and runs nothing.
        program = _execute(reading.connection, "EXPLAIN " + sql, parameters).fetchall()
        demand_pages(reading, program, frozenset().union(*through.values()))
        return _execute(reading.connection, sql, parameters)
    except DATABASE_ERRORS as error:
        raise failure(reading, sql, error) from None


class _Numbered(dict[str, Any]):
    """Listed values by the number of their parameter, and which of them were asked for."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        super().__init__((str(number), value) for number, value in enumerate(values, 1))
        self.unasked = set(self)

    def __getitem__(self, number: str) -> Any:
        value = super().__getitem__(number)
        self.unasked.discard(number)
        return value


def _execute(connection: sqlite3.Connection, sql: str, parameters: Any) -> sqlite3.Cursor:
    """Binds what was listed to $1, $2 or ?1, ?2 by their numbers, to ? by place; Python alone would bind all by place,
    names too. Raises sqlite3.Error."""
    if not isinstance(parameters, tuple) or not parameters:
        return connection.execute(sql, parameters)
    numbered = _Numbered(parameters)
    try:
        cursor = connection.execute(sql, numbered)
    except sqlite3.ProgrammingError as error:
        if "has no name" not in str(error):
            raise
        return connection.execute(sql, parameters)
    if numbered.unasked:
        raise sqlite3.ProgrammingError("the statement has fewer parameters than values were given")
    return cursor


def _guard(reading: Reading, views: frozenset[str]) -> None:
    """From here on SQLite compiles nothing that the grant does not allow. `views` may read what they are made of."""

    def authorize(action: int, first: str | None, second: str | None, schema: str | None, source: str | None) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and second is not None and fold(second) in SQLITE_FUNCTIONS:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ and first is not None and schema in ("main", None):
            through_view = fold(source or "") in views
            if may_read(reading, fold(first), second or "", through_view=through_view):
                return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_PRAGMA and first in ASKED and second is None:
            return sqlite3.SQLITE_OK
        reading.denied.append(described(action, first, second))
        return sqlite3.SQLITE_DENY

    reading.connection.set_authorizer(authorize)


def may_read(reading: Reading, table: str, column: str, *, through_view: bool) -> bool:
    if table in SQLITE_TABLE_FUNCTIONS:
        return True
    if table.startswith(_ENGINE_PREFIXES):
        return False
    if (table, column.lower()) in reading.grant.columns_except:
        return False  # also not through a view
    # A CTE of which no column is read, as in count(*), is asked for like a table; its own parts are asked for too.
    is_cte = column == "" and table not in reading.names
    return (
        table in reading.grant.tables
        or reading.virtual.reads_for(table, reading.grant.tables)
        or through_view
        or is_cte
    )


def demand_pages(
    reading: Reading, program: list[Any], behind_views: frozenset[str], written: frozenset[str] = frozenset()
) -> None:
    """The compiled program may open granted tables and their indexes in this file, and nothing for writing but the
    tables of `written` and what is temporary."""
    for place, (_, opcode, _, page, database, *_) in enumerate(program):
        if opcode in ("OpenRead", "ReopenIdx"):
            if database == 0 and page in reading.telling and not _only_counts(program, place):
                raise ToolFailure(
                    "sql.not_granted",
                    "The rows would come in the order of a column that is not granted.",
                    "Add ORDER BY with the table's primary key, name another granted column of the table in the"
                    " statement, or write + before the columns in WHERE.",
                )
            if database == 0 and reading.pages.get(page) in reading.grant.tables | behind_views | written:
                continue
            raise not_granted()
        if written and opcode == "OpenWrite" and (database == _TEMPORARY or reading.pages.get(page) in written):
            continue
        if written and opcode == "Transaction":
            continue
        if opcode in _NEVER_OPCODES or (opcode == "Transaction" and page):  # there, the operand says: for writing
            raise ToolFailure("sql.not_allowed", "The statement does more than read.", "Send a plain SELECT.")


def _only_counts(program: list[Any], place: int) -> bool:
    """Whether what is opened at `place` is counted and closed again: no row of it is ever visited."""
    cursor = program[place][2]
    after = [(row[1], row[2]) for row in program[place + 1 : place + 3]]
    return after == [("Count", cursor), ("Close", cursor)]


def demand_no_index_choice(sql: str) -> None:
    """Looked for in the whole text, quotes and comments included: nobody has to agree where those end."""
    if _INDEX_CHOICE.search(sql):
        raise ToolFailure(
            "sql.not_allowed",
            "INDEXED BY and NOT INDEXED are not possible.",
            "Leave them out; pass a text that holds these words as a parameter.",
        )


def demand_plain_joins(reading: Reading, sql: str) -> None:
    """USING and NATURAL read columns that the authorizer is never asked about."""
    words = _words(sql)
    for table, column in reading.grant.columns_except:
        named = _mentions(sql, words, table)
        if named and ("natural" in words or ("using" in words and _mentions(sql, words, column))):
            raise ToolFailure(
                "sql.not_granted", "A join could read a column that is not granted.", "Join with ON instead."
            )


def views_believed(reading: Reading, sql: str) -> frozenset[str]:
    """The granted views that may read through to tables outside the grant.

    SQLite tells the authorizer of a view by its name only, and a CTE of that name looks the same; a join by USING is
    not told at all. So views are believed only in a statement without the word WITH that names no table outside the
    grant.
    """
    words = _words(sql)
    if "with" in sql.lower() or _names_hidden(reading, sql):
        return frozenset()
    rows = reading.connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'view'").fetchall()
    views = frozenset(fold(name) for (name,) in rows) & reading.grant.tables
    return frozenset(view for view in views if _mentions(sql, words, view))


def tables_behind(reading: Reading, view: str) -> frozenset[str]:
    """The tables whose pages a view opens, from compiling it. The name is the schema's own, quoted."""
    quoted = '"' + reading.names[view].replace('"', '""') + '"'
    try:
        program = reading.connection.execute("EXPLAIN SELECT * FROM main." + quoted).fetchall()  # noqa: S608
    except DATABASE_ERRORS:
        return frozenset()  # a view that no longer compiles
    pages = (row[3] for row in program if row[1] in ("OpenRead", "ReopenIdx") and row[4] == 0)
    return frozenset(reading.pages[page] for page in pages if page in reading.pages)


def _demand_query(sql: str) -> None:
    """Raises ToolFailure unless the first word begins a query: an authorizer lets EXPLAIN and an idle REINDEX pass."""
    if first_word(sql) not in _READING_WORDS:
        raise ToolFailure("sql.not_select", "Only a SELECT can be run.", "Send one SELECT statement.")


def failure(reading: Reading, sql: str, error: BaseException) -> ToolFailure:
    """What a failed statement tells the model: enough to repair it, nothing about what is not granted."""
    text = plain(error)
    if time.monotonic() > reading.deadline and "interrupt" in text:
        return ToolFailure(
            "sql.timeout", "The query took too long.", "Narrow it with WHERE or LIMIT, or aggregate less."
        )
    if isinstance(error, MemoryError) or "out of memory" in text:
        return ToolFailure("sql.too_big", "The query needs too much memory.", "Read less at a time.")
    if "too big" in text or "too large" in text or "too many" in text:
        return ToolFailure("sql.too_big", f"The query goes beyond a limit: {text}.", "Read less, or split the query.")
    if "one statement" in text:
        return ToolFailure(
            "sql.multiple_statements", "One statement at a time is possible.", "Send one SELECT per call."
        )
    if reading.denied:
        denied = reading.denied[0]
        if denied.startswith("read "):
            return not_granted()
        return ToolFailure("sql.not_allowed", f"Not allowed here: {denied}.", "Send a plain SELECT on granted tables.")
    # What exists outside the grant and what does not exist answer alike.
    if "no such table" in text or ("no such" in text and (reading.grant.columns_except or _names_hidden(reading, sql))):
        return not_granted()
    if "no such" in text:
        return ToolFailure("sql.error", f"{text}.", "Use describe_database to see tables and columns.")
    return ToolFailure("sql.error", f"{text}.", "Correct the statement.")


def not_granted() -> ToolFailure:
    return ToolFailure(
        "sql.not_granted",
        "A table or column of the statement does not exist or is not granted.",
        "Use describe_database to see tables and columns.",
    )


def _names_hidden(reading: Reading, sql: str) -> bool:
    """Whether a table or view outside the grant is named. A name cannot be spelled without its letters."""
    words = _words(sql)
    return any(_mentions(sql, words, name) for name in reading.names.keys() - reading.grant.tables)


def shows_hidden(reading: Reading, text: str) -> bool:
    """Whether the engine's own words name what is not granted."""
    words = _words(text)
    return _names_hidden(reading, text) or any(
        _mentions(text, words, column) for _, column in reading.grant.columns_except
    )


def _words(sql: str) -> frozenset[str]:
    return frozenset(fold(word) for word in re.findall(r"\w+", sql))


def _mentions(sql: str, words: frozenset[str], name: str) -> bool:
    if re.fullmatch(r"\w+", name):
        return name in words
    folded = fold(sql)
    return name in folded or any(name.replace(quote, quote * 2) in folded for quote in "'\"`")


def _connect(path: str, heap_bytes: int) -> sqlite3.Connection:
    # The path is percent-encoded whole, so that no `?` in it adds a parameter.
    encoded = "".join(chr(byte) if byte in _PLAIN_BYTES else f"%{byte:02X}" for byte in path.encode())
    uri = f"file:{encoded}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=0, timeout=1.0)
    for setting in ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute(f"PRAGMA hard_heap_limit={heap_bytes}")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
    return connection


def _schema(connection: sqlite3.Connection) -> tuple[dict[str, str], dict[int, str]]:
    rows = connection.execute("SELECT type, name, tbl_name, rootpage FROM main.sqlite_master").fetchall()
    names = {fold(name): name for kind, name, _, _ in rows if kind in ("table", "view")}
    pages = {page: fold(table) for kind, _, table, page in rows if kind in ("table", "index") and page}
    # A first use of these registers them, which the guard would refuse as a change of the schema.
    for function in SQLITE_TABLE_FUNCTIONS:
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute(f"SELECT 1 FROM {function}('[]')").fetchall()  # noqa: S608
    return names, pages


def _grant(
    connection: sqlite3.Connection, terms: Mapping[str, Any], names: Mapping[str, str], virtual: Virtual
) -> Grant:
    """The tables that exist and are granted; a grant of all tables still leaves the engine's own out, and those where
    virtual tables keep their rows. What is generated from an excepted column is excepted too."""
    known = frozenset(name for name in names if not name.startswith(_ENGINE_PREFIXES))
    granted = terms.get("tables")
    tables = known - virtual.shadows.keys() if granted is None else known & frozenset(str(name) for name in granted)
    excepted = excepted_columns(terms.get("columns_except") or (), names)
    closed = virtual.tables & {table for table, _ in excepted}
    return Grant(tables=tables - closed, columns_except=excepted | derived_columns(connection, names, excepted))


def described(action: int, first: str | None, second: str | None) -> str:
    """What was denied, in the statement's own words where they are the caller's."""
    if action == sqlite3.SQLITE_READ:
        return f"read {first}"
    if action == sqlite3.SQLITE_FUNCTION:
        return f"the function {second}"
    return _ACTIONS.get(action, "a statement that is not a query")


def _decoded(reading: Reading, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        reading.undecodable += 1
        return content.decode("utf-8", "replace")


def plain(error: BaseException) -> str:
    return str(error).strip().rstrip(".")[:300] or type(error).__name__


_ACTIONS = {
    sqlite3.SQLITE_ATTACH: "ATTACH",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_PRAGMA: "PRAGMA",
    sqlite3.SQLITE_INSERT: "writing",
    sqlite3.SQLITE_UPDATE: "writing",
    sqlite3.SQLITE_DELETE: "writing",
    sqlite3.SQLITE_TRANSACTION: "a transaction",
}
