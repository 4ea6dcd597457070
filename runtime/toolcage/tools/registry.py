"""Which tools there are: each a declaration that the host knows, and a shipment that only a cage ever runs.

`register` is for tools that the host's own code imported. `load` is for a stranger's file: its bytes are read and sent
to a cage, which imports and describes it; the host believes the description only as far as `admission` lets it, and
notes both hashes in tools.lock. The built-in tools stand beside any registry; a name of theirs is never a
stranger's.

Decides nothing about who may call what: that is the policy's.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
import re
import stat
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from toolcage.errors import DeclarationError
from toolcage.tools import declared_api
from toolcage.tools.admission import Description, admit, admit_stranger, read_description
from toolcage.tools.base import Tool, ToolDefinitionError, declaration_of
from toolcage.tools.lock import Entry, ToolsLock
from toolcage.tools.shipping import Shipment, ship, ship_part, ship_source
from toolcage.tools.source import SOURCE_BYTES
from toolcage.types import JSON, ToolDeclaration

BUILTIN_NAMES: Final = (
    "execute_python", "run_shell", "calculate_expression", "query_database", "describe_database", "change_database",
    "read_file", "write_file", "list_files", "analyze_file",
    "send_email", "read_email", "list_events", "create_event", "update_event", "delete_event",
    "search_web", "search_wikipedia", "call_api", "generate_image",
)  # fmt: skip
ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"calculate": "calculate_expression", "web_search": "search_web", "wikipedia_search": "search_wikipedia"}
)
ALIAS_ARGUMENTS: Final[Mapping[str, Mapping[str, JSON]]] = MappingProxyType(
    {"web_search": MappingProxyType({"num_results": 3})}
)
"""What a call by an alias means where it does not say."""
_BUILTIN: Final = frozenset(BUILTIN_NAMES) | ALIASES.keys()
_RESERVED: Final = _BUILTIN | frozenset(ALIASES.values())  # for strangers: what is to be a built-in's too

Describer = Callable[[Shipment], Mapping[str, Any]]
"""Runs the action `describe` of a shipment in a cage and returns the `data` of its answer. It raises DeclarationError
where the cage gave none: the file raised, ran into a limit, or took too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool:
    """One tool that calls can name."""

    declaration: ToolDeclaration
    shipment: Shipment


class ToolRegistry:
    """The tools of one runtime, by name. Starts empty; built-in tools are not part of it.

    `describer` and `lock_folder` are needed by `load` only.
    """

    def __init__(self, *, describer: Describer | None = None, lock_folder: Path | None = None) -> None:
        self._describer = describer
        self._lock = None if lock_folder is None else ToolsLock(lock_folder)
        self._tools: dict[str, RegisteredTool] = {}
        self._files: dict[str, str] = {}
        self._guard = threading.RLock()

    def register(self, tool: Tool, replace: bool = False) -> RegisteredTool:
        """Adds a tool that this program imported.

        Raises: TypeError for what is no tool; DeclarationError for a name that is taken (a built-in's counts) without
        `replace`, and for a declaration or a source that cannot be used.
        """
        if not isinstance(tool, Tool):  # the type says so; a caller without a type checker may not know
            hint = "; pass an instance of it" if isinstance(tool, type) else ""  # type: ignore[unreachable]
            raise TypeError(f"{tool!r} is no Tool{hint}")
        try:
            made = _registered(tool, declaration_of(tool))
        except ToolDefinitionError as error:
            raise DeclarationError(str(error)) from error
        name = made.declaration.name
        with self._guard:
            if not replace and (name in self._tools or name in _BUILTIN):
                whose = "a built-in tool" if name in _BUILTIN else "a registered tool"
                raise DeclarationError(f"{name} is the name of {whose}; choose another, or pass replace=True")
            self._tools[name] = made
            self._files.pop(name, None)
        return made

    def unregister(self, name: str) -> None:
        """Removes a tool. Raises: KeyError when there is none of that name."""
        with self._guard:
            del self._tools[name]
            self._files.pop(name, None)

    def get_tool(self, name: str) -> RegisteredTool | None:
        """The tool of that name, None where there is none."""
        return self._tools.get(name)

    def list_tools(self) -> list[str]:
        """The names, in the order in which they were added."""
        with self._guard:
            return list(self._tools)

    def load(self, path: str | os.PathLike[str], accept_changes: bool = False) -> tuple[RegisteredTool, ...]:
        """Adds the tools of a file that the host must not import: all of them, or none. A `.json` file holds declared
        operations (`declared_api`), anything else is source.

        Raises: DeclarationError when the file cannot be read as source, when a cage cannot describe it, when what it
        says cannot be believed, when a name is taken, and when file or description are not what tools.lock records
        (until `accept_changes`).
        """
        if self._describer is None or self._lock is None:
            raise DeclarationError("this registry cannot load files: it needs a describer and a folder for tools.lock")
        key = str(Path(path).absolute())
        source = read_source(path)
        if Path(path).suffix == declared_api.SUFFIX:
            return self._load_declared(key, source, accept_changes)
        whole = ship_source(_module_name(key), source)
        source_hash = _sha256(source)
        known = None if accept_changes else self._lock.entry(key)
        if known is not None and known.source_sha256 != source_hash:  # before a line of it ran, even in a cage
            raise DeclarationError(_changed(key, "its source", self._lock.path))
        try:
            description = read_description(self._describer(whole))
        except DeclarationError as error:
            raise DeclarationError(f"{key} was not loaded: {error}") from error
        made = _strangers(whole, description)
        described_hash = _description_hash(description)
        if known is not None and known.description_sha256 != described_hash:
            raise DeclarationError(_changed(key, "what its tools say of themselves", self._lock.path))
        with self._guard:
            self._check_free(made, key)
            self._lock.record(key, Entry(source_sha256=source_hash, description_sha256=described_hash))
            self._keep(made, key)
        return tuple(made.values())

    def _load_declared(self, key: str, text: str, accept_changes: bool) -> tuple[RegisteredTool, ...]:
        """Operations that somebody declared: data, and a body of ours, so no cage has to describe them."""
        assert self._lock is not None
        tools = declared_api.read_file(text, Path(key).name)
        declared = [declaration_of(tool) for tool in tools]
        made = {tool.name: _registered(tool, told) for tool, told in zip(tools, declared, strict=True)}
        entry = Entry(source_sha256=_sha256(text), description_sha256=_sha256(json.dumps(declared, sort_keys=True)))
        known = None if accept_changes else self._lock.entry(key)
        if known is not None and known.source_sha256 != entry.source_sha256:
            raise DeclarationError(_changed(key, "it", self._lock.path))
        with self._guard:
            self._check_free(made, key)
            self._lock.record(key, entry)
            self._keep(made, key)
        return tuple(made.values())

    def _keep(self, made: Mapping[str, RegisteredTool], key: str) -> None:
        """The tools of a file, in place of those that it had before."""
        for name in [name for name, file in self._files.items() if file == key]:
            self.unregister(name)
        self._tools.update(made)
        self._files.update(dict.fromkeys(made, key))

    def _check_free(self, made: Mapping[str, RegisteredTool], key: str) -> None:
        for name in made:
            if name in _RESERVED:
                raise DeclarationError(f"{key} was not loaded: {name} is the name of a built-in tool")
            if name in self._tools and self._files.get(name) != key:
                raise DeclarationError(f"{key} was not loaded: there is a tool {name} already; unregister it first")


@functools.cache
def builtin_tools() -> Mapping[str, RegisteredTool]:
    """The built-in tools, each module imported when this is first asked for."""
    scratch = ToolRegistry()
    for name in BUILTIN_NAMES:
        module = importlib.import_module(f"toolcage.tools.{name}")
        instances = [value for value in vars(module).values() if isinstance(value, Tool)]
        classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Tool)]
        instances += [kind() for kind in classes if kind.__module__ == module.__name__]
        scratch.register(next(tool for tool in instances if tool.name == name), replace=True)
    return MappingProxyType({name: scratch._tools[name] for name in BUILTIN_NAMES})


def read_source(path: str | os.PathLike[str]) -> str:
    """A stranger's file as text, never executed: a regular file (no link), within size, UTF-8.

    Raises: DeclarationError.
    """
    label = Path(path).name
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise DeclarationError(f"{label} cannot be opened as a plain file: {error}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DeclarationError(f"{label} is no regular file")
    with os.fdopen(descriptor, "rb") as handle:
        content = handle.read(SOURCE_BYTES + 1)
    if len(content) > SOURCE_BYTES:
        raise DeclarationError(f"{label} is larger than {SOURCE_BYTES} bytes; split it")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DeclarationError(f"{label} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    if "\0" in text:
        raise DeclarationError(f"{label} holds a NUL character, so it is no Python source")
    return text


def _registered(tool: Tool, declared: Mapping[str, Any]) -> RegisteredTool:
    return RegisteredTool(declaration=admit(declared), shipment=ship(tool))


def _module_name(path: str) -> str:
    """The file's own name where a module can have it; never one that a cage needs for something else."""
    stem = re.sub(r"\W", "_", Path(path).stem, flags=re.ASCII)[:60]
    taken = stem in sys.stdlib_module_names or stem in ("toolcage", "__main__", "pydantic")
    return stem if stem.isidentifier() and not taken else f"tool_{stem}"


def _strangers(whole: Shipment, description: Description) -> dict[str, RegisteredTool]:
    return {
        found.declaration.name: RegisteredTool(
            declaration=admit_stranger(found.declaration), shipment=ship_part(whole, found.attribute, found.how)
        )
        for found in description.tools
    }


def _description_hash(description: Description) -> str:
    tools = sorted(
        (found.model_dump() for found in description.tools), key=lambda tool: str(tool["declaration"]["name"])
    )
    return _sha256(json.dumps(tools, sort_keys=True))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _changed(path: str, what: str, lock: Path) -> str:
    return (
        f"{path} was not loaded: {what} changed since it was accepted in {lock}; review the change, then accept it "
        "once with Runtime.from_files(..., accept_tool_changes=True) or `toolcage call --accept-tool-changes`"
    )
