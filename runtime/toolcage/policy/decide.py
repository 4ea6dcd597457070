"""authorize's answer for one call: allow, ask or deny, from the role's file and the call's facts alone.

Pure: no clock, no I/O, the same input gives the same decision. `deny` beats `ask` beats `allow`; there is neither
specificity nor priority, and what no entry matches is denied. An error anywhere while deciding is a deny with the code
`policy.error`; a rule that fails is never skipped. Trusts the facts it is given and the role that `load` built. The
model is told the kind of refusal and how to repair the call; which rule it was stands in `rule`, for the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from toolcage.policy.model import Entry, Grant, Role, sink_arguments
from toolcage.types import JSON, Decision, Facts, ToolDeclaration

_FINAL = "This is the policy's final answer: do not repeat the call in another form."


def decide(
    role: Role, declaration: ToolDeclaration, arguments: Mapping[str, JSON], facts: Mapping[str, Facts]
) -> Decision:
    """What `role` says about calling the declared tool with these arguments. Never raises.

    `Decision.sql` holds the bounds of the first matching entry of the winning effect, in the file's order; None when
    that entry has no `sql` facet.
    """
    try:
        return _decide(role, declaration, arguments, facts)
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


def _decide(
    role: Role, declaration: ToolDeclaration, arguments: Mapping[str, JSON], facts: Mapping[str, Facts]
) -> Decision:
    grant = role.grants.get(declaration.name)
    if grant is None:
        return _unknown_tool(role)
    if declaration != grant.declaration:
        raise ValueError("the tool's declaration is not the one that the policy was checked against")
    if hit := _first_match((*role.deny.get(grant.tool, ()), *grant.deny), arguments, facts):
        return _denied(hit)
    if refused := _resource_refusal(grant, arguments):
        return refused
    if hit := _first_match(grant.ask, arguments, facts):
        return Decision(effect="ask", code="policy.ask", rule=hit.rule, sql=hit.sql_terms())
    present_sinks = [name for name in sink_arguments(declaration) if name in arguments]
    naming = [entry for entry in grant.allow if all(entry.names(sink) for sink in present_sinks)]
    if hit := _first_match(naming, arguments, facts):
        return Decision(effect="allow", code="policy.allow", rule=hit.rule, sql=hit.sql_terms())
    return _no_match(grant, naming, present_sinks, arguments, facts)


def _first_match(
    entries: Iterable[Entry], arguments: Mapping[str, JSON], facts: Mapping[str, Facts]
) -> Entry | None:
    return next((entry for entry in entries if entry.miss(arguments, facts) is None), None)


def _unknown_tool(role: Role) -> Decision:
    names = ", ".join(sorted(role.grants)) or "none"
    return Decision(
        effect="deny",
        code="tool.unknown",
        message="This role has no tool of that name.",
        hint=f"The tools of this role: {names}.",
        rule=role.source,
    )


def _denied(hit: Entry) -> Decision:
    message = "The policy of this role denies this call."
    return Decision(effect="deny", code="policy.denied", message=message, hint=_FINAL, rule=hit.rule)


def _resource_refusal(grant: Grant, arguments: Mapping[str, JSON]) -> Decision | None:
    for argument, kind in grant.declaration.resources.items():
        granted = grant.resources.get(argument, frozenset())
        value = arguments.get(argument)
        if argument not in arguments or (isinstance(value, str) and value in granted):
            continue
        return Decision(
            effect="deny",
            code="resource.not_granted",
            message=f"The argument `{argument}` names a {kind} that this role may not use.",
            hint=f"Granted for `{argument}`: {', '.join(sorted(granted)) or 'none'}.",
            rule=f"{grant.rule}.resources",
        )
    return None


def _no_match(
    grant: Grant, naming: list[Entry], sinks: list[str], arguments: Mapping[str, JSON], facts: Mapping[str, Facts]
) -> Decision:
    if candidates := (*grant.ask, *naming):
        hint = " ".join(dict.fromkeys(why for entry in candidates[:3] if (why := entry.miss(arguments, facts))))
    elif sinks and grant.allow:
        hint = f"No rule grants the argument(s) {', '.join(sinks)}: leave them out if the tool allows that."
    else:
        hint = _FINAL
    message = f"No rule of this role permits `{grant.tool}` with these arguments."
    return Decision(effect="deny", code="policy.no_match", message=message, hint=hint, rule=grant.rule)
