"""`change_database` on PostgreSQL: one change, all or nothing, and what the session holds with the gate absent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conftest import Installation
from servers.postgres import PASSWORD_IN, PostgresServer, resources_text
from toolcage import Approval, PoolTerms
from toolcage.tools.base import ToolFailure
from toolcage.tools.change_database import ChangeDatabase

Change = Callable[..., dict[str, Any]]
POLICY = """
version: 1
role: clerk
tools:
  change_database:
    resources: {database: [shop]}
    %s:
      - sql: {tables: [stock, prices], columns_except: [stock.secret], max_rows: 3, operations: [insert, update]}
  query_database:
    resources: {database: [shop]}
    allow: [{sql: {tables: [stock]}}]
    effects: [reads_private, writes]
"""


@pytest.fixture(autouse=True)
def stock(postgres: PostgresServer) -> Iterator[Callable[[], str]]:
    """Ten things in stock, each with a line that a key deletes with it."""
    postgres.query(
        "CREATE TABLE stock (id serial PRIMARY KEY, name text UNIQUE, amount integer CHECK (amount >= 0), secret text);"
        "CREATE TABLE lines (stock integer REFERENCES stock ON DELETE CASCADE);"
        "CREATE TABLE prices (id integer, price numeric);"
        "INSERT INTO stock (name, amount) SELECT 'thing ' || n, n FROM generate_series(1, 10) n;"
        "INSERT INTO lines SELECT 1 FROM generate_series(1, 20);"
        "GRANT ALL ON stock, stock_id_seq, lines, prices TO writer; GRANT SELECT ON stock TO reader", "shop"
    )  # fmt: skip

    def state() -> str:
        return postgres.query(
            "SELECT array_agg(s ORDER BY id) FROM stock s; SELECT count(*) FROM lines; SELECT count(*) FROM prices;"
            " SELECT array_agg(o ORDER BY id) FROM orders o; SELECT array_agg(relname ORDER BY oid) FROM pg_class"
            " WHERE relnamespace <> 'pg_toast'::regnamespace", "shop"
        )  # fmt: skip

    yield state
    postgres.query("DROP TABLE lines, stock, prices", "shop")


@pytest.fixture
def change(body: Callable[..., Any]) -> Change:
    def run(sql: str, **options: Any) -> dict[str, Any]:
        named = {"user": "writer", "read_only": False, **options}
        answer: dict[str, Any] = body(ChangeDatabase(), sql=sql, **named)
        json.dumps(answer, allow_nan=False)
        return answer

    return run


def test_each_kind_of_change_is_made_with_its_values_bound(change: Change, postgres: PostgresServer) -> None:
    name = "x'; DROP TABLE stock; --"
    made = change("INSERT INTO stock (name, amount) VALUES ($1,$2) RETURNING id, name", parameters=[name, 5])
    assert (made["operation"], made["changed_rows"], made["rows"]) == ("insert", 1, [[11, name]])
    assert [column["type"] for column in made["columns"]] == ["integer", "text"]
    updated = change("UPDATE stock SET amount = amount + $1 WHERE id <= $2", parameters=[1, 3], limit=3)
    assert (updated["changed_rows"], updated["rows"], updated["columns"]) == (3, [], [])
    assert change("DELETE FROM stock WHERE id = $1", parameters=[11])["changed_rows"] == 1
    assert change("UPDATE stock SET amount = 1 WHERE id = 99")["changed_rows"] == 0
    assert postgres.query("SELECT sum(amount), count(*) FROM stock", "shop") == "58|10"


@pytest.mark.parametrize(
    ("sql", "options", "code"),
    [
        ("UPDATE stock SET amount = 0 WHERE id < 3", {}, "sql.too_many_rows"),
        ("UPDATE stock SET amount = 0 WHERE id < 9 RETURNING id", {"limit": 5}, "sql.too_many_rows"),
        ("DELETE FROM stock WHERE id < 9", {"limit": 100, "terms": {"max_rows": 7}}, "sql.too_many_rows"),
        ("DELETE FROM stock WHERE id = 1", {"limit": 20}, "sql.too_many_rows"),  # and twenty lines with it
        ("INSERT INTO stock (name) SELECT 'n' || n FROM generate_series(1, 9) n", {}, "sql.too_many_rows"),
        ("UPDATE stock SET amount = 0", {"limit": 100}, "sql.no_where"),
        ("DELETE FROM stock", {"limit": 100}, "sql.no_where"),
        ("UPDATE stock SET amount = -1 WHERE id = 1", {}, "sql.constraint"),
        ("INSERT INTO stock (name) VALUES ('thing 1')", {}, "sql.constraint"),
        ("UPDATE stock SET amount = 1 WHERE id = $1", {}, "sql.bad_parameters"),
        ("UPDATE salaries SET amount = 1 WHERE id = 1", {}, "sql.not_granted"),
        ("UPDATE nothing SET amount = 1 WHERE id = 1", {}, "sql.not_granted"),
        ("DELETE FROM stock WHERE id = 2", {"terms": {"operations": ["insert"]}}, "sql.not_allowed"),
        ("UPDATE stock SET amount = 1 WHERE id = 1; DROP TABLE lines", {}, "sql.multiple_statements"),
        ("UPDATE stock SET amount = 1 WHERE id = 1; COMMIT", {}, "sql.multiple_statements"),
        ("SELECT 1", {}, "sql.not_allowed"),
        ("WITH gone AS (DELETE FROM lines RETURNING *) SELECT * FROM gone WHERE true", {}, "sql.not_allowed"),
        ("INSERT INTO prices WITH gone AS (DELETE FROM lines RETURNING 1) SELECT * FROM gone", {}, "sql.not_allowed"),
        ("DROP TABLE lines", {}, "sql.not_allowed"),
        ("TRUNCATE stock", {}, "sql.not_allowed"),
        ("COMMIT", {}, "sql.not_allowed"),
        ("DO $$ BEGIN DELETE FROM stock; END $$", {}, "sql.not_allowed"),
        ("/* /* */ UPDATE */ DELETE FROM stock WHERE true", {"limit": 99}, "sql.unreadable"),
        ("UPDATE stock SET amount = 1 WHERE id = 1 AND pg_sleep(9) IS NOT NULL", {"wall_s": 1.5}, "sql.timeout"),
        ("UPDATE stock SET amount = 1 WHERE id = 1", {"user": "reader"}, "sql.not_granted"),
    ],
)
def test_what_is_refused_changes_nothing(
    change: Change, stock: Callable[[], str], sql: str, options: dict[str, Any], code: str
) -> None:
    before = stock()
    with pytest.raises(ToolFailure) as caught:
        change(sql, **options)
    assert (caught.value.code, stock()) == (code, before)


def test_a_change_that_waits_for_the_commit_is_counted_before_it(
    change: Change, stock: Callable[[], str], postgres: PostgresServer
) -> None:
    postgres.query(
        "CREATE FUNCTION spread() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$ BEGIN DELETE FROM lines; RETURN NULL; END $$;"
        "CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON stock DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION spread()", "shop"
    )  # fmt: skip
    before = stock()
    try:
        with pytest.raises(ToolFailure) as caught:
            change("UPDATE stock SET amount = 1 WHERE id = 2", limit=5)
        assert (caught.value.code, stock()) == ("sql.too_many_rows", before)
        assert change("UPDATE stock SET amount = 1 WHERE id = 2", limit=21)["changed_rows"] == 21
    finally:
        postgres.query("DROP FUNCTION spread CASCADE", "shop")


# --- through the line ------------------------------------------------------------------------------------------------


@pytest.fixture
def clerk(
    installation: Installation, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    monkeypatch.setenv(PASSWORD_IN, postgres.password)

    def open_session(effect: str = "allow", **options: Any) -> Any:
        resources = installation.folder / "resources.yaml"
        resources.write_text(resources_text(postgres, "writer"))
        pool = PoolTerms(min_idle=0)
        return installation.runtime(POLICY % effect, resources=resources, pool=pool, **options).session()

    return open_session


def ask(session: Any, sql: str, **more: Any) -> Any:
    return session.call("change_database", {"database": "shop", "sql": sql, **more})


@pytest.mark.docker
def test_the_line_changes_what_is_granted_and_refuses_its_neighbours(
    clerk: Callable[..., Any], stock: Callable[[], str], postgres: PostgresServer
) -> None:
    session = clerk()
    before = stock()
    for sql, status, code in (
        ("DELETE FROM stock WHERE id = 1", "denied", "policy.no_match"),
        ("UPDATE orders SET total = 0 WHERE id = 1", "denied", "policy.no_match"),
        ("UPDATE stock SET secret = 'x' WHERE id = 1", "denied", "policy.no_match"),
        ("UPDATE stock SET amount = 1 WHERE secret = 'x'", "denied", "policy.no_match"),
        ("UPDATE stock SET amount = 1 WHERE id = 1 RETURNING *", "denied", "policy.no_match"),
        ("INSERT INTO stock VALUES (77)", "denied", "policy.no_match"),
        ("INSERT INTO stock (name) SELECT customer FROM orders", "denied", "policy.no_match"),
        ("UPDATE stock SET amount = 1", "blocked", "sql.no_where"),
        ("UPDATE stock SET amount = 1 WHERE 1 = 1", "blocked", "sql.no_where"),
        ("UPDATE stock SET amount = 1 WHERE id = 1; DELETE FROM stock", "blocked", "sql.multiple_statements"),
        ("UPDATE stock SET name = pg_read_file('/etc/passwd') WHERE id = 1", "blocked", "sql.function_not_allowed"),
        ("INSERT INTO stock (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET amount = 1", "blocked",
         "sql.node_not_allowed"),
        ("UPDATE stock SET amount = 1 WHERE id < 9", "tool_error", "sql.too_many_rows"),
    ):  # fmt: skip
        result = ask(session, sql)
        assert (result.status, result.code) == (status, code), (sql, result)
    assert stock() == before
    done = ask(session, "UPDATE public.stock SET amount = $1 WHERE id = $2 RETURNING amount", parameters=[70, 1])
    assert (done.status, done.data["changed_rows"], done.data["rows"]) == ("ok", 1, [[70]])
    assert postgres.query("SELECT amount FROM stock WHERE id = 1", "shop") == "70"


@pytest.mark.docker
def test_a_change_under_ask_waits_for_a_person_and_the_other_tools_session_still_only_reads(
    clerk: Callable[..., Any], stock: Callable[[], str], postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql, before = "UPDATE stock SET amount = 70 WHERE id = 1", stock()
    assert ask(clerk("ask"), sql).status == "approval_required"
    assert ask(clerk("ask", approver=lambda request: False), sql).status == "rejected"
    monkeypatch.setattr("toolcage.line.screen.screen_facts", lambda facts: None)
    reading = clerk("ask").call("query_database", {"database": "shop", "sql": f"WITH x AS ({sql} RETURNING 1) TABLE x"})
    assert reading.status != "ok"
    assert stock() == before
    monkeypatch.undo()
    monkeypatch.setenv(PASSWORD_IN, postgres.password)
    yes = Approval(approved=True, approver="test")
    assert ask(clerk("ask", approver=lambda request: yes), sql).data["changed_rows"] == 1
