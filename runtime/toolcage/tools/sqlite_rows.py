"""What the cage and the host must agree on about rows of a SQLite table: which columns, which key, how a value travels.

A change of a SQLite database is worked out in a cage on a copy and made by the host on the file; both describe the
table, and the rows before the change, with this module. A value travels as its storage class and a text, exactly; a row
as the digest of all its columns, so that a row that somebody else changed meanwhile is never taken for the same.
Decides nothing about permission. Standard library only; sent into the cage beside the tools that use it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from toolcage.tools.sql_answer import Answer

Scalar: TypeAlias = "int | float | bytes | str | None"
ROWID_NAMES: Final = ("_rowid_", "rowid", "oid")
OLDEST: Final = (3, 37, 0)
"""The first SQLite that tells what kind of table each one is, and has RETURNING."""
PROPOSAL_BYTES: Final = 3 * 1024 * 1024
"""The most that one change may write, in values as they travel."""
_ORDINARY, _DERIVED = 0, (2, 3)
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class NoPlainTable(Exception):
    """There is no such table, or it is a view, virtual, one of the engine's own, or cannot be told row from row."""


@dataclass(frozen=True)
class Table:
    """One ordinary table. Names as stored; `columns` can be written, `derived` are generated. `key` tells a row from
    all others: a name of the rowid, or the primary key's columns; `primary` are these in either case."""

    name: str
    columns: tuple[str, ...]
    derived: tuple[str, ...]
    key: tuple[str, ...]
    has_rowid: bool
    primary: tuple[str, ...]

    def column(self, name: str) -> str | None:
        """The stored name of a column that can be written."""
        return next((column for column in self.columns if fold(column) == name), None)

    def readable(self, name: str) -> str | None:
        """The name by which a column, a generated one or the rowid can be read."""
        found = next((column for column in (*self.columns, *self.derived) if fold(column) == name), None)
        return found or (name if self.has_rowid and name in ROWID_NAMES else None)


def read_table(connection: sqlite3.Connection, name: str) -> Table:
    """The table of that name (lower case) in `main`. Raises NoPlainTable."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise NoPlainTable(f"SQLite {sqlite3.sqlite_version} is too old to change anything with; 3.37 is needed")
    found = connection.execute("SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main'").fetchall()
    matching = [(_text(stored), _text(kind), without) for stored, kind, without in found if fold(_text(stored)) == name]
    if len(matching) != 1 or matching[0][1] != "table" or name.startswith("sqlite_"):
        raise NoPlainTable("it is no ordinary table")
    stored, _, without_rowid = matching[0]
    rows = connection.execute(
        "SELECT name, pk, hidden FROM pragma_table_xinfo(?, 'main') ORDER BY cid", (stored,)
    ).fetchall()
    columns = tuple(_text(column) for column, _, hidden in rows if hidden == _ORDINARY)
    derived = tuple(_text(column) for column, _, hidden in rows if hidden in _DERIVED)
    taken = {fold(column) for column in (*columns, *derived)}
    free = [word for word in ROWID_NAMES if word not in taken]
    primary = tuple(name for _, name in sorted((place, _text(column)) for column, place, _ in rows if place))
    key = primary if without_rowid else tuple(free[:1])
    if not key:
        raise NoPlainTable("its columns hide the rowid")
    has_rowid = not without_rowid and bool(free)
    return Table(name=stored, columns=columns, derived=derived, key=key, has_rowid=has_rowid, primary=primary)


def quoted(name: str) -> str:
    """A name as SQL text."""
    return '"' + name.replace('"', '""') + '"'


def fold(name: str) -> str:
    """A name as SQLite compares it: only ASCII letters have no case."""
    return name.translate(_ASCII_LOWER)


def encode(value: Scalar) -> list[str]:
    """A value for the way out of the cage. `str` and `bytes` are told apart by the caller: texts come as `str`."""
    if value is None:
        return ["null"]
    if isinstance(value, int):
        return ["integer", str(value)]
    if isinstance(value, float):
        return ["real", value.hex()]
    if isinstance(value, str):
        return ["text", value]
    return ["blob", base64.b64encode(value).decode("ascii")]


def decode(item: object) -> Scalar:
    """The value again. Raises ValueError for anything that `encode` does not make."""
    parts = [part for part in item if isinstance(part, str)] if isinstance(item, list | tuple) else []
    if parts == ["null"] and isinstance(item, list | tuple) and len(item) == 1:
        return None
    if not isinstance(item, list | tuple) or not len(parts) == len(item) == 2:
        raise ValueError("no value")
    try:
        return _decoded(*parts)
    except (binascii.Error, OverflowError):
        raise ValueError("no value") from None


def _decoded(kind: str, text: str) -> Scalar:
    if kind == "integer" and len(text) <= 20 and -(2**63) <= (number := int(text)) < 2**63:
        return number
    if kind == "real" and len(text) <= 40 and not math.isnan(real := float.fromhex(text)):
        return real
    if kind == "text" and not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    if kind == "blob":
        return base64.b64decode(text, validate=True)
    raise ValueError("no value")


def fingerprint(columns: Sequence[str], row: Sequence[tuple[str, bytes | None]]) -> str:
    """The digest of one row: every column's name, storage class and content. `row` is what `SELECT_PARTS` gives."""
    digest = hashlib.sha256()
    for column, (kind, content) in zip(columns, row, strict=True):
        for part in (column.encode(), kind.encode(), content or b""):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def parts_of(columns: Sequence[str], of: str = "") -> str:
    """The select list of a row for `fingerprint`: for each column its storage class and its content as bytes. Reals
    are told by the engine in a form that is exact."""
    names = [f"{of}{quoted(column)}" for column in columns]
    return ", ".join(f"typeof({name}), CASE typeof({name}) WHEN 'real' THEN {name} ELSE CAST({name} AS BLOB) END"
                     for name in names)  # fmt: skip


def paired(row: Sequence[Any]) -> list[tuple[str, bytes | None]]:
    """What a select list of `parts_of` gave, column by column."""
    return [(_text(row[at]), _content(row[at + 1])) for at in range(0, len(row), 2)]


def cell(value: Any, kinds: list[str], place: int, answer: Answer) -> Any:
    """One value of a row for an answer in JSON; `kinds` collects the storage classes of each column."""
    kind = {int: "integer", float: "real", str: "text", bytes: "blob"}.get(type(value), "null")
    if kind != "null" and kinds[place] != kind:
        kinds[place] = kind if kinds[place] == "null" else "mixed"
    if isinstance(value, int):
        return answer.integer(value)
    if isinstance(value, float) and not math.isfinite(value):
        answer.infinite()
        return None
    if isinstance(value, bytes):
        return answer.blob(value)
    return answer.text(value) if isinstance(value, str) else value


def plan_of(context: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the host has read of the statement: operation, table and the columns that it writes (None = all)."""
    return context.get("change") or {}


def _content(value: Any) -> bytes | None:
    if isinstance(value, float):
        return value.hex().encode()
    return value if isinstance(value, bytes) else None


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
