"""What a Python program says that it does: findings for people and logs, never a boundary.

`getattr(__builtins__, 'ev' + 'al')` has no finding. A finding is advice: it names the line and what was seen there, so
that somebody who looks at a call knows where to look first. The cage treats all programs alike.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from toolcage.facts.python import may_parse

Concern = Literal[
    "process", "native_code", "network", "dynamic_code", "introspection", "deserialisation", "deletion", "host_files",
    "endless_loop", "unreadable",
]  # fmt: skip
_MODULES: Final[dict[str, Concern]] = {
    **dict.fromkeys(("subprocess", "pty", "multiprocessing", "_posixsubprocess"), "process"),
    **dict.fromkeys(("ctypes", "cffi", "_ctypes", "mmap"), "native_code"),
    **dict.fromkeys(
        ("socket", "ssl", "http", "urllib", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "telnetlib",
         "paramiko",
         "asyncssh", "socketserver", "xmlrpc", "urllib3"), "network"
    ),
    **dict.fromkeys(("pickle", "marshal", "shelve", "dill", "cloudpickle"), "deserialisation"),
    **dict.fromkeys(("gc", "inspect", "importlib", "imp", "runpy", "code", "codeop"), "introspection"),
}  # fmt: skip
_CALLS: Final[dict[str, Concern]] = {
    **dict.fromkeys(("eval", "exec", "compile", "__import__"), "dynamic_code"),
    **dict.fromkeys(("globals", "vars", "locals", "breakpoint"), "introspection"),
}
_METHODS: Final[dict[str, Concern]] = {
    **dict.fromkeys(("system", "popen", "fork", "kill", "killpg", "startfile", "setuid", "chroot"), "process"),
    **dict.fromkeys(("rmtree", "unlink", "removedirs"), "deletion"),
}
_PREFIXES: Final = ("exec", "spawn", "posix_spawn")
_HOST_PATHS: Final = ("/etc", "/proc", "/sys", "/root", "/dev", "/var", "/home", "/boot", "~", "C:\\")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing seen. `what` is from the program and as untrusted as it."""

    concern: Concern
    line: int
    what: str


def findings(text: str) -> tuple[Finding, ...]:
    """What stands in the program, by line. A program that cannot be parsed has the one finding `unreadable`."""
    unreadable = (Finding(concern="unreadable", line=1, what=""),)
    if not may_parse(text):
        return unreadable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
            return tuple(sorted(_all(tree), key=lambda one: (one.line, one.concern, one.what)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return unreadable


def _all(tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        for concern, what in _of(node):
            yield Finding(concern=concern, line=getattr(node, "lineno", 1), what=what[:80])


def _of(node: ast.AST) -> Iterator[tuple[Concern, str]]:
    match node:
        case ast.Import(names=names):
            for alias in names:
                yield from _module(alias.name)
        case ast.ImportFrom(module=str(module)):
            yield from _module(module)
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            yield _CALLS[name], name
        case ast.Call(func=ast.Attribute(attr=name)) if name in _METHODS:
            yield _METHODS[name], name
        case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr=name)) if name.startswith(_PREFIXES):
            yield "process", name
        case ast.Attribute(attr=name) if name.startswith("__") and name.endswith("__") and name not in _ORDINARY:
            yield "introspection", name
        case ast.Constant(value=str(value)) if value.startswith(_HOST_PATHS):
            yield "host_files", value
        case ast.While(test=ast.Constant(value=constant), body=body) if constant and not _ends(body):
            yield "endless_loop", "while"
        case _:
            return


_ORDINARY: Final = frozenset(
    {"__init__", "__name__", "__doc__", "__version__", "__file__", "__len__", "__str__", "__repr__"}
)


def _module(name: str) -> Iterator[tuple[Concern, str]]:
    top = name.partition(".")[0]
    if top in _MODULES:
        yield _MODULES[top], name


def _ends(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Break | ast.Return | ast.Raise) for one in body for node in ast.walk(one))
