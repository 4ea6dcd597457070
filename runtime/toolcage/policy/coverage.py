"""Which rules of a role decided something, counted over recorded decisions, and which never did.

A rule that no test and no week of work ever used is a rule that nobody would miss, or one that does not do what its
writer thinks. Counts the rule that decided; a rule that matched and was beaten by a stricter one is not counted. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from toolcage.policy.model import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """One rule, as `file:line name`, and how many recorded decisions were its."""

    rule: str
    decided: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """`other` counts decisions under the same role name whose policy was another version, which are not judged."""

    role: str
    rules: tuple[RuleCount, ...]
    refused_by_none: int
    other: int

    @property
    def never(self) -> tuple[str, ...]:
        return tuple(item.rule for item in self.rules if item.decided == 0)


def rules_of(role: Role) -> tuple[str, ...]:
    """Every rule of the role and its ceilings that can be what decides, in the files' order."""
    found: dict[str, None] = {}
    for item in (role, *role.ceilings):
        for tool, grant in item.grants.items():
            entries = item.entries_of(tool)
            found |= dict.fromkeys(entry.rule for entry in entries)
            found |= dict.fromkeys(limit.rule for limit in grant.limits)
        found |= dict.fromkeys(flow.rule for flow in item.flows)
    return tuple(found)


def coverage(role: Role, decided: Iterable[tuple[str, str | None]]) -> Coverage:
    """Counts `(policy digest, rule)` of recorded decisions of this role's name."""
    counts: Counter[str] = Counter()
    other = by_none = 0
    known = rules_of(role)
    for digest, rule in decided:
        if digest != role.digest:
            other += 1
        elif rule in known:
            counts[rule] += 1
        else:
            by_none += 1
    rules = tuple(RuleCount(rule=rule, decided=counts[rule]) for rule in known)
    return Coverage(role=role.name, rules=rules, refused_by_none=by_none, other=other)
