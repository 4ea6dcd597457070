"""What the library's own entry points accept, checked where a caller without a type checker hands it over.

A wrong type is the developer's mistake: a UsageError or TypeError that names the argument and what to pass, raised
before anything begins. Decides nothing about the values: the stages of the line do that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from toolcage.errors import UsageError
from toolcage.tools.base import Tool

MIN_KEY_BYTES = 16


def check_runtime(*, approver: object, audit_key: object) -> None:
    """Raises UsageError for an approver that cannot be called and for a key that is not bytes enough."""
    if approver is not None and not callable(approver):
        raise UsageError(f"approver is {_a(approver)}; pass a function that takes an ApprovalRequest")
    if audit_key is not None and not isinstance(audit_key, bytes):
        raise UsageError(f"audit_key is {_a(audit_key)}; pass at least {MIN_KEY_BYTES} bytes, not text")


def check_paths(named: object, argument: str) -> None:
    """Raises UsageError unless this is a path, or a list of paths."""
    if isinstance(named, str | os.PathLike):
        return
    if isinstance(named, bytes | Mapping) or not isinstance(named, Iterable):
        raise UsageError(f"{argument} is {_a(named)}; pass the path of a file or folder, or a list of paths")
    for item in named:
        if not isinstance(item, str | os.PathLike):
            raise UsageError(f"{argument} holds {_a(item)}; every item must be a path")


def check_tools(tools: object) -> tuple[Any, ...]:
    """The tools as a tuple. Raises UsageError for anything but a list of tools and of files' paths."""
    if isinstance(tools, str | os.PathLike | Tool | Mapping) or not isinstance(tools, Iterable):
        raise UsageError(f"tools is {_a(tools)}; pass a list: tools=[my_tool, 'their_tools.py']")
    offered = tuple(tools)
    for item in offered:
        if isinstance(item, type):
            raise UsageError(f"tools holds the class {item.__name__}; pass an instance of it: {item.__name__}()")
        if not isinstance(item, Tool | str | os.PathLike):
            hint = "; decorate the function with @tool" if callable(item) else ""
            raise UsageError(f"tools holds {_a(item)}, which is neither a tool nor a path{hint}")
    return offered


def check_request(request: object, role: object) -> None:
    """Raises UsageError for a session whose request or role is no text."""
    if not isinstance(request, str):
        raise UsageError(f"request is {_a(request)}; pass the user's words as one text")
    if role is not None and not isinstance(role, str):
        raise UsageError(f"role is {_a(role)}; pass the role's name")


def check_call(files: object, on_output: object, cancel: object, token: type) -> None:
    """Raises UsageError for what a call is given besides its tool and arguments."""
    if files is not None and not isinstance(files, Mapping):
        raise UsageError(f"files is {_a(files)}; pass a mapping from relative names to bytes")
    for name, content in (files or {}).items():
        if not isinstance(name, str) or not isinstance(content, bytes):
            raise UsageError(f"files maps {_a(name)} to {_a(content)}; map names to bytes: {{'data.csv': b'...'}}")
    if on_output is not None and not callable(on_output):
        raise UsageError(f"on_output is {_a(on_output)}; pass a function that takes (stream, text)")
    if cancel is not None and not isinstance(cancel, token):
        raise UsageError(f"cancel is {_a(cancel)}; pass a {token.__name__}")


def _a(value: object) -> str:
    """The type, never the value: it may be a secret."""
    return f"of type {type(value).__name__}" if value is not None else "None"
