"""A parsed call to the policy's decision: validate, gather what the session knows, authorize. Nothing runs.

The one order in which a call is judged, for calls that are to run, for the cases in a policy file, for a second policy
that only watches, and for replaying a log. It decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from toolcage.errors import Refused
from toolcage.facts.sql_text import Dialect
from toolcage.line.authorize import authorize
from toolcage.line.session_memory import SessionMemory
from toolcage.line.trail import Trail
from toolcage.line.validate import Validator, validate
from toolcage.policy.explain import Explanation, explain
from toolcage.policy.model import Role
from toolcage.types import AuthorizedCall, SessionFacts, ToolCall, ToolDeclaration, ValidCall

_NONE: Final[frozenset[str]] = frozenset()


def judge(
    call: ToolCall,
    *,
    role: Role,
    memory: SessionMemory,
    validator: Callable[[ToolDeclaration], Validator],
    dialect: Callable[[str], Dialect],
    spent: frozenset[str] = _NONE,
    trail: Trail | None = None,
) -> AuthorizedCall:
    """An `AuthorizedCall`. `spent` names the limits that are used up; `trail` is told what was learned on the way.

    Raises Refused with what validate or authorize refused.
    """
    valid = validate(call, view=role.view, validator=validator, dialect=dialect)
    known = memory.facts_for(valid.declaration.name, valid.arguments, (role,), spent)
    if trail is not None:
        trail.reached(valid)
        trail.knew(known)
    try:
        authorized = authorize(valid, role=role, known=known)
    except Refused as refused:
        if trail is not None:
            trail.denied(refused.refusal)
        raise
    if trail is not None:
        trail.reached(authorized)
    return authorized


def explained(
    call: ToolCall,
    *,
    role: Role,
    memory: SessionMemory,
    validator: Callable[[ToolDeclaration], Validator],
    dialect: Callable[[str], Dialect],
) -> tuple[Explanation, ValidCall, SessionFacts]:
    """Why the call is decided as it is, and what the decision is made from. Raises Refused with what validate
    refused."""
    valid = validate(call, view=role.view, validator=validator, dialect=dialect)
    known = memory.facts_for(valid.declaration.name, valid.arguments, (role,))
    return explain(role, valid.declaration, valid.arguments, valid.facts, known), valid, known


def shadow_decision(
    call: ToolCall,
    *,
    role: Role,
    memory: SessionMemory,
    validator: Callable[[ToolDeclaration], Validator],
    dialect: Callable[[str], Dialect],
) -> str:
    """What a role that does not decide would say: `allow CODE`, `ask CODE`, or a refusal's `STATUS CODE`. Its limits
    are taken as unused."""
    try:
        decision = judge(call, role=role, memory=memory, validator=validator, dialect=dialect).decision
    except Refused as refused:
        return f"{refused.refusal.status} {refused.refusal.code}"
    return f"{decision.effect} {decision.code}"


def closed_role(name: str) -> Role:
    """The role that grants nothing: what a session has whose own role is gone."""
    nothing: MappingProxyType[str, object] = MappingProxyType({})
    return Role(name=name, description="", source="none", digest="0" * 64, grants=nothing, deny=nothing)  # type: ignore[arg-type]
