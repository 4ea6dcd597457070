"""`toolcage images`: build the sandbox images and variants of them, list, compare with the engine, and remove them.

Exit codes: 0 all is well, 1 an image is missing, different or could not be built, 2 usage, 3 no engine answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from toolcage.errors import EngineError, ImageError
from toolcage.state import default_state_dir

if TYPE_CHECKING:
    from toolcage.cage.engine import Engine
    from toolcage.cage.images import ImageLock, Method

app = typer.Typer(no_args_is_help=True, help="Build, list, verify, itemise and remove the sandbox images.")

_Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]


_Built = Annotated[list[str] | None, typer.Argument(help="Images or variants; without names, all that were built.")]
_Names = Annotated[
    list[str] | None,
    typer.Argument(help="Images or variants; without names, those of the built-in tools and what was built before."),
]


@app.command("build")
def build_command(
    names: _Names = None,
    wheels: Annotated[
        list[str] | None, typer.Option("--with", help="NAME==VERSION of a wheel to add; may be given more than once.")
    ] = None,
    variant: Annotated[
        str | None, typer.Option("--as", help="The variant's name; the default is the image's with -with added.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Build even what is there already (takes security updates in).")] = False,
    dockerfile: Annotated[bool, typer.Option(help="Use the Dockerfile and an image registry, not mmdebstrap.")] = False,
) -> None:
    """Build images from signed packages and record their ids in images.lock. With --with: a variant of one image."""
    from toolcage.cage.images import build, build_variant
    from toolcage.cage.rootfs import has_mmdebstrap

    base = _variant_base(names or [], wheels or [], variant)
    console = Console(stderr=True)
    method: Method = "dockerfile" if dockerfile or not has_mmdebstrap() else "mmdebstrap"
    with _exit_codes(), _engine() as engine, console.status("building") as status:

        def show(name: str, step: str) -> None:
            status.update(f"[bold]{name}[/]: {step}")
            if not console.is_terminal:
                console.print(f"{name}: {step}", soft_wrap=True)

        state_dir = default_state_dir()
        if base is None:
            built = build(names or _usual(state_dir), engine, state_dir, on_step=show, force=force, method=method)
        else:
            name = variant or f"{base}-with"
            built = [build_variant(base, name, wheels or [], engine, state_dir, on_step=show, method=method)]
    for image in built:
        console.print(f"{image.name}  {image.image_id}", highlight=False, soft_wrap=True)


@app.command("list")
def list_command(as_json: _Json = False) -> None:
    """List the known images and what was built of each. Asks no engine."""
    from toolcage.cage.images import ImageLock

    with _exit_codes():
        lock = ImageLock.load(default_state_dir())
        rows = [_row(lock, name) for name in lock.names()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table("image", "state", "id", "MB", "packages", "wheels", "what it is")
    for row in rows:
        size = str(round(row["size_bytes"] / 1e6)) if row["size_bytes"] else "-"
        counts = (size, str(len(row["packages"])), str(len(row["wheels"])))
        table.add_row(str(row["name"]), str(row["state"]), str(row["id"] or "-")[:19], *counts, str(row["description"]))
    Console().print(table)


@app.command("sbom")
def sbom_command(name: Annotated[str, typer.Argument(help="An image or a variant.")]) -> None:
    """Print what is in an image: every Debian package and wheel with hash and licence, as CycloneDX JSON."""
    from toolcage.cage.images import ImageLock, read_sbom

    with _exit_codes():
        typer.echo(read_sbom(default_state_dir(), ImageLock.load(default_state_dir()).resolve(name)), nl=False)


@app.command("verify")
def verify_command(names: _Built = None, as_json: _Json = False) -> None:
    """Compare images with what the engine holds."""
    from toolcage.cage.images import ImageLock, verify

    findings: list[dict[str, str | bool | None]] = []
    with _exit_codes(), _engine() as engine:
        lock = ImageLock.load(default_state_dir())
        if not names and not lock.images:
            raise ImageError("no image was built yet; run `toolcage images build`")
        for name in names or sorted(lock.images):
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


@app.command("remove")
def remove_command(
    names: Annotated[list[str], typer.Argument(help="Variants, or images that were built here.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before a shipped image goes, which policies count on.")
    ] = False,
) -> None:
    """Remove variants, from images.lock and from the engine. An image that is shipped goes only when confirmed."""
    from toolcage.cage.images import remove
    from toolcage.cage.recipe import known_images

    shipped = [name for name in dict.fromkeys(names) if name in known_images()]
    if shipped and not yes:
        told = f"{', '.join(shipped)}: shipped; calls that need it are refused until `toolcage images build`"
        typer.confirm(f"{told}. Remove?", abort=True, err=True)
    with _exit_codes(), _engine() as engine:
        for name in dict.fromkeys(names):
            gone = remove(name, engine, default_state_dir())
            typer.echo(f"{name}: removed {gone.image_id}", err=True)


def _usual(state_dir: Path) -> list[str]:
    """The images of the built-in tools, and every other that was built here before."""
    from toolcage.cage.images import ImageLock
    from toolcage.policy_desk import declared_tools

    first = dict.fromkeys(declaration.image for declaration in declared_tools().values())
    try:
        built = sorted(ImageLock.load(state_dir).images)
    except ImageError:  # a lock that cannot be read is replaced by a build
        built = []
    return list(dict.fromkeys((*first, *built)))


def _row(lock: ImageLock, name: str) -> dict[str, Any]:
    recipe, locked = lock.recipe(name), lock.images.get(name)
    variant = locked.variant if locked else None
    added = f" + {', '.join(variant.requested)}" if variant else ""
    return {
        "name": name,
        "state": "not built" if locked is None else "built" if locked.recipe_digest == recipe.digest else "outdated",
        "id": locked.image_id if locked else None,
        "description": recipe.description + added,
        "base": variant.base if variant else None,
        "size_bytes": locked.size_bytes if locked else None,
        "packages": dict(locked.packages) if locked else {},
        "wheels": dict(locked.wheels) if locked else {},
    }


def _variant_base(names: list[str], wheels: list[str], variant: str | None) -> str | None:
    """The one image that a variant is made from; None when no variant was asked for."""
    if not wheels:
        if variant is not None:
            raise typer.BadParameter("--as names a variant; say what it adds by --with NAME==VERSION")
        return None
    if len(names) > 1:
        raise typer.BadParameter("--with makes a variant of one image; name one")
    return names[0] if names else "python"


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
