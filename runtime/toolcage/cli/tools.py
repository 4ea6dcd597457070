"""`toolcage tools from-openapi FILE`: one tool per operation of an OpenAPI document, written to a file that is data.

Nothing is fetched and nothing becomes usable by it: the tools exist for a role once a program loads the file
(`tools=[…]`, `--tools`), resources.yaml names the endpoint and a policy grants each tool. What the document says is a
stranger's text: a description that speaks to a model is left out and said.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcage.errors import DeclarationError, UsageError

if TYPE_CHECKING:
    from toolcage.tools.openapi import Declared

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def _group() -> None:
    """Makes declarations of tools."""


@app.command("from-openapi")
def from_openapi(
    document: Annotated[Path, typer.Argument(help="OpenAPI 3.0 or 3.1, JSON or YAML.", exists=True, dir_okay=False)],
    output: Annotated[Path, typer.Option("--output", help="The file to write; it must not exist.")],
    endpoint: Annotated[str, typer.Option("--endpoint", help="What resources.yaml is to call the interface.")] = "api",
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Declare this tool; may be given several times.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Declare operations with this tag.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")] = False,
) -> None:
    """Declare one tool per operation of an OpenAPI document. Prints what was left out and what is still to be written.
    """
    from toolcage.cleaning.injection import suspect
    from toolcage.tools.declared_api import MAX_OPERATIONS, write_file
    from toolcage.tools.openapi import declare_operations, endpoint_hint, grant_hint, read_openapi
    from toolcage.tools.registry import BUILTIN_NAMES

    read = read_openapi(document)
    declared, left_out = declare_operations(
        read, suspect=lambda text: suspect(text).suspected, reserved=frozenset(BUILTIN_NAMES)
    )
    chosen = _chosen(declared, only or [], tag or [], MAX_OPERATIONS)
    specs = [item.spec for item in chosen]
    _write(output, write_file(specs))
    report = {
        "tools": [{"name": item.spec["name"], "method": item.spec["method"], "path": item.spec["path"],
                   "notes": list(item.notes)} for item in chosen],
        "left_out": list(left_out),
        "resources": endpoint_hint(read, endpoint, specs),
        "policy": grant_hint(endpoint, specs),
    }  # fmt: skip
    typer.echo(json.dumps(report, indent=2) if as_json else _told(chosen, left_out, report, output))


def _chosen(declared: Sequence[Declared], only: Sequence[str], tags: Sequence[str], most: int) -> list[Declared]:
    """Raises UsageError for a name that none has and for more than `most`; DeclarationError where nothing is left."""
    names = {str(item.spec["name"]) for item in declared}
    for name in only:
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            raise UsageError(f"no operation became a tool called {name}; there are {known}")
    chosen = [
        item
        for item in declared
        if (not only or item.spec["name"] in only) and (not tags or set(tags) & set(item.tags))
    ]
    if not chosen:
        raise DeclarationError("no operation of the document became a tool")
    if len(chosen) > most:
        raise UsageError(f"{len(chosen)} operations are more than the {most} of one file; choose with --tag or --only")
    return chosen


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists; name another file, or remove it after a look") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _told(
    chosen: Sequence[Declared], left_out: Sequence[str], report: dict[str, object], output: Path
) -> str:
    lines = [f"{len(chosen)} tools written to {output}"]
    for item in chosen:
        lines.append(f"  {item.spec['name']}: {item.spec['method']} {item.spec['path']}")
        lines += [f"    note: {note}" for note in item.notes]
    lines += [f"not declared: {reason}" for reason in left_out]
    lines += ["", "# resources.yaml, to look at and to complete", str(report["resources"])]
    return "\n".join([*lines, "", "# policy, to narrow", str(report["policy"])])
