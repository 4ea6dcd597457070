"""The floor for SQL that changes data, without the session's own guards: roots, WHERE, one table, nothing beside it."""

import pytest

from toolcage.errors import Refused
from toolcage.facts.sql import SqlFacts, read
from toolcage.screens import screen_facts


def facts_of(text: str) -> SqlFacts:
    return read(text, "postgres", "change")


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO orders (a, b) VALUES ($1,$2) RETURNING id",
        "INSERT INTO sales.orders (a) SELECT lower(x) FROM lines WHERE y = $1",
        "INSERT INTO orders (a) VALUES (DEFAULT), (now())",
        "UPDATE orders AS o SET a = $1, b = c.x FROM customers c WHERE o.id = c.id",
        "UPDATE orders SET (a, b) = (1, DEFAULT) WHERE id IN (SELECT id FROM lines)",
        "DELETE FROM orders o USING customers c WHERE o.id = c.id RETURNING o.*",
        "delete from orders where id = 1;",
    ],
)
def test_a_plain_change_passes(text: str) -> None:
    screen_facts(facts_of(text))


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "sql.empty"),
        ("SELECT 1", "sql.not_change"),
        ("TABLE orders", "sql.not_change"),
        ("UPDATE a SET x = 1 WHERE y = 1; DELETE FROM a WHERE y = 1", "sql.multiple_statements"),
        ("UPDATE a SET x = 1 WHERE y = 1; SELECT 1", "sql.multiple_statements"),
        ("WITH g AS (DELETE FROM b RETURNING *) UPDATE a SET x = 1 WHERE y IN (SELECT 1 FROM g)", None),
        ("WITH g AS (SELECT 1) DELETE FROM a WHERE x = 1", "sql.not_change"),
        ("INSERT INTO a WITH g AS (SELECT 1) SELECT * FROM g", "sql.node_not_allowed"),
        ("UPDATE a SET x = 1", "sql.no_where"),
        ("DELETE FROM a", "sql.no_where"),
        ("DELETE FROM a WHERE true", "sql.no_where"),
        ("UPDATE a SET x = 1 WHERE 1 = 1 OR 'x' = 'x'", "sql.no_where"),
        ("INSERT INTO a (x) VALUES (1) ON CONFLICT DO NOTHING", "sql.node_not_allowed"),
        ("INSERT INTO a (x) VALUES (1) ON CONFLICT (x) DO UPDATE SET x = 2", "sql.node_not_allowed"),
        ("INSERT OR REPLACE INTO a VALUES (1)", "sql.node_not_allowed"),
        ("DELETE a FROM a JOIN b ON true WHERE b.x = 1", "sql.node_not_allowed"),
        ("UPDATE a JOIN b ON true SET x = 1 WHERE y = 2", "sql.node_not_allowed"),
        ("UPDATE a SET x = pg_read_file('/etc/passwd') WHERE y = 1", "sql.function_not_allowed"),
        ("INSERT INTO a (x) SELECT nextval('s')", "sql.function_not_allowed"),
        ("INSERT INTO a (x) SELECT x FROM b FOR UPDATE", "sql.node_not_allowed"),
        ("UPDATE pg_catalog.pg_class SET relname = 'x' WHERE oid = 1", "sql.system_table"),
        ("INSERT INTO a (x) SELECT rolpassword FROM pg_authid", "sql.system_table"),
        ("MERGE INTO a USING b ON a.x = b.x WHEN MATCHED THEN DELETE", None),
        ("TRUNCATE a", None), ("DROP TABLE a", "sql.defines"), ("COMMIT", "sql.transaction"), ("SET x = 1", None),
        ("COPY a FROM '/etc/passwd'", None), ("DO $$ x $$", None), ("EXPLAIN ANALYZE DELETE FROM a WHERE x = 1", None),
        ("GRANT ALL ON a TO b", None), ("CREATE TABLE b AS SELECT 1", "sql.defines"), ("CALL f()", None),
    ],
)  # fmt: skip
def test_whatever_is_more_than_one_plain_change_is_refused(text: str, code: str | None) -> None:
    with pytest.raises(Refused) as caught:
        screen_facts(facts_of(text))
    assert caught.value.refusal.status == "blocked"
    assert code in (None, caught.value.refusal.code)


def test_a_reading_tool_changes_nothing() -> None:
    for dialect in ("postgres", "sqlite"):
        with pytest.raises(Refused) as caught:
            screen_facts(read("DELETE FROM a WHERE x = 1", dialect))
        assert caught.value.refusal.code == "sql.writes"


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO orders (a, b) VALUES (?, ?), (3, lower('X')) RETURNING id, orders.a",
        "INSERT INTO orders SELECT x FROM lines WHERE y = :y",
        "INSERT INTO orders DEFAULT VALUES",
        "UPDATE orders SET (a, b) = (1, ?) WHERE id IN (SELECT id FROM lines) RETURNING *",
        "UPDATE main.orders AS o SET a = c.x FROM customers c WHERE o.id = c.id",
        "delete from orders where id = 1;",
    ],
)
def test_a_plain_change_of_sqlite_passes(text: str) -> None:
    screen_facts(read(text, "sqlite", "change"))


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT 1", "sql.not_change"),
        ("UPDATE a SET x = 1 WHERE y = 1; DELETE FROM a WHERE y = 1", "sql.multiple_statements"),
        ("WITH g AS (SELECT 1) DELETE FROM a WHERE x = 1", "sql.not_change"),
        ("UPDATE a SET x = (WITH g AS (SELECT 1) SELECT * FROM g) WHERE y = 1", "sql.node_not_allowed"),
        ("UPDATE a SET x = 1", "sql.no_where"),
        ("DELETE FROM a WHERE true", "sql.no_where"),
        ("DELETE FROM a WHERE ?", "sql.no_where"),
        ("DELETE FROM a WHERE $1", "sql.unreadable"),
        ("UPDATE a SET x = $2 WHERE y = $1", "sql.unreadable"),
        ("UPDATE a SET x = ? WHERE y = :y", "sql.unreadable"),
        ("UPDATE a SET x = ?1 WHERE y = ?2", "sql.unreadable"),
        ("UPDATE a SET x = @x WHERE y = 1", "sql.unreadable"),
        ("UPDATE a SET x = 1, X = 2 WHERE y = 1", "sql.node_not_allowed"),
        ("INSERT INTO a (x, x) VALUES (1, 2)", "sql.node_not_allowed"),
        ("INSERT INTO a (x) VALUES (1) RETURNING x + 1", "sql.node_not_allowed"),
        ("INSERT INTO a (x) VALUES (1) RETURNING x AS y", "sql.node_not_allowed"),
        ("INSERT INTO a (x) VALUES (1) RETURNING (SELECT max(y) FROM b)", "sql.node_not_allowed"),
        ("INSERT INTO a (x) VALUES (1) ON CONFLICT DO NOTHING", "sql.node_not_allowed"),
        ("INSERT OR REPLACE INTO a VALUES (1)", "sql.node_not_allowed"),
        ("INSERT OR IGNORE INTO a VALUES (1)", "sql.node_not_allowed"),
        ("REPLACE INTO a VALUES (1)", None),
        ("UPDATE OR IGNORE a SET x = 1 WHERE y = 1", None),
        ("UPDATE a INDEXED BY i SET x = 1 WHERE y = 1", None),
        ("UPDATE a SET x = load_extension('x') WHERE y = 1", "sql.load_extension"),
        ("UPDATE a SET x = randomblob(9) WHERE y = 1", "sql.function_not_allowed"),
        ("UPDATE sqlite_master SET sql = 'x' WHERE name = 'a'", "sql.system_table"),
        ("DELETE FROM temp.a WHERE x = 1", "sql.system_table"),
        ("INSERT INTO a SELECT sql FROM sqlite_schema", "sql.system_table"),
        ("PRAGMA writable_schema = 1", "sql.pragma"), ("ATTACH 'x' AS y", "sql.attach"),
        ("VACUUM INTO '/tmp/x'", "sql.command"), ("EXPLAIN DELETE FROM a WHERE x = 1", "sql.command"),
        ("BEGIN", "sql.transaction"), ("DROP TABLE a", "sql.defines"),
    ],
)  # fmt: skip
def test_whatever_is_more_than_one_plain_change_of_sqlite_is_refused(text: str, code: str | None) -> None:
    with pytest.raises(Refused) as caught:
        screen_facts(read(text, "sqlite", "change"))
    assert caught.value.refusal.status == "blocked"
    assert code in (None, caught.value.refusal.code)


def test_what_is_written_read_and_returned_stands_in_the_facts() -> None:
    made = facts_of("INSERT INTO public.a (x, Y) SELECT b.z FROM b RETURNING id")
    assert made.tables == {"a", "b"}
    assert {("a", "x"), ("a", "y"), ("b", "z"), ("a", "id")} <= made.columns
    assert made.star_tables == set()
    assert facts_of("INSERT INTO a VALUES (1)").star_tables == {"a"}
    assert facts_of("INSERT INTO a (x) VALUES (1) RETURNING *").star_tables == {"a"}
    changed = facts_of("UPDATE a AS t SET x = b.y FROM b WHERE t.k = b.k RETURNING t.secret")
    assert changed.tables == {"a", "b"}
    assert {("a", "x"), ("b", "y"), ("a", "k"), ("a", "secret")} <= changed.columns
    assert facts_of("DELETE FROM a USING b WHERE a.x = b.x RETURNING *").star_tables == {"a", "b"}
    assert facts_of("DELETE FROM a WHERE x = 1 RETURNING a").star_tables == {"a"}
