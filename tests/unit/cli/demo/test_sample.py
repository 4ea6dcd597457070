"""The demo's database is the same every time and names nobody who exists."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from toolcage.cli.demo.sample import make_shop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    make_shop(tmp_path / "shop.sqlite")
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection:
        yield connection


def test_two_shops_hold_the_same_rows_whatever_was_there_before(tmp_path: Path) -> None:
    (tmp_path / "b.sqlite").write_text("no database")
    dumps = []
    for name in ("a.sqlite", "b.sqlite"):
        assert make_shop(tmp_path / name) > 10_000
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            dumps.append(list(connection.iterdump()))
    assert dumps[0] == dumps[1]


def test_every_order_has_items_of_products_that_exist_and_a_customer_who_does(shop: sqlite3.Connection) -> None:
    assert shop.execute("PRAGMA foreign_key_check").fetchall() == []
    empty = "SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM order_items)"
    assert shop.execute(empty).fetchall() == []


def test_every_address_and_number_is_one_kept_for_fiction(shop: sqlite3.Connection) -> None:
    rows = shop.execute("SELECT email, phone FROM customers").fetchall()
    assert [row for row in rows if not re.fullmatch(r"[a-z.0-9]+@example\.(com|org)", row[0])] == []
    assert [row for row in rows if not re.fullmatch(r"\+1-555-01\d\d", row[1])] == []
