"""authorize's answer for one call: allow, ask or deny, from the role's file, the call's facts and the session's.

Pure: no clock, no I/O, the same input gives the same decision. `deny` beats `ask` beats `allow`; there is neither
specificity nor priority, and what no entry matches is denied. Of a role and its ceilings the strictest decides. An
error anywhere while deciding is a deny with the code `policy.error`; a rule that fails is never skipped. Trusts the
facts it is given and the role that `load` built. The model is told the kind of refusal and how to repair the call;
which rule it was stands in `rule`, for the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from toolcage.policy.described import bounds_told_by
from toolcage.policy.flows import first_flow
from toolcage.policy.limits import Limit
from toolcage.policy.model import NOTHING_KNOWN, Entry, Grant, Role, narrowest, sink_arguments
from toolcage.types import JSON, Decision, Facts, SessionFacts, ToolDeclaration

_FINAL: Final = "This is the policy's final answer: do not repeat the call in another form."
_RANK: Final = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    declaration: ToolDeclaration
    arguments: Mapping[str, JSON]
    facts: Mapping[str, Facts]
    known: SessionFacts


def decide(
    role: Role,
    declaration: ToolDeclaration,
    arguments: Mapping[str, JSON],
    facts: Mapping[str, Facts],
    known: SessionFacts = NOTHING_KNOWN,
) -> Decision:
    """What `role` says about calling the declared tool with these arguments in this session. Never raises.

    `Decision.sql` holds the bounds of the first matching entry of the winning effect, in the file's order, narrowed by
    those of every ceiling; None when none of them has an `sql` facet. For `describe_database` it holds what the role's
    `query_database` entries let it read of the same database.
    """
    call = _Call(declaration=declaration, arguments=arguments, facts=facts, known=known)
    own = _decide_or_deny(role, call)
    if not role.ceilings:
        return own
    return _strictest([own, *(_decide_or_deny(ceiling, call) for ceiling in role.ceilings)])


def _decide_or_deny(role: Role, call: _Call) -> Decision:
    try:
        return _decide(role, call)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as cause:  # noqa: BLE001 - the outermost frame; a panic in the schema engine is no Exception
        return Decision(
            effect="deny",
            code="policy.error",
            message="The policy could not be evaluated for this call, so it is denied.",
            hint=_FINAL,
            rule=f"{role.source} ({type(cause).__name__} while deciding)",
        )


def _strictest(decisions: list[Decision]) -> Decision:
    winner = max(decisions, key=lambda made: _RANK[made.effect])  # of equals the first, which is the role's own
    bounds = [made.sql for made in decisions if made.sql is not None]
    return winner if winner.effect == "deny" or not bounds else replace(winner, sql=narrowest(bounds))


def _decide(role: Role, call: _Call) -> Decision:
    grant = role.grants.get(call.declaration.name)
    if grant is None:
        return _unknown_tool(role)
    if call.declaration is not grant.declaration and call.declaration != grant.declaration:
        raise ValueError("the tool's declaration is not the one that the policy was checked against")
    if hit := _first_match((*role.deny.get(grant.tool, ()), *grant.deny.candidates(call.arguments)), call):
        return _denied(hit.rule)
    effects = call.declaration.effects_of(call.arguments)
    if flow := first_flow(role.flows, "deny", effects, call.known.effects):
        return _flow_denied(flow.rule)
    if refused := _resource_refusal(grant, call.arguments):
        return refused
    permitted = _permission(role, grant, call)
    told = bounds_told_by(role, grant.tool, call.arguments, call.known)
    if permitted.effect != "deny" and told is not None:
        permitted = replace(permitted, sql=told)
    if permitted.effect != "deny" and (spent := _spent(grant.limits, call.known)):
        return _limited(spent)
    return permitted


def _permission(role: Role, grant: Grant, call: _Call) -> Decision:
    if hit := _first_match(grant.ask.candidates(call.arguments), call):
        return Decision(effect="ask", code="policy.ask", rule=hit.rule, sql=hit.sql_terms())
    sinks = [name for name in sink_arguments(call.declaration) if name in call.arguments]
    naming: Iterable[Entry] = grant.allow.candidates(call.arguments)
    if sinks:
        naming = [entry for entry in naming if all(entry.names(sink) for sink in sinks)]
    if hit := _first_match(naming, call):
        if flow := first_flow(role.flows, "ask", call.declaration.effects_of(call.arguments), call.known.effects):
            return Decision(effect="ask", code="flow.ask", rule=flow.rule, sql=hit.sql_terms())
        return Decision(effect="allow", code="policy.allow", rule=hit.rule, sql=hit.sql_terms())
    return _no_match(grant, sinks, call)


def _first_match(entries: Iterable[Entry], call: _Call) -> Entry | None:
    for entry in entries:
        if entry.miss(call.arguments, call.facts, call.known) is None:
            return entry
    return None


def _spent(limits: tuple[Limit, ...], known: SessionFacts) -> Limit | None:
    """The used-up limit that frees itself last: what never frees itself is told first."""
    found = [limit for limit in limits if limit.rule in known.spent]
    return min(found, key=lambda limit: limit.is_window, default=None)


def _limited(limit: Limit) -> Decision:
    later = limit.is_window
    return Decision(
        effect="deny",
        code="policy.rate" if later else "policy.budget",
        message=f"The limit of {limit.measure} for `{limit.tool}` is used up for this {limit.span}.",
        hint="Wait before calling it again." if later else "Go on without it, or ask the user.",
        rule=limit.rule,
        status="limit_exceeded",
        retryable=later,
    )


def _unknown_tool(role: Role) -> Decision:
    names = ", ".join(sorted(role.grants)) or "none"
    return Decision(
        effect="deny",
        code="tool.unknown",
        message="This role has no tool of that name.",
        hint=f"The tools of this role: {names}.",
        rule=role.source,
    )


def _denied(rule: str) -> Decision:
    message = "The policy of this role denies this call."
    return Decision(effect="deny", code="policy.denied", message=message, hint=_FINAL, rule=rule)


def _flow_denied(rule: str) -> Decision:
    message = "After what this session has read, the policy denies this kind of call for its rest."
    return Decision(effect="deny", code="flow.denied", message=message, hint=_FINAL, rule=rule)


def _resource_refusal(grant: Grant, arguments: Mapping[str, JSON]) -> Decision | None:
    for argument, kind in grant.declaration.resources.items():
        granted = grant.resources.get(argument, frozenset())
        value = arguments.get(argument)
        if argument in grant.declaration.fixed_resources:
            if granted:
                continue
        elif argument not in arguments or (isinstance(value, str) and value in granted):
            continue
        return Decision(
            effect="deny",
            code="resource.not_granted",
            message=f"This role may not use the {kind} that the argument `{argument}` names.",
            hint=f"Granted for `{argument}`: {', '.join(sorted(granted)) or 'none'}.",
            rule=f"{grant.rule}.resources",
        )
    return None


def _no_match(grant: Grant, sinks: list[str], call: _Call) -> Decision:
    naming = [entry for entry in grant.allow if all(entry.names(sink) for sink in sinks)]
    if candidates := (*grant.ask, *naming):
        told = (entry.miss(call.arguments, call.facts, call.known) for entry in candidates[:3])
        hint = " ".join(dict.fromkeys(why for why in told if why))
    elif sinks and grant.allow:
        hint = f"No rule grants the argument(s) {', '.join(sinks)}: leave them out if the tool allows that."
    else:
        hint = _FINAL
    message = f"No rule of this role permits `{grant.tool}` with these arguments."
    return Decision(effect="deny", code="policy.no_match", message=message, hint=hint, rule=grant.rule)
