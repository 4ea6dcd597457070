"""`toolcage policy diff|coverage|replay`: what changed between two files, what a log used of one, what it proves.

Exit codes: 0 nothing to report, 1 something (a gain, a rule that decided nothing, a decision that does not follow),
2 usage. Nothing is run, and text of files and logs is shown with control characters spelled out.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from toolcage.audit.report import read_records, visible
from toolcage.cli.named_policies import named_policies
from toolcage.policy.coverage import Coverage
from toolcage.policy.coverage import coverage as count_coverage
from toolcage.policy.diff import Change, compare
from toolcage.policy.load import load_role, load_roles
from toolcage.policy.model import Role

if TYPE_CHECKING:
    from toolcage.line.replay import RedecidedReport

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
_Log = Annotated[Path, typer.Argument(exists=True, metavar="LOG", help="An audit file, or a folder of them.")]
_Policies = Annotated[
    list[Path], typer.Option("--policy", exists=True, help="Policy files, or folders of them; may stand often.")
]


def diff(
    old: Annotated[Path, typer.Argument(exists=True, dir_okay=False, metavar="OLD")],
    new: Annotated[Path, typer.Argument(exists=True, dir_okay=False, metavar="NEW")],
    log: Annotated[
        Path | None,
        typer.Option(exists=True, help="An audit file or folder: also decide its calls of this role under both."),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Say what the role in NEW gained and lost against OLD. Exit 1 when it gained something."""
    from toolcage.policy_desk import declared_tools

    declared = declared_tools()
    before, after = load_role(old, declared), load_role(new, declared)
    changes = compare(before, after)
    calls = None if log is None else _redecided(log, before, after)
    if as_json:
        shown = [asdict(change) for change in changes]
        print(json.dumps(shown if calls is None else {"changes": shown, "calls": _calls_report(calls)}, indent=2))
    else:
        _show_changes(changes)
        _show_calls(calls)
    raise typer.Exit(1 if any(change.direction == "gained" for change in changes) else 0)


def coverage(log: _Log, policy: _Policies, as_json: _Json = False) -> None:
    """Count which rules decided the calls of a log, and name those that never did. Exit 1 when there are any."""
    from toolcage.policy_desk import declared_tools

    roles = load_roles(named_policies(policy), declared_tools())
    closings = [record for record in read_records(log) if record.get("type") == "closing" and "decision" in record]
    reports = [
        count_coverage(
            role,
            [
                (str(record.get("policy_digest")), None if "rule" not in record else str(record["rule"]))
                for record in closings
                if record.get("role") == role.name
            ],
        )
        for role in roles.values()
    ]
    if as_json:
        print(json.dumps([{**asdict(report), "never": report.never} for report in reports], indent=2))
    else:
        for report in reports:
            _show_coverage(report)
    raise typer.Exit(1 if any(report.never for report in reports) else 0)


def replay(log: _Log, policy: _Policies, as_json: _Json = False) -> None:
    """Make the recorded decisions again and compare. Exit 1 when one does not follow."""
    from toolcage.line.replay import replay as replay_log
    from toolcage.line.validate import compile_schema
    from toolcage.policy_desk import declared_tools

    roles = load_roles(named_policies(policy), declared_tools())
    report = replay_log(read_records(log), roles.values(), compile_schema)
    if as_json:
        print(json.dumps(
            {"same": report.same, "divergences": [asdict(item) for item in report.divergences],
             "skipped": dict(report.skipped)}, indent=2))  # fmt: skip
    else:
        console = Console(markup=False, highlight=False)
        for item in report.divergences:
            text = f"✗ seq {item.seq} call {item.call_id}: recorded {item.recorded}; replayed {item.replayed}"
            console.print(Text(visible(text), "red"), soft_wrap=True)
        console.print(f"{report.same} decisions follow, {len(report.divergences)} do not")
        for reason, count in sorted(report.skipped.items()):
            console.print(f"  {count} not replayed: {reason}")
    raise typer.Exit(1 if report.divergences else 0)


def _show_changes(changes: tuple[Change, ...]) -> None:
    console = Console(markup=False, highlight=False)
    if not changes:
        console.print("no difference")
    for change in changes:
        mark, style = ("+", "yellow") if change.direction == "gained" else ("-", "green")
        where = f"{change.tool}: " if change.tool else ""
        console.print(Text(visible(f"{mark} {change.direction} {where}{change.text}"), style), soft_wrap=True)


def _redecided(log: Path, before: Role, after: Role) -> RedecidedReport:
    from toolcage.line.replay import redecide
    from toolcage.line.validate import compile_schema

    return redecide(read_records(log), before, after, compile_schema)


def _calls_report(report: RedecidedReport) -> dict[str, object]:
    changed = [asdict(item) for item in report.changed]
    return {"same": report.same, "changed": changed, "skipped": dict(report.skipped)}


def _show_calls(report: RedecidedReport | None) -> None:
    if report is None:
        return
    console = Console(markup=False, highlight=False)
    for item in report.changed:
        style = "yellow" if item.new.startswith("allow") else "green"
        text = f"≠ seq {item.seq} {item.tool} call {item.call_id}: {item.old} → {item.new}"
        console.print(Text(visible(text), style), soft_wrap=True)
    console.print(f"{report.same} recorded calls are decided alike, {len(report.changed)} are not")
    for reason, count in sorted(report.skipped.items()):
        console.print(f"  {count} not compared: {reason}")


def _show_coverage(report: Coverage) -> None:
    console = Console(markup=False, highlight=False)
    decided = sum(1 for item in report.rules if item.decided)
    console.print(f"{report.role}: {decided} of {len(report.rules)} rules decided something")
    for item in report.rules:
        style = "green" if item.decided else "red"
        console.print(Text(visible(f"  {item.decided:6} {item.rule}"), style), soft_wrap=True)
    if report.refused_by_none:
        console.print(f"  {report.refused_by_none:6} refused because no rule matched")
    if report.other:
        console.print(f"  {report.other} decisions of another version of this policy were not counted")
