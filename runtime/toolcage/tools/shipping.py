"""A tool's body as source text: what a cage imports, under which name, and how it finds the tool there.

Host side. Reads the source of what the host's own code already imported (never a file that it did not), takes along the
modules of the same top-level package that it imports, and refuses what would not mean the same in a cage: closures,
scripts that act when imported, instances whose constructor's arguments cannot be sent. Modules of the image, and
`toolcage` itself, are not shipped with it; the declaration names are.

Trusts the tool object. Not seen: attributes changed after construction, and modules patched at run time; the cage gets
the source as it stands in the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import pathlib
import re
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from toolcage.errors import DeclarationError
from toolcage.tools.base import Tool, ToolDefinitionError, body_of
from toolcage.tools.source import (
    BASE_MODULES,
    SEGMENT,
    SOURCE_BYTES,
    check_names,
    check_script,
    has_source,
    own_source,
    segment_of,
    source_of,
    sources_named,
    take_siblings,
)
from toolcage.types import JSON, freeze, thaw

How = Literal["attribute", "class", "function", "module"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipment:
    """What a cage needs to find one tool (or, `how` = `module`, to describe a whole file).

    `module` is imported under that name and `attribute` (dotted) looked up in it: a tool's instance (`attribute`), a
    class built with `init` (`{"args": […], "kwargs": {…}}`), or a plain function. `modules` maps names to source text,
    the declaration names included. `digest` is the SHA-256, in hex, over all of it.
    """

    module: str
    attribute: str
    how: How
    modules: Mapping[str, str]
    init: JSON
    digest: str

    def payload(self) -> dict[str, Any]:
        """The `tool` part of the order that the cage's program reads."""
        return {
            "module": self.module,
            "attribute": self.attribute,
            "how": self.how,
            "init": thaw(self.init),
            "modules": dict(self.modules),
        }


def ship(tool: Tool) -> Shipment:
    """The source and the way to this tool. Raises: DeclarationError that says what to change."""
    try:
        body = body_of(tool)
    except ToolDefinitionError as error:
        raise DeclarationError(str(error)) from error
    function = body if tool._function is not None else None
    home = _module_of(function if function is not None else type(tool))
    path = _path_to(tool, home)
    if path is not None:
        return _module_shipment(home, path, "attribute", None, tool.ships)
    if function is None:
        return _class_shipment(tool, home)
    return _function_shipment(tool, function, home)


def ship_source(module: str, source: str) -> Shipment:
    """One file's text, to be described in a cage. Raises: DeclarationError when it is too large."""
    return _sealed(module, "", "module", {module: source}, None)


def ship_part(whole: Shipment, attribute: str, how: Literal["attribute", "class"]) -> Shipment:
    """The same source, with the way to one of the tools that its description named."""
    return _sealed(whole.module, attribute, how, whole.modules, None)


# --- kinds of tools ------------------------------------------------------------------------------------------------


def _class_shipment(tool: Tool, home: types.ModuleType) -> Shipment:
    kind = type(tool)
    where = f"tool {tool.name}: {kind.__qualname__}"
    if "<locals>" in kind.__qualname__ or _resolve(home, kind.__qualname__) is not kind:
        raise DeclarationError(f"{where} is not defined at the top of its module; move it there, so it can be imported")
    args, kwargs = tool._init
    init = {"args": list(args), "kwargs": dict(kwargs)}
    if not _is_json(init):
        raise DeclarationError(
            f"{where} was built with arguments that are not JSON, so a cage cannot build it; pass plain values, "
            "or make the instance a variable at the top of the module that defines its class"
        )
    return _module_shipment(home, kind.__qualname__, "class", init, tool.ships)


def _function_shipment(tool: Tool, function: Callable[..., Any], home: types.ModuleType) -> Shipment:
    if not isinstance(function, types.FunctionType):
        raise DeclarationError(f"tool {tool.name}: its body is no plain function; wrap it in one with def")
    if tool.parameters is None and tool.args_schema is not None:
        raise DeclarationError(
            f"tool {tool.name}: its args_schema is reached through the tool only; "
            "make the tool a variable at the top of its module"
        )
    if function.__closure__:
        names = ", ".join(function.__code__.co_freevars)
        raise DeclarationError(
            f"tool {tool.name}: its body uses {names} of the function around it, which a cage does not have; "
            "move the body to the top of a module and pass what it needs as arguments"
        )
    init = {"declared": tool.parameters is not None}
    if _resolve(home, function.__qualname__) is function and has_source(home):
        return _module_shipment(home, function.__qualname__, "function", init, tool.ships)
    modules = {"tool_segment": segment_of(tool.name, function), **sources_named(tool.ships)}
    return _sealed("tool_segment", SEGMENT, "function", modules, init)


def _module_shipment(home: types.ModuleType, attribute: str, how: How, init: Any, ships: tuple[str, ...]) -> Shipment:
    name = _import_name(home)
    source = source_of(home)
    modules = {name: source}
    if name.partition(".")[0] != "toolcage":  # a built-in tool names what it needs in `ships`
        if home.__name__ == "__main__":
            check_script(home, source)
        check_names(name, source)
        take_siblings(home, name, source, modules)
    modules.update(sources_named(ships))
    return _sealed(name, attribute, how, modules, init)


def _sealed(module: str, attribute: str, how: How, modules: Mapping[str, str], init: Any) -> Shipment:
    total = sum(len(source.encode("utf-8", "replace")) for source in modules.values())
    if total > SOURCE_BYTES:
        raise DeclarationError(
            f"the source of {module} and the modules it imports is {total} bytes, more than {SOURCE_BYTES}; "
            "put the tool in a module of its own that imports less"
        )
    complete = {**modules, **{name: own_source(name) for name in BASE_MODULES if name not in modules}}
    content = json.dumps([module, attribute, how, init, sorted(complete.items())], ensure_ascii=True)
    return Shipment(
        module=module,
        attribute=attribute,
        how=how,
        modules=MappingProxyType(complete),
        init=freeze(init),
        digest=hashlib.sha256(content.encode("ascii")).hexdigest(),
    )


# --- finding -------------------------------------------------------------------------------------------------------


def _module_of(value: Any) -> types.ModuleType:
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if module is None:
        raise DeclarationError(f"{value!r} belongs to no imported module; define it in a file and import that")
    return module


def _path_to(tool: Tool, module: types.ModuleType) -> str | None:
    """The name under which the module, or a class at its top, holds this very instance."""
    for name, value in vars(module).items():
        if value is tool:
            return name if has_source(module) else None
    for name, value in vars(module).items():
        if isinstance(value, type) and value.__module__ == module.__name__:
            for inner, held in vars(value).items():
                if held is tool:
                    return f"{name}.{inner}" if has_source(module) else None
    return None


def _resolve(module: types.ModuleType, qualname: str) -> object:
    found: object = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def _import_name(module: types.ModuleType) -> str:
    """The module's own name; a script goes under its file's."""
    if module.__name__ != "__main__":
        return module.__name__
    spec = getattr(module, "__spec__", None)
    if spec is not None:  # python -m package.module
        return str(spec.name)
    stem = re.sub(r"\W", "_", pathlib.PurePath(module.__file__ or "script").stem, flags=re.ASCII)
    return stem if stem.isidentifier() and stem not in sys.stdlib_module_names else f"tool_{stem}"


def _is_json(value: Any) -> bool:
    """Exactly JSON, so that the cage builds the tool from the same values: a tuple would arrive as a list."""
    if value is None or type(value) in (bool, int, str):
        return True
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is list:
        return all(_is_json(item) for item in value)
    return type(value) is dict and all(type(key) is str and _is_json(item) for key, item in value.items())
