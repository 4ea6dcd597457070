"""`toolcage call`: one call through the line, with no warm pool. Exit 0 success, 1 refused or failed, 2 usage,
3 sandbox unavailable."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from toolcage.errors import UsageError
from toolcage.types import Artifact


def call(
    tool: Annotated[str, typer.Argument(help="The tool's name.")],
    policy: Annotated[Path, typer.Option("--policy", help="The role's policy file.", exists=True, dir_okay=False)],
    args: Annotated[str, typer.Option("--args", help="The arguments as a JSON object; - reads standard input.")] = "{}",
    resources: Annotated[Path | None, typer.Option("--resources", help="resources.yaml", exists=True)] = None,
    tools: Annotated[
        list[Path] | None,
        typer.Option("--tools", help="A file of tools that is described and run only in cages.", exists=True),
    ] = None,
    attach: Annotated[
        list[Path] | None, typer.Option("--attach", help="A file for the call.", exists=True, dir_okay=False)
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", help="Folder for the files that come out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
) -> None:
    """Take one call through the line and print its result."""
    from toolcage.runtime import ONE_SHOT, Runtime

    raw = _raw_call(tool, sys.stdin.read() if args == "-" else args)
    files = _attached(attach or [])
    with (
        Runtime.from_files(policy, resources=resources, tools=tools or (), pool=ONE_SHOT) as runtime,
        runtime.session() as session,
    ):
        result = session.call_raw(raw, files=files)
    if output is not None:
        _save(result.artifacts, output)
    print(json.dumps(result.to_dict(), ensure_ascii=True) if as_json else _shown(result.to_text()))
    raise typer.Exit(0 if result.success else 3 if result.status == "unavailable" else 1)


def _raw_call(tool: str, arguments: str) -> str:
    """The call as raw JSON text, so that the line's own parser sees the arguments exactly as they were given."""
    return f'{{"tool":{json.dumps(tool)},"arguments":{arguments}}}'


def _attached(paths: list[Path]) -> dict[str, bytes]:
    """The files by the names that the call sees. Raises UsageError for two of one name, and for one not readable."""
    files: dict[str, bytes] = {}
    for path in paths:
        if path.name in files:
            raise UsageError(f"two attached files are called {path.name}; rename one")
        try:
            files[path.name] = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path} cannot be attached: {error.strerror}") from error
    return files


def _save(artifacts: Iterable[Artifact], folder: Path) -> None:
    """Writes files that came out, by their cleaned names. Raises UsageError rather than replace a file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for artifact in artifacts:
            with (folder / artifact.name.replace("/", "_")).open("xb") as handle:
                handle.write(artifact.content)
    except OSError as error:
        told = f"{error.filename} cannot be written: {error.strerror}"
        raise UsageError(f"the call ran, and {told}; name another folder with --output") from error


def _shown(text: str) -> str:
    """What this terminal's encoding can hold; the text is inert already."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
