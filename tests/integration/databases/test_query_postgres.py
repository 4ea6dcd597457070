"""`query_database` on PostgreSQL: what is answered, and what the session holds alone, with the parser's gate absent."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conftest import until
from servers.postgres import PostgresServer
from toolcage.tools.base import ToolFailure
from toolcage.tools.query_database import QueryDatabase

Query = Callable[..., dict[str, Any]]


@pytest.fixture
def query(body: Callable[..., Any]) -> Query:
    def run(sql: str, **options: Any) -> dict[str, Any]:
        answer: dict[str, Any] = body(QueryDatabase(), sql=sql, **options)
        json.dumps(answer, allow_nan=False)
        return answer

    return run


def refused(query: Query, sql: str, **options: Any) -> ToolFailure:
    with pytest.raises(ToolFailure) as caught:
        query(sql, **options)
    return caught.value


def value(query: Query, sql: str, **options: Any) -> Any:
    return query(sql, **options)["rows"][0][0]


# --- what is answered ------------------------------------------------------------------------------------------------


def test_rows_come_back_in_the_shape_of_a_sqlite_answer(query: Query) -> None:
    answer = query("SELECT id, customer AS id, placed FROM orders ORDER BY 1")
    assert answer == {
        "columns": [
            {"name": "id", "type": "integer"}, {"name": "id", "type": "text"}, {"name": "placed", "type": "date"},
        ],
        "rows": [[1, "Ada", "2026-05-01"], [2, "Bo", "2026-05-02"], [3, "王芳", None]],
        "row_count": 3, "truncated": False, "notes": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "kind", "expected"),
    [
        ("SELECT 9007199254740993::bigint", "bigint", "9007199254740993"),
        ("SELECT 42::smallint", "smallint", 42),
        ("SELECT 0.1::float8 + 0.2", "double precision", 0.30000000000000004),
        ("SELECT 12345678901234567890.123456789::numeric", "numeric", "12345678901234567890.123456789"),
        ("SELECT 'NaN'::numeric", "numeric", "NaN"),
        ("SELECT 'Infinity'::float8", "double precision", None),
        ("SELECT true", "boolean", True),
        ("SELECT '\\x00ff'::bytea", "blob", {"blob_bytes": 2, "hex_head": "00ff"}),
        ("SELECT 'infinity'::date", "date", "infinity"),
        ("SELECT timestamp '0044-03-15 12:00:00.000001 BC'", "timestamp", "0044-03-15 12:00:00.000001 BC"),
        ("SELECT interval '1 year 2 days 03:04:05.6'", "interval", "1 year 2 days 03:04:05.6"),
        ("SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("SELECT '{\"a\": 1.00, \"a\": 2}'::json", "json", '{"a": 1.00, "a": 2}'),
        ("SELECT int4range(1, 5)", "text", "[1,5)"),
        ("SELECT ARRAY[1, NULL, 9007199254740993]", "bigint[]", [1, None, "9007199254740993"]),
        ("SELECT ARRAY['a,b', 'q\"\\x', 'NULL', '', NULL]", "text[]", ["a,b", 'q"\\x', "NULL", "", None]),
        ("SELECT ARRAY[[1, 2], [3, 4]]", "integer[]", [[1, 2], [3, 4]]),
        ("SELECT ARRAY[]::numeric[]", "numeric[]", []),
        ("SELECT ARRAY[1.50]", "numeric[]", ["1.50"]),
        ("SELECT '[2:3]={7,8}'::int[]", "integer[]", "[2:3]={7,8}"),
        ("SELECT NULL::date", "date", None),
    ],
)
def test_no_value_loses_anything_on_its_way_to_json(query: Query, sql: str, kind: str, expected: Any) -> None:
    answer = query(sql)
    assert (answer["columns"][0]["type"], answer["rows"][0][0]) == (kind, expected)


def test_what_was_changed_is_noted_and_rows_bytes_and_cells_are_capped(query: Query) -> None:
    assert query("SELECT 1.5 UNION ALL SELECT 2.5")["notes"] == ["exact decimals are given as text (2x)"]
    many = "SELECT n FROM generate_series(1, 500) n"
    default, asked, granted = query(many), query(many, limit=7), query(many, terms={"max_rows": 3})
    assert [(item["row_count"], item["truncated"]) for item in (default, asked, granted)] == [
        (100, True), (7, True), (3, True),
    ]  # fmt: skip
    assert query(many, limit=500)["truncated"] is False
    cut = query("SELECT repeat('é', 9000)")
    assert (len(cut["rows"][0][0]), cut["notes"]) == (8000, ["texts longer than 8000 characters were cut (1x)"])
    wide = query("SELECT repeat('x', 900) FROM generate_series(1, 500)", limit=500, max_bytes=4096)
    assert (wide["truncated"], len(json.dumps(wide)) <= 4096) == (True, True)
    assert refused(query, "SELECT repeat('x', 5000000)").code == "sql.too_big"


def test_values_are_bound_by_number_and_come_back_verbatim_in_every_type(query: Query) -> None:
    values = ["'; DROP TABLE orders; --", "$1 ? %s :x \\", "", 7, 2**40, 1.1, True, None]
    places = ", ".join(f"${place}" for place in range(1, len(values) + 1))
    assert query(f"SELECT {places}", parameters=values)["rows"] == [[*values[:5], "1.1", True, None]]
    assert value(query, "SELECT customer FROM orders WHERE id = $1 AND placed = $2", parameters=[1, "2026-05-01"])
    assert value(query, "SELECT substr(customer, $1) FROM orders WHERE total = $2", parameters=[2, 10.5]) == "da"


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT ?", [1]), ("SELECT :a", {"a": 1}), ("SELECT $1, $2", [1]),
        ("SELECT $1", ["a\0b"]), ("SELECT customer FROM orders WHERE id = $1", [[1]]),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_their_places_are_refused_with_a_repair(
    query: Query, sql: str, parameters: Any
) -> None:
    failure = refused(query, sql, parameters=parameters)
    assert failure.code == "sql.bad_parameters"
    assert failure.hint or "NUL" in failure.message or "plain" in failure.message


def test_settings_of_the_role_change_neither_names_nor_quotes_nor_forms(
    query: Query, postgres: PostgresServer
) -> None:
    postgres.query(
        "CREATE SCHEMA reader; CREATE TABLE reader.orders AS SELECT 'shadow' AS customer;"
        "GRANT USAGE ON SCHEMA reader TO reader; GRANT SELECT ON reader.orders TO reader;"
        "ALTER ROLE reader SET search_path = reader; ALTER ROLE reader SET standard_conforming_strings = off;"
        "ALTER ROLE reader SET DateStyle = 'German'; ALTER ROLE reader SET bytea_output = 'escape'", "shop"
    )  # fmt: skip
    try:
        assert value(query, "SELECT count(*) FROM orders") == 3
        assert value(query, "SELECT 'a\\'") == "a\\"
        assert value(query, "SELECT placed FROM orders WHERE id = 1") == "2026-05-01"
        assert value(query, "SELECT '\\x01'::bytea") == {"blob_bytes": 1, "hex_head": "01"}
        assert value(query, "SELECT customer FROM reader.orders") == "shadow"
    finally:
        postgres.query("ALTER ROLE reader RESET ALL; DROP SCHEMA reader CASCADE", "shop")


# --- what is told of an error ----------------------------------------------------------------------------------------


def test_what_does_not_exist_and_what_the_role_may_not_read_answer_alike(query: Query) -> None:
    told = {
        (failure.code, failure.message, failure.hint)
        for failure in (
            refused(query, sql)
            for sql in (
                "SELECT * FROM salaries", "SELECT * FROM nothing", "SELECT amount FROM public.salaries",
                "SELECT nothing FROM orders", "SELECT * FROM nowhere.orders", "SELECT emial FROM customers",
            )
        )
    }  # fmt: skip
    assert [code for code, _, _ in told] == ["sql.not_granted"]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT 1 +", "sql.error"),
        ("SELECT customer + 1 FROM orders", "sql.error"),
        ("SELECT 1 / 0", "sql.error"),
        ("SELECT 1; SELECT 2", "sql.multiple_statements"),
        ("SELECT 1;", None),
        ("", "sql.not_select"),
        ("SELECT 'a\ud800'", "sql.unreadable"),
        ("SELECT " + "1 + " * 6000 + "1", "sql.too_long"),
        ("SELECT pg_sleep(60)", "sql.timeout"),
        ("SELECT count(*) FROM generate_series(1, 1000000000)", "sql.timeout"),
        ("SELECT repeat('x', 2000000000)", "sql.too_big"),
    ],
)
def test_errors_have_codes_of_their_own(query: Query, sql: str, code: str | None) -> None:
    if code is None:
        assert value(query, sql) == 1
    else:
        assert refused(query, sql, wall_s=2.0).code == code


def test_an_error_tells_no_more_than_the_servers_first_line(query: Query) -> None:
    failure = refused(query, "SELECT max(id) FROM orders GROUP BY totale")
    assert "total" not in f"{failure.message} {failure.hint}".replace("totale", "")


def test_a_server_that_cannot_be_reached_and_a_login_that_is_refused_say_so_without_a_secret(
    query: Query, postgres: PostgresServer
) -> None:
    failure = refused(query, "SELECT 1", user="nobody")
    assert failure.code == "sql.unreachable"
    assert postgres.password not in failure.message
    assert "nobody" not in failure.message


# --- the session alone, as a role that could do more -----------------------------------------------------------------

WRITES = [
    "INSERT INTO orders VALUES (9, 'x', 1, NULL)",
    "UPDATE orders SET total = 0",
    "DELETE FROM orders",
    "TRUNCATE orders",
    "WITH gone AS (DELETE FROM orders RETURNING *) SELECT * FROM gone",
    "WITH made AS (INSERT INTO orders VALUES (9, 'x', 1, NULL) RETURNING id) SELECT id FROM made",
    "SELECT * INTO copied FROM orders",
    "SELECT nextval('numbers')",
    "SELECT * FROM orders FOR UPDATE",
    "SELECT lo_create(4711)",
    "SELECT writing()",
    "SELECT turning()",
    "CREATE TABLE made (a int)",
    "CREATE TEMP TABLE kept (a int)",
    "DROP TABLE orders",
    "DO $$ BEGIN DELETE FROM orders; END $$",
    "DO $$ BEGIN PERFORM set_config('transaction_read_only', 'off', true); DELETE FROM orders; END $$",
    "COMMIT",
    "COMMIT; DELETE FROM orders",
    "SELECT 1; DELETE FROM orders",
    "SELECT 1; COMMIT; DELETE FROM orders",
    "SET TRANSACTION READ WRITE",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "PREPARE x AS DELETE FROM orders",
    "EXPLAIN ANALYZE DELETE FROM orders",
    "GRANT ALL ON orders TO PUBLIC",
    "/* /* */ SELECT */ DELETE FROM orders",
]


@pytest.fixture
def watched(postgres: PostgresServer) -> Iterator[Callable[[], str]]:
    """What is in the database, as its superuser sees it; functions of the operator that write stand there too."""
    postgres.query(
        "CREATE SEQUENCE numbers; GRANT ALL ON numbers TO writer;"
        "CREATE FUNCTION writing() RETURNS int LANGUAGE sql AS 'DELETE FROM orders; SELECT 1';"
        "CREATE FUNCTION turning() RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM set_config('transaction_read_only', 'off', true); DELETE FROM orders; RETURN 1; END $$;"
        "GRANT CREATE ON SCHEMA public TO writer; GRANT TEMP ON DATABASE shop TO writer;"
        "GRANT TRUNCATE ON orders TO writer", "shop"
    )  # fmt: skip

    def state() -> str:
        return postgres.query(
            "SELECT array_agg(o ORDER BY id) FROM orders o; SELECT array_agg(relname ORDER BY oid) FROM pg_class WHERE"
            " relnamespace <> 'pg_toast'::regnamespace; SELECT last_value, is_called FROM numbers;"
            " SELECT count(*) FROM pg_largeobject_metadata; SELECT relacl FROM pg_class WHERE relname = 'orders'",
            "shop",
        )

    yield state
    postgres.query(
        "REVOKE CREATE ON SCHEMA public FROM writer; REVOKE TEMP ON DATABASE shop FROM writer;"
        "REVOKE TRUNCATE ON orders FROM writer; DROP FUNCTION writing; DROP FUNCTION turning; DROP SEQUENCE numbers",
        "shop",
    )


@pytest.mark.parametrize("sql", WRITES)
def test_a_role_that_may_write_writes_nothing_through_the_session(
    query: Query, watched: Callable[[], str], sql: str
) -> None:
    before = watched()
    with contextlib.suppress(ToolFailure):  # PostgreSQL before 16 makes a large object, and unmakes it with the rest
        query(sql, user="writer")
        assert sql in ("SELECT lo_create(4711)", "SELECT 1;")
    assert watched() == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_read_binary_file('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT pg_stat_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT lo_export(1, '/tmp/toolcage-made-by-the-database')",
        "COPY orders TO '/tmp/toolcage-made-by-the-database'",
        "COPY orders TO PROGRAM 'touch /tmp/toolcage-made-by-the-database'",
        "COPY orders TO STDOUT",
        "COPY orders FROM STDIN",
        "SELECT * FROM dblink('host=127.0.0.1', 'SELECT 1') AS t(a int)",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'root_of_tests'",
        "SELECT pg_reload_conf()",
        "SELECT rolpassword FROM pg_authid",
        "SELECT query_to_xml('DELETE FROM orders', true, true, '')",
        "SELECT query_to_xml('SELECT * FROM salaries', true, true, '')",
        "SET ROLE owner",
        "SET SESSION AUTHORIZATION mighty",
        "ALTER SYSTEM SET work_mem = 1",
        "LOAD 'auto_explain'",
    ],
)
def test_the_role_reads_no_file_and_reaches_nothing_outside_of_the_database(query: Query, sql: str) -> None:
    refused(query, sql)


def test_nothing_of_a_call_is_left_for_the_next(
    query: Query, postgres: PostgresServer, watched: Callable[[], str]
) -> None:
    notified = "SELECT count(*) FROM pg_listening_channels()"
    query("SELECT pg_advisory_lock(4711), pg_notify('channel', 'said'), set_config('search_path', 'nowhere', false),"
          " set_config('statement_timeout', '0', false)", user="writer")  # fmt: skip
    for sql in ("LISTEN channel", "NOTIFY channel", "SET statement_timeout = 0"):
        refused(query, sql, user="writer")
    assert until(lambda: postgres.query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0")
    assert until(lambda: postgres.query("SELECT count(*) FROM pg_stat_activity WHERE usename = 'writer'") == "0")
    assert value(query, notified, user="writer") == 0
    assert value(query, "SELECT count(*) FROM orders", user="writer") == 3
    assert value(query, "SELECT current_setting('statement_timeout')", user="writer", wall_s=5.0) == "4s"


def test_a_statement_that_lifts_its_own_time_limit_ends_all_the_same(query: Query) -> None:
    sql = "SELECT set_config('statement_timeout', '0', false), pg_sleep(60)"
    assert refused(query, sql, wall_s=1.0).code == "sql.timeout"
