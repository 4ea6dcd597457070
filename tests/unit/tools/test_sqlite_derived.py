"""What is derived from an excepted column is excepted with it, with the parser's gate absent."""

import pathlib
import sqlite3
from typing import Any

import pytest

from toolcage.tools.base import ToolFailure, body_of
from toolcage.tools.describe_database import DescribeDatabase
from toolcage.tools.query_database import QueryDatabase

SCHEMA = """
CREATE TABLE customers(
    id INTEGER PRIMARY KEY, name TEXT, -- email, of a person
    email TEXT UNIQUE, salary INT DEFAULT (1 + 2), country TEXT,
    domain TEXT GENERATED ALWAYS AS (substr(email, 3)) VIRTUAL,
    kept TEXT AS (lower("EMAIL")) STORED,
    twice TEXT AS (domain || domain),
    [odd, name] TEXT AS (/* ) , */ [email]),
    shout TEXT AS (upper(name)),
    CHECK (email <> ''), UNIQUE (name, country)
);
CREATE INDEX by_salary ON customers(salary);
CREATE INDEX by_country ON customers(country, salary);
CREATE INDEX by_length ON customers(length(email));
CREATE INDEX by_twice ON customers(twice);
CREATE INDEX some ON customers(shout) WHERE salary > 10;
CREATE INDEX by_name ON customers(name);
CREATE TABLE keyed(email TEXT PRIMARY KEY, n INT) WITHOUT ROWID;
CREATE VIEW through AS SELECT id, twice AS t FROM customers;
INSERT INTO customers(name, email, salary, country)
    VALUES ('Ada', 'z@s.example', 900, 'x'), ('Bela', 'a@s.example', 100, 'x'), ('Cleo', 'm@s.example', 500, 'x');
INSERT INTO keyed VALUES ('z', 1), ('a', 2);
"""
EXCEPTED = ["customers.email", "customers.salary", "keyed.email"]
DERIVED = ["domain", "kept", "twice", '"odd, name"']


@pytest.fixture
def shop(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    connection.close()
    return path


def context(path: pathlib.Path, excepted: list[str]) -> dict[str, Any]:
    return {
        "resources": {"database": {"name": "shop", "kind": "sqlite", "path": str(path)}},
        "sql": {"tables": None, "columns_except": excepted, "max_rows": 10},
        "limits": {"max_bytes": 65536, "wall_s": 2.0},
    }


def rows(path: pathlib.Path, sql: str, excepted: list[str] = EXCEPTED) -> list[list[Any]]:
    tool = QueryDatabase()
    tool.context = context(path, excepted)
    answer: dict[str, Any] = body_of(tool)(database="shop", sql=sql)
    found: list[list[Any]] = answer["rows"]
    return found


def refused(path: pathlib.Path, sql: str, excepted: list[str] = EXCEPTED) -> str:
    with pytest.raises(ToolFailure) as caught:
        rows(path, sql, excepted)
    return caught.value.code


@pytest.mark.parametrize("column", DERIVED)
def test_a_generated_column_over_an_excepted_one_cannot_be_read(shop: pathlib.Path, column: str) -> None:
    assert rows(shop, f"SELECT {column} FROM customers", [])
    assert refused(shop, f"SELECT {column} FROM customers") == "sql.not_granted"
    assert refused(shop, f"SELECT count(*) FROM customers WHERE {column} LIKE 'z%'") == "sql.not_granted"


def test_a_generated_column_over_granted_ones_can_be_read(shop: pathlib.Path) -> None:
    assert rows(shop, "SELECT shout FROM customers ORDER BY id") == [["ADA"], ["BELA"], ["CLEO"]]


def test_a_generated_column_is_not_read_through_a_view_either(shop: pathlib.Path) -> None:
    assert rows(shop, "SELECT t FROM through", [])
    assert refused(shop, "SELECT t FROM through") == "sql.not_granted"


def test_a_generated_column_cannot_be_joined_on(shop: pathlib.Path) -> None:
    assert refused(shop, "SELECT 1 FROM customers a JOIN customers b USING (kept)") == "sql.not_granted"


def test_derived_columns_are_not_described(shop: pathlib.Path) -> None:
    tool = DescribeDatabase()
    tool.context = context(shop, EXCEPTED)
    described = body_of(tool)(database="shop", table="customers")["tables"][0]
    assert [column["name"] for column in described["columns"]] == ["id", "name", "country", "shout"]


def test_a_description_without_bounds_tells_nothing(shop: pathlib.Path) -> None:
    tool = DescribeDatabase()
    tool.context = context(shop, []) | {"sql": None}
    with pytest.raises(ToolFailure) as caught:
        body_of(tool)(database="shop")
    assert caught.value.code == "sql.not_granted"


@pytest.mark.parametrize(
    "choice",
    ["INDEXED BY by_salary", "indexed/**/by sqlite_autoindex_customers_1", "INDEXED -- x\n BY by_name", "NOT INDEXED",
     "AS c Not\tIndexed", "indexed/* ' **/ by by_salary"],
)  # fmt: skip
def test_no_statement_chooses_an_index(shop: pathlib.Path, choice: str) -> None:
    assert refused(shop, f"SELECT name FROM customers {choice}", []) == "sql.not_allowed"


def test_words_that_only_look_like_a_choice_of_an_index_are_fine(shop: pathlib.Path) -> None:
    assert rows(shop, "SELECT 'not_indexed', 'indexed bye' AS indexed FROM customers WHERE id = 1")


@pytest.mark.parametrize(
    "sql",
    ["SELECT id FROM customers", "SELECT id FROM customers LIMIT 1", "SELECT group_concat(id) FROM customers",
     "SELECT name FROM customers WHERE country = 'x'", "SELECT country, id FROM customers",
     "SELECT n FROM keyed", "SELECT id FROM (SELECT id FROM customers LIMIT 1)"],
)  # fmt: skip
def test_rows_never_come_in_the_order_of_an_excepted_column(shop: pathlib.Path, sql: str) -> None:
    assert rows(shop, sql, [])
    assert refused(shop, sql) == "sql.not_granted"


def test_rows_in_the_order_of_granted_columns_and_counts_are_answered(shop: pathlib.Path) -> None:
    assert rows(shop, "SELECT count(*) FROM customers") == [[3]]
    assert rows(shop, "SELECT id FROM customers ORDER BY id") == [[1], [2], [3]]
    assert rows(shop, "SELECT name FROM customers WHERE +country = 'x'") == [["Ada"], ["Bela"], ["Cleo"]]
    assert rows(shop, "SELECT id FROM customers WHERE name > 'B' ORDER BY name") == [[2], [3]]


def test_commas_quotes_and_parentheses_in_a_definition_mislead_nobody(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE 'a,(b' ('x' TEXT, y AS (1), email TEXT, z AS (email) CHECK (z <> ',') )")
    connection.execute("""INSERT INTO "a,(b"(x, email) VALUES ('1', 'e')""")
    connection.commit()
    connection.close()
    assert rows(path, 'SELECT y FROM "a,(b"', ["a,(b.email"]) == [[1]]
    assert refused(path, 'SELECT z FROM "a,(b"', ["a,(b.email"]) == "sql.not_granted"
