"""`python -m benchmarks.agentdojo`: replays all of it, prints the tables, writes benchmarks/results/agentdojo.json."""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from agentdojo.task_suite.load_suites import get_suites

from benchmarks.agentdojo.measure import FRONTIER, MODES, VERSION, Measured, check_cases, measure, total
from benchmarks.agentdojo.report import show

RESULT = Path(__file__).parent.parent / "results" / "agentdojo.json"


def main() -> None:
    known = get_suites(VERSION)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agentdojo", description=__doc__)
    parser.add_argument("--suite", action="append", choices=sorted(known), help="only this suite; writes nothing")
    parser.add_argument("--details", action="store_true", help="also name what is not kept and what lands")
    chosen = parser.parse_args()
    suites = {name: known[name] for name in chosen.suite or known}
    for suite in suites.values():
        check_cases(suite)
    measured = _measured(list(suites))
    show(measured, details=chosen.details)
    if not chosen.suite:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(_document(measured), indent=1) + "\n", encoding="utf-8")


def _measured(suites: list[str]) -> dict[str, dict[str, Measured]]:
    """Policy → suite → its episodes, a process for each pair."""
    modes = dict.fromkeys((*MODES, *FRONTIER))
    with ProcessPoolExecutor() as pool:
        waiting = {mode: {name: pool.submit(_measure, name, mode) for name in suites} for mode in modes}
        return {mode: {name: one.result() for name, one in by_suite.items()} for mode, by_suite in waiting.items()}


def _measure(suite: str, mode: str) -> Measured:
    warnings.simplefilter("ignore")  # AgentDojo's own, about ways that it loads its data
    logging.disable(logging.WARNING)
    return measure(get_suites(VERSION)[suite], mode)


def _document(measured: dict[str, dict[str, Measured]]) -> dict[str, object]:
    full = measured["full"]
    return {
        "benchmark": f"agentdojo {VERSION}",
        "tasks": sum(item.tasks for item in full.values()),
        "attacks": sum(item.attacks for item in full.values()),
        "total": total(full.values()),
        "suites": {name: item.figures() for name, item in full.items()},
        "baselines": {
            mode: {"total": total(by_suite.values()), "suites": {n: item.figures() for n, item in by_suite.items()}}
            for mode, by_suite in measured.items()
            if mode in MODES and mode != "full"
        },
        "frontier": {mode: total(measured[mode].values()) for mode in FRONTIER},
    }


if __name__ == "__main__":
    main()
