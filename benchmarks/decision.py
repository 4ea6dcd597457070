"""What parse, validate, authorize and screen cost together, with policies of one to a thousand entries.

Entries with fixed texts are found by an index; those with patterns, and those of SQL, are tried one after the other.
The call always matches the last entry. Where `cedarpy` is installed, the nearest equal Cedar policies are timed
beside it, parsed once: Cedar decides only, it does not parse, validate or screen the call.
"""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from toolcage.policy.load import load_role_text
from toolcage.policy_desk import declared_tools, judge_for

ROUNDS = 2000
SIZES = (1, 10, 100, 1000)
SELECT = (
    "SELECT p.name, sum(i.quantity) AS sold FROM order_items i JOIN products p ON p.id = i.product_id "
    "WHERE i.order_id > 100 GROUP BY p.name ORDER BY sold DESC LIMIT 10"
)


def run() -> dict[str, Any]:
    """Microseconds by policy size, without and with a SELECT to read."""
    figures = {
        "unit": "us",
        "fixed texts": _series(_plain),
        "patterns": _series(_patterns),
        "with a SELECT": _series(_sql),
    }
    return figures | ({"cedarpy, decision only": cedar} if (cedar := _cedar()) else {})


def _series(make: Callable[[int], tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
    figures = {}
    for entries in SIZES:
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


def _patterns(entries: int) -> tuple[str, str, dict[str, Any]]:
    misses = "".join(f"      - expression: {{pattern: '^x{number}$'}}\n" for number in range(entries - 1))
    policy = (
        "version: 1\nrole: bench\ndescription: Bench.\ntools:\n  calculate_expression:\n    allow:\n"
        f"{misses}      - expression: {{type: string}}\n"
    )
    return policy, "calculate_expression", {"expression": "a + b"}


def _cedar() -> dict[str, dict[str, float]]:
    """The same rules in Cedar; empty where it is not installed."""
    if importlib.util.find_spec("cedarpy") is None:
        return {}
    cedarpy = importlib.import_module("cedarpy")
    request = {
        "principal": 'Role::"bench"', "action": 'Action::"call"', "resource": 'Tool::"calculate_expression"',
        "context": {"expression": "a + b"},
    }  # fmt: skip
    figures = {}
    for entries in SIZES:
        rules = [f'context.expression == "{number} + 1"' for number in range(entries - 1)] + ["true"]
        text = "\n".join(f"permit(principal, action, resource) when {{ {rule} }};" for rule in rules)
        policies = cedarpy.PolicySet.from_str(text)

        def decide(_: str, __: object, held: object = policies) -> object:
            return cedarpy.is_authorized(request, held, "[]")

        if not decide("", {}).allowed:  # type: ignore[attr-defined]
            raise RuntimeError("the Cedar policies do not permit the call")

        figures[f"{entries} entries"] = _quantiles(decide, "", {})
    return figures


def _sql(entries: int) -> tuple[str, str, dict[str, Any]]:
    misses = "".join(f"      - sql: {{tables: [other_{number}]}}\n" for number in range(entries - 1))
    policy = (
        "version: 1\nrole: bench\ndescription: Bench.\ntools:\n  query_database:\n"
        f"    resources: {{database: [shop]}}\n    allow:\n{misses}      - sql: {{tables: [order_items, products]}}\n"
    )
    return policy, "query_database", {"database": "shop", "sql": SELECT}
