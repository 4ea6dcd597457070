"""`toolcage call`: one call through the line, with no warm pool. Exit 0 success, 1 refused or failed, 2 usage,
3 sandbox unavailable."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolcage.errors import UsageError
from toolcage.types import Artifact

if TYPE_CHECKING:
    from toolcage.line.result import ToolResult


def call(
    tool: Annotated[str, typer.Argument(help="The tool's name.")],
    policy: Annotated[Path, typer.Option("--policy", help="The role's policy file.", exists=True, dir_okay=False)],
    args: Annotated[str, typer.Option("--args", help="The arguments as a JSON object; - reads standard input.")] = "{}",
    request: Annotated[
        str, typer.Option("--request", help="What the user said, for rules about where a value comes from.")
    ] = "",
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
    accept_tool_changes: Annotated[
        bool, typer.Option("--accept-tool-changes", help="Accept files of --tools that changed, after review.")
    ] = False,
) -> None:
    """Take one call through the line and print its result."""
    from toolcage.cage.pool import ONE_SHOT
    from toolcage.runtime import Runtime

    given = sys.stdin.read() if args == "-" else args
    raw = _raw_call(tool, given)
    files = _attached(attach or [])
    with (
        Runtime.from_files(
            policy, resources=resources, tools=tools or (), pool=ONE_SHOT, accept_tool_changes=accept_tool_changes
        ) as runtime,
        runtime.session(request) as session,
    ):
        result = session.call_raw(raw, files=files)
    if output is not None:
        _save(result.artifacts, output)
    elif result.artifacts:
        names = ", ".join(artifact.name for artifact in result.artifacts)
        typer.echo(f"toolcage: not kept: {_shown(names)}; name a folder with --output to keep what comes out", err=True)
    if result.code == "call.not_json" and (where := _json_fault(given)):
        typer.echo(f"toolcage: --args is not JSON: {where}; write an object: --args '{{\"name\": 1}}'", err=True)
    if as_json:
        print(json.dumps(result.to_dict(), ensure_ascii=True))
    else:
        print(_shown(for_people(result) if sys.stdout.isatty() else result.to_text()))
    raise typer.Exit(0 if result.success else 3 if result.status == "unavailable" else 1)


def for_people(result: ToolResult) -> str:
    """The result for a person at a terminal: no markers for a model, the streams under their names."""
    status = str(result.status) if result.success else f"{result.status} ({result.code}): {result.error or ''}"
    parts = [status.strip()]
    if result.hint:
        parts.append(f"hint: {result.hint}")
    if result.data is not None:
        plain = isinstance(result.data, str)
        parts.append(result.data if plain else json.dumps(result.data, indent=2, ensure_ascii=True))
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        if text:
            parts.append(f"--- {name}\n{text.rstrip()}")
    parts += [f"file: {artifact.name} ({artifact.size} bytes)" for artifact in result.artifacts]
    return "\n".join(parts)


def _json_fault(text: str) -> str | None:
    """Where --args stops being JSON: for the person who typed it. The line has refused the call already."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError):
        return None
    return None


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
