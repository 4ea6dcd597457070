"""The cases of a role file, judged by a stand-in for the line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcage.policy.cases import run_cases
from toolcage.policy.model import Role, Situation
from toolcage.types import Status

FILE = """
version: 1
role: team
tools: {}
tests:
  - {call: a, args: {n: 1}, expect: denied}
  - {call: a, expect: denied, code: tool.unknown}
  - {call: a, expect: denied, code: other.code}
  - {call: a, expect: ok}
"""


def test_a_case_holds_when_its_status_and_its_code_if_any_are_met(load: Callable[..., Role]) -> None:
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def judge(tool: str, arguments: Mapping[str, Any], situation: Situation) -> tuple[Status, str]:
        asked.append((tool, dict(arguments)))
        return "denied", "tool.unknown"

    results = run_cases(load(FILE), judge)
    assert [result.passed for result in results] == [True, True, False, False]
    assert asked == [("a", {"n": 1}), ("a", {}), ("a", {}), ("a", {})]
    assert [result.case.line for result in results] == [5, 6, 7, 8]
