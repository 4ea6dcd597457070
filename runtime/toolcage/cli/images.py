"""`toolcage images`: build the sandbox images, list them, compare them with the engine.

Exit codes: 0 all is well, 1 an image is missing, different or could not be built, 2 usage, 3 no engine answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from toolcage.errors import EngineError, ImageError
from toolcage.state import default_state_dir

if TYPE_CHECKING:
    from toolcage.cage.engine import Engine
    from toolcage.cage.images import Method

app = typer.Typer(no_args_is_help=True, help="Build, list and verify the sandbox images.")

_Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]


@app.command("build")
def build_command(
    names: Annotated[list[str] | None, typer.Argument(help="Images to build; all when none is named.")] = None,
    force: Annotated[bool, typer.Option(help="Build even what is there already (takes security updates in).")] = False,
    dockerfile: Annotated[bool, typer.Option(help="Use the Dockerfile and an image registry, not mmdebstrap.")] = False,
) -> None:
    """Build images from signed packages and record their ids in images.lock."""
    from toolcage.cage.images import build
    from toolcage.cage.rootfs import has_mmdebstrap

    console = Console(stderr=True)
    method: Method = "dockerfile" if dockerfile or not has_mmdebstrap() else "mmdebstrap"
    with _exit_codes(), _engine() as engine, console.status("building") as status:

        def show(name: str, step: str) -> None:
            status.update(f"[bold]{name}[/]: {step}")
            if not console.is_terminal:
                console.print(f"{name}: {step}")

        built = build(names or [], engine, default_state_dir(), on_step=show, force=force, method=method)
    for image in built:
        console.print(f"{image.name}  {image.image_id}", highlight=False, soft_wrap=True)


@app.command("list")
def list_command(as_json: _Json = False) -> None:
    """List the known images and what was built of each. Asks no engine."""
    from toolcage.cage.images import ImageLock
    from toolcage.cage.recipe import known_images, load_recipe

    with _exit_codes():
        images = ImageLock.load(default_state_dir()).images
        rows = []
        for name in known_images():
            recipe, locked = load_recipe(name), images.get(name)
            state = "not built" if locked is None else "built" if locked.recipe_digest == recipe.digest else "outdated"
            rows.append(
                {
                    "name": name,
                    "state": state,
                    "id": locked.image_id if locked else None,
                    "description": recipe.description,
                    "packages": dict(locked.packages) if locked else {},
                    "wheels": dict(locked.wheels) if locked else {},
                }
            )
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table("image", "state", "id", "packages", "wheels", "what it is")
    for row in rows:
        counts = (str(len(row["packages"] or ())), str(len(row["wheels"] or ())))
        table.add_row(str(row["name"]), str(row["state"]), str(row["id"] or "-")[:19], *counts, str(row["description"]))
    Console().print(table)


@app.command("verify")
def verify_command(as_json: _Json = False) -> None:
    """Compare every known image with what the engine holds."""
    from toolcage.cage.images import ImageLock, verify
    from toolcage.cage.recipe import known_images

    findings: list[dict[str, str | bool | None]] = []
    with _exit_codes(), _engine() as engine:
        lock = ImageLock.load(default_state_dir())
        for name in known_images():
            try:
                findings.append({"name": name, "ok": True, "id": verify(engine, lock.resolve(name)), "problem": None})
            except ImageError as error:
                findings.append({"name": name, "ok": False, "id": None, "problem": str(error)})
    if as_json:
        typer.echo(json.dumps(findings, indent=2))
    else:
        for finding in findings:
            typer.echo(f"{finding['name']}: {'ok ' + str(finding['id']) if finding['ok'] else finding['problem']}")
    if not all(finding["ok"] for finding in findings):
        raise typer.Exit(1)


@contextmanager
def _engine() -> Iterator[Engine]:
    from toolcage.cage.engine import Engine

    engine = Engine.connect()
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def _exit_codes() -> Iterator[None]:
    try:
        yield
    except EngineError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(3) from error
    except ImageError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
