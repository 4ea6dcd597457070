"""`toolcage attest`: measures every property of real cages, for each image and isolation mode, and shows the evidence.

Exit 0 when no property fails, 1 when one does, 2 usage, 3 when no cage can be made.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final, get_args

import typer

from toolcage.types import Isolation

if TYPE_CHECKING:
    from toolcage.cage.properties.model import Finding

PLAIN_COLUMNS: Final = 140
MODES: Final[tuple[Isolation, ...]] = get_args(Isolation)
Row = tuple[str, Isolation, "Finding"]


def attest(
    image: Annotated[
        list[str] | None, typer.Option("--image", help="An image or variant; all that are built when none is named.")
    ] = None,
    isolation: Annotated[
        list[str] | None, typer.Option("--isolation", help=f"{', '.join(MODES)}; all when none is named.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Measure the security properties of the sandbox, in real cages."""
    modes = _modes(isolation or [])
    rows = _measured(image or [], modes)
    if as_json:
        print(json.dumps({"properties": [_as_json(row) for row in rows]}, indent=1))
    else:
        _print(rows)
    raise typer.Exit(1 if any(finding.verdict == "fails" for _, _, finding in rows) else 0)


def _modes(named: list[str]) -> list[Isolation]:
    for name in named:
        if name not in MODES:
            raise typer.BadParameter(f"{name!r} is no isolation mode; write {' or '.join(MODES)}")
    return [mode for mode in MODES if not named or mode in named]


def _measured(images: list[str], modes: list[Isolation]) -> list[Row]:
    """Raises EngineError and ImageError, which the command line ends with 3 for."""
    from rich.console import Console

    from toolcage.cage.engine import Engine
    from toolcage.cage.images import ImageLock
    from toolcage.cage.properties.measure import measure
    from toolcage.errors import ImageError
    from toolcage.state import default_state_dir

    lock = ImageLock.load(default_state_dir())
    names = images or [name for name in lock.names() if name in lock.images]
    if not names:
        raise ImageError("no sandbox image is built; run `toolcage images build`")
    engine = Engine.connect()
    try:
        with Console(stderr=True).status("attest") as status:
            rows: list[Row] = []
            for name in names:
                for mode in modes:
                    step = _step(status.update, f"{name}, {mode}")
                    rows += [(name, mode, item) for item in measure(engine, lock.resolve(name), mode, step)]
            return rows
    finally:
        engine.close()


def _step(show: Callable[[str], None], where: str) -> Callable[[str], None]:
    return lambda step: show(f"{where}: {step}")


def _as_json(row: Row) -> dict[str, str]:
    image, mode, finding = row
    return {
        "id": finding.id, "image": image, "isolation": mode, "verdict": finding.verdict, "evidence": finding.evidence,
    }  # fmt: skip


def _print(rows: list[Row]) -> None:
    """A matrix of verdicts, then the evidence: once where it is the same everywhere."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=PLAIN_COLUMNS)
    columns = list(dict.fromkeys((image, mode) for image, mode, _ in rows))
    signs = {"holds": Text("ok", "green"), "fails": Text("FAILS", "bold red"), "not_applicable": Text("n/a", "yellow")}
    table = Table("", *(f"{image}\n{mode}" for image, mode in columns))
    table.add_column("evidence", overflow="fold")
    for number in dict.fromkeys(finding.id for _, _, finding in rows):
        by_column = {(image, mode): finding for image, mode, finding in rows if finding.id == number}
        table.add_row(number, *(signs[by_column[column].verdict] for column in columns), Text(_evidence(by_column)))
    console.print(table)
    counts = {sign: sum(finding.verdict == sign for _, _, finding in rows) for sign in signs}
    console.print(", ".join(f"{count} {sign.replace('_', ' ')}" for sign, count in counts.items()))


def _evidence(by_column: dict[tuple[str, Isolation], Finding]) -> str:
    """The failures with where they are; without any, the first column's evidence and what is not applicable."""
    fails = [f"{image}, {mode}: {item.evidence}" for (image, mode), item in by_column.items()
             if item.verdict == "fails"]  # fmt: skip
    if fails:
        return "\n".join(fails)
    first = next(iter(by_column.values()))
    others = {f"{mode}: {item.evidence}": None for (_, mode), item in by_column.items()
              if item.verdict == "not_applicable" and item.evidence != first.evidence}  # fmt: skip
    return "\n".join([first.evidence, *others])
