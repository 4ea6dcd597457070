"""How a change of a SQLite database fails: each kind once, with its code, and what the engine's own words may tell."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection
from typing import Final, NoReturn

from toolcage.errors import Refused, ResourceError
from toolcage.tools.sqlite_rows import fold
from toolcage.types import Refusal, Status

BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_RULES: Final = {
    sqlite3.SQLITE_CONSTRAINT_CHECK: "a CHECK", sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: "a foreign key",
    sqlite3.SQLITE_CONSTRAINT_NOTNULL: "a NOT NULL", sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY: "the primary key",
    sqlite3.SQLITE_CONSTRAINT_ROWID: "the primary key", sqlite3.SQLITE_CONSTRAINT_TRIGGER: "a trigger",
    sqlite3.SQLITE_CONSTRAINT_UNIQUE: "a UNIQUE",
}  # fmt: skip


def failure(error: sqlite3.Error, hidden: Collection[str], unchanged: bool) -> Refused:
    """What an error of the engine is told as. `hidden` are the names that its words may not tell; `unchanged`: nobody
    wrote to the file since the snapshot. Raises ResourceError for a file that cannot be used."""
    kind = primary(error)
    if kind in BUSY:
        return refused("sql.locked", "Somebody else is writing to the database, so nothing was changed.",
                        "Send it again.", retryable=True)  # fmt: skip
    if kind == sqlite3.SQLITE_INTERRUPT:
        return too_slow()
    if kind == sqlite3.SQLITE_CONSTRAINT:
        return _against_a_rule(error, hidden, unchanged)
    if kind in (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_RANGE):
        return refused("sql.error", _shown(error, hidden, "the database refused the change"), "Correct the values.")
    return unusable(error)


def _against_a_rule(error: sqlite3.Error, hidden: Collection[str], unchanged: bool) -> Refused:
    if not unchanged:  # in the snapshot no key stood against it, perhaps
        return refused(
            "sql.changed_meanwhile",
            _shown(error, hidden, "The database changed meanwhile, and the change is now against a rule of it"),
            "Look at the rows, then send it again.", retryable=True,
        )  # fmt: skip
    rule = _RULES.get(getattr(error, "sqlite_errorcode", 0), "a rule")
    return refused("sql.constraint", _shown(error, hidden, f"{rule} of the database is against it"),
                    "Correct the values.")  # fmt: skip


def _shown(error: sqlite3.Error, hidden: Collection[str], otherwise: str) -> str:
    """The engine's words, unless they name what the caller may not see."""
    text = str(error).strip().rstrip(".")[:300]
    words = set(re.findall(r"\w+", fold(text)))
    spelled = any(name in words or (not re.fullmatch(r"\w+", name) and name in fold(text)) for name in hidden)
    return f"{otherwise}." if spelled or not text else f"{text}."


def primary(error: sqlite3.Error) -> int:
    """The engine's code without what refines it."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def not_granted() -> Refused:
    return refused(
        "sql.not_granted", "A table or column of the statement does not exist or is not granted.",
        "Use describe_database to see tables and columns.",
    )  # fmt: skip


def unknown(message: str, operator: str | None) -> Refused:
    hint = "Look at the rows with query_database before you send it again."
    return refused("sql.outcome_unknown", message, hint, operator=operator)


def too_slow() -> Refused:
    return refused("sql.timeout", "The change took too long and was undone.", "Change fewer rows at a time.")


def meanwhile() -> Refused:
    return refused(
        "sql.changed_meanwhile", "The database was changed by somebody else meanwhile, so nothing was changed.",
        "Look at the rows, then send it again.", retryable=True,
    )  # fmt: skip


def moved() -> Refused:
    """The cage saw no trigger and no key at work: what it made of a row would not be what the statement makes of it."""
    return refused(
        "sql.constraint", "A trigger or key of the database changes what other rows of this statement are made from.",
        "Change one row at a time.",
    )  # fmt: skip


def unusable(error: sqlite3.Error) -> NoReturn:
    raise ResourceError(f"a database file cannot be changed: {error}") from error


def refused(
    code: str, message: str, hint: str | None, *, status: Status = "tool_error", operator: str | None = None,
    retryable: bool = False,
) -> Refused:  # fmt: skip
    return Refused(
        Refusal(status=status, code=code, message=message, hint=hint, operator=operator, retryable=retryable)
    )
