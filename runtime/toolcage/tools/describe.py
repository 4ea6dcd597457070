"""What a tool says of itself, as data: its declaration, and its parameters as one JSON Schema 2020-12 object.

Read from (first found) `parameters`, `args_schema`, or the annotations and docstring of the body. The very same file
is shipped into cages as `toolcage.tools.describe`, where it describes a stranger's tool; standard library only.

Decides nothing about trust: whatever this says inside a cage is hostile data to the host (`registry` checks it).
"""

from __future__ import annotations

import enum
import inspect
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from toolcage.tools.annotations import Schema, as_json, fragment_of, hints_of, untitled
from toolcage.tools.base import NAME, Tool, ToolDefinitionError
from toolcage.tools.docstring import read_docstring

_ANYTHING_PLAIN: Final = ("string", "number", "boolean")


def declaration(tool: Tool, body: Callable[..., Any]) -> dict[str, Any]:
    """The declaration of `tool` as plain JSON data. See `base.declaration_of`."""
    name, wall_s = tool.name, tool.wall_s
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise ToolDefinitionError(
            f"{name!r} is no name for a tool; use at most 64 of a-z, 0-9 and _, beginning with a letter"
        )
    summary, described = read_docstring(inspect.getdoc(body) or "")
    description = tool.description or summary or _class_summary(tool)
    if not isinstance(description, str) or not description.strip():
        raise ToolDefinitionError(f"tool {name} has no description; say what it does and when to use it")
    if isinstance(wall_s, bool) or not isinstance(wall_s, int | float) or not (0 < wall_s < math.inf):
        raise ToolDefinitionError(f"tool {name}: wall_s is {wall_s!r}; give a positive number of seconds")
    parameters = _parameters(tool, body, described)
    _check_body_takes(tool, body, parameters)
    declared = {
        "name": name,
        "description": inspect.cleandoc(description),
        "parameters": parameters,
        "kinds": dict(tool.kinds),
        "effects": sorted(tool.effects),
        "resources": dict(tool.resources),
        "image": tool.image,
        "isolation": tool.isolation,
        "wall_s": float(wall_s),
        "idempotent": tool.idempotent is True,
        "accepts_files": tool.accepts_files is True,
        "file_uses": dict(tool.file_uses),
        "effects_need": {effect: list(needed) for effect, needed in tool.effects_need.items()},
    }
    return as_json(declared, where=f"tool {name}")


# --- parameters ----------------------------------------------------------------------------------------------------


def _parameters(tool: Tool, body: Callable[..., Any], described: Mapping[str, str]) -> Schema:
    if tool.parameters is not None:
        if not isinstance(tool.parameters, Mapping):
            raise ToolDefinitionError(f"tool {tool.name}: parameters is no mapping")
        full = _is_object_schema(tool.parameters)
        schema = dict(tool.parameters) if full else _from_mapping(tool.name, tool.parameters)
    elif tool.args_schema is not None:
        schema = _from_model(tool)
    else:
        schema = _from_signature(tool.name, body, described)
    return _normalised(tool.name, as_json(schema, where=f"tool {tool.name}"))


def _is_object_schema(parameters: Mapping[str, Any]) -> bool:
    """Whether this is a schema, and not a mapping from parameter names that happen to be schema words."""
    if "properties" in parameters and not isinstance(parameters["properties"], Mapping):
        return False
    return parameters.get("type") == "object" or (
        "properties" in parameters and all(isinstance(item, Mapping) for item in parameters["properties"].values())
        and not isinstance(parameters.get("type"), str | Mapping)
    )  # fmt: skip


def _from_mapping(tool_name: str, parameters: Mapping[str, Any]) -> Schema:
    properties: Schema = {}
    required = []
    for name, given in parameters.items():
        if isinstance(given, str):
            properties[name] = {"type": list(_ANYTHING_PLAIN), "description": given}
            required.append(name)
        elif isinstance(given, Mapping):
            fragment = dict(given)
            # `required: true` inside a fragment is no JSON Schema, and common enough to be understood.
            flag = fragment.pop("required") if isinstance(fragment.get("required"), bool) else "default" not in fragment
            properties[name] = fragment
            required += [name] if flag else []
        else:
            raise ToolDefinitionError(
                f"tool {tool_name}: parameter {name!r} is neither a description nor a schema fragment"
            )
    return {"type": "object", "properties": properties, "required": required}


def _from_model(tool: Tool) -> Schema:
    if isinstance(tool.args_schema, Mapping):
        return dict(tool.args_schema)
    if not hasattr(tool.args_schema, "model_json_schema"):
        raise ToolDefinitionError(f"tool {tool.name}: args_schema is neither a pydantic model nor a schema")
    return untitled(tool.args_schema.model_json_schema())


def _from_signature(tool_name: str, body: Callable[..., Any], described: Mapping[str, str]) -> Schema:
    properties: Schema = {}
    required = []
    hints = hints_of(tool_name, body)
    for name, parameter in inspect.signature(body).parameters.items():
        where = f"tool {tool_name}: parameter {name!r}"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolDefinitionError(f"{where} cannot be passed by name; name each one, or declare `parameters`")
        fragment: Schema = fragment_of(hints[name], where=where) if name in hints else {"type": list(_ANYTHING_PLAIN)}
        if name in described:
            fragment.setdefault("description", described[name])
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            default = parameter.default.value if isinstance(parameter.default, enum.Enum) else parameter.default
            if default is not None and _is_json(default):
                fragment["default"] = default
        properties[name] = fragment
    return {"type": "object", "properties": properties, "required": required}


def _normalised(tool_name: str, schema: Schema) -> Schema:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    if schema.get("additionalProperties", False) is not False or "patternProperties" in schema:
        raise ToolDefinitionError(f"tool {tool_name} would take arguments without a name; name each in `properties`")
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise ToolDefinitionError(f"tool {tool_name}: `properties` must be an object and `required` a list")
    unknown = [name for name in required if name not in properties]
    if unknown:
        raise ToolDefinitionError(f"tool {tool_name} requires {unknown}, which `properties` does not have")
    definitions: Schema = dict(schema.get("$defs", {}))
    for fragment in properties.values():
        brought: Schema = fragment.pop("$defs", {}) if isinstance(fragment, dict) else {}
        for key, value in brought.items():
            if definitions.setdefault(key, value) != value:
                raise ToolDefinitionError(f"tool {tool_name}: two different models are called {key}; rename one")
    rest = {key: value for key, value in schema.items() if key not in ("$schema", "title", "$defs", "description")}
    return {
        **rest,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
        **({"$defs": definitions} if definitions else {}),
    }


def _check_body_takes(tool: Tool, body: Callable[..., Any], parameters: Schema) -> None:
    """A declared argument that the body has no place for would fail at the first call; say it now."""
    taken = inspect.signature(body).parameters
    fields = getattr(tool.args_schema, "model_fields", None) if tool.parameters is None else None
    given = list(fields) if fields is not None else list(parameters["properties"])
    always = set(fields) if fields is not None else set(parameters["required"])
    always |= {name for name, fragment in parameters["properties"].items() if "default" in fragment}
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values()):
        extra = [name for name in given if name not in taken]
        if extra:
            raise ToolDefinitionError(f"tool {tool.name} declares {extra}, which its body does not take")
    variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    missing = [
        name
        for name, parameter in taken.items()
        if parameter.default is parameter.empty and parameter.kind not in variable and name not in always
    ]
    if missing:
        raise ToolDefinitionError(f"tool {tool.name}: its body needs {missing}, which is not declared or not required")


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False


def _class_summary(tool: Tool) -> str:
    """The docstring of the tool's own class; that of a base class describes something else."""
    own = type(tool).__dict__.get("__doc__")
    return read_docstring(inspect.cleandoc(own))[0] if isinstance(own, str) and tool._function is None else ""
