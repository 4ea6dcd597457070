"""`toolcage policy check|test|schema` and, from the modules beside it, `explain|diff|coverage|replay`: the desk.

Exit codes: 0 all well, 1 a file or a case fails, 2 usage. Nothing here runs a tool. The text of policy files is shown
with its markup and control characters made inert, since a file under check is not yet trusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from toolcage.cage.spec import weakenings
from toolcage.cli import policy_compare, policy_explain
from toolcage.cli.junit import Outcome, junit
from toolcage.cli.named_policies import named_policies
from toolcage.errors import PolicyError, ResourceError
from toolcage.policy.cases import CaseResult, run_cases
from toolcage.policy.idle import idle_rules
from toolcage.policy.load import load_role
from toolcage.policy.model import Grant, Role
from toolcage.policy.reference import field_table
from toolcage.policy.schema import role_schema
from toolcage.quantities import size_text
from toolcage.types import ToolDeclaration

if TYPE_CHECKING:
    from toolcage.resources import Resources

app = typer.Typer(name="policy", help="Check, test and describe policy files.", no_args_is_help=True)

app.command("explain")(policy_explain.explain)
app.command("diff")(policy_compare.diff)
app.command("coverage")(policy_compare.coverage)
app.command("replay")(policy_compare.replay)

_Paths = Annotated[list[Path], typer.Argument(exists=True, help="Policy files, or folders of them.", metavar="PATH...")]
_Tools = Annotated[
    list[Path] | None,
    typer.Option(
        "--tools", exists=True, dir_okay=False, metavar="FILE",
        help="A file of tools that the policies grant; described in a cage, may stand often.",
    ),
]  # fmt: skip
_AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]


@app.command()
def check(
    paths: _Paths,
    resources: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="resources.yaml, to hold the granted names to it.")
    ] = None,
    tools: _Tools = None,
    as_json: _AsJson = False,
) -> None:
    """Load each file strictly and show what it grants. Exit 1 when one cannot be loaded."""
    known = _resources(resources)
    loaded = [_with_what_is_here(*item, known) for item in _load_each(paths, _declarations(tools))]
    if as_json:
        print(json.dumps([_file_report(path, role, fault) for path, role, fault in loaded], indent=2))
    else:
        console = Console()
        for path, role, fault in loaded:
            _show_file(console, path, role, fault)
    raise typer.Exit(1 if any(fault for _, _, fault in loaded) else 0)


@app.command(name="test")
def run_tests(
    paths: _Paths,
    resources: Annotated[Path | None, typer.Option(exists=True, help="resources.yaml, where cases need it.")] = None,
    tools: _Tools = None,
    as_json: _AsJson = False,
    junit_file: Annotated[Path | None, typer.Option("--junit", help="Write the outcomes there as JUnit XML.")] = None,
) -> None:
    """Run the cases that stand in each file, without running a tool. Exit 1 when a file or a case fails."""
    from toolcage.policy_desk import judge_for

    known = _resources(resources)
    declarations = _declarations(tools)
    loaded = _load_each(paths, declarations)
    reports: list[tuple[Path, Role | None, str | None, list[CaseResult]]] = []
    for path, role, fault in loaded:
        results = run_cases(role, judge_for(role, declarations, known)) if role else []
        reports.append((path, role, fault, results))
    if junit_file is not None:
        junit_file.write_text(junit(_suites(reports)), encoding="utf-8")
    if as_json:
        print(json.dumps([_test_report(*report) for report in reports], indent=2))
    else:
        _show_tests(Console(), reports)
    failed = any(fault or not all(result.passed for result in results) for _, _, fault, results in reports)
    raise typer.Exit(1 if failed else 0)


@app.command()
def schema(
    tools: Annotated[bool, typer.Option("--tools", help="Name the tools and their arguments too.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the reference's table of keys instead.")] = False,
) -> None:
    """Print the JSON Schema of role files, for editors."""
    from toolcage.policy_desk import declared_tools

    if markdown:
        print(field_table())
        return
    print(json.dumps(role_schema(declared_tools() if tools else None), indent=2))


def _resources(path: Path | None) -> Resources | None:
    if path is None:
        return None
    from toolcage.resources import load_resources

    try:
        return load_resources(path)
    except ResourceError as cause:
        typer.echo(str(cause), err=True)
        raise typer.Exit(1) from None


def _declarations(tools: Sequence[Path] | None) -> Mapping[str, ToolDeclaration]:
    from toolcage.policy_desk import described_tools

    return described_tools(tools or ())


def _with_what_is_here(
    path: Path, role: Role | None, fault: str | None, resources: Resources | None
) -> tuple[Path, Role | None, str | None]:
    """The file with the images and, where a resources file is given, the resources that it names and nobody has."""
    from toolcage.line.unserved import unserved_grants
    from toolcage.policy_desk import unknown_images
    from toolcage.state import default_state_dir

    problems = unknown_images(role, default_state_dir()) if role else []
    if role is not None and resources is not None:
        problems = [*problems, *unserved_grants(role, resources)]
    return (path, None, "\n".join(problems)) if problems else (path, role, fault)


def _load_each(
    paths: Sequence[Path], declarations: Mapping[str, ToolDeclaration]
) -> list[tuple[Path, Role | None, str | None]]:
    try:
        files = named_policies(paths)
    except PolicyError as cause:
        typer.echo(str(cause), err=True)
        raise typer.Exit(1) from None
    loaded: list[tuple[Path, Role | None, str | None]] = []
    first_with: dict[str, Path] = {}
    for path in files:
        try:
            role = load_role(path, declarations)
        except PolicyError as cause:
            loaded.append((path, None, str(cause)))
            continue
        other = first_with.setdefault(role.name, path)
        twice = f"{path}:1: the role `{role.name}` is also in {other}; rename one of the two"
        loaded.append((path, role, None) if other == path else (path, None, twice))
    return loaded


def _file_report(path: Path, role: Role | None, fault: str | None) -> dict[str, Any]:
    problems = fault.splitlines() if fault else []
    report: dict[str, Any] = {"file": str(path), "ok": role is not None, "problems": problems}
    if role is not None:
        grants = {name: _grant_report(grant) for name, grant in role.grants.items()}
        report |= {"role": role.name, "digest": role.digest, "grants": grants, "cases": len(role.cases)}
        report |= {
            "flows": [f"{flow.outcome} {flow.effect} after {', '.join(sorted(flow.after))}" for flow in role.flows],
            "extends": [item.source for item in role.ceilings],
            "warnings": [f"{item.rule}: {item.why}" for item in idle_rules(role)],
        }
    return report


def _grant_report(grant: Grant) -> dict[str, Any]:
    return {
        "allow": len(grant.allow),
        "ask": len(grant.ask),
        "deny": len(grant.deny),
        "resources": {argument: sorted(names) for argument, names in grant.resources.items()},
        "isolation": grant.sandbox.isolation,
        "memory_bytes": grant.sandbox.memory_bytes,
        "wall_s": grant.sandbox.wall_s,
        "limits": [f"{limit.measure} {limit.amount}/{limit.span}" for limit in grant.limits],
        "effects": sorted(grant.declaration.effects),
        "accept_weaker": grant.accept_weaker,
        "weakenings": weakenings(grant.sandbox),
    }


def _test_report(path: Path, role: Role | None, fault: str | None, results: list[CaseResult]) -> dict[str, Any]:
    cases = [
        {
            "line": result.case.line,
            "call": result.case.call,
            "expect": result.case.expect,
            "expect_code": result.case.code,
            "status": result.status,
            "code": result.code,
            "passed": result.passed,
        }
        for result in results
    ]
    ok = fault is None and all(result.passed for result in results)
    problems = fault.splitlines() if fault else []
    return {"file": str(path), "ok": ok, "role": role.name if role else None, "problems": problems, "cases": cases}


def _suites(
    reports: list[tuple[Path, Role | None, str | None, list[CaseResult]]],
) -> list[tuple[str, list[Outcome]]]:
    suites = []
    for path, _, fault, results in reports:
        outcomes = [Outcome(name="loads", failure=fault)]
        for result in results:
            wanted = f"{result.case.expect} {result.case.code or ''}".strip()
            failure = None if result.passed else f"expected {wanted}, got {result.status} {result.code}"
            outcomes.append(Outcome(name=f"line {result.case.line}: {result.case.call}", failure=failure))
        suites.append((str(path), outcomes))
    return suites


def _plain(text: str) -> str:
    """Text from a file, fit for a terminal: no markup, no control characters."""
    return escape("".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text))


def _show_file(console: Console, path: Path, role: Role | None, fault: str | None) -> None:
    if role is None:
        console.print(f"[red]✗[/red] {_plain(str(path))}", highlight=False)
        console.print(_plain(fault or ""), highlight=False, soft_wrap=True)
        return
    head = f"[green]✓[/green] {_plain(str(path))}: role [bold]{role.name}[/bold], {len(role.cases)} cases"
    console.print(head, highlight=False)
    if not role.grants:
        console.print("  grants nothing")
        return
    table = Table()
    table.add_column("tool", no_wrap=True, min_width=min(40, max(map(len, role.grants))))
    for heading in ("allow", "ask", "deny", "resources", "cage"):
        table.add_column(heading)
    for name, grant in role.grants.items():
        reach = "; ".join(f"{argument}: {', '.join(sorted(names))}" for argument, names in grant.resources.items())
        cage = f"{grant.sandbox.isolation}, {size_text(grant.sandbox.memory_bytes)}, {grant.sandbox.wall_s:g}s"
        denies = len(grant.deny) + len(role.deny.get(name, ()))
        table.add_row(name, str(len(grant.allow)), str(len(grant.ask)), str(denies), reach or "–", cage)
    console.print(table)
    for name, grant in role.grants.items():
        if grant.accept_weaker is not None:
            text = f"{name} runs in a cage weaker than it declares ({grant.sandbox.isolation}): {grant.accept_weaker}"
            console.print(f"[yellow]![/yellow] {_plain(text)}", highlight=False, soft_wrap=True)
    for sentence, tools in _weakenings(role).items():
        text = f"  weaker than it could be: {sentence}: {', '.join(tools)}"
        console.print(_plain(text), highlight=False, soft_wrap=True)
    for flow in role.flows:
        after = ", ".join(sorted(flow.after))
        console.print(f"  {flow.outcome} {flow.effect} after {after}", highlight=False)
    if role.ceilings:
        above = ", ".join(item.source for item in role.ceilings)
        console.print(_plain(f"  never more than {above}"), highlight=False, soft_wrap=True)
    for item in idle_rules(role):
        console.print(f"[yellow]![/yellow] {_plain(f'{item.rule} never decides: {item.why}')}", highlight=False,
                      soft_wrap=True)  # fmt: skip


def _weakenings(role: Role) -> dict[str, list[str]]:
    """What makes a cage of the role weaker than the strongest one, each with the tools that it holds for."""
    found: dict[str, list[str]] = {}
    for name, grant in role.grants.items():
        for sentence in weakenings(grant.sandbox):
            found.setdefault(sentence, []).append(name)
    return found


def _show_tests(
    console: Console, reports: list[tuple[Path, Role | None, str | None, list[CaseResult]]]
) -> None:
    for path, role, fault, results in reports:
        if role is None:
            _show_file(console, path, role, fault)
            continue
        failed = [result for result in results if not result.passed]
        mark = "[red]✗[/red]" if failed else "[green]✓[/green]"
        count = f"{len(results) - len(failed)} of {len(results)} cases hold" if results else "no cases"
        console.print(f"{mark} {_plain(str(path))}: {count}", highlight=False)
        for result in failed:
            wanted = f"{result.case.expect} {result.case.code or ''}".strip()
            got = f"{result.status} {result.code}".strip()
            text = f"  line {result.case.line}: {result.case.call}: expected {wanted}, got {got}"
            console.print(_plain(text), highlight=False, soft_wrap=True)
