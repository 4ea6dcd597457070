"""One call, in its own process inside the cage: import the tool from memory, run its body, write one answer.

`run(payload, result_fd)` is called in a child that was forked for this call alone and already has its own pipes, limits
and folder. The tool's modules come with the payload and are imported under their own names, never as `__main__`; the
package `toolcage` is here only what an author may import: the declaration names.

Standard library only. Trusts the payload (it came from the host) and nothing that the tool does: the tool runs in this
very process and can write what it likes on `result_fd`, so the host takes every answer for hostile. What this module
ensures is that an honest tool's value arrives as JSON, in bounds, and that a failure says what failed.
Killing leftovers, collecting files and the deadline are the warden's work, in other processes.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.machinery
import io
import linecache
import os
import sys
import traceback
import types
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from toolcage.warden.document import Unwritable, encode

_BASE: Final = "toolcage.tools.base"
_PUBLIC: Final = ("StandardTool", "Tool", "ToolFailure", "ToolResult", "tool")
_CO_ITERABLE_COROUTINE: Final = 0x100  # inspect.CO_ITERABLE_COROUTINE
_ERROR_CHARS: Final = 2_000
_TRACEBACK_CHARS: Final = 64 * 1024
_NOT_SHIPPED: Final = (
    "For the tool's author: modules beside the tool's own come along where it imports them by name at its top, others "
    "with ships=(...); packages must be in the cage's image."
)
_OWN_FRAMES: Final = (__file__, "<toolcage", "toolcage.", "<frozen importlib", importlib.__file__)


class _Failed(Exception):
    """The call cannot go on; carries the answer."""

    def __init__(self, error: str, code: str, hint: str | None = None) -> None:
        super().__init__(error)
        self.answer = failure(error, code, hint)


def failure(error: str, code: str | None, hint: str | None = None) -> dict[str, Any]:
    return {"success": False, "error": error[:_ERROR_CHARS], "code": code, "hint": hint}


def preload(modules: Sequence[str], first: Sequence[str], code_of: Callable[[str], types.CodeType]) -> None:
    """Makes our own `modules` importable, and imports `first`, which every call needs, before any call is forked.
    Never give it anything of a call."""
    _memory.codes.update({name: functools.partial(code_of, name) for name in modules})
    _serve({})
    for name in first:
        importlib.import_module(name)


def run(payload: Mapping[str, Any], result_fd: int) -> int:
    """Runs the action of `payload` and writes one JSON document to `result_fd`. Returns the exit code to end with.

    A body that ends the program itself (`SystemExit`) leaves no document, only its exit code.
    """
    _open_streams()
    _name_proxy(payload)
    try:
        answer = _act(payload)
    except SystemExit as leaving:
        os.close(result_fd)
        return _exit_code(leaving)
    except _Failed as failed:
        answer = failed.answer
    except BaseException as error:  # noqa: BLE001 - the outermost frame: whatever the tool raised is its failure
        answer = _raised(error)
    try:
        document = encode(answer)
    except Unwritable as refused:
        answer = failure(str(refused), refused.code, refused.hint)
        document = encode(answer)
    except BaseException as error:  # noqa: BLE001 - the tool's own objects run while they are read
        answer = _raised(error)
        document = encode(answer)
    _flush()
    _write_all(result_fd, document)
    return 0 if answer["success"] else 1


_PROXY_NAMES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_DIRECT_NAMES: Final = ("NO_PROXY", "no_proxy")


def _name_proxy(payload: Mapping[str, Any]) -> None:
    """Tells programs where the call's proxy is, in the variables that they look at; that there is none, otherwise."""
    proxy = (payload.get("context") or {}).get("proxy")
    for names, value in ((_PROXY_NAMES, proxy and proxy["base"]), (_DIRECT_NAMES, proxy and "127.0.0.1,localhost")):
        for name in names:
            if value:
                os.environ[name] = value
            else:
                os.environ.pop(name, None)


def _act(payload: Mapping[str, Any]) -> dict[str, Any]:
    tool = payload["tool"]
    _serve(tool["modules"])
    base: Any = importlib.import_module(_BASE)
    base._in_cage = True
    module = _import(tool["module"])
    if payload["action"] == "describe":
        return {"success": True, "data": _described(module, base)}
    return _call(_found(module, tool, base), payload, base)


# --- calling -------------------------------------------------------------------------------------------------------


def _call(tool: Any, payload: Mapping[str, Any], base: Any) -> dict[str, Any]:
    object.__setattr__(tool, "context", types.MappingProxyType(dict(payload.get("context") or {})))
    body = base.body_of(tool)
    try:
        value = body(**_keywords(tool, body, payload["arguments"], base))
        if _is_awaitable(value):
            value = _awaited(value)
    except base.ToolFailure as failed:
        hint = None if failed.hint is None else str(failed.hint)[:_ERROR_CHARS]
        return failure(str(failed.message), str(failed.code), hint)
    if isinstance(value, base.ToolResult):
        if not value.success:
            return failure("the tool failed" if value.error is None else str(value.error), None)
        value = value.data
    return {"success": True, "data": value}


def _keywords(tool: Any, body: Any, arguments: Mapping[str, Any], base: Any) -> dict[str, Any]:
    """What reads annotations costs more than many a body, so it is loaded for those that promise more than JSON."""
    if base.takes_json(tool, body):
        return dict(arguments)
    bound: dict[str, Any] = importlib.import_module("toolcage.tools.annotations").bound_arguments(tool, body, arguments)
    return bound


def _is_awaitable(value: Any) -> bool:
    """As `inspect` says it, which takes longer to import than all else here together."""
    old_style = isinstance(value, types.GeneratorType) and value.gi_code.co_flags & _CO_ITERABLE_COROUTINE
    return isinstance(value, Awaitable) or bool(old_style)


def _awaited(value: Any) -> Any:
    import asyncio  # costs as much as the rest together, and most bodies do not need it

    async def awaiting() -> Any:
        return await value

    return asyncio.run(awaiting())


def _found(module: types.ModuleType, tool: Mapping[str, Any], base: Any) -> Any:
    """The tool that the host means: an instance, or one built here from a class or a function."""
    found: Any = module
    for part in tool["attribute"].split("."):
        found = getattr(found, part, None)
    how, init = tool["how"], tool.get("init") or {}
    if how == "attribute" and isinstance(found, base.Tool):
        return found
    if how == "class" and isinstance(found, type) and issubclass(found, base.Tool):
        return found(*init.get("args", ()), **init.get("kwargs", {}))
    if how == "function" and callable(found):
        made = base.tool("function")(found)
        made.parameters = {} if init.get("declared") else None
        return made
    raise _Failed(f"{tool['module']}.{tool['attribute']} is no {how} that holds a tool", "tool.not_found")


# --- describing ----------------------------------------------------------------------------------------------------


def _described(module: types.ModuleType, base: Any) -> dict[str, Any]:
    """Every tool that the module offers, each with its declaration, and what stands in the way of the others."""
    tools: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for attribute, how, tool in _candidates(module, base, problems):
        try:
            declaration = base.declaration_of(tool)
        except base.ToolDefinitionError as error:
            problems.append(f"{attribute}: {error}"[:_ERROR_CHARS])
            continue
        tools.setdefault(declaration["name"], {"attribute": attribute, "how": how, "declaration": declaration})
    return {"tools": list(tools.values()), "problems": problems}


def _candidates(module: types.ModuleType, base: Any, problems: list[str]) -> list[tuple[str, str, Any]]:
    """Instances first: where a module has both a class and its instance, the instance is what the author made."""
    public = [(name, value) for name, value in vars(module).items() if not name.startswith("_")]
    instances = [(name, "attribute", value) for name, value in public if isinstance(value, base.Tool)]
    made = {type(value) for _, _, value in instances}
    classes = []
    for name, value in public:
        if not (isinstance(value, type) and issubclass(value, base.Tool)) or value in made:
            continue
        if value.__module__ != module.__name__ or getattr(value, "_body_slot", None) is None:
            continue
        try:
            classes.append((name, "class", value()))
        except Exception as error:  # noqa: BLE001 - a constructor may raise anything; the others are still tools
            problems.append(f"{name} cannot be built without arguments: {type(error).__name__}: {error}"[:_ERROR_CHARS])
    return instances + classes


# --- importing from memory -----------------------------------------------------------------------------------------


class _Memory:
    """Finder and loader of the modules that came with the payload, and of our own, which were there before."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.codes: dict[str, Callable[[], types.CodeType]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        known = self.sources.keys() | self.codes.keys()
        below = any(other.startswith(name + ".") for other in known)
        if name not in known and (not below or _installed(name, path)):
            return None
        loader: Any = self  # by its methods: the base class would bring half the library along
        spec = importlib.machinery.ModuleSpec(name, loader, origin=f"{name}.py", is_package=below)
        spec.has_location = True  # gives the module a __file__, which tracebacks and inspect ask for
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        if name in self.codes:
            exec(self.codes[name](), module.__dict__)  # noqa: S102 - this is the import
            return
        source, filename = self.sources.get(name, ""), f"{name}.py"  # a package that only holds others is empty
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        exec(compile(source, filename, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - this is the import

    def get_source(self, name: str) -> str | None:
        return None if name in self.codes else self.sources.get(name, "")


_memory: Final = _Memory()


def _serve(modules: Mapping[str, str]) -> None:
    """Makes `modules` importable, before anything that is installed, beside what was served before.

    Of the package `toolcage`, a tool finds the declaration names and served modules only: the warden's own are out of
    an import's reach, although their code runs on. A module that was loaded from the same text stays loaded.
    """
    package = f"from {_BASE} import {', '.join(_PUBLIC)}\n__all__ = {list(_PUBLIC)!r}\n"
    served = {"toolcage": package, **modules}
    changed = any(_memory.sources.get(name, source) != source for name, source in served.items())
    changed = changed or not _memory.codes.keys().isdisjoint(served)
    _memory.sources.update(served)
    for name in _memory.codes.keys() & served.keys():
        del _memory.codes[name]
    if _memory not in sys.meta_path:
        sys.meta_path.insert(0, _memory)
    for name in [name for name in sys.modules if name == "toolcage" or name.startswith("toolcage.")]:
        spec = getattr(sys.modules[name], "__spec__", None)
        if changed or spec is None or spec.loader is not _memory:
            del sys.modules[name]


def _installed(name: str, path: Sequence[str] | None) -> bool:
    """Whether the image has a regular package of that name, whose other modules must stay reachable."""
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    return name != "toolcage" and not name.startswith("toolcage.") and spec is not None and spec.loader is not None


def _import(name: str) -> types.ModuleType:
    try:
        return importlib.import_module(name)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - a module may raise anything while it is imported
        answer = _raised(error)
        text = f"the tool's module {name} cannot be imported: {answer['error']}"
        raise _Failed(text, "tool.import_failed", answer["hint"]) from None


# --- ending --------------------------------------------------------------------------------------------------------


def _raised(error: BaseException) -> dict[str, Any]:
    """The failure that an uncaught exception is; the traceback goes to stderr, without the frames of this program."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - a tool's exception may fail to print itself
        text = type(error).__name__
    try:
        own = error.__traceback__
        while own is not None and own.tb_next is not None and own.tb_frame.f_code.co_filename.startswith(_OWN_FRAMES):
            own = own.tb_next
        shown = "".join(traceback.format_exception(type(error), error, own))
        sys.stderr.write(shown[-_TRACEBACK_CHARS:])
    except Exception:  # noqa: BLE001, S110 - nothing that a tool left behind may cost the answer
        pass
    return failure(text, "tool.exception", _NOT_SHIPPED if isinstance(error, ModuleNotFoundError) else None)


def _exit_code(leaving: SystemExit) -> int:
    code = leaving.code
    if code is None or isinstance(code, int):
        _flush()
        return (code or 0) & 0xFF
    sys.stderr.write(f"{code}\n"[:_TRACEBACK_CHARS])
    _flush()
    return 1


def _open_streams() -> None:
    """Unbuffered text streams on this call's own pipes: what a killed program printed so far has left it already."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        raw = io.FileIO(descriptor, "w", closefd=False)
        stream = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed or replaced by the tool
            stream.flush()


def _write_all(descriptor: int, document: bytes) -> None:
    view = memoryview(document)
    while view:
        view = view[os.write(descriptor, view) :]
    os.close(descriptor)
