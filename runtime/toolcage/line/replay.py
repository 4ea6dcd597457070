"""Recorded decisions made again: from the log's own arguments and session facts, under the policies at hand.

A decision follows when the same policy (by digest), the same arguments and the same session facts give the same word,
code and rule, and when the arguments still read as the recorded facts. What another version of a policy decided, and
what was refused before any policy was asked, cannot be replayed and is counted apart. Runs nothing; trusts nothing in
the log beyond what `audit verify` proves of it.

`redecide` asks two policies about the same recorded calls, so that a reviewer sees what a change would have done.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from toolcage.audit.record import facts_text
from toolcage.errors import Refused
from toolcage.facts.sql_text import Dialect
from toolcage.line.parse import parse
from toolcage.line.validate import Validator, validate
from toolcage.policy.decide import decide
from toolcage.policy.model import Role
from toolcage.policy.narrow import narrowed
from toolcage.types import EFFECTS, Effect, SessionFacts, ToolDeclaration, ValidCall, freeze

Skipped = Literal["before the policy", "another policy", "without arguments"]
_DIALECTS: Final = ("sqlite", "postgres")


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """A recorded decision that does not follow: which call, what is recorded, what comes of it now."""

    call_id: str
    seq: int
    recorded: str
    replayed: str


@dataclass(slots=True, kw_only=True)
class ReplayReport:
    """`same` decisions follow; `divergences` do not; `skipped` were not replayed, by reason."""

    same: int = 0
    divergences: list[Divergence] = field(default_factory=list)
    skipped: Counter[Skipped] = field(default_factory=Counter)


def replay(
    records: Iterable[Mapping[str, str | int]],
    roles: Iterable[Role],
    validator: Callable[[ToolDeclaration], Validator],
) -> ReplayReport:
    """Replays every closing record of a log. `roles` are the policies that may have decided."""
    by_digest = _by_digest(list(roles))
    report = ReplayReport()
    for record in records:
        if record.get("type") != "closing":
            continue
        role = by_digest.get(str(record.get("policy_digest")))
        if reason := _not_replayable(record, role):
            report.skipped[reason] += 1
            continue
        assert role is not None
        recorded = f"{record['decision']} by {record.get('rule')}"
        again = _decide_again(record, role, validator)
        if again == recorded:
            report.same += 1
        else:
            report.divergences.append(
                Divergence(
                    call_id=str(record.get("call_id")), seq=int(record["seq"]), recorded=recorded, replayed=again
                )
            )
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class Redecided:
    """One recorded call that a new policy decides otherwise. `old` and `new` are a word and a code."""

    call_id: str
    seq: int
    tool: str
    old: str
    new: str


@dataclass(slots=True, kw_only=True)
class RedecidedReport:
    """`same` calls are decided alike; `changed` are not; `skipped` could not be decided under both, by reason."""

    same: int = 0
    changed: list[Redecided] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def redecide(
    records: Iterable[Mapping[str, str | int]],
    old: Role,
    new: Role,
    validator: Callable[[ToolDeclaration], Validator],
) -> RedecidedReport:
    """How `old` and `new` decide the recorded calls of `old`'s role. A call of which the log lacks what one of them
    asks (arguments, or the origin of a value) is skipped: it is not known how it would have ended."""
    report = RedecidedReport()
    for record in records:
        if record.get("type") != "closing" or record.get("role") != old.name:
            continue
        if "arguments" not in record or "tool" not in record:
            report.skipped["without arguments"] += 1
            continue
        decisions = [_word(record, role, validator) for role in (old, new)]
        if None in decisions:
            report.skipped["the log does not say where a value came from"] += 1
        elif decisions[0] == decisions[1]:
            report.same += 1
        else:
            report.changed.append(
                Redecided(
                    call_id=str(record.get("call_id")), seq=int(record["seq"]), tool=str(record["tool"]),
                    old=str(decisions[0]), new=str(decisions[1]),
                )
            )  # fmt: skip
    return report


def _word(
    record: Mapping[str, str | int], role: Role, validator: Callable[[ToolDeclaration], Validator]
) -> str | None:
    """The decision's word and code; None when it asks for an origin that the record does not hold."""
    try:
        valid, known = _read(record, role, validator)
    except Refused as refused:
        return f"{refused.refusal.status} {refused.refusal.code}"
    except (ValueError, TypeError, AttributeError) as error:
        return f"unreadable: {type(error).__name__}"
    for argument, readings in role.asked_origins(valid.declaration.name).items():
        for reading in readings if argument in valid.arguments else ():
            if not known.origins.keys() >= set(reading.identifiers(valid.arguments[argument]) or ()):
                return None
    decision = decide(role, valid.declaration, valid.arguments, valid.facts, known)
    return f"{decision.effect} {decision.code}"


def _by_digest(roles: list[Role]) -> dict[str, Role]:
    """The roles, and each under each: what a delegated session had."""
    found = {role.digest: role for role in roles}
    for above in roles:
        for role in roles:
            try:
                under = narrowed(role, [above])
            except ValueError:
                continue
            found.setdefault(under.digest, under)
    return found


def _not_replayable(record: Mapping[str, str | int], role: Role | None) -> Skipped | None:
    if "decision" not in record:
        return "before the policy"
    if role is None:
        return "another policy"
    return None if "arguments" in record and "tool" in record else "without arguments"


def _decide_again(
    record: Mapping[str, str | int], role: Role, validator: Callable[[ToolDeclaration], Validator]
) -> str:
    try:
        valid, known = _read(record, role, validator)
    except Refused as refused:
        return f"{refused.refusal.status} {refused.refusal.code} before the policy"
    except (ValueError, TypeError, AttributeError) as error:
        return f"unreadable: {type(error).__name__}"
    if facts_text(valid.facts) != record.get("facts"):
        return "the arguments read as other facts"
    decision = decide(role, valid.declaration, valid.arguments, valid.facts, known)
    return f"{decision.effect} {decision.code} by {decision.rule}"


def _read(
    record: Mapping[str, str | int], role: Role, validator: Callable[[ToolDeclaration], Validator]
) -> tuple[ValidCall, SessionFacts]:
    """The recorded call through parse and validate in the role's view, and what its session knew. Raises Refused, and
    ValueError, TypeError or AttributeError for a record that is none."""
    raw = {"tool": record["tool"], "arguments": json.loads(str(record["arguments"]))}
    spoken = _dialect(record)
    valid = validate(parse(raw), view=role.view, validator=validator, dialect=lambda _: spoken)
    return valid, session_facts(str(record.get("session_facts", "{}")))


def session_facts(text: str) -> SessionFacts:
    """Session facts from their recorded text. Raises ValueError, TypeError or AttributeError for anything else."""
    read: Any = json.loads(text)
    if not isinstance(read, dict) or read.keys() - {"origins", "effects", "host", "spent"}:
        raise ValueError("not session facts")
    effects = frozenset(read.get("effects", ()))
    if effects - set(EFFECTS):
        raise ValueError("an effect that there is not")
    host = freeze(read.get("host", {}))
    assert isinstance(host, Mapping)
    return SessionFacts(
        origins=MappingProxyType({key: frozenset(value) for key, value in read.get("origins", {}).items()}),
        effects=cast("frozenset[Effect]", effects),
        host=host,
        spent=frozenset(read.get("spent", ())),
    )


def _dialect(record: Mapping[str, str | int]) -> Dialect:
    """How the recorded SQL was read. The facts are compared afterwards, so a wrong word here cannot hide anything."""
    facts = json.loads(str(record.get("facts", "{}")))
    for read in facts.values():
        if isinstance(read, dict) and read.get("dialect") in _DIALECTS:
            return cast("Dialect", read["dialect"])
    return "sqlite"
