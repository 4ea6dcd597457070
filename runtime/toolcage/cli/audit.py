"""`toolcage audit verify|show`: is the log whole, and what does it hold.

Prints only what `report` found. Records hold untrusted text: every value is spelled out printable and rendered without
markup. Exit codes: 0 whole, 1 a record is bad or nothing can be read, 2 usage.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolcage.audit.anchors import load_key
from toolcage.audit.report import Finding, VerifyReport, read_records, visible
from toolcage.audit.report import verify as verify_log
from toolcage.errors import AuditError
from toolcage.state import default_state_dir

app = typer.Typer(no_args_is_help=True, help="Verify and read the audit log.")

LogPath = Annotated[
    Path | None,
    typer.Argument(metavar="[PATH]", help="An audit file, or a folder of them; without it, this user's own log."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]
KeyFile = Annotated[Path | None, typer.Option(help="The file of the key that the log was written with.")]
HeadFile = Annotated[Path | None, typer.Option("--head", help="A head exported earlier and kept elsewhere.")]


@app.command()
def verify(path: LogPath = None, as_json: AsJson = False, key_file: KeyFile = None, head: HeadFile = None) -> None:
    """Check every record's hash, order and pairing; name the first bad one."""
    try:
        report = verify_log(_path(path), key=None if key_file is None else load_key(key_file), head=head)
    except AuditError as error:
        raise _failed(error) from None
    if as_json:
        typer.echo(json.dumps(report.as_json()))
    else:
        _print_report(report)
    raise typer.Exit(0 if report.ok else 1)


@app.command()
def show(
    path: LogPath = None,
    last: Annotated[int, typer.Option(min=1, help="How many records, from the end.")] = 20,
    call: Annotated[str | None, typer.Option(help="Only the records of the call whose id begins so.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the last records. This verifies nothing: see `toolcage audit verify`."""
    try:
        records = _latest((item for item in read_records(_path(path)) if _is_of(item, call)), last)
    except AuditError as error:
        raise _failed(error) from None
    if as_json:
        for record in records:
            typer.echo(json.dumps(record))
        return
    if not records:
        of_call = "" if call is None else f" of a call whose id begins with {visible(call)}"
        typer.echo(f"no record{of_call}", err=True)
    _print_records(records, in_full=call is not None)


def _path(given: Path | None) -> Path:
    return given or default_state_dir() / "audit"


def _latest(records: Iterable[Mapping[str, str | int]], count: int) -> list[Mapping[str, str | int]]:
    """The last ones by their own time, then by their place: a folder holds the files of several runtimes."""
    numbered = heapq.nlargest(count, enumerate(records), key=lambda item: (str(item[1].get("time", "")), item[0]))
    return [record for _, record in reversed(numbered)]


def _is_of(record: Mapping[str, str | int], call: str | None) -> bool:
    return call is None or str(_with_event(record).get("call_id", "")).startswith(call)


def _with_event(record: Mapping[str, str | int]) -> Mapping[str, object]:
    """The record, and of a connection also what its detail says: whose call it was, of which tool, and how it ended."""
    if record.get("type") != "connection":
        return record
    try:
        detail = json.loads(str(record.get("detail", "")))
    except (ValueError, RecursionError):  # whoever can write the folder can write anything
        return record
    return {**detail, **record} if isinstance(detail, dict) else record


def _failed(error: AuditError) -> typer.Exit:
    typer.echo(visible(str(error)), err=True)
    return typer.Exit(1)


def _print_report(report: VerifyReport) -> None:
    for finding in report.errors:
        typer.echo(f"BAD   {_line_of(finding)}")
    for finding in report.warnings:
        typer.echo(f"note  {_line_of(finding)}")
    verdict = "ok" if report.ok else "NOT OK"
    chains = len(report.heads)
    typer.echo(f"{verdict}: {report.records} record(s), {report.files} file(s), {chains} runtime(s). {report.limits()}")


def _line_of(finding: Finding) -> str:
    place = finding.file if finding.line is None else f"{finding.file}:{finding.line}"
    seq = "" if finding.seq is None else f" (seq {finding.seq})"
    return visible(f"{place}{seq}: {finding.problem}: {finding.message}")


def _print_records(records: list[Mapping[str, str | int]], *, in_full: bool) -> None:
    console = Console(markup=False, highlight=False, emoji=False)
    if in_full:
        for record in records:
            console.print(_fields_table(record))
        return
    if not records:
        return
    told = [_with_event(record) for record in records]
    ids = {str(record["call_id"]) for record in told if "call_id" in record}
    shown = _shortest(ids)
    table = Table("seq", "UTC", "type", "role", "tool", "outcome", "call", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for item in told:
        ended = ("verdict", "reason", "portal") if item.get("type") == "connection" else ("status", "code")
        outcome = " ".join(dict.fromkeys(visible(str(item[name])) for name in ended if name in item))
        cells = [visible(str(item.get(name, ""))) for name in ("seq", "time", "type", "role", "tool")]
        cells[1] = cells[1][11:19] or cells[1]
        call = visible(str(item.get("call_id", ""))[:shown])
        table.add_row(*(Text(cell, overflow="fold") for cell in [*cells, outcome or _note(item), call]))
    console.print(table)
    days = sorted({visible(str(record.get("time", ""))[:10]) for record in records})
    between = " to ".join(dict.fromkeys((days[0], days[-1])))
    console.print(f"{between}; --call and the beginning of an id shows a call whole")


def _note(record: Mapping[str, object]) -> str:
    return visible(str(record.get("note", "")))[:200]


def _shortest(ids: set[str]) -> int:
    """How many characters tell the ids apart, at least six."""
    length = 6
    while len({item[:length] for item in ids}) < len(ids):
        length += 1
    return length


def _fields_table(record: Mapping[str, str | int]) -> Table:
    table = Table(show_header=False)
    for name, value in record.items():
        table.add_row(Text(name), Text(visible(str(value)), overflow="fold"))
    return table
