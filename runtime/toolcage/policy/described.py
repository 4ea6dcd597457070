"""What `describe_database` may tell of a database: what the role's `query_database` may read of it, and nothing else.

The union over the entries of `query_database` that can match on this database in this session: a table is told when
some entry grants it, a column when some entry that grants its table does not except it. No such entry, or one under
`deny` that stands against every statement on it, leaves nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from toolcage.policy.model import Entry, Role
from toolcage.types import JSON, SessionFacts, SqlTerms

TELLING: Final = "describe_database"
READING: Final = "query_database"
_DATABASE: Final = "database"
_NOTHING: Final = SqlTerms(tables=frozenset())


def bounds_told_by(
    role: Role, tool: str, arguments: Mapping[str, JSON], known: SessionFacts
) -> SqlTerms | None:
    """The bounds of a call of `describe_database`; None for every other tool."""
    if tool != TELLING:
        return None
    grant = role.grants.get(READING)
    database = arguments.get(_DATABASE)
    if grant is None or not isinstance(database, str) or database not in grant.resources.get(_DATABASE, frozenset()):
        return _NOTHING
    named = {_DATABASE: database}
    if any(_denies_all(entry, named, known) for entry in (*role.deny.get(READING, ()), *grant.deny)):
        return _NOTHING
    counted = [
        entry
        for entry in (*grant.allow, *grant.ask)
        if _can_match(entry, named, known) and not any(_on_database(item.argument) for item in entry.origins)
    ]
    return _union(entry.sql_terms() or SqlTerms() for entry in counted)


def _can_match(entry: Entry, named: Mapping[str, JSON], known: SessionFacts) -> bool:
    """Whether what the entry says of the database and of the session holds. What it says of other arguments may."""
    return (
        all(item.miss(named[_DATABASE], None) is None for item in entry.arguments if _on_database(item.argument))
        and all(item.holds(named[_DATABASE], known.host) for item in entry.same_as if _on_database(item.argument))
        and all(item.holds(known.host) for item in entry.host)
    )


def _denies_all(entry: Entry, named: Mapping[str, JSON], known: SessionFacts) -> bool:
    """Whether a deny entry matches every statement on the database: it says nothing about other arguments."""
    conditions = (*entry.arguments, *entry.same_as, *entry.origins)
    return all(_on_database(item.argument) for item in conditions) and _can_match(entry, named, known)


def _on_database(argument: str) -> bool:
    return argument == _DATABASE


def _union(found: Iterable[SqlTerms]) -> SqlTerms:
    terms = list(found)
    if not terms:
        return _NOTHING
    named = [item.tables for item in terms if item.tables is not None]
    return SqlTerms(
        tables=frozenset().union(*named) if len(named) == len(terms) else None,
        columns_except=frozenset(
            column for item in terms for column in item.columns_except if not _told_by_any(column, terms)
        ),
    )


def _told_by_any(column: str, terms: Iterable[SqlTerms]) -> bool:
    table = column.rpartition(".")[0]
    return any((item.tables is None or table in item.tables) and column not in item.columns_except for item in terms)
