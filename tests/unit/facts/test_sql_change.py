"""What a change says plainly: its values in the order of their marks, its conditions, and nothing that could be read
in two ways."""

from __future__ import annotations

import sqlite3

import pytest

from toolcage.facts.sql import read
from toolcage.facts.sql_change import Condition, Joined, Plain, SqlChange


def change_of(text: str) -> SqlChange:
    found = read(text, "sqlite", "change").change
    assert found is not None
    return found


def test_marks_are_counted_as_the_engine_counts_them_wherever_the_tree_puts_them() -> None:
    text = (
        "UPDATE t SET a = ?, (b, c) = (?, ?), d = lower(?) WHERE e IN (?, ?) AND f BETWEEN ? AND ? AND g = ?"
        " AND (h = ? OR i = ?) RETURNING a"
    )
    change = change_of(text)
    assert change.values == ((Plain(parameter=0), Plain(parameter=1), Plain(parameter=2), None),)
    leaves = [part for item in change.conditions for part in (item.parts if isinstance(item, Joined) else (item,))]
    places = {item.column: [value.parameter for value in item.values] for item in leaves}  # type: ignore[union-attr]
    assert places == {"e": [4, 5], "f": [6, 7], "g": [8], "h": [9], "i": [10]}
    engine = sqlite3.connect(":memory:")
    engine.execute("CREATE TABLE t (a, b, c, d, e, f, g, h, i)")
    engine.execute("INSERT INTO t VALUES (0, 0, 0, 0, 'v4', 'v6x', 'v8', 'v9', 0)")
    engine.execute(text, [f"v{place}" for place in range(11)]).fetchall()
    assert engine.execute("SELECT a, b, c, d FROM t").fetchall() == [("v0", "v1", "v2", "v3")]
    engine.close()


def test_plain_values_are_what_the_call_itself_holds() -> None:
    change = change_of("INSERT INTO T (A, \"B\", c) VALUES (-5, 'it''s', NULL), (:x, TRUE, 1.5), (a + 1, x'00', 1e3)")
    assert (change.operation, change.table, change.columns) == ("insert", "t", ("a", "b", "c"))
    assert change.values == (
        (Plain(literal=-5), Plain(literal="it's"), Plain()),
        (Plain(parameter="x"), Plain(literal=1), None),
        (None, None, None),
    )
    assert change_of("INSERT INTO t SELECT 1").values is None
    assert change_of("INSERT INTO t VALUES (9223372036854775807, 9223372036854775808)").values == (
        (Plain(literal=2**63 - 1), None),
    )
    assert (change_of("INSERT INTO t DEFAULT VALUES").columns, change_of("INSERT INTO t VALUES (1)").columns) == (
        (), None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("id = 1", [("id", "=", [1])]),
        ("(id = 1) AND ((x <> 'a'))", [("id", "=", [1]), ("x", "<>", ["a"])]),
        ("t.id >= 1 AND main.t.x = 2", [("id", ">=", [1])]),
        ("id IS NULL AND x IS NOT NULL", [("id", "IS", [None]), ("x", "IS NOT", [None])]),
        ("x IN (1, 2) AND x LIKE 'a%'", [("x", "IN", [1, 2])]),
        ("id = 1 OR lower(x) = 'a'", []),
        ("NOT (id = 1 OR x = y)", []),
        ("id = x", []),
        ("1 = id", []),
        ("id + 1 = 2", []),
        ("id = 1 COLLATE NOCASE", []),
        ("id IN (SELECT 1) AND x = 2", [("x", "=", [2])]),
        ("id = (SELECT 1)", []),
        ("id IS TRUE", []),
        ("x BETWEEN 1 AND y", []),
        ("y.id = 1", []),
    ],
)
def test_only_conditions_that_every_changed_row_must_meet_are_plain(where: str, found: list[object]) -> None:
    conditions = change_of(f"DELETE FROM t WHERE {where}").conditions
    assert sorted((item.column, item.comparison, [value.literal for value in item.values]) for item in conditions) == (
        sorted(found)  # type: ignore[type-var]
    )


def test_plain_comparisons_are_plain_however_they_are_joined() -> None:
    one, two = (Condition(column="id", comparison="=", values=(Plain(literal=value),)) for value in (1, 2))
    assert change_of("DELETE FROM t WHERE id = 1 OR NOT (id = 2)").conditions == (
        Joined(word="OR", parts=(one, Joined(word="NOT", parts=(two,)))),
    )
    assert change_of("DELETE FROM t WHERE id NOT IN (1) AND (id = 1 AND id = 2 OR id = 1)").conditions[1:] == (
        Joined(word="NOT", parts=(Condition(column="id", comparison="IN", values=(Plain(literal=1),)),)),
    )
    assert [*change_of("DELETE FROM t WHERE a = 1 OR (b = 2 AND NOT c = 3)").conditions[0].columns()] == ["a", "b", "c"]


def test_a_second_table_makes_bare_names_uncertain_and_what_changes_depend_on_more_than_its_rows() -> None:
    joined = change_of("UPDATE t AS k SET a = u.x FROM u WHERE k.id = 1 AND b = 2")
    assert joined.conditions == (Condition(column="id", comparison="=", values=(Plain(literal=1),)),)
    assert (joined.reads_others, joined.names) == (True, frozenset())
    assert change_of("UPDATE t SET a = (SELECT 1) WHERE id = 1").reads_others
    assert change_of("DELETE FROM t WHERE id IN (SELECT id FROM t)").reads_others
    assert change_of("DELETE FROM t WHERE id IN u").reads_others
    assert change_of("DELETE FROM t WHERE id > 1 ORDER BY id LIMIT 1").reads_others
    assert change_of("UPDATE t SET a = 1 WHERE id > 1 LIMIT ?").reads_others
    alone = change_of("UPDATE t SET a = b + 1 WHERE id = 1 RETURNING c")
    assert (alone.reads_others, alone.names, alone.returning) == (False, {"a", "b", "id", "c"}, ("c",))


def test_only_a_change_of_sqlite_is_read_further() -> None:
    assert read("DELETE FROM t WHERE a = 1", "postgres", "change").change is None
    assert read("SELECT 1", "sqlite").change is None
    assert read("SELECT 1", "sqlite", "change").change is None
