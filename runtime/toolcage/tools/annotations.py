"""Python annotations and JSON, both ways: an annotation's schema, and a JSON argument as its annotation promises it.

Standard library only (pydantic is used where an author gave a model): shipped into cages as
`toolcage.tools.annotations`, where it prepares the arguments for a body. On the host it only ever makes schemas.

Deliberately no validator: what a schema let pass and an annotation refuses is the call's failure, inside the cage.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import inspect
import json
import pathlib
import sys
import types
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final, Literal

from toolcage.tools.base import Tool, ToolDefinitionError, ToolFailure

Schema = dict[str, Any]

_STRING: Final[Schema] = {"type": "string"}
_UNIQUE: Final[Schema] = {"type": "array", "uniqueItems": True}
_JSON_TYPES: Final[Mapping[str, Schema]] = {
    **{name: {"type": name} for name in ("string", "number", "integer", "boolean", "object", "array", "null")},
    "str": _STRING,
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "dict": {"type": "object"},
    "list": {"type": "array"},
    "any": {},
}
_PLAIN_TYPES: Final[Mapping[Any, Schema]] = {
    **{kind: _JSON_TYPES[kind.__name__] for kind in (str, int, float, bool, dict, list)},
    tuple: {"type": "array"},
    Sequence: {"type": "array"},
    Mapping: {"type": "object"},
    set: _UNIQUE,
    frozenset: _UNIQUE,
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    pathlib.Path: _STRING,
    pathlib.PurePath: _STRING,
    decimal.Decimal: {"type": ["string", "number"]},
}


def fragment_of(type_: Any, *, where: str) -> Schema:
    """The schema of one value: of a JSON type name, a Python annotation, or a fragment that is a schema already.

    Definitions that pydantic models bring along stand under `$defs` of the answer.
    Raises: ToolDefinitionError for a type that has no schema; `where` names the parameter.
    """
    definitions: Schema = {}
    if isinstance(type_, Mapping):
        return as_json(dict(type_), where=where)
    if isinstance(type_, str):
        if type_ not in _JSON_TYPES:
            raise ToolDefinitionError(f"{where}: {type_!r} is no type; use one of {', '.join(_JSON_TYPES)}")
        return dict(_JSON_TYPES[type_])
    fragment = _annotation(type_, where, definitions)
    return fragment | ({"$defs": definitions} if definitions else {})


def hints_of(tool_name: str, body: Callable[..., Any]) -> dict[str, Any]:
    """The resolved annotations of a body's parameters; what it returns is nobody's business here.

    Raises: ToolDefinitionError where a name in them cannot be resolved.
    """
    function = inspect.unwrap(body)
    holder = types.SimpleNamespace(
        __annotations__=_written(function), __globals__=getattr(function, "__globals__", {}), __type_params__=()
    )
    try:
        return typing.get_type_hints(holder, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise ToolDefinitionError(f"tool {tool_name}: its annotations cannot be read ({error})") from error


def _written(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function's parameters as written; a name that cannot be resolved may stay unread."""
    if sys.version_info >= (3, 14):
        import annotationlib

        written = annotationlib.get_annotations(function, format=annotationlib.Format.FORWARDREF)
    else:
        written = getattr(function, "__annotations__", {})
    return {name: hint for name, hint in written.items() if name != "return"}


def _annotation(hint: Any, where: str, definitions: Schema) -> Schema:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        fragment = _annotation(arguments[0], where, definitions)
        texts = [extra for extra in arguments[1:] if isinstance(extra, str)]
        texts += [extra.description for extra in arguments[1:] if isinstance(getattr(extra, "description", None), str)]
        return fragment | ({"description": texts[0]} if texts else {})
    if origin is Literal:
        return _choices(list(arguments), where)
    if origin in (typing.Union, types.UnionType):
        return _union([_annotation(item, where, definitions) for item in arguments])
    if origin is not None:
        return _generic(origin, arguments, where, definitions)
    try:
        if hint in _PLAIN_TYPES:
            return dict(_PLAIN_TYPES[hint])
    except TypeError:  # unhashable
        pass
    if isinstance(hint, type):
        return _class(hint, where, definitions)
    raise ToolDefinitionError(f"{where}: {hint!r} has no JSON form; use a JSON type, or declare `parameters`")


def _generic(origin: Any, arguments: tuple[Any, ...], where: str, definitions: Schema) -> Schema:
    if not arguments and origin in _PLAIN_TYPES:
        return dict(_PLAIN_TYPES[origin])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if arguments[0] is not str:
            raise ToolDefinitionError(f"{where}: the keys of a JSON object are strings")
        return {"type": "object", "additionalProperties": _annotation(arguments[1], where, definitions)}
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        items = [_annotation(item, where, definitions) for item in arguments]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    if isinstance(origin, type) and issubclass(origin, Sequence | Set):
        unique = {"uniqueItems": True} if issubclass(origin, Set) else {}
        return {"type": "array", "items": _annotation(arguments[0], where, definitions)} | unique
    raise ToolDefinitionError(f"{where}: {origin!r} has no JSON form; use a JSON type, or declare `parameters`")


def _class(hint: type, where: str, definitions: Schema) -> Schema:
    if hasattr(hint, "model_json_schema"):
        schema = untitled(hint.model_json_schema())
        for key, value in schema.pop("$defs", {}).items():
            if definitions.setdefault(key, value) != value:
                raise ToolDefinitionError(f"{where}: two different models are called {key}; rename one")
        return schema
    if issubclass(hint, enum.Enum):
        return _choices([member.value for member in hint], where)
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint)
        return _object(hints, sorted(hint.__required_keys__), where, definitions)  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(hint):
        missing = dataclasses.MISSING
        fields = [item for item in dataclasses.fields(hint) if item.init]
        needed = [item.name for item in fields if item.default is missing and item.default_factory is missing]
        hints = typing.get_type_hints(hint, include_extras=True)
        return _object({item.name: hints[item.name] for item in fields}, needed, where, definitions)
    raise ToolDefinitionError(f"{where}: {hint.__name__} has no JSON form; use a JSON type, or declare `parameters`")


def _object(hints: Mapping[str, Any], required: list[str], where: str, definitions: Schema) -> Schema:
    properties = {name: _annotation(hint, f"{where}, field {name!r}", definitions) for name, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _choices(values: list[Any], where: str) -> Schema:
    if not all(value is None or isinstance(value, bool | int | float | str) for value in values):
        raise ToolDefinitionError(f"{where}: its choices are not all strings, numbers or booleans")
    return {"enum": values}


def _union(fragments: list[Schema]) -> Schema:
    if all(fragment.keys() == {"type"} and isinstance(fragment["type"], str) for fragment in fragments):
        return {"type": list(dict.fromkeys(fragment["type"] for fragment in fragments))}
    return {"anyOf": fragments}


def as_json(value: dict[str, Any], *, where: str) -> dict[str, Any]:
    """A deep copy made of plain JSON values only."""
    try:
        copied: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolDefinitionError(f"{where} is not made of JSON values ({error})") from error
    return copied


def untitled(schema: Schema, *, names: bool = False) -> Schema:
    """Without the titles that pydantic adds; a *property* called `title` stays (`names`: the keys are names)."""
    kept: Schema = {}
    for key, value in schema.items():
        if key == "title" and not names and isinstance(value, str):
            continue
        inner_names = not names and key in ("properties", "$defs")
        if isinstance(value, dict) and key not in ("default", "const"):
            value = untitled(value, names=inner_names)
        elif isinstance(value, list) and key in ("anyOf", "allOf", "oneOf", "prefixItems"):
            value = [untitled(item) if isinstance(item, dict) else item for item in value]
        kept[key] = value
    return kept


# --- arguments for the body (in the cage) -----------------------------------------------------------------------------


def bound_arguments(tool: Tool, body: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords to call `body` with: JSON arguments as the model or the annotations promise them.

    Raises: ToolFailure (`tool.arguments`) when a model or a type refuses a value that its schema let pass.
    """
    if tool.parameters is None and hasattr(tool.args_schema, "model_validate"):
        model = _validated(tool.args_schema, arguments, "its arguments")
        return {name: getattr(model, name) for name in type(model).model_fields}
    try:
        hints = hints_of(tool.name, body)
    except ToolDefinitionError:
        if tool.parameters is None:
            raise
        return dict(arguments)  # a declared schema promises JSON, whatever the annotations are
    return {name: _value(hints.get(name, Any), value, name) for name, value in arguments.items()}


def _value(hint: Any, value: Any, where: str) -> Any:
    """`value` as the annotation promises it. What is no promise of a Python type stays as it is."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _value(arguments[0], value, where)
    if origin in (typing.Union, types.UnionType):
        others = [item for item in arguments if item is not type(None)]
        return _value(others[0], value, where) if len(others) == 1 and value is not None else value
    if isinstance(value, list) and (hint in (tuple, set, frozenset) or isinstance(origin, type)):
        inner = arguments[0] if arguments and origin is not tuple else Any
        items = [_value(inner, item, where) for item in value]
        kind = hint if origin is None else origin
        return kind(items) if kind in (tuple, set, frozenset) else items
    if isinstance(value, dict) and isinstance(origin, type) and len(arguments) == 2:
        return {key: _value(arguments[1], item, where) for key, item in value.items()}
    return _instance(hint, value, where) if isinstance(hint, type) and origin is None else value


def _instance(hint: type, value: Any, where: str) -> Any:
    if hasattr(hint, "model_validate"):
        return _validated(hint, value, where)
    try:
        if issubclass(hint, enum.Enum | pathlib.PurePath | uuid.UUID):
            return hint(value)
        if hint is decimal.Decimal:
            return decimal.Decimal(str(value))
        if hint in (datetime.datetime, datetime.date, datetime.time):
            return hint.fromisoformat(value)
        if dataclasses.is_dataclass(hint) and isinstance(value, dict):
            hints = typing.get_type_hints(hint)
            return hint(**{key: _value(hints.get(key, Any), item, f"{where}.{key}") for key, item in value.items()})
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ToolFailure("tool.arguments", f"argument {where} cannot be read as {hint.__name__}: {error}") from error
    return value


def _validated(model: Any, value: Any, where: str) -> Any:
    import pydantic

    try:
        return model.model_validate(value)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ToolFailure("tool.arguments", f"{where} at {path or 'the top'}: {first['msg']}") from error
