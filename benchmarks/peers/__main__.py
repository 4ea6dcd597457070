"""Runs the contestants in turns, so that they share whatever else the machine does, and writes the table.

    python -m benchmarks.peers --with llm_sandbox=PYTHON --with autogen=PYTHON [--with smolagents=PYTHON] [--rounds 15]

`toolcage` and `engine` run with this Python. A contestant that cannot start is listed with its error, not left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, Self

from benchmarks.machine import machine
from benchmarks.peers.image import JUPYTER, NAME

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE.parent / "results"
FIGURES: Final = {"warm": ("warm", "answer"), "cold": ("cold", "answer"), "cold until gone": ("cold", "gone")}
TITLES: Final = {
    "toolcage": "a fresh hardened container for each call; policy, cleaning, audit",
    "engine": "`docker exec` in one container / a plain container, nothing around it",
    "llm_sandbox": "llm-sandbox: pooled container, used again as it was left / a session",
    "autogen": "AutoGen DockerCommandLineCodeExecutor: one shared container / a new one",
    "smolagents": "smolagents DockerExecutor: one shared kernel / a new container and kernel",
}


class Contestant:
    """One process. `error` says why it is out."""

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        self.error: str | None = None
        self.times: dict[str, list[dict[str, float]]] = {"warm": [], "cold": []}
        image = JUPYTER if name == "smolagents" else NAME
        self._child = subprocess.Popen(
            [python, str(HERE / f"run_{name}.py"), image], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parents[1]}"},
        )  # fmt: skip
        self.version = self._line().get("version", "")

    def _line(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        self.error = (self._child.communicate()[1].strip().splitlines() or ["it ended without a word"])[-1][:300]
        return {}

    def turn(self, word: str) -> None:
        if self.error is not None:
            return
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(word + "\n")
            self._child.stdin.flush()
        except OSError:
            pass  # the answer that does not come says why
        if figures := self._line():
            self.times[word].append(figures)

    def close(self) -> None:
        if self._child.poll() is None:
            try:
                self._child.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                self._child.kill()

    def figures(self) -> dict[str, Any]:
        if self.error is not None:
            return {"version": self.version, "error": self.error}
        found: dict[str, Any] = {"version": self.version}
        for name, (word, key) in FIGURES.items():
            values = [item[key] for item in self.times[word][1:]]
            found[name] = {"p50": round(statistics.median(values), 1), "max": round(max(values), 1)}
        return found


def compare(pythons: dict[str, str], rounds: int, cold_rounds: int) -> dict[str, Any]:
    """Milliseconds by contestant; the first turn of each is not counted."""
    contestants = [Contestant(name, python) for name, python in pythons.items()]
    for number in range(rounds + 1):
        for contestant in contestants:
            contestant.turn("warm")
        if number <= cold_rounds:
            for contestant in contestants:
                contestant.turn("cold")
    for contestant in contestants:
        contestant.close()
    return {"measured": "peers", "unit": "ms", "on": machine(), "rounds": {"warm": rounds, "cold": cold_rounds},
            "contestants": {item.name: item.figures() for item in contestants}}  # fmt: skip


def as_markdown(document: dict[str, Any]) -> str:
    on, rounds = document["on"], document["rounds"]
    ours = document["contestants"]["toolcage"]
    lines = [
        "# Against other sandboxes", "",
        f"`print(42)` on the same engine with the same Python, in turns, one caller: medians of {rounds['warm']} warm"
        f" and {rounds['cold']} cold runs, milliseconds, on {on['date']}, {on['cores']} cores, load {on['load']}."
        " *Warm*: a box is there already. *Cold*: until the output is there; *gone*: until the box is removed too."
        " Read the ratios, which are to toolcage; the times are of a machine with other work on it. Made by"
        " `python -m benchmarks.peers`; what each contestant is told to do is in `benchmarks/peers/README.md`.",
        "", "| contestant | warm | × | cold | × | cold, gone |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, row in document["contestants"].items():
        title = f"{TITLES[name]} ({row['version']})"
        if "error" in row:
            lines.append(f"| {title} | did not run: {row['error']} | | | | |")
            continue
        warm, cold, gone = row["warm"]["p50"], row["cold"]["p50"], row["cold until gone"]["p50"]
        slower = warm / ours["warm"]["p50"], cold / ours["cold"]["p50"]
        lines.append(f"| {title} | {warm} | {slower[0]:.1f} | {cold} | {slower[1]:.1f} | {gone} |")
    return "\n".join(lines) + "\n"


class _Arguments(argparse.Namespace):
    peers: list[str]
    rounds: int
    cold_rounds: int

    @classmethod
    def parse(cls) -> Self:
        parser = argparse.ArgumentParser(description="other sandboxes beside ours")
        parser.add_argument("--with", dest="peers", action="append", default=[], metavar="NAME=PYTHON")
        parser.add_argument("--rounds", type=int, default=15)
        parser.add_argument("--cold-rounds", type=int, default=5)
        return parser.parse_args(namespace=cls())


def main() -> None:
    arguments = _Arguments.parse()
    pythons = {"toolcage": sys.executable, "engine": sys.executable}
    pythons |= dict(item.split("=", 1) for item in arguments.peers)
    document = compare(pythons, arguments.rounds, arguments.cold_rounds)
    text = as_markdown(document)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "peers.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "peers.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
