"""One declaration per operation: name, description, parameters, and where each value goes in the request.

What cannot be asked through a portal as it is described (cookies, forms, exotic spellings of values) is not declared,
and said. Up to five arguments stand side by side; more of them are put together by where they go. A header that could
carry a credential or name another host is the broker's, so it is no argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from toolcage.tools.openapi.document import OpenApiDocument
from toolcage.tools.openapi.naming import argument_name, tool_name
from toolcage.tools.openapi.schemas import SchemaWriter
from toolcage.tools.openapi.wording import Suspect

METHODS: Final = ("get", "post", "put", "patch", "delete", "head", "options")
MAX_OPERATIONS: Final = 500
MAX_FLAT: Final = 5
MAX_SUMMARY: Final = 600
_GROUPS: Final = {"path": "path", "query": "query", "header": "headers"}
_NO_ARGUMENTS: Final = frozenset(
    """
    accept accept-encoding api-key authorization connection content-length content-type cookie expect
    forwarded host proxy-authorization te trailer transfer-encoding upgrade user-agent via x-api-key
    x-http-method-override
    """.split()  # noqa: SIM905 - a list of words reads better than a list of quotes
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One operation as a tool. `spec` is what `declared_api` writes and reads; `notes` what was left out, and why."""

    spec: Mapping[str, Any]
    tags: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """One value of a request."""

    name: str
    place: str
    schema: Mapping[str, Any]
    required: bool
    joined: bool


class _NotDeclared(Exception):
    """Why an operation is no tool."""


@dataclass(slots=True, kw_only=True)
class _Shape:
    """The arguments of a tool while they are put together."""

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    places: list[dict[str, Any]] = field(default_factory=list)


def declare_operations(
    document: OpenApiDocument, *, suspect: Suspect, reserved: frozenset[str] = frozenset()
) -> tuple[tuple[Declared, ...], tuple[str, ...]]:
    """The operations that can be tools, in the document's order, and a line for each that cannot. `reserved` are names
    that none may have. Raises DeclarationError."""
    taken = set(reserved)
    made: list[Declared] = []
    left_out: list[str] = []
    for path, method, item, operation in _operations(document):
        if len(made) >= MAX_OPERATIONS:
            left_out.append(f"only the first {MAX_OPERATIONS} operations are declared")
            break
        name = tool_name(operation.get("operationId"), method.upper(), path, taken)
        try:
            made.append(_declared(document, suspect, name, path, method.upper(), item, operation))
        except _NotDeclared as reason:
            left_out.append(f"{method.upper()} {path[:200]}: {reason}")
        else:
            taken.add(name)
    return tuple(made), tuple(left_out)


def _operations(document: OpenApiDocument) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
    for path, found in document.mapping(document.data.get("paths")).items():
        item = document.mapping(found)
        for method in METHODS:
            if isinstance(item.get(method), Mapping):
                yield path, method, item, document.mapping(item[method])


def _declared(
    document: OpenApiDocument, suspect: Suspect, name: str, path: str, method: str, item: Mapping[str, Any],
    operation: Mapping[str, Any],
) -> Declared:  # fmt: skip
    writer = SchemaWriter(document=document, suspect=suspect)
    if not path.startswith("/") or not path.isprintable() or set(path) & set("?#%\\ ") or len(path) > 500:
        raise _NotDeclared("its path is no plain one")
    values = _values(writer, [*_list(item.get("parameters")), *_list(operation.get("parameters"))])
    _check_template(path, values)
    body = _body(writer, operation.get("requestBody")) if method not in ("GET", "HEAD", "OPTIONS") else None
    shape = _shaped(values, body)
    tags = tuple(tag for tag in _list(operation.get("tags")) if isinstance(tag, str))
    spec = {
        "name": name,
        "description": _description(writer, operation, method, path),
        "method": method,
        "path": path,
        "parameters": {
            "type": "object", "properties": shape.properties, "required": shape.required, "additionalProperties": False,
        },
        "places": shape.places,
    }  # fmt: skip
    return Declared(spec=spec, tags=tags, notes=tuple(dict.fromkeys(writer.notes)))


def _description(writer: SchemaWriter, operation: Mapping[str, Any], method: str, path: str) -> str:
    parts = [writer.described(operation.get(name), MAX_SUMMARY) for name in ("summary", "description")]
    said = " ".join(f"{part.rstrip('.')}." for part in dict.fromkeys(parts) if part)
    effect = "Reads only." if method in ("GET", "HEAD", "OPTIONS") else "Changes something."
    return (
        f"{said or 'One operation of an HTTP interface.'} {effect} Sends {method} {path}. "
        "Output: status, media_type, and json, text or the name of a file."
    )


# --- values --------------------------------------------------------------------------------------------------------


def _values(writer: SchemaWriter, nodes: list[Any]) -> list[_Value]:
    """The operation's own come after the path's and replace them."""
    found: dict[tuple[str, str], _Value | None] = {}
    for node in nodes:
        parameter = writer.document.mapping(node)
        name, place = parameter.get("name"), parameter.get("in")
        if isinstance(name, str) and isinstance(place, str):
            found[name, place] = _value(writer, name, place, parameter)
    return [value for value in found.values() if value is not None]


def _value(writer: SchemaWriter, name: str, place: str, parameter: Mapping[str, Any]) -> _Value | None:
    required = parameter.get("required") is True or place == "path"
    problem = _problem(name, place, parameter)
    if problem is not None:
        if required and place != "header":
            raise _NotDeclared(f"its {place} value {name[:60]!r} {problem}")
        writer.notes.append(f"the {place} value {name[:60]!r} {problem}")
        return None
    schema = writer.written(_schema_of(writer, parameter))
    if words := writer.described(parameter.get("description")):
        schema["description"] = words
    explode = parameter.get("explode", parameter.get("style", "form") == "form")
    return _Value(
        name=name, place=place, schema=schema, required=required, joined=place != "query" or explode is not True
    )


def _problem(name: str, place: str, parameter: Mapping[str, Any]) -> str | None:
    """Why this value cannot be sent; None where it can."""
    usual = "form" if place == "query" else "simple"
    if place not in _GROUPS:
        return "is a cookie, which a cage keeps none of"
    if not name or not name.isascii() or not name.isprintable() or len(name) > 100:
        return "has no plain name"
    if place == "header" and (name.lower() in _NO_ARGUMENTS or not all(c.isalnum() or c in "-_" for c in name)):
        return "is the broker's to send"
    if parameter.get("style", usual) != usual:
        return "is spelled in a way that is not known here"
    return None


def _schema_of(writer: SchemaWriter, parameter: Mapping[str, Any]) -> Any:
    if "schema" in parameter:
        return parameter["schema"]
    for media in writer.document.mapping(parameter.get("content")).values():
        return writer.document.mapping(media).get("schema")
    return {}


def _check_template(path: str, values: list[_Value]) -> None:
    wanted = [piece.partition("}")[0] for piece in path.split("{")[1:]]
    named = {value.name for value in values if value.place == "path"}
    if len(set(wanted)) != len(wanted) or set(wanted) != named or path.count("{") != path.count("}"):
        raise _NotDeclared("the places in its path and its path values are not the same")


def _body(writer: SchemaWriter, node: Any) -> _Value | None:
    request = writer.document.mapping(node)
    content = writer.document.mapping(request.get("content"))
    if not content:
        return None
    for name, media in content.items():
        plain_name = name.partition(";")[0].strip().lower()
        if plain_name == "application/json" or plain_name.endswith("+json") or plain_name == "*/*":
            schema = writer.written(writer.document.mapping(media).get("schema") or {})
            if words := writer.described(request.get("description")):
                schema.setdefault("description", words)
            return _Value(
                name="body", place="body", schema=schema, required=request.get("required") is True, joined=False
            )
    if request.get("required") is True:
        raise _NotDeclared("its body is no JSON")
    writer.notes.append("its body is no JSON; it is left out")
    return None


def _list(node: Any) -> list[Any]:
    return node if isinstance(node, list) else []


# --- arguments -----------------------------------------------------------------------------------------------------


def _shaped(values: list[_Value], body: _Value | None) -> _Shape:
    shape = _Shape()
    flat = len(values) + (body is not None) <= MAX_FLAT
    for value in values:
        if flat or (value.place == "path" and _in_path(values) <= 2):
            name = argument_name(value.name, {*shape.properties, "body"}, value.place)
            _put(shape, shape.properties, shape.required, name, [name], value)
        else:
            _put_in_group(shape, value)
    if body is not None:
        _put(shape, shape.properties, shape.required, "body", ["body"], body)
    return shape


def _in_path(values: list[_Value]) -> int:
    return sum(value.place == "path" for value in values)


def _put_in_group(shape: _Shape, value: _Value) -> None:
    group = _GROUPS[value.place]
    holder = shape.properties.setdefault(
        group, {"type": "object", "properties": {}, "required": [], "additionalProperties": False,
                "description": f"Values for the {group} of the request, by name."},
    )  # fmt: skip
    name = argument_name(value.name, holder["properties"].keys(), value.place)
    _put(shape, holder["properties"], holder["required"], name, [group, name], value)
    if value.required and group not in shape.required:
        shape.required.append(group)


def _put(
    shape: _Shape, properties: dict[str, Any], required: list[str], name: str, way: list[str], value: _Value
) -> None:
    schema = dict(value.schema)
    schema.setdefault("description", f"The value {value.name[:60]}.")
    properties[name] = schema
    if value.required:
        schema.pop("default", None)
        required.append(name)
    shape.places.append({"at": way, "in": value.place, "name": value.name, "joined": value.joined})
