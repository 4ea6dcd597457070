"""What a statement would read, call and change, and what is refused because two readers could disagree about it."""

import logging
import sqlite3
import subprocess
import sys

import pytest

from toolcage.errors import Refused
from toolcage.facts import sql
from toolcage.facts.sql import SqlFacts, read
from toolcage.facts.sql_text import Dialect


def code_of(text: str, dialect: str = "sqlite") -> str:
    with pytest.raises(Refused) as caught:
        read(text, dialect)
    assert caught.value.refusal.status == "blocked"
    return caught.value.refusal.code


# --- tables and CTEs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("SELECT * FROM Orders", {"orders"}),
        ("SELECT * FROM main.orders o", {"orders"}),
        ("SELECT * FROM other.orders", {"other.orders"}),
        ("SELECT * FROM 'orders'", {"orders"}),
        ('SELECT * FROM "orders", [Products], `u`', {"orders", "products", "u"}),
        ("SELECT * FROM (a JOIN b ON 1) JOIN c", {"a", "b", "c"}),
        ("SELECT (SELECT max(x) FROM a) FROM b WHERE EXISTS (SELECT 1 FROM c)", {"a", "b", "c"}),
        ("SELECT 1 WHERE 'x' IN secret", {"secret"}),
        ("SELECT 1 WHERE 'x' IN main.secret", {"secret"}),
        ("SELECT 1 UNION SELECT x FROM a ORDER BY (SELECT y FROM b)", {"a", "b"}),
        ("WITH r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 3) SELECT n FROM r", set()),
        ("WITH a AS (SELECT * FROM b), c AS (SELECT * FROM a) SELECT * FROM c JOIN d", {"b", "d"}),
        ("WITH a AS (SELECT 1) SELECT * FROM main.a", {"a"}),
        ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) JOIN a", {"a"}),
    ],
)
def test_tables_are_the_real_ones_of_each_scope(text: str, tables: set[str]) -> None:
    assert read(text).tables == tables


def test_a_cte_hides_its_own_table_in_sqlite_but_not_in_postgres() -> None:
    text = "WITH customers AS (SELECT * FROM customers) SELECT email FROM customers"
    assert read(text, "sqlite").tables == frozenset()  # SQLite itself: circular reference
    assert read(text, "postgres").tables == {"customers"}


def test_a_cte_quoted_in_another_case_does_not_hide_a_table_in_postgres() -> None:
    text = 'WITH "Customers" AS (SELECT 1) SELECT * FROM customers'
    assert read(text, "postgres").tables == {"customers"}
    assert read(text, "sqlite").tables == frozenset()


def test_a_table_quoted_with_upper_case_is_another_table_in_postgres() -> None:
    assert read('SELECT * FROM "User"', "postgres").tables == {"User"}
    assert read('SELECT * FROM "User"', "sqlite").tables == {"user"}


def test_letters_beyond_ascii_are_not_folded_into_a_granted_name() -> None:
    kelvin = 'SELECT * FROM "\u212aunden"'
    assert read(kelvin).tables == {"\u212aunden"}


# --- columns -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "columns", "stars"),
    [
        ("SELECT email FROM customers", {("customers", "email")}, set()),
        ("SELECT c.EMAIL FROM customers c", {("customers", "email")}, set()),
        ("SELECT customers.'email' FROM customers", {("customers", "email")}, set()),
        ("SELECT email FROM (customers) x", {("customers", "email")}, set()),
        ("SELECT x.email FROM (customers) x", {("customers", "email")}, set()),
        ("SELECT z.email FROM customers c", {(None, "email")}, set()),
        ("SELECT email", {(None, "email")}, set()),
        ("SELECT (SELECT email FROM orders) FROM customers", {("orders", "email"), ("customers", "email")}, set()),
        ("SELECT s.e FROM (SELECT email AS e FROM customers) s", {("customers", "email")}, set()),
        ("SELECT * FROM customers", set(), {"customers"}),
        ("SELECT c.* FROM customers c, orders o", set(), {"customers"}),
        ("SELECT count(*) FROM customers", set(), set()),
        ("SELECT a.x FROM a JOIN b USING (k)", {("a", "x"), ("a", "k"), ("b", "k")}, set()),
        ("SELECT 1 FROM a NATURAL JOIN b", set(), {"a", "b"}),
        ("SELECT 1 FROM t AS c GROUP BY a HAVING max(b) > 1", {("t", "a"), ("t", "b")}, set()),
        ("SELECT name FROM a UNION SELECT name FROM b ORDER BY name", {("a", "name"), ("b", "name")}, set()),
    ],
)  # fmt: skip
def test_columns_are_resolved_per_scope(text: str, columns: set[object], stars: set[str]) -> None:
    facts = read(text)
    assert (facts.columns, facts.star_tables) == (columns, stars)


@pytest.mark.threat("P61")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT c FROM customers c",
        "SELECT (c).email FROM customers c",
        "SELECT (c).* FROM customers c",
        "SELECT to_json(c) FROM customers c",
        "SELECT c.to_json FROM customers c",
        "SELECT x.a FROM customers AS x(a, b, c)",
        "TABLE customers",
    ],
)
def test_reading_a_whole_row_counts_as_reading_every_column(text: str) -> None:
    assert "customers" in read(text, "postgres").star_tables


# --- functions and classes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dialect", "functions"),
    [
        ("SELECT Count(*), group_concat(DISTINCT a) FILTER (WHERE a > 1) FROM t", "sqlite", {"count", "group_concat"}),
        ("SELECT replace(a, 'x', 'y'), char(65), date('now'), current_date FROM t", "sqlite",
         {"replace", "char", "date", "current_date"}),
        ("SELECT a LIKE 'x', a GLOB 'x', a ->> '$.x' FROM t", "sqlite", {"like", "glob", "->>"}),
        ('SELECT "pg_read_file"(\'x\')', "postgres", {"pg_read_file"}),
        ("SELECT pg_catalog.pg_read_file('x')", "postgres", {"pg_read_file"}),
        ("SELECT evil.lower('x')", "postgres", {"evil.lower"}),
        ("SELECT * FROM pg_ls_dir('.')", "postgres", {"pg_ls_dir"}),
        ("SELECT * FROM ROWS FROM (pg_ls_dir('.'))", "postgres", {"pg_ls_dir"}),
        ("SELECT substring(a FROM 1), extract(year FROM d) FROM t", "postgres", {"substring", "extract"}),
    ],
)  # fmt: skip
def test_functions_are_named_as_the_engine_looks_them_up(text: str, dialect: str, functions: set[str]) -> None:
    assert read(text, dialect).functions == functions


@pytest.mark.parametrize(
    ("text", "root", "writes"),
    [
        ("SELECT 1", "select", False),
        ("((SELECT 1))", "select", False),
        ("VALUES (1)", "values", False),
        ("SELECT 1 UNION SELECT 2", "union", False),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", "select", True),
        ("SELECT * INTO x FROM t", "select", True),
        ("SELECT 1 FROM t FOR UPDATE", "select", True),
        ("INSERT INTO t VALUES (1)", "insert", True),
        ("ATTACH 'x' AS y", "attach", False),
        ("PRAGMA user_version", "pragma", False),
        ("VACUUM INTO 'x'", "command", False),
    ],
)
def test_the_root_and_hidden_writes_are_seen(text: str, root: str, writes: bool) -> None:
    facts = read(text)
    assert (facts.root, facts.writes) == (root, writes)


def test_statements_are_counted() -> None:
    texts = ("", "-- x", "SELECT 1;", "SELECT 1;; -- x", "SELECT 1; SELECT 2")
    assert [read(text).statements for text in texts] == [0, 0, 1, 1, 2]


def test_a_statement_that_the_parser_does_not_know_is_still_named_by_its_first_word() -> None:
    facts = read("CREATE VIRTUAL TABLE x USING fts5(")
    assert (facts.word, facts.root, facts.node_types) == ("create", "command", {"Command"})


# --- what cannot be read with certainty ----------------------------------------------------------------------------


@pytest.mark.threat("R17")
@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("SELECT 'unterminated", "sqlite"),
        ("SELECT 1 /* unterminated", "sqlite"),
        ("SELECT 1 /*! + 2 */", "sqlite"),
        ("SELECT 1 /*+ hint */", "sqlite"),
        ("SELECT 1 /* a /* b */ */", "postgres"),
        ("SELECT U&'\\0061'", "postgres"),
        ("SELECT $$ ' $$", "sqlite"),
        ("SELECT $tag$ ' $Tag$", "postgres"),
        ("SELECT a$$ ' $$", "postgres"),
        ("SELECT $1$$ ' $$", "postgres"),
        ("SELECT " + ":" * 9_000 + "(" + "a(" * 9, "sqlite"),
        ("SELECT :x(') , (SELECT b FROM secret) , :y(')", "sqlite"),
        ("SELECT $x::y(') , (SELECT b FROM secret) , $z(')", "sqlite"),
        ("SELECT * FROM t AS @x(') , secret, (SELECT 1 AS @z(')", "sqlite"),
        ("SELECT N'x'", "sqlite"),
        ("SELECT a$b FROM t", "sqlite"),
        ("SELECT 1 -- x\r; DROP TABLE t", "postgres"),
        ("SELECT\u00a01", "sqlite"),
        ("SELECT\u00a0'x'", "sqlite"),
        ("SELECT a'b' FROM t", "sqlite"),
        ("SELECT \uff11", "sqlite"),
        ("\ufeffSELECT 1", "sqlite"),
        ("SELECT 1\x0b", "sqlite"),
        ("SELECT 1 # x", "sqlite"),
    ],
)
def test_what_engines_read_in_two_ways_is_refused(text: str, dialect: str) -> None:
    assert code_of(text, dialect) == "sql.unreadable"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'a''b', \"c\"\"d\", `e``f`, [g h] FROM t -- ; '",
        "SELECT 1 /* ' ; */ FROM t",
        "SELECT x'00ff', 0x10",
        "SELECT 'a\\' FROM t",
        "SELECT 'a\\' OR 1=1 --'",  # not MySQL: a backslash escapes nothing
        "SELECT '日本', 名前 FROM 顧客",
        "SELECT 1\r\nFROM t\t-- done",
    ],
)
def test_ordinary_quoting_and_comments_are_read(text: str) -> None:
    assert read(text).statements == 1


def test_a_disagreement_about_quoted_spans_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(text: str, dialect: str) -> sql.sql_text.Spans:
        return sql.sql_text.Spans(quoted=((7, 9),), semicolons=0, plain=text, bare=text)

    monkeypatch.setattr(sql.sql_text, "scan", seen)
    assert read("SELECT 'a'").statements == 1
    assert code_of("SELECT 'a', 'b'") == "sql.unreadable"


@pytest.mark.threat("R17")
@pytest.mark.parametrize("bare", ["SELECT a        ", "SELECT a FROM t -- b", "SELECT   FROM t     "])
def test_a_disagreement_about_comments_is_refused(monkeypatch: pytest.MonkeyPatch, bare: str) -> None:
    text = "SELECT a FROM t /*b*/"
    assert read(text).tables == {"t"}
    seen = sql.sql_text.Spans(quoted=(), semicolons=0, plain=text, bare=bare.ljust(len(text)))
    monkeypatch.setattr(sql.sql_text, "scan", lambda text, dialect: seen)
    assert code_of(text) == "sql.unreadable"


@pytest.mark.threat("R12")
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT '" + "x" * 20_000 + "'", "sql.too_long"),
        ("SELECT '" + "日" * 7_000 + "'", "sql.too_long"),
        ("SELECT 1\x00", "sql.nul"),
        ("SELECT " + "(" * 31 + "1" + ")" * 31, "sql.too_deep"),
        ("SELECT 1 WHERE " + "a AND " * 500 + "a", "sql.too_deep"),
        ("SELECT " + "NOT " * 4000 + "1", "sql.too_deep"),
        ("SELECT " + "a," * 4000 + "a", "sql.too_large"),
        (";" * 100, "sql.multiple_statements"),
    ],
)
def test_texts_beyond_the_bounds_are_refused(text: str, code: str) -> None:
    assert code_of(text) == code


def test_a_chain_of_a_hundred_conditions_is_read() -> None:
    assert read("SELECT 1 FROM t WHERE " + "a = 1 AND " * 100 + "a = 1").statements == 1


def test_the_refusal_never_quotes_the_statement() -> None:
    with pytest.raises(Refused) as caught:
        read("SELECT secret_word FROM FROM")
    assert "secret_word" not in f"{caught.value.refusal}"


def test_the_parsers_warnings_do_not_reach_the_log_but_the_hosts_own_do(caplog: pytest.LogCaptureFixture) -> None:
    read("EXPLAIN SELECT my_secret FROM t")
    read("SELECT a -> 'no $ path [' FROM t")
    logging.getLogger("sqlglot").warning("the host's own")
    assert [record.message for record in caplog.records] == ["the host's own"]


def test_importing_the_facts_does_not_import_the_parser() -> None:
    program = "import toolcage.facts.read, toolcage.screens, sys; assert 'sqlglot' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.threat("R17")
@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
@pytest.mark.parametrize(
    "source",
    [
        "((SELECT b FROM u) v JOIN t ON true)",
        "((u JOIN t ON true) JOIN w ON true)",
        "(((SELECT 1) v JOIN t ON true) JOIN u ON true)",
        "(u JOIN (w JOIN t ON true) ON true)",
        "((t) JOIN u ON true) AS j",
        "((SELECT 1) v CROSS JOIN (t))",
    ],
)
def test_tables_joined_within_parentheses_have_their_columns(source: str, dialect: Dialect) -> None:
    assert ("t", "secret") in read(f"SELECT secret FROM {source}", dialect).columns
    assert "t" in read(f"SELECT * FROM {source}", dialect).star_tables
    joined = source.replace("ON true", "ON secret = 1")
    assert joined == source or ("t", "secret") in read(f"SELECT 1 FROM {joined}", dialect).columns


@pytest.mark.threat("R17")
@pytest.mark.parametrize("text", ["SELECT f(a) FROM t", "SELECT a FROM t WHERE b IN (SELECT f(1))"])
def test_a_part_that_a_handler_passes_over_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert read(text).tables == {"t"}
    monkeypatch.setitem(sql._HANDLERS, "Anonymous", lambda reader, node, scope: None)
    assert code_of(text) == "sql.unreadable"


def test_a_tree_with_an_unknown_shape_is_refused() -> None:
    with pytest.raises(Refused):
        sql._expressions(({"hidden": 1},))


# --- against the engine itself -------------------------------------------------------------------------------------

SCHEMA = """
CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT, email TEXT);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer_id INTEGER, total REAL, day TEXT);
CREATE TABLE ids(id INTEGER);
"""
QUERIES = [
    "SELECT name, total FROM customers JOIN orders ON customers.id = customer_id",
    "SELECT (SELECT email) FROM customers",
    "SELECT (SELECT total FROM orders WHERE customer_id = c.id ORDER BY day LIMIT 1) FROM customers c",
    "SELECT x.email FROM (SELECT id AS email FROM orders) x",
    "WITH c AS (SELECT id, email AS e FROM customers), o AS (SELECT * FROM c) SELECT e FROM o",
    "WITH r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT count(*) FROM orders)) SELECT n FROM r",
    "SELECT 1 WHERE 1 IN ids",
    "SELECT sum(total) OVER (PARTITION BY customer_id ORDER BY day) FROM orders",
    "SELECT count(*) FILTER (WHERE email LIKE '%x') FROM customers",
    "SELECT name FROM customers ORDER BY email COLLATE nocase",
    "SELECT c.* FROM customers AS c WHERE EXISTS (SELECT 1 FROM orders WHERE total > c.id)",
    "SELECT 'x' FROM customers GROUP BY substr(email, 2) HAVING max(name) > 'a'",
    "SELECT rowid FROM ids UNION SELECT total FROM orders ORDER BY 1",
    "SELECT a.name FROM customers a LEFT JOIN orders b ON a.email = b.day JOIN ids c ON b.id = c.id",
    "SELECT CASE WHEN email IS NULL THEN name ELSE day END FROM customers, orders",
    "VALUES ((SELECT email FROM customers))",
    "SELECT name FROM customers WHERE (id, email) IN (SELECT id, day FROM orders)",
    "SELECT value FROM orders, json_each(orders.day)",
]  # fmt: skip


@pytest.mark.threat("R10")
@pytest.mark.parametrize("text", QUERIES)
def test_every_column_that_sqlite_says_it_reads_is_in_the_facts(text: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    connection.execute("SELECT 1 FROM json_each('[]')").fetchall()
    reads: set[tuple[str, str]] = set()

    def note(action: int, first: str | None, second: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ:
            reads.add((str(first).lower(), str(second).lower()))
        return sqlite3.SQLITE_OK

    connection.set_authorizer(note)
    connection.execute("EXPLAIN " + text).fetchall()
    connection.close()
    facts = read(text)
    missed = {pair for pair in reads if not _told(facts, *pair)}
    assert reads
    assert not missed


def _told(facts: SqlFacts, table: str, column: str) -> bool:
    if table in facts.table_functions:
        return True
    if table not in facts.tables:
        return column == ""  # a CTE of which no column is read
    known = {(table, column), (None, column), (table, "rowid")} & facts.columns
    return column == "" or table in facts.star_tables or bool(known)


def test_values_by_number_are_read_however_close_together_they_stand() -> None:
    for text in ("SELECT $1,$2", "SELECT a FROM t WHERE a IN ($1,$2,$3)", "SELECT f($1,'$2',$3)"):
        assert "Parameter" in read(text, "postgres").node_types, text
    with pytest.raises(Refused):
        read("SELECT $1$2", "postgres")


def test_the_schema_that_is_meant_anyway_is_dropped_and_no_other() -> None:
    facts = read('SELECT o.email, x FROM public.orders o, "public".lines, sales.lines s, other.public.t', "postgres")
    assert facts.tables == {"orders", "lines", "sales.lines", "other.public.t"}
    assert ("orders", "email") in facts.columns
    assert read('SELECT * FROM "Public".orders', "postgres").tables == {"Public.orders"}
    assert read("SELECT * FROM public.orders", "sqlite").tables == {"public.orders"}
    assert read("SELECT * FROM main.orders", "postgres").tables == {"main.orders"}
