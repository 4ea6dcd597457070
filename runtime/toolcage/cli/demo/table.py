"""The demo on a terminal: one table of all calls, then what they cost, the audit log, and what failed
or could not be shown.

Everything from a result is text, never markup, and is cut to a few lines. Colours only where the output is a terminal;
elsewhere the table is 100 columns wide.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolcage.audit.report import visible
from toolcage.cli.demo.play import Played, Row

PLAIN_COLUMNS: Final = 100
LONGEST_REASON: Final = 84
_STYLES: Final = {
    "worked": "green", "stopped": "cyan", "contained": "blue", "not shown": "yellow", "FAILED": "bold red",
}  # fmt: skip


def console() -> Console:
    """For standard output, whatever it is."""
    made = Console(markup=False, highlight=False, emoji=False)
    return made if made.is_terminal else Console(markup=False, highlight=False, emoji=False, width=PLAIN_COLUMNS)


def show(console: Console, played: Played, page: Path) -> None:
    """Prints the table and what stands below it."""
    console.print(_table(played))
    console.print(summary(played), soft_wrap=True)
    verdict = "verifies" if played.audit.ok else "DOES NOT VERIFY"
    console.print(
        f"Audit log {verdict}: {played.audit.records} records in {played.audit_path}. {played.audit.limits()}",
        soft_wrap=True,
    )
    console.print(f"Report: {page}", soft_wrap=True)
    if (absent := not_shown(played)) is not None:
        console.print(Text(f"NOT SHOWN: {absent}", _STYLES["not shown"]), soft_wrap=True)
    for problem in problems(played):
        console.print(Text(f"FAILED: {problem}", _STYLES["FAILED"]), soft_wrap=True)


def summary(played: Played) -> str:
    """One line: what was called, on what, how fast."""
    counts = {name: sum(row.verdict == name for row in played.rows) for name in _STYLES}
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    warm = "not seen" if played.p50_warm_ms is None else f"{played.p50_warm_ms:.1f} ms"
    return (
        f"{told}. {played.calls} calls, {played.cages} cages, {played.database_rows} database rows, "
        f"{played.seconds:.0f} s; a warm call through the whole line takes {warm} (p50)."
    )


def problems(played: Played) -> list[str]:
    """One line for each row that did not pass and for each fault apart from the rows."""
    rows = [f"{row.step.name} ({row.step.tried}): {visible(row.problem)}" for row in played.rows if row.problem]
    return rows + [visible(problem) for problem in played.problems]


def not_shown(played: Played) -> str | None:
    """One line for the rows that could not be shown on this host, None when all were."""
    rows = [row for row in played.rows if row.absent is not None]
    if not rows:
        return None
    roles = " and ".join(dict.fromkeys(row.step.role for row in rows))
    return f"the {len(rows)} rows of the {roles}: {visible(rows[0].absent or '')}"


def _table(played: Played) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, expand=True)
    table.add_column("role\ntool", no_wrap=True)
    table.add_column("tried\nwhat came of it", ratio=1)
    table.add_column("verdict: status\ncode", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    for row in played.rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> tuple[Text, ...]:
    result = row.result
    reason = visible(row.problem or (row.reason if row.absent is None else f"not shown: {row.absent}"))
    if len(reason) > LONGEST_REASON:
        reason = reason[: LONGEST_REASON - 1] + "…"
    style = _STYLES[row.verdict]
    status, code = ("-", "") if result is None else (str(result.status), result.code or "")
    return (
        Text.assemble(row.step.role, "\n", (row.step.tool, "dim")),
        Text.assemble(row.step.tried, "\n", (reason, "dim" if row.problem is None else style)),
        Text.assemble((row.verdict, style), ": ", status, "\n", (visible(code), "dim")),
        Text("-" if result is None else f"{result.duration_ms:.1f}"),
    )
