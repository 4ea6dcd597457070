"""The `tests` of a role file: each names a call and the status word it must end with, without being run.

Decides whether each case holds. What a call would come to is asked of `judge`, which takes it through the line from
parse to screen (and what approval would ask) and executes nothing; `ok` means that it would run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolcage.policy.model import Case, Role, Situation
from toolcage.types import Status

Judge: TypeAlias = Callable[[str, Mapping[str, Any], Situation], tuple[Status, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case and what the call really came to."""

    case: Case
    status: Status
    code: str

    @property
    def passed(self) -> bool:
        return self.status == self.case.expect and self.case.code in (None, self.code)


def run_cases(role: Role, judge: Judge) -> list[CaseResult]:
    """Each case of the role's file, judged, in the file's order. What `judge` raises is raised."""
    results = []
    for case in role.cases:
        status, code = judge(case.call, case.args, case.situation)
        results.append(CaseResult(case=case, status=status, code=code))
    return results
