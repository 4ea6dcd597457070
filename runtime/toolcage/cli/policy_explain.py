"""`toolcage policy explain`: why one call would be decided as it is, as a tree of every rule that was tried.

For the operator: it shows rules, facts and values in full, control characters spelled out. Nothing is run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from toolcage.audit.record import facts_text, session_facts_text
from toolcage.audit.report import visible
from toolcage.errors import Refused, UsageError
from toolcage.policy.explain import Explanation, Node
from toolcage.policy.load import load_role
from toolcage.types import Decision

if TYPE_CHECKING:
    from toolcage.line.session_memory import SessionMemory
    from toolcage.types import SessionFacts, ValidCall

_MARKS = {"match": ("✓", "green"), "miss": ("·", "dim"), "error": ("!", "red"), "note": ("", "")}
_EFFECTS = {"allow": "bold green", "ask": "bold yellow", "deny": "bold red"}


def explain(
    policy: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The role's policy file.")],
    tool: Annotated[str, typer.Argument(help="The tool's name.")],
    args: Annotated[str, typer.Option("--args", help="The arguments as a JSON object.")] = "{}",
    said: Annotated[list[str] | None, typer.Option("--said", help="What the user said; may stand often.")] = None,
    seen: Annotated[
        list[str] | None, typer.Option("--seen", metavar="TOOL=TEXT", help="What a tool returned before.")
    ] = None,
    used: Annotated[
        list[str] | None, typer.Option("--used", metavar="EFFECT", help="An effect that the session has used.")
    ] = None,
    fact: Annotated[
        list[str] | None, typer.Option("--fact", metavar="NAME=JSON", help="What the host vouches for.")
    ] = None,
    resources: Annotated[Path | None, typer.Option(exists=True, help="resources.yaml, for the SQL dialect.")] = None,
    tools: Annotated[
        list[Path] | None,
        typer.Option("--tools", exists=True, dir_okay=False, metavar="FILE", help="A file of tools that it grants."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")] = False,
) -> None:
    """Show the decision for one call and every rule that was tried. Exit 0 when it would be allowed, else 1."""
    from toolcage.line.judge import explained
    from toolcage.line.parse import parse
    from toolcage.line.validate import compile_schema
    from toolcage.policy_desk import described_tools
    from toolcage.resources import Resources, load_resources
    from toolcage.tools.registry import ALIAS_ARGUMENTS, ALIASES

    role = load_role(policy, described_tools(tools or ()))
    memory = _memory(said or [], seen or [], used or [], fact or [])
    known = load_resources(resources) if resources else Resources.empty()
    try:
        found, valid, session = explained(
            parse(
                f'{{"tool":{json.dumps(tool)},"arguments":{args}}}', aliases=ALIASES, alias_arguments=ALIAS_ARGUMENTS
            ),
            role=role, memory=memory, validator=compile_schema,
            dialect=lambda name: known.dialect(name) if name in known.databases else "sqlite",
        )  # fmt: skip
    except Refused as caught:
        _show_refusal(caught, as_json)
        raise typer.Exit(1) from None
    if as_json:
        print(json.dumps(_report(found, valid, session), indent=2))
    else:
        _show(found, valid, session)
    raise typer.Exit(0 if found.decision.effect == "allow" else 1)


def _memory(said: list[str], seen: list[str], used: list[str], facts: list[str]) -> SessionMemory:
    from toolcage.line.session_memory import SessionMemory
    from toolcage.types import EFFECTS

    memory = SessionMemory(dict(_fact(item) for item in facts))
    for text in said:
        memory.user_said(text)
    for item in seen:
        name, found, text = item.partition("=")
        if not found:
            raise UsageError(f"--seen {item}: write TOOL=TEXT")
        memory.saw(name, [text], {})
    effects = [effect for effect in EFFECTS if effect in used]
    if len(effects) < len(set(used)):
        raise UsageError(f"--used takes one of: {', '.join(EFFECTS)}")
    memory.used(effects)
    return memory


def _fact(item: str) -> tuple[str, Any]:
    name, found, text = item.partition("=")
    if not found:
        raise UsageError(f"--fact {item}: write NAME=JSON")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text  # a plain word is meant as text


def _show_refusal(caught: Refused, as_json: bool) -> None:
    refusal = caught.refusal
    if as_json:
        print(json.dumps({"status": refusal.status, "code": refusal.code, "message": refusal.message}))
        return
    told = f"{refusal.status} {refusal.code}, before any rule is asked: {refusal.message}. {refusal.hint or ''}"
    Console(markup=False, highlight=False).print(visible(told), soft_wrap=True)


def _show(found: Explanation, valid: ValidCall, session: SessionFacts) -> None:
    decision = found.decision
    console = Console(highlight=False, emoji=False)
    head = Text.assemble((decision.effect, _EFFECTS[decision.effect]), f" {decision.code} by {decision.rule or '–'}")
    tree = Tree(head)
    if decision.message:
        tree.add(Text(visible(f"the model is told: {decision.message} {decision.hint or ''}"), "italic"))
    tree.add(Text(visible(f"arguments: {valid.canonical.decode()}")))
    tree.add(Text(visible(f"facts: {facts_text(valid.facts)}")))
    tree.add(Text(visible(f"session: {session_facts_text(session)}")))
    for branch in found.branches:
        _grow(tree, branch)
    console.print(tree)


def _grow(tree: Tree, node: Node) -> None:
    mark, style = _MARKS[node.outcome]
    text = Text(visible(f"{mark} {node.text}".strip()), style)
    if node.why:
        text.append(visible(f": {node.why}"), "italic")
    branch = tree.add(text)
    for child in node.children:
        _grow(branch, child)


def _report(found: Explanation, valid: ValidCall, session: SessionFacts) -> dict[str, Any]:
    return {
        "decision": _decision(found.decision),
        "arguments": json.loads(valid.canonical),
        "facts": json.loads(facts_text(valid.facts)),
        "session_facts": json.loads(session_facts_text(session)),
        "rules": [_node(branch) for branch in found.branches],
    }


def _decision(decision: Decision) -> Mapping[str, Any]:
    return {
        "effect": decision.effect, "code": decision.code, "rule": decision.rule, "message": decision.message,
        "hint": decision.hint,
    }  # fmt: skip


def _node(node: Node) -> dict[str, Any]:
    return {
        "text": node.text, "outcome": node.outcome, "why": node.why, "children": [_node(item) for item in node.children]
    }  # fmt: skip
