"""A database, a role that may read two of its columns, and four calls: two that work and two that are refused.

    python examples/quickstart.py

Needs what `make setup` sets up: a container engine and the `python` image.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from toolcage import Runtime

POLICY = """
version: 1
role: analyst
tools:
  query_database:
    resources: {database: [shop]}
    allow:
      - sql: {tables: [orders], columns_except: [orders.email], max_rows: 100}
  calculate_expression:
    allow: [{}]
"""
RESOURCES = """
version: 1
databases:
  shop: {kind: sqlite, path: shop.sqlite}
"""


def make_shop(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL, email TEXT)")
        rows = [(1, 19.5, "ada@example.com"), (2, 42.0, "bela@example.com"), (3, 7.25, "cora@example.org")]
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
    connection.close()


def main(folder: Path) -> None:
    make_shop(folder / "shop.sqlite")
    (folder / "analyst.yaml").write_text(POLICY)
    (folder / "resources.yaml").write_text(RESOURCES)
    with Runtime.from_files(folder / "analyst.yaml", resources=folder / "resources.yaml") as runtime:
        with runtime.session(request="What did the orders bring in?") as session:
            for tool, arguments in (
                ("query_database", {"database": "shop", "sql": "SELECT count(*), sum(total) FROM orders"}),
                ("calculate_expression", {"expression": "round(68.75 / 3, 2)"}),
                ("query_database", {"database": "shop", "sql": "SELECT email FROM orders"}),
                ("query_database", {"database": "shop", "sql": "DELETE FROM orders"}),
            ):
                result = session.call(tool, arguments)
                print(f"{result.status:8} {result.code or '':16} {result.data if result.success else result.error}")
        print("recorded in", runtime.audit_path.name)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
