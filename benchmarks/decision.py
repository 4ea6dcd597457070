"""What parse, validate, authorize and screen cost together, with policies of one to a hundred entries."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from toolcage.policy.load import load_role_text
from toolcage.runtime import declared_tools, judge_for

ROUNDS = 2000
SELECT = (
    "SELECT p.name, sum(i.quantity) AS sold FROM order_items i JOIN products p ON p.id = i.product_id "
    "WHERE i.order_id > 100 GROUP BY p.name ORDER BY sold DESC LIMIT 10"
)


def run() -> dict[str, Any]:
    """Microseconds by policy size, without and with a SELECT to read."""
    return {"unit": "us", "without sql": _series(_plain), "with a SELECT": _series(_sql)}


def _series(make: Callable[[int], tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
    figures = {}
    for entries in (1, 10, 100):
        policy, tool, arguments = make(entries)
        role = load_role_text(policy, "bench.yaml", declared_tools())
        judge = judge_for(role, declared_tools())
        if judge(tool, arguments) != ("ok", "ok"):
            raise RuntimeError(f"the call does not pass: {judge(tool, arguments)}")
        figures[f"{entries} entries"] = _quantiles(judge, tool, arguments)
    return figures


def _quantiles(
    judge: Callable[[str, Mapping[str, Any]], object], tool: str, arguments: dict[str, Any]
) -> dict[str, float]:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        judge(tool, arguments)
        times.append((time.perf_counter() - started) * 1e6)
    return {"p50": round(statistics.median(times), 1), "p99": round(statistics.quantiles(times, n=100)[98], 1)}


def _plain(entries: int) -> tuple[str, str, dict[str, Any]]:
    misses = "".join(f"      - expression: {{const: '{number} + 1'}}\n" for number in range(entries - 1))
    policy = (
        "version: 1\nrole: bench\ndescription: Bench.\ntools:\n  calculate_expression:\n    allow:\n"
        f"{misses}      - expression: {{type: string}}\n"
    )
    return policy, "calculate_expression", {"expression": "a + b"}


def _sql(entries: int) -> tuple[str, str, dict[str, Any]]:
    misses = "".join(f"      - sql: {{tables: [other_{number}]}}\n" for number in range(entries - 1))
    policy = (
        "version: 1\nrole: bench\ndescription: Bench.\ntools:\n  query_database:\n"
        f"    resources: {{database: [shop]}}\n    allow:\n{misses}      - sql: {{tables: [order_items, products]}}\n"
    )
    return policy, "query_database", {"database": "shop", "sql": SELECT}
