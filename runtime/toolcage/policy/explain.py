"""Why a call is decided as it is: every rule that was tried, in the order in which rules count, with what it said.

For the operator: it names files, lines and the rules' own words. The decision in it is `decide`'s; the tree is built
from the same rules beside it, and shows also what did not matter in the end. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from toolcage.policy.decide import decide
from toolcage.policy.flows import Flow
from toolcage.policy.model import NOTHING_KNOWN, Entry, Role, sink_arguments, with_article
from toolcage.types import JSON, Decision, Effect, Facts, SessionFacts, ToolDeclaration

Outcome = Literal["match", "miss", "error", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One rule or group of rules: what it is, whether it matched, and why not."""

    text: str
    outcome: Outcome = "note"
    why: str = ""
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The decision and the tree of what led to it: one branch for the role and one for each ceiling."""

    decision: Decision
    branches: tuple[Node, ...]


def explain(
    role: Role,
    declaration: ToolDeclaration,
    arguments: Mapping[str, JSON],
    facts: Mapping[str, Facts],
    known: SessionFacts = NOTHING_KNOWN,
) -> Explanation:
    """The decision of `decide` for the same call, with every rule that bears on it."""
    return Explanation(
        decision=decide(role, declaration, arguments, facts, known),
        branches=tuple(_branch(item, declaration, arguments, facts, known) for item in (role, *role.ceilings)),
    )


def _branch(
    role: Role,
    declaration: ToolDeclaration,
    arguments: Mapping[str, JSON],
    facts: Mapping[str, Facts],
    known: SessionFacts,
) -> Node:
    title = f"{role.source}: role {role.name}"
    grant = role.grants.get(declaration.name)
    if grant is None:
        return Node(text=title, outcome="miss", why=f"no tool `{declaration.name}`")

    def tried(name: str, entries: Iterable[Entry]) -> Node:
        return Node(text=name, children=tuple(_entry(entry, arguments, facts, known) for entry in entries))

    denies = tried("deny", (*role.deny.get(grant.tool, ()), *grant.deny))
    sinks = [name for name in sink_arguments(declaration) if name in arguments]
    allows = Node(
        text="allow",
        children=tuple(
            _entry(entry, arguments, facts, known)
            if all(entry.names(sink) for sink in sinks)
            else Node(text=entry.rule, outcome="miss", why=f"does not name where it goes: {', '.join(sinks)}")
            for entry in grant.allow
        ),
    )
    effects = declaration.effects_of(arguments)
    parts = [
        denies,
        Node(text="flows", children=tuple(_flow(flow, effects, known) for flow in role.flows)),
        Node(text="resources", children=tuple(_resources(grant.resources, declaration, arguments))),
        Node(text="egress", children=tuple(Node(text=str(target)) for target in grant.egress)),
        tried("ask", grant.ask),
        allows,
        Node(text="limits", children=tuple(
            Node(text=limit.rule, outcome="match" if limit.rule in known.spent else "miss",
                 why="used up" if limit.rule in known.spent else f"room left in {limit.amount}/{limit.span}")
            for limit in grant.limits
        )),
    ]  # fmt: skip
    return Node(text=title, children=tuple(part for part in parts if part.children))


def _entry(
    entry: Entry, arguments: Mapping[str, JSON], facts: Mapping[str, Facts], known: SessionFacts
) -> Node:
    try:
        why = entry.miss(arguments, facts, known)
    except Exception as cause:  # noqa: BLE001 - shown as it is: in `decide` the same error denies
        return Node(text=f"{entry.rule} {entry.text}", outcome="error", why=f"{type(cause).__name__}: {cause}")
    return Node(text=f"{entry.rule} {entry.text}", outcome="match" if why is None else "miss", why=why or "")


def _flow(flow: Flow, effects: frozenset[Effect], known: SessionFacts) -> Node:
    applies = flow.applies(effects, known.effects)
    missing = sorted(flow.after - known.effects)
    if flow.effect not in effects:
        why = f"the call has not the effect {flow.effect}"
    else:
        why = f"the session has not used: {', '.join(missing)}" if missing else ""
    return Node(text=flow.rule, outcome="match" if applies else "miss", why=why)


def _resources(
    granted: Mapping[str, frozenset[str]], declaration: ToolDeclaration, arguments: Mapping[str, JSON]
) -> Iterable[Node]:
    for argument, kind in declaration.resources.items():
        if argument in declaration.fixed_resources:
            name = ", ".join(granted.get(argument, ())) or "none"
            yield Node(text=f"{argument}, {with_article(kind)}: {name}", outcome="miss" if name == "none" else "match")
        elif argument in arguments:
            names = granted.get(argument, frozenset())
            value = arguments[argument]
            named = isinstance(value, str) and value in names
            yield Node(
                text=f"{argument} names {with_article(kind)}",
                outcome="match" if named else "miss",
                why="" if named else f"granted: {', '.join(sorted(names)) or 'none'}",
            )
