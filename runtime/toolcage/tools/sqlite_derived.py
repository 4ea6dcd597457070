"""What a database derives from excepted columns: generated columns with their values, indexes with their order.

SQLite asks an authorizer for the generated column that a statement names and never for the columns of its expression;
and rows that are read by way of an index come in the index's order. Both would tell what an excepted column holds. So
this finds them in the schema. A name cannot be spelled without its letters: what does not mention an excepted column
does not read it. Where an expression cannot be found surely in the table's own text, it counts as reading.

A table's own order is told: an INTEGER PRIMARY KEY is where a row stands, so excepting it does not hide which of two
rows has the smaller one. Standard library only; runs in a cage.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping

_GENERATED = (2, 3)
_PIECE = re.compile(
    r"""(?P<comment>--[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z))"""
    r"""|(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])"""
    r"""|(?P<word>[\w$]+)|(?P<mark>[(),])|(?P<other>\S)"""
)


def excepted_columns(pairs: Iterable[object], names: Iterable[str]) -> frozenset[tuple[str, str]]:
    """The pairs of `columns_except` as (table, column): a table of `names` as it stands there, a column in lower case.
    Every case form of a table is meant, whatever the engine takes for the same."""
    written = {(table, column) for table, _, column in (str(pair).lower().rpartition(".") for pair in pairs)}
    return frozenset(written | {(name, column) for table, column in written for name in names if name.lower() == table})


def derived_columns(
    connection: sqlite3.Connection, names: Mapping[str, str], excepted: frozenset[tuple[str, str]]
) -> frozenset[tuple[str, str]]:
    """The generated columns that read an excepted column, by way of others too, as (table, column) in lower case."""
    found: set[tuple[str, str]] = set()
    for table in {table for table, _ in excepted} & names.keys():
        hidden = {column for owner, column in excepted if owner == table}
        texts = _generated(connection, names[table])
        before = -1
        while before < len(hidden):
            before = len(hidden)
            hidden |= {name for name, text in texts.items() if text is None or _mentions_any(text, hidden)}
        found |= {(table, name) for name in texts.keys() & hidden}
    return frozenset(found)


def telling_pages(
    connection: sqlite3.Connection, names: Mapping[str, str], excepted: frozenset[tuple[str, str]]
) -> frozenset[int]:
    """The root pages of the indexes in whose order the values of an excepted column would show."""
    pages: set[int] = set()
    for table in {table for table, _ in excepted} & names.keys():
        hidden = {column for owner, column in excepted if owner == table}
        for index, origin in connection.execute(
            "SELECT name, origin FROM pragma_index_list(?, 'main')", (names[table],)
        ).fetchall():
            if _tells(connection, index, hidden):
                # The key of a table without rowids has no row of its own: it is the table.
                rows = connection.execute(
                    "SELECT rootpage FROM main.sqlite_master WHERE type = 'index' AND name = ?", (index,)
                ).fetchall() or (_own_page(connection, names[table]) if origin == "pk" else [])
                pages |= {page for (page,) in rows if page}
    return frozenset(pages)


def _tells(connection: sqlite3.Connection, index: str, hidden: set[str]) -> bool:
    """Whether a key column is hidden, or the index's text, for expressions and conditions, mentions a hidden one."""
    keys = connection.execute("SELECT name FROM pragma_index_xinfo(?, 'main') WHERE key = 1", (index,)).fetchall()
    if any(name is not None and name.lower() in hidden for (name,) in keys):
        return True
    row = connection.execute(
        "SELECT sql FROM main.sqlite_master WHERE type = 'index' AND name = ?", (index,)
    ).fetchone()
    text = row[0] if row else None
    if text is None:
        return any(name is None for (name,) in keys)
    return _mentions_any(text, hidden)


def _own_page(connection: sqlite3.Connection, table: str) -> list[tuple[int]]:
    return connection.execute(
        "SELECT rootpage FROM main.sqlite_master WHERE type = 'table' AND name = ?", (table,)
    ).fetchall()


def _generated(connection: sqlite3.Connection, table: str) -> dict[str, str | None]:
    """Generated column, lower case -> the text of its definition; None where it is not surely that column's."""
    columns = connection.execute(
        "SELECT name, hidden FROM pragma_table_xinfo(?, 'main') ORDER BY cid", (table,)
    ).fetchall()
    if not any(hidden in _GENERATED for _, hidden in columns):
        return {}
    row = connection.execute(
        "SELECT sql FROM main.sqlite_master WHERE type = 'table' AND name = ?", (table,)
    ).fetchone()
    definitions = _definitions(row[0] if row and row[0] else "")
    known = [name for name, _ in definitions[: len(columns)]] == [name.lower() for name, _ in columns]
    return {
        name.lower(): definitions[place][1] if known else None
        for place, (name, hidden) in enumerate(columns)
        if hidden in _GENERATED
    }


def _definitions(sql: str) -> list[tuple[str, str]]:
    """The parts between the commas of CREATE TABLE name (...): the first word of each, unquoted, and the rest."""
    parts: list[list[str]] = []
    depth = 0
    for match in _PIECE.finditer(sql):
        piece = match.group()
        if match.lastgroup == "comment":
            continue
        if match.lastgroup == "mark":
            depth += {"(": 1, ")": -1}.get(piece, 0)
            if (piece, depth) == ("(", 1) or (piece, depth) == (",", 1):
                parts.append([])
                continue
        if parts and depth > 0:
            parts[-1].append(piece)
    return [(_unquoted(part[0]).lower(), " ".join(part[1:])) for part in parts if part]


def _unquoted(piece: str) -> str:
    if piece[0] == "[":
        return piece[1:-1]
    return piece[1:-1].replace(piece[0] * 2, piece[0]) if piece[0] in "'\"`" else piece


def _mentions_any(text: str, columns: Iterable[str]) -> bool:
    lowered = text.lower()
    words = frozenset(re.findall(r"\w+", lowered))
    return any(_mentions(lowered, words, column) for column in columns)


def _mentions(lowered: str, words: frozenset[str], name: str) -> bool:
    if re.fullmatch(r"\w+", name):
        return name in words
    return any(spelled in lowered for spelled in (name, *(name.replace(quote, quote * 2) for quote in "'\"`")))
