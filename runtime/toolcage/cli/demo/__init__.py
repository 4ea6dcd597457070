"""`toolcage demo`: a scripted agent in three roles, at work in real cages, and the attacks that are stopped.

The calls stand as data in `script`, what they run as text in `programs`; `play` takes each through the line and judges
it by what it was to show; `table` and `report` show the same rows on a terminal and in an HTML file; `sample` makes the
database that they work on, `outside` starts the wiki and the letterbox of the researcher. Exit 0 only when every useful
call worked, every attack ended as it must, the audit log verifies and no container is left; else 1, and which row it
was. A row that cannot be shown on this host counts as not passed. No model, no key, no network.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from toolcage.cli.demo.step import Step


def demo(
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder for the database, the files and report.html.")
    ] = None,
    role: Annotated[
        list[str] | None, typer.Option("--role", help="Only this role's calls; may be given several times.")
    ] = None,
) -> None:
    """Show useful work and stopped attacks, in three roles and real cages."""
    from toolcage.cli.demo.script import STEPS
    from toolcage.errors import UsageError
    from toolcage.state import default_state_dir

    known = dict.fromkeys(step.role for step in STEPS)
    if unknown := [name for name in role or () if name not in known]:
        raise UsageError(f"the demo has no role {unknown[0]!r}; choose of {', '.join(known)}")
    signal.signal(signal.SIGTERM, _end)
    steps = [step for step in STEPS if not role or step.role in role]
    raise typer.Exit(show(output or default_state_dir() / "toolcage-demo", steps))


def _end(number: int, _: object) -> NoReturn:
    """Ends the command through its `with` blocks, so that what it started ends with it."""
    raise SystemExit(128 + number)


def show(output: Path, steps: Sequence[Step], *, warm_calls: int | None = None) -> int:
    """Plays the steps, prints the table, writes report.html into `output`, and returns the exit code.

    Raises EngineError or ImageError when no cage can be run here, UsageError for a folder that cannot be used.
    """
    from toolcage.cli.demo import play, report, table

    play.require_sandbox()
    folder = play.own_folder(output)
    console = table.console()
    with console.status("making the shop") if console.is_terminal else contextlib.nullcontext() as status:
        say = (lambda step: None) if status is None else (lambda step: status.update(f"{step.role}: {step.tried}"))
        count = play.WARM_CALLS if warm_calls is None else warm_calls
        played = play.play(folder, steps, warm_calls=count, on_step=say)
    page = folder / "report.html"
    page.write_text(report.page(played), encoding="utf-8")
    table.show(console, played, page)
    return 0 if played.passed else 1
