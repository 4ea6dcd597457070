"""The floor for SQL that is meant to change data: one INSERT, UPDATE or DELETE of one table, and nothing beside it.

An allowlist like that for reading, with roots of its own: no WITH, no upsert, no second table that is changed, only
functions that compute, no tables of the database's own. UPDATE and DELETE demand a WHERE that looks at a column; how
many rows it may meet is counted in the transaction, before it is made final. In SQLite RETURNING names columns of the
table alone: the host reads them, after the change, and evaluates nothing. Trusts the facts.
"""

from __future__ import annotations

from typing import Final

from toolcage.facts.sql import CHANGE_ROOTS, QUERY_ROOTS, SqlFacts
from toolcage.facts.sql_change import SqlChange
from toolcage.screens.sql import NODES, WORDS, listed, refuse, screen_names

_CHANGE_NODES: Final = {
    dialect: (nodes | {"Insert", "Update", "Delete", "Schema", "Returning"}) - {"With", "CTE"}
    for dialect, nodes in NODES.items()
}
_REPAIR: Final = "Send one INSERT, UPDATE or DELETE."


def screen_change(facts: SqlFacts) -> None:
    """Returns nothing for one change of one table. Raises Refused (blocked)."""
    if facts.statements == 0:
        refuse("sql.empty", "The SQL holds no statement.", _REPAIR)
    if facts.statements > 1 or facts.changes > 1:
        refuse("sql.multiple_statements", "The SQL would change data in more than one place.", _REPAIR)
    if facts.root in QUERY_ROOTS:
        refuse("sql.not_change", "The SQL only reads.", "Use query_database to read.")
    if facts.root not in CHANGE_ROOTS or facts.word != facts.root:
        code = WORDS.get(facts.word, "sql.not_change")
        text = f"The SQL is no plain change of rows: it begins with `{facts.word or facts.root}`."
        refuse("sql.not_change" if code == "sql.writes" else code, text, _REPAIR)
    if outside := sorted(facts.node_types - _CHANGE_NODES[facts.dialect]):
        text = f"The SQL uses syntax that is not allowed: {listed(outside)}."
        refuse("sql.node_not_allowed", text, "Write a plain INSERT, UPDATE or DELETE.")
    if facts.root != "insert" and not facts.narrowed:
        refuse("sql.no_where", f"The {facts.root.upper()} has no WHERE that looks at a column.", "Say which rows.")
    screen_names(facts)
    if facts.dialect == "sqlite":
        _as_it_is_read(facts.change)


def _as_it_is_read(change: SqlChange | None) -> None:
    """What of a SQLite statement the host could not hold a cage's word against."""
    if change is None:
        refuse("sql.not_change", "The SQL is no plain change of rows.", _REPAIR)
    if change.returns_more:
        text = "RETURNING can only name columns of the table, or *."
        refuse("sql.node_not_allowed", text, "Name columns, without another name for them, or leave RETURNING out.")
    if change.columns is not None and len(set(change.columns)) < len(change.columns):
        refuse("sql.node_not_allowed", "The SQL writes one column twice.", "Write each column once.")
