"""A description shows exactly what may be queried, and nothing of what is in it."""

import pathlib
import sqlite3
from typing import Any

import pytest

from toolcage.tools.base import ToolFailure, body_of
from toolcage.tools.describe_database import DescribeDatabase

SCHEMA = """
CREATE TABLE Customers(id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT);
CREATE TABLE "order items"(id INTEGER PRIMARY KEY, customer INTEGER REFERENCES Customers(id), amount NUMERIC,
                           double AS (amount * 2));
CREATE TABLE secret(id INTEGER PRIMARY KEY, pw TEXT, customer INTEGER REFERENCES Customers(id));
CREATE VIEW names AS SELECT name FROM Customers;
INSERT INTO Customers VALUES (1, 'Ann', 'a@x'), (2, 'Bob', 'b@x');
"""


@pytest.fixture
def shop(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    connection.close()
    return path


def describe(
    path: pathlib.Path, tables: list[str] | None = None, columns_except: list[str] | None = None, **arguments: str
) -> dict[str, Any]:
    tool = DescribeDatabase()
    tool.context = {
        "resources": {"database": {"name": "shop", "kind": "sqlite", "path": str(path)}},
        "sql": {"tables": tables, "columns_except": columns_except or [], "max_rows": 10},
        "limits": {"max_bytes": 65536, "wall_s": 2.0},
    }
    described: dict[str, Any] = body_of(tool)(database="shop", **arguments)
    return described


def test_tables_columns_keys_and_counts_are_told(shop: pathlib.Path) -> None:
    described = describe(shop)
    by_name = {table["name"]: table for table in described["tables"]}
    assert set(by_name) == {"Customers", "order items", "secret", "names"}
    assert by_name["Customers"]["columns"][1] == {
        "name": "name",
        "type": "TEXT",
        "nullable": False,
        "primary_key": False,
    }
    assert by_name["Customers"]["columns"][0]["primary_key"]
    assert (by_name["Customers"]["row_count"], by_name["Customers"]["rows_estimated"]) == (2, False)
    assert by_name["order items"]["foreign_keys"] == [{"column": "customer", "references": "Customers.id"}]
    assert [column["name"] for column in by_name["order items"]["columns"]] == ["id", "customer", "amount", "double"]
    assert by_name["names"]["kind"] == "view"


def test_no_contents_are_told(shop: pathlib.Path) -> None:
    assert "Ann" not in str(describe(shop))


@pytest.mark.threat("P62")
def test_only_granted_tables_and_columns_are_told(shop: pathlib.Path) -> None:
    described = describe(shop, ["customers"], ["customers.email"])
    assert [table["name"] for table in described["tables"]] == ["Customers"]
    assert "email" not in str(described)
    assert "secret" not in str(described)


@pytest.mark.threat("P62")
def test_a_key_into_a_table_outside_the_grant_is_not_told(shop: pathlib.Path) -> None:
    assert describe(shop, ["order items"])["tables"][0]["foreign_keys"] == []
    assert describe(shop, ["order items", "customers"], ["customers.id"])["tables"][1]["foreign_keys"] == []


def test_one_table_can_be_asked_for_in_any_case(shop: pathlib.Path) -> None:
    assert describe(shop, table="CUSTOMERS")["table_count"] == 1
    assert describe(shop, table="main.order items")["tables"][0]["name"] == "order items"


@pytest.mark.threat("R10")
@pytest.mark.parametrize(
    "table",
    ["secret", "nothing", "sqlite_master", "Customers'); DROP TABLE secret; --", 'customers"', "pragma_table_info"],
)
def test_a_table_that_is_hidden_or_absent_or_sql_is_not_found(shop: pathlib.Path, table: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        describe(shop, ["customers"], table=table)
    assert (caught.value.code, table in caught.value.message) == ("sql.not_granted", False)
