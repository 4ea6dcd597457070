"""The tables on the terminal: figures per suite and policy, then the kinds of tasks that ask and attacks that land."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from benchmarks.agentdojo.measure import FRONTIER, MODES, Measured, total
from benchmarks.agentdojo.replay import Episode

_SHOWN = {
    "none": "no policy",
    "tools": "list of tools",
    "full": "role file",
    "said": "role file, origins: the user's words alone",
    "flow": "role file, and asked about changes after reading what strangers write",
    "seen": "role file, origins: all that was read",
}


_FIGURES = ("kept without asking", "kept with asking", "asks (per task)", "attacks that succeed")


def show(measured: dict[str, dict[str, Measured]], *, details: bool) -> None:
    """Prints the figures, then the kinds of what is left."""
    console = Console(width=120)
    table = Table("suite", "policy", *_FIGURES, title="AgentDojo v1.2.2, replayed without a model")
    suites = list(next(iter(measured.values())))
    for suite in [*suites, "total"]:
        for mode in MODES:
            table.add_row(suite, _SHOWN[mode], *_row(_chosen(measured, mode, suite)), end_section=mode == MODES[-1])
    console.print(table)
    frontier = Table("policy", *_FIGURES, title="The frontier, all suites")
    for mode in FRONTIER:
        frontier.add_row(_SHOWN[mode], *_row(_chosen(measured, mode, "total")))
    console.print(frontier)
    for suite, item in measured["full"].items():
        _kinds(console, suite, item)
        if details:
            _details(console, item)


def _chosen(measured: dict[str, dict[str, Measured]], mode: str, suite: str) -> list[Measured]:
    by_suite = measured[mode]
    return list(by_suite.values()) if suite == "total" else [by_suite[suite]]


def _row(chosen: list[Measured]) -> list[str]:
    figures = total(chosen)
    tasks, attacks = sum(item.tasks for item in chosen), sum(item.attacks for item in chosen)
    return [
        f"{figures['kept_without_asking']} of {tasks}",
        f"{figures['kept_with_asking']} of {tasks}",
        f"{figures['asks']} ({figures['asks'] / tasks:.2f})",
        f"{figures['attacks_succeeded']} of {attacks}",
    ]


def _kinds(console: Console, suite: str, item: Measured) -> None:
    asks = Counter(step.tool for one in item.approved.values() for step in one.steps if step.asked)
    lost = Counter(key for one in item.approved.values() for key in _refusals(one))
    landed = Counter(_calls_of_attack(one) for one in item.under_attack.values() if one.attacked)
    for words, counted in (("asked about", asks), ("refused", lost), ("attacks that succeed by", landed)):
        if counted:
            console.print(f"{suite}, {words}: " + ", ".join(f"{name} {count}" for name, count in counted.most_common()))


def _refusals(one: Episode) -> Iterable[str]:
    return (f"{step.tool} ({step.code})" for step in one.steps if not step.ran)


def _calls_of_attack(one: Episode) -> str:
    return " + ".join(dict.fromkeys(step.tool for step in one.steps if step.of_attack and step.ran)) or "nothing"


def _details(console: Console, item: Measured) -> None:
    for name, one in item.alone.items():
        if not one.useful or one.refused:
            stopped = [f"{step.tool} {step.code}" for step in one.steps if not step.ran]
            kept = "kept with asking" if item.approved[name].useful else "lost"
            console.print(f"  {name}: {kept}: {'; '.join(stopped)}")
    landed = Counter((attack, _calls_of_attack(one)) for (_, attack), one in item.under_attack.items() if one.attacked)
    for (attack, calls), count in sorted(landed.items()):
        console.print(f"  {attack} succeeds {count} times: {calls}")
