"""The engine's own guard, with the parser's gate absent: each attack goes straight to the body."""

import json
import pathlib
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from toolcage.tools import sqlite_reading
from toolcage.tools.base import ToolFailure, body_of
from toolcage.tools.query_database import QueryDatabase

SCHEMA = """
CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer_id INTEGER, total REAL, note BLOB, big INTEGER);
CREATE INDEX orders_by_total ON orders(total);
CREATE TABLE secret(id INTEGER PRIMARY KEY, pw TEXT UNIQUE);
CREATE VIEW cheap AS SELECT id, total FROM orders WHERE total < 10;
CREATE VIEW first_secret AS SELECT pw FROM secret WHERE id = 1;
CREATE TRIGGER hurt AFTER INSERT ON orders BEGIN DELETE FROM secret; END;
INSERT INTO customers VALUES (1, 'Ann', 'a@x'), (2, 'Bob', 'b@x');
INSERT INTO orders VALUES (1, 1, 5.5, x'00ff', 9007199254740993), (2, 2, 20, NULL, 1), (3, 2, 1e999, 't', 2);
INSERT INTO secret VALUES (1, 'hunter2'), (2, 'pw2');
"""
GRANTED = ["customers", "orders"]


@pytest.fixture
def shop(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "sh op?mode=rw&%41#.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    connection.close()
    return path


Query = Callable[..., dict[str, Any]]


@pytest.fixture
def query(shop: pathlib.Path) -> Query:
    def run(
        sql: str,
        *,
        tables: list[str] | None = None,
        columns_except: Iterable[str] = (),
        max_rows: int = 1000,
        max_bytes: int = 65536,
        **arguments: Any,
    ) -> dict[str, Any]:
        tool = QueryDatabase()
        tool.context = {
            "resources": {"database": {"name": "shop", "kind": "sqlite", "path": str(shop)}},
            "sql": {"tables": tables, "columns_except": list(columns_except), "max_rows": max_rows},
            "limits": {"max_bytes": max_bytes, "wall_s": 1.0},
        }
        before = shop.read_bytes()
        try:
            answer: dict[str, Any] = body_of(tool)(database="shop", sql=sql, **arguments)
        finally:
            assert shop.read_bytes() == before
            assert [path.name for path in shop.parent.iterdir()] == [shop.name]
        json.dumps(answer, allow_nan=False)
        return answer

    return run


def code_of(query: Query, sql: str, **options: Any) -> str:
    with pytest.raises(ToolFailure) as caught:
        query(sql, **options)
    return caught.value.code


FULL_TEXT = """
CREATE VIRTUAL TABLE docs USING fts5(title, body);
CREATE VIRTUAL TABLE notes USING fts4(body);
CREATE VIRTUAL TABLE areas USING rtree(id, low, high);
INSERT INTO docs VALUES ('one', 'the quick fox'), ('two', 'a lazy dog');
INSERT INTO notes VALUES ('the quick fox');
INSERT INTO areas VALUES (1, 2.0, 3.0);
"""


@pytest.fixture
def searched(shop: pathlib.Path) -> None:
    connection = sqlite3.connect(shop)
    connection.executescript(FULL_TEXT)
    connection.close()


# --- what is answered ----------------------------------------------------------------------------------------------


def test_rows_come_back_with_columns_in_order_and_duplicate_names_kept(query: Query) -> None:
    answer = query("SELECT name, id AS name FROM customers ORDER BY id")
    assert answer["columns"] == [{"name": "name", "type": "text"}, {"name": "name", "type": "integer"}]
    assert answer["rows"] == [["Ann", 1], ["Bob", 2]]
    assert (answer["row_count"], answer["truncated"], answer["notes"]) == (2, False, [])


def test_values_that_json_cannot_hold_are_told_and_not_lost(query: Query) -> None:
    answer = query("SELECT total, note, big FROM orders ORDER BY id")
    assert answer["rows"][0] == [5.5, {"blob_bytes": 2, "hex_head": "00ff"}, "9007199254740993"]
    assert answer["rows"][2][0] is None
    assert len(answer["notes"]) == 2


def test_text_that_is_not_utf8_is_replaced_and_told(query: Query) -> None:
    answer = query("SELECT CAST(x'61ff62' AS TEXT)")
    assert answer["rows"] == [["a\ufffdb"]]
    assert "UTF-8" in answer["notes"][0]


def test_rows_bytes_and_cells_are_capped_and_marked(query: Query) -> None:
    assert query("SELECT id FROM orders", limit=2)["truncated"]
    assert not query("SELECT id FROM orders", limit=3)["truncated"]
    assert query("SELECT id FROM orders", limit=3, max_rows=1)["row_count"] == 1
    many = "WITH r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 90) SELECT printf('%.*c', 900, 'x') FROM r"
    cut = query(many, max_bytes=20_000)
    assert cut["truncated"]
    assert len(json.dumps(cut)) <= 20_000
    long = query("SELECT printf('%.*c', 9000, 'x')")
    assert len(long["rows"][0][0]) == 8000
    assert "cut" in long["notes"][0]


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    "value", ["'; DROP TABLE orders; --", '" OR ""="', "UNION SELECT pw FROM secret", "\x00", "日本", "%' --"]
)
def test_bound_values_that_look_like_sql_come_back_verbatim(query: Query, value: str) -> None:
    assert query("SELECT ?", parameters=[value])["rows"] == [[value]]
    assert query("SELECT :v, length(:v) > 0", parameters={"v": value})["rows"][0][0] == value


def test_bound_values_keep_their_types(query: Query) -> None:
    assert query("SELECT ?, ?, ?, ?", parameters=[1, 2.5, None, True])["rows"] == [[1, 2.5, None, 1]]


@pytest.mark.parametrize("text", ["SELECT $2, $1, $2", "SELECT ?2, ?1, ?2", "SELECT :2, :1, :2"])
def test_numbered_parameters_are_bound_by_their_numbers(query: Query, text: str) -> None:
    assert query(text, parameters=["a", "b"])["rows"] == [["b", "a", "b"]]


@pytest.mark.parametrize(
    ("text", "values"),
    [("SELECT $1", ["a", "b"]), ("SELECT $3", ["a", "b"]), ("SELECT :city", ["a"]), ("SELECT 1", ["a"]),
     ("SELECT ?", ["a", "b"]), ("SELECT ?, ?", ["a"])],
)  # fmt: skip
def test_values_and_parameters_that_do_not_match_are_an_error(query: Query, text: str, values: list[str]) -> None:
    assert code_of(query, text, parameters=values) == "sql.error"


@pytest.mark.parametrize(
    "parameters", [[2**70], [{"a": 1}], [[1]], {"a b": 1}, {"x": b"y"}, "text", [0] * 101, ["\ud800"]]
)
def test_values_that_are_not_plain_are_refused(query: Query, parameters: object) -> None:
    assert code_of(query, "SELECT 1", parameters=parameters) == "sql.bad_parameters"


def test_a_missing_value_is_an_error_to_repair(query: Query) -> None:
    assert code_of(query, "SELECT ?") == "sql.error"


@pytest.mark.parametrize(
    "sql",
    [
        "-- a comment\n/* another */ SELECT 1",
        "SELECT 1;",
        "VALUES (1), (2)",
        "WITH c AS (SELECT * FROM orders) SELECT count(*) FROM c",
        "SELECT o.total FROM orders o JOIN customers c ON c.id = o.customer_id WHERE name LIKE 'B%' ORDER BY random()",
        "SELECT id FROM orders JOIN customers USING (id)",
        "SELECT DISTINCT customer_id FROM orders UNION SELECT id FROM customers ORDER BY 1",
        "SELECT avg(total) OVER (PARTITION BY customer_id) FROM orders WHERE total > 1",
        "SELECT value, key FROM json_each('[1, 2]')",
        "SELECT id FROM cheap",
        "SELECT group_concat(DISTINCT name), max(email) FROM main.customers GROUP BY substr(name, 1, 1)",
    ],
)
def test_ordinary_queries_run(query: Query, sql: str) -> None:
    assert query(sql)["row_count"] >= 1


# --- attacks -------------------------------------------------------------------------------------------------------


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE orders", "DELETE FROM orders", "UPDATE orders SET total = 0", "INSERT INTO orders(id) VALUES (9)",
        "REPLACE INTO orders(id) VALUES (1)", "CREATE TABLE x(a)", "CREATE TEMP TABLE x(a)", "ALTER TABLE orders ADD b",
        "ATTACH '/tmp/x' AS y", "DETACH main", "PRAGMA query_only = OFF", "PRAGMA writable_schema = 1", "VACUUM",
        "VACUUM INTO 'copy.sqlite'", "REINDEX", "ANALYZE", "BEGIN", "COMMIT", "SAVEPOINT x",
        "EXPLAIN SELECT 1", "/**/ EXPLAIN QUERY PLAN SELECT * FROM orders", "-- x\nEXPLAIN SELECT 1", ";SELECT 1", "",
        "/* never closed SELECT 1",
    ],
)  # fmt: skip
def test_what_is_no_query_never_reaches_the_engine(query: Query, sql: str) -> None:
    assert code_of(query, sql) == "sql.not_select"


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    "sql",
    [
        "WITH x AS (SELECT 1) INSERT INTO orders(id) SELECT 9",
        "WITH x AS (SELECT 1) DELETE FROM orders",
        "WITH x AS (SELECT 1) UPDATE orders SET total = 0",
        "WITH x AS (SELECT 1) REPLACE INTO orders(id) SELECT 1",
        "SELECT * FROM pragma_table_info('secret')",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM dbstat",
        "SELECT * FROM sqlite_stmt",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT zeroblob(1000000000)",
        "SELECT randomblob(1000)",
        "SELECT sqlite_version()",
        "SELECT last_insert_rowid()",
    ],
)
def test_the_authorizer_denies_what_is_not_listed(query: Query, sql: str) -> None:
    assert code_of(query, sql) == "sql.not_allowed"


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    "sql", ["SELECT * FROM sqlite_master", "SELECT sql FROM sqlite_schema", "SELECT 1 WHERE 'x' IN sqlite_master"]
)
def test_the_engines_own_tables_are_not_readable(query: Query, sql: str) -> None:
    assert code_of(query, sql) in ("sql.not_granted", "sql.error")


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    "sql", ["SELECT 1; SELECT 2", "SELECT 1; DROP TABLE orders", "SELECT 1; -- x\nDELETE FROM orders"]
)
def test_a_second_statement_is_refused(query: Query, sql: str) -> None:
    assert code_of(query, sql) == "sql.multiple_statements"


@pytest.mark.threat("R10")
@pytest.mark.parametrize("sql", ["SELECT count(*) FROM sqlite_master", "SELECT sql FROM sqlite_master"])
def test_the_authorizer_alone_hides_the_engines_tables(query: Query, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_reading, "demand_pages", lambda *_: None)
    assert code_of(query, sql) == "sql.not_granted"


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM orders",
        "CREATE TABLE x(a)",
        "CREATE TEMP TABLE x AS SELECT 1",
        "ATTACH ':memory:' AS y",
        "SELECT load_extension('x')",
    ],
)
def test_the_connection_alone_cannot_write_attach_or_load(shop: pathlib.Path, sql: str) -> None:
    reading = sqlite_reading.open_reading({"resources": {"database": {"kind": "sqlite", "path": str(shop)}}})
    try:
        for setting, value in (("query_only", 1), ("trusted_schema", 0), ("mmap_size", 0), ("cell_size_check", 1)):
            assert reading.connection.execute(f"PRAGMA {setting}").fetchone() in ((value,), None)
        with pytest.raises(sqlite3.Error):
            reading.connection.execute(sql)
    finally:
        reading.close()


@pytest.mark.threat("P62")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM secret",
        "SELECT count(*) FROM SECRET",
        'SELECT pw FROM "secret"',
        "SELECT pw FROM main.secret",
        "SELECT 1 FROM orders WHERE 'hunter2' IN (SELECT pw FROM secret)",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM secret)",
        "WITH orders AS (SELECT * FROM secret) SELECT * FROM orders",
        "WITH first_secret AS (SELECT pw FROM secret) SELECT * FROM first_secret",
        "SELECT pw FROM first_secret",
        "SELECT 1 FROM orders JOIN secret USING (id)",
        "SELECT 1 FROM orders NATURAL JOIN secret",
        "WITH guess(pw) AS (SELECT 'hunter2') SELECT count(*) FROM guess JOIN secret USING (pw)",
        "WITH guess(pw) AS (SELECT 'hunter2') SELECT count(*) FROM guess NATURAL JOIN [secret]",
    ],
)
def test_tables_outside_the_grant_are_not_readable_by_any_road(query: Query, sql: str) -> None:
    assert code_of(query, sql, tables=GRANTED) == "sql.not_granted"


def test_the_compiled_program_is_what_stops_a_join_by_using(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite 3.40 asks no authorizer there; without the look at the program the guess would be answered."""
    monkeypatch.setattr(sqlite_reading, "demand_pages", lambda *_: None)
    sql = "WITH guess(pw) AS (SELECT 'hunter2') SELECT 1 FROM guess JOIN secret USING (pw)"
    if sqlite3.sqlite_version_info < (3, 41):
        assert query(sql, tables=GRANTED)["row_count"] == 1


@pytest.mark.threat("P62")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT email FROM customers",
        "SELECT * FROM customers",
        "SELECT c.name FROM customers c WHERE c.EMAIL LIKE 'a%'",
        "SELECT name FROM customers ORDER BY email",
        "SELECT count(DISTINCT email) FROM customers",
        "WITH g(email) AS (SELECT 'a@x') SELECT 1 FROM g JOIN customers USING (email)",
        "WITH g(email) AS (SELECT 'a@x') SELECT name FROM g NATURAL JOIN customers",
        'WITH g(email) AS (SELECT 1) SELECT 1 FROM g JOIN "customers" USING ("EMAIL")',
    ],
)
def test_excepted_columns_are_not_readable_by_any_road(query: Query, sql: str) -> None:
    assert code_of(query, sql, columns_except=["customers.email"]) == "sql.not_granted"
    assert query(sql)["row_count"] >= 0


@pytest.mark.parametrize(
    "sql", ['SELECT "SÜSS" FROM "KÄSE"', 'SELECT * FROM "KÄSE"', 'SELECT 1 FROM "KÄSE" WHERE k > 1']
)
def test_a_column_is_excepted_in_every_case_form_of_its_table(query: Query, shop: pathlib.Path, sql: str) -> None:
    connection = sqlite3.connect(shop)
    connection.executescript('CREATE TABLE "KÄSE" (id, "SÜSS", k AS ("SÜSS" + 1)); INSERT INTO "KÄSE" VALUES (1, 2);')
    connection.close()
    assert code_of(query, sql, columns_except=["käse.süss"]) == "sql.not_granted"
    assert query('SELECT id FROM "KÄSE"', columns_except=["käse.süss"])["rows"] == [[1]]


def test_the_other_columns_stay_readable(query: Query) -> None:
    assert query("SELECT id, name FROM customers", columns_except=["customers.email"])["row_count"] == 2
    assert query("SELECT count(*) FROM customers", columns_except=["customers.email"])["rows"] == [[2]]


def test_a_granted_view_reads_through_to_its_tables_but_a_cte_of_its_name_does_not(query: Query) -> None:
    granted = ["first_secret", "orders"]
    assert query("SELECT pw FROM first_secret", tables=granted)["rows"] == [["hunter2"]]
    forged = "WITH first_secret AS (SELECT pw FROM secret) SELECT * FROM first_secret"
    assert code_of(query, forged, tables=granted) == "sql.not_granted"
    joined = "SELECT first_secret.pw FROM first_secret JOIN secret USING (pw)"
    assert code_of(query, joined, tables=granted) == "sql.not_granted"


def test_an_excepted_column_stays_hidden_behind_a_granted_view(query: Query) -> None:
    options: dict[str, Any] = {"tables": ["first_secret"], "columns_except": ["secret.pw"]}
    assert code_of(query, "SELECT pw FROM first_secret", **options) == "sql.not_granted"


def test_what_is_hidden_and_what_does_not_exist_answer_alike(query: Query) -> None:
    def answer(sql: str, **options: Any) -> tuple[str, str]:
        with pytest.raises(ToolFailure) as caught:
            query(sql, **options)
        return caught.value.code, caught.value.message

    assert answer("SELECT 1 FROM secret", tables=GRANTED) == answer("SELECT 1 FROM missing", tables=GRANTED)
    assert answer("SELECT nope FROM secret", tables=GRANTED) == answer("SELECT nope FROM missing", tables=GRANTED)
    hidden: dict[str, Any] = {"columns_except": ["customers.email"]}
    assert answer("SELECT email FROM customers", **hidden) == answer("SELECT nope FROM customers", **hidden)


@pytest.mark.threat("R14")
@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r", "sql.timeout"),
        ("SELECT count(*) FROM " + ", ".join(f"json_each('[{'1,' * 99}1]') j{i}" for i in range(9)), "sql.timeout"),
        ("SELECT 'a' LIKE '" + "%a" * 400 + "'", "sql.error"),
        ("WITH r(s) AS (SELECT 'xx' UNION ALL SELECT s || s FROM r LIMIT 40) SELECT max(s) FROM r", "sql.too_big"),
        ("SELECT " + "+".join("1" * 300), "sql.too_big"),
        ("SELECT 1" + " UNION ALL SELECT 1" * 60, "sql.too_big"),
        ("SELECT " + ",".join("1" * 900), "sql.too_big"),
        ("SELECT '" + "x" * 20_000 + "'", "sql.too_long"),
        ("SELECT 1\x00", "sql.unreadable"),
        ("SELECT '\ud800'", "sql.unreadable"),
    ],
)  # fmt: skip
def test_bombs_end_at_a_limit(query: Query, sql: str, code: str) -> None:
    assert code_of(query, sql) == code


def test_a_file_that_is_no_database_and_a_missing_one_are_clear_errors(tmp_path: pathlib.Path) -> None:
    tool = QueryDatabase()
    (tmp_path / "x").write_text("no database" * 100)
    for path in (tmp_path / "x", tmp_path / "absent"):
        tool.context = {"resources": {"database": {"name": "x", "kind": "sqlite", "path": str(path)}}}
        with pytest.raises(ToolFailure) as caught:
            body_of(tool)(database="x", sql="SELECT 1")
        assert caught.value.code == "sql.unusable_database"
        assert str(tmp_path) not in caught.value.message
    assert not (tmp_path / "absent").exists()


def test_without_a_resource_nothing_is_opened() -> None:
    with pytest.raises(ToolFailure) as caught:
        body_of(QueryDatabase())(database="/etc/passwd", sql="SELECT 1")
    assert caught.value.code == "sql.no_database"


# --- virtual tables ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("tables", [None, ["docs", "notes", "areas"]])
@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT title FROM docs WHERE docs MATCH 'quick' ORDER BY rank", [["one"]]),
        (
            "SELECT highlight(docs, 1, '[', ']'), snippet(docs, 1, '', '', '', 2) FROM docs('dog')",
            [["a lazy [dog]", "lazy dog"]],
        ),
        ("SELECT count(*) FROM docs", [[2]]),
        ("SELECT snippet(notes, '[', ']') FROM notes WHERE notes MATCH 'fox'", [["the quick [fox]"]]),
        ("SELECT id FROM areas WHERE low >= 1 AND high <= 4", [[1]]),
    ],
)
def test_full_text_and_other_virtual_tables_answer(query: Query, tables: list[str] | None, sql: str, rows: Any) -> None:
    assert query(sql, tables=tables)["rows"] == rows


@pytest.mark.threat("R10")
@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("tables", [None, ["docs", "notes", "areas"]])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM docs_content",
        "SELECT count(*) FROM docs_data",
        "SELECT c0 FROM docs JOIN docs_content ON docs.rowid = docs_content.id",
        "SELECT body FROM docs WHERE docs MATCH (SELECT c0body FROM notes_content)",
        "SELECT * FROM areas_node",
        "WITH docs_content AS (SELECT 1) SELECT * FROM main.docs_content",
    ],
)
def test_what_virtual_tables_keep_their_rows_in_is_not_readable_by_name(
    query: Query, tables: list[str] | None, sql: str
) -> None:
    assert code_of(query, sql, tables=tables) == "sql.not_granted"


@pytest.mark.threat("R10")
@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize(
    ("sql", "options"),
    [
        ("SELECT title FROM docs", {"columns_except": ["docs.body"]}),
        ("SELECT c1 FROM docs_content", {"columns_except": ["docs.body"]}),
        ("SELECT hex(block) FROM docs_data", {"columns_except": ["docs.body"]}),
        ("SELECT title FROM docs", {"tables": GRANTED}),
        ("SELECT rowid FROM docs WHERE docs MATCH 'fox'", {"tables": ["docs_content"]}),
        ("SELECT name FROM customers WHERE id IN (SELECT rowid FROM docs('fox'))", {"tables": GRANTED}),
    ],
)
def test_a_virtual_table_outside_the_grant_or_with_an_excepted_column_is_closed(
    query: Query, sql: str, options: dict[str, Any]
) -> None:
    assert code_of(query, sql, **options) == "sql.not_granted"


@pytest.mark.threat("R10")
@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("columns_except", [[], ["docs.body"]])
@pytest.mark.parametrize(
    "sql", ["SELECT c1 FROM docs_content", "SELECT hex(block) FROM docs_data", "SELECT title FROM docs"]
)
def test_an_engine_that_does_not_tell_kinds_of_tables_opens_none_that_may_be_part_of_a_virtual_one(
    query: Query, monkeypatch: pytest.MonkeyPatch, sql: str, columns_except: list[str]
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    assert query("SELECT count(*) FROM customers", columns_except=columns_except)["row_count"] == 1
    assert code_of(query, sql, columns_except=columns_except) == "sql.not_granted"


@pytest.mark.usefixtures("searched")
def test_a_shadow_table_that_the_policy_names_is_readable(query: Query) -> None:
    assert query("SELECT c0 FROM docs_content", tables=["docs_content"])["row_count"] == 2


@pytest.mark.threat("R10")
@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT optimize(notes) FROM notes WHERE notes MATCH 'fox'",
        "SELECT fts3_tokenizer('simple') FROM notes",
        "SELECT fts5_source_id()",
    ],
)
def test_full_text_functions_that_write_or_tell_internals_are_denied(query: Query, sql: str) -> None:
    assert code_of(query, sql) == "sql.not_allowed"
