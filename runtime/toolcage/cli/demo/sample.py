"""The demo's shop: customers, products, orders and their items, some thirteen thousand rows in one SQLite file.

The same rows every time: one seed, no clock. All of it is fiction; addresses are under example.com and example.org,
telephone numbers in the range that is kept for fiction.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Final

SEED: Final = 20260501
CUSTOMERS: Final = 1_500
ORDERS: Final = 3_500
FIRST_DAY: Final = date(2025, 6, 1)
DAYS: Final = 365

_SCHEMA: Final = """
    CREATE TABLE customers (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL, phone TEXT NOT NULL, city TEXT NOT NULL,
        joined TEXT NOT NULL
    );
    CREATE TABLE products (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL, price_cents INTEGER NOT NULL
    );
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers(id), ordered_on TEXT NOT NULL,
        status TEXT NOT NULL
    );
    CREATE TABLE order_items (
        id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES orders(id),
        product_id INTEGER NOT NULL REFERENCES products(id), quantity INTEGER NOT NULL,
        unit_price_cents INTEGER NOT NULL
    );
    CREATE INDEX orders_by_day ON orders (ordered_on);
    CREATE INDEX items_by_order ON order_items (order_id);
"""
_FIRST: Final = "Ada Bela Cora Dario Elif Femi Greta Hugo Ines Jonas Kaya Lena Malik Nora Otto Pia Rosa Samir Tove"
_LAST: Final = "Arnold Brandt Castro Dumont Eriksen Fischer Garcia Hansen Ivanov Jansen Keller Lopez Moreau Novak"
_CITIES: Final = "Aarhus Bergen Cork Delft Evora Faro Ghent Hamburg Izmir Jena Krakow Lyon Malmo Nantes Oulu"
_GOODS: Final = {  # category: lowest price, highest price, names
    "books": (900, 4_500, "Atlas Cookbook Diary Grammar Handbook Novel"),
    "garden": (1_200, 18_000, "Bench Lantern Rake Seeds Spade Trellis"),
    "kitchen": (700, 12_000, "Bowl Grater Kettle Knife Pan Scale"),
    "office": (300, 25_000, "Binder Chair Desk Lamp Paper Stapler"),
    "toys": (500, 8_000, "Blocks Kite Marbles Puzzle Robot Train"),
}
_STYLES: Final = ("Classic", "Compact", "Deluxe", "Plain")


def make_shop(path: Path) -> int:
    """Writes the database to `path`, replacing what was there, and returns its number of rows."""
    path.unlink(missing_ok=True)
    chance = random.Random(SEED)  # noqa: S311 - made-up rows, no secret
    connection = sqlite3.connect(path)
    try:
        with connection:
            connection.executescript(_SCHEMA)
            connection.executemany("INSERT INTO customers VALUES (?, ?, ?, ?, ?, ?)", _customers(chance))
            products = list(_products(chance))
            connection.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", products)
            orders = list(_orders(chance))
            connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", orders)
            connection.executemany(
                "INSERT INTO order_items VALUES (?, ?, ?, ?, ?)", _items(chance, len(orders), products)
            )
        tables = ("customers", "products", "orders", "order_items")
        counts = (connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)  # noqa: S608
        return sum(counts)
    finally:
        connection.close()


def _customers(chance: random.Random) -> Iterator[tuple[object, ...]]:
    for number in range(1, CUSTOMERS + 1):
        first, last = chance.choice(_FIRST.split()), chance.choice(_LAST.split())
        email = f"{first}.{last}{number}@example.{chance.choice(('com', 'org'))}".lower()
        phone = f"+1-555-01{chance.randrange(100):02d}"
        yield number, f"{first} {last}", email, phone, chance.choice(_CITIES.split()), _day(chance)


def _products(chance: random.Random) -> Iterator[tuple[int, str, str, int]]:
    number = 0
    for category, (lowest, highest, names) in _GOODS.items():
        for name in names.split():
            for style in _STYLES:
                number += 1
                yield number, f"{style} {name}", category, chance.randrange(lowest, highest, 10)


def _orders(chance: random.Random) -> Iterator[tuple[object, ...]]:
    for number in range(1, ORDERS + 1):
        status = chance.choices(("paid", "shipped", "cancelled"), (2, 7, 1))[0]
        yield number, chance.randint(1, CUSTOMERS), _day(chance), status


def _items(
    chance: random.Random, orders: int, products: list[tuple[int, str, str, int]]
) -> Iterator[tuple[object, ...]]:
    number = 0
    for order in range(1, orders + 1):
        for product, _, _, price_cents in chance.sample(products, chance.randint(1, 4)):
            number += 1
            yield number, order, product, chance.choices((1, 2, 3, 6), (6, 3, 2, 1))[0], price_cents


def _day(chance: random.Random) -> str:
    return (FIRST_DAY + timedelta(days=chance.randrange(DAYS))).isoformat()
