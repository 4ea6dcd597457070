"""What a policy keeps and stops in one suite: every user task alone, then every user task followed by every attack.

A task is kept without asking when nobody had to be asked, nothing was refused and AgentDojo finds it done. It is kept
with asking when it is done and a person said yes to each call of it that asks. An attack that a person is asked about
is stopped. Each attack is played twice, with the attacker's text in the data and without it, and succeeds when either
does: his text can give his values an origin, and it can also be in the way of what he wants.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agentdojo.task_suite.task_suite import TaskSuite

from benchmarks.agentdojo.declarations import declared
from benchmarks.agentdojo.gate import Gate, Open, Roles
from benchmarks.agentdojo.replay import Episode, episode, injected, replayable
from toolcage.errors import PolicyError
from toolcage.policy.cases import run_cases
from toolcage.policy.load import load_role, load_role_text
from toolcage.policy.model import Role
from toolcage.policy_desk import judge_for
from toolcage.strict_yaml import read_document
from toolcage.types import ToolDeclaration

VERSION: Final = "v1.2.2"
POLICIES: Final = Path(__file__).parent / "policies"
MODES: Final = ("none", "tools", "full")
FRONTIER: Final = ("said", "flow", "full", "seen")
"""Role files whose origins are narrowed to the user's own words; with a flow that asks about every change once the
session has read what strangers write; as written; with origins widened to all that was read."""


@dataclass(slots=True, kw_only=True)
class Measured:
    """The episodes of one suite under one policy, by task, and by task and attack."""

    alone: dict[str, Episode] = field(default_factory=dict)
    approved: dict[str, Episode] = field(default_factory=dict)
    under_attack: dict[tuple[str, str], Episode] = field(default_factory=dict)

    @property
    def tasks(self) -> int:
        return len(self.alone)

    @property
    def attacks(self) -> int:
        return len(self.under_attack)

    def figures(self) -> dict[str, int]:
        """The counts that are published."""
        return {
            "kept_without_asking": sum(item.useful and not item.refused for item in self.alone.values()),
            "kept_with_asking": sum(item.useful for item in self.approved.values()),
            "asks": sum(item.asks for item in self.approved.values()),
            "attacks_succeeded": sum(item.attacked for item in self.under_attack.values()),
        }


def total(measured: Iterable[Measured]) -> dict[str, int]:
    """The same counts over several suites."""
    figures = [item.figures() for item in measured]
    return {name: sum(item[name] for item in figures) for name in figures[0]}


def measure(suite: TaskSuite[Any], mode: str) -> Measured:
    """Replays the suite under no policy, under the role's list of tools alone, under the whole role file, or under the
    role file with another rule (see FRONTIER)."""
    if mode == "none":
        return _episodes(suite, lambda said: Open())
    declarations = declared(suite.tools)
    role = load_role(POLICIES / f"{suite.name}.yaml", declarations)
    if mode == "tools":
        role = _list_only(role, declarations)
    elif mode == "flow":
        role = _with_flow(POLICIES / role.source, declarations)
    elif mode != "full":
        role = _with_origins(POLICIES / role.source, declarations, wide=mode == "seen")
    roles = Roles(role)
    try:
        return _episodes(suite, roles.session)
    finally:
        roles.close()


def check_cases(suite: TaskSuite[Any]) -> None:
    """Ends the program when a test in the suite's role file does not hold."""
    declarations = declared(suite.tools)
    role = load_role(POLICIES / f"{suite.name}.yaml", declarations)
    for result in run_cases(role, judge_for(role, declarations)):
        if not result.passed:
            case = result.case
            sys.exit(f"{role.source}:{case.line}: {case.call} is {result.status}, not {case.expect}")


def _episodes(suite: TaskSuite[Any], gate_for: Callable[[str], Gate]) -> Measured:
    made = Measured()
    clean = suite.load_and_inject_default_environment({})
    for name, task in suite.user_tasks.items():
        made.alone[name] = episode(suite, task, None, gate_for, environment=clean, answer=None)
        made.approved[name] = episode(suite, task, None, gate_for, environment=clean, answer=True)
    for attack in replayable(suite):
        environment = injected(suite, attack)
        for name, task in suite.user_tasks.items():
            ended = [
                episode(suite, task, attack, gate_for, environment=one, answer=True) for one in (environment, clean)
            ]
            made.under_attack[name, attack.ID] = next((one for one in ended if one.attacked), ended[0])
    return made


def _list_only(role: Role, declarations: dict[str, ToolDeclaration]) -> Role:
    """A role with the same tools and every argument open."""
    tools = "".join(f"  {name}: {{allow: [{{}}]}}\n" for name in role.grants)
    return load_role_text(f"version: 1\nrole: {role.name}\ntools:\n{tools}", role.source, declarations)


def _with_origins(path: Path, declarations: dict[str, ToolDeclaration], *, wide: bool) -> Role:
    """The role of the file with every origin narrowed to `said`, or widened by the results of every tool that reads."""
    stated = copy.deepcopy(read_document(path, PolicyError).data)
    stated.pop("tests", None)
    acting = {"sends", "writes", "spends"}
    reading = [f"tool:{name}" for name, grant in stated["tools"].items() if not acting & set(grant["effects"])]
    for grant in stated["tools"].values():
        for entry in [*grant.get("allow", []), *grant.get("ask", [])]:
            for argument, sources in entry.get("origin", {}).items():
                accepted = ["said", *(reading if wide else [])]
                entry["origin"][argument] = _accepting(sources, accepted)
    return load_role_text(json.dumps(stated), path.name, declarations)


def _with_flow(path: Path, declarations: dict[str, ToolDeclaration]) -> Role:
    stated = copy.deepcopy(read_document(path, PolicyError).data)
    stated.pop("tests", None)
    stated["flows"] = [*stated.get("flows", []), {"ask": "writes", "after": ["reads_untrusted"]}]
    return load_role_text(json.dumps(stated), path.name, declarations)


def _accepting(sources: Any, accepted: list[str]) -> Any:
    """The same demand, of a value or of the links in it, with other sources."""
    if isinstance(sources, dict) and "links" in sources:
        return {"links": _accepting(sources["links"], accepted)}
    return {"not": accepted} if isinstance(sources, dict) else accepted
