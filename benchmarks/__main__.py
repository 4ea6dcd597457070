"""Runs every measurement, prints a table, and writes what was measured, where and when, to `benchmarks/results/`.

`python -m benchmarks [NAME …]` runs some of them. Figures of one run share one machine and one moment: compare ratios.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import audit, browser, call, cleaning, decision, importing, injection_of_others, pool, portal, screens
from benchmarks.machine import machine

RESULTS = Path(__file__).parent / "results"
SERIES: dict[str, Callable[[], dict[str, Any]]] = {
    "call": call.run,
    "cleaning": cleaning.run,
    "decision": decision.run,
    "import": importing.run,
    "pool": pool.run,
    "portal": portal.run,
    "audit": audit.run,
}
ON_REQUEST: dict[str, Callable[[], dict[str, Any]]] = {
    "screens": screens.run,
    "browser": browser.run,
    "injection_of_others": injection_of_others.run,
}


def main() -> None:
    names = sys.argv[1:] or list(SERIES)
    known = {**SERIES, **ON_REQUEST}
    unknown = set(names) - known.keys()
    if unknown:
        sys.exit(f"no such measurement: {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    measured = {name: known[name]() for name in names}
    _print(measured)
    RESULTS.mkdir(exist_ok=True)
    for name, figures in measured.items():
        document = {"measured": name, "on": machine(), "figures": figures}
        (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _print(measured: dict[str, dict[str, Any]]) -> None:
    table = Table("measurement", "figure", "value", title="toolcage benchmarks")
    for name, figures in measured.items():
        for figure, value in _flat(figures):
            table.add_row(name, figure, f"{value:,}" if isinstance(value, int | float) else str(value))
    Console().print(table)


def _flat(figures: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in figures.items():
        rows += _flat(value, f"{prefix}{name} ") if isinstance(value, dict) else [(prefix + name, value)]
    return rows


if __name__ == "__main__":
    main()
