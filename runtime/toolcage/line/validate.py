"""A call of a tool that the role has, with arguments that fit the tool's schema, read once into facts.

The tool is looked up in the *role's* view: a tool that is not granted does not exist, so nothing about a hidden tool's
schema leaks. Defaults are filled and nothing is coerced. Schemas were compiled at registration with offline references
and linear-time patterns; this module only runs them. It trusts declarations, not arguments.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

import jsonschema_rs

from toolcage.canonical import canonical_json
from toolcage.errors import Refused
from toolcage.facts.read import read_facts
from toolcage.facts.sql import Purpose
from toolcage.facts.sql_text import Dialect
from toolcage.line.parse import call_digest
from toolcage.types import JSON, Facts, Refusal, ToolCall, ToolDeclaration, ValidCall, claim_seal, freeze, require, thaw

MAX_PROBLEMS: Final = 5
MAX_PROBLEM_CHARS: Final = 300
Validator = Any
"""A compiled `jsonschema_rs` validator; the package has no public type for it that all versions share."""

_mint = claim_seal(ValidCall)


def validate(
    call: ToolCall,
    *,
    view: Mapping[str, ToolDeclaration],
    validator: Callable[[ToolDeclaration], Validator],
    dialect: Callable[[str], Dialect],
) -> ValidCall:
    """A `ValidCall`. `view` holds the role's tools by name, `validator` gives a declaration's compiled schema, and
    `dialect` tells the SQL dialect of a named database.

    Raises Refused: `denied` for a tool that the role does not have, `invalid` for arguments that do not fit, `blocked`
    for an argument that cannot be read as its kind.
    """
    require(call, ToolCall)
    declaration = view.get(call.tool)
    if declaration is None:
        _refuse_unknown(view)
    if call.files and not declaration.accepts_files:
        _refuse("files.not_accepted", f"{declaration.name} takes no files", "Call it without attached files.")
    arguments = thaw(call.arguments)
    fill_defaults(declaration.parameters, arguments)
    _check_schema(validator(declaration), arguments, declaration)
    frozen = freeze(arguments)
    assert isinstance(frozen, Mapping)
    canonical = canonical_json(arguments)
    return _mint(
        call=call,
        declaration=declaration,
        arguments=frozen,
        canonical=canonical,
        digest=call_digest(canonical, call.files),
        facts=_read(declaration, frozen, dialect),
    )


def compile_schema(declaration: ToolDeclaration) -> Validator:
    """The declaration's schema compiled for `validate`: formats checked, offline references, linear-time patterns."""
    return jsonschema_rs.Draft202012Validator(
        thaw(declaration.parameters),
        validate_formats=True,
        offline=True,
        pattern_options=jsonschema_rs.RegexOptions(),
    )


def fill_defaults(schema: JSON, value: Any) -> None:
    """Puts a schema's defaults where an object leaves a property out, at every depth. Changes `value`."""
    if not isinstance(schema, Mapping) or not isinstance(value, dict):
        return
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, fragment in properties.items():
        if name not in value and isinstance(fragment, Mapping) and "default" in fragment:
            value[name] = thaw(fragment["default"])
        if name in value:
            fill_defaults(fragment, value[name])


def _read(
    declaration: ToolDeclaration, arguments: Mapping[str, JSON], dialect: Callable[[str], Dialect]
) -> Mapping[str, Facts]:
    spoken = _dialect_of(declaration, arguments, dialect)
    purpose: Purpose = "change" if declaration.changes_databases else "read"
    read = {}
    for name, value in arguments.items():
        found = read_facts(declaration.kinds.get(name, "text"), value, dialect=spoken, purpose=purpose)
        if found is not None:
            read[name] = found
    return MappingProxyType(read)


def _dialect_of(
    declaration: ToolDeclaration, arguments: Mapping[str, JSON], dialect: Callable[[str], Dialect]
) -> Dialect:
    for name, kind in declaration.resources.items():
        named = arguments.get(name)
        if kind == "database" and isinstance(named, str):
            return dialect(named)
    return "sqlite"


def _check_schema(validator: Validator, arguments: dict[str, Any], declaration: ToolDeclaration) -> None:
    if validator.is_valid(arguments):
        return
    problems = []
    for error in validator.iter_errors(arguments):
        path = "/".join(str(part) for part in error.instance_path) or "arguments"
        problems.append(f"{path}: {_problem(error)}"[:MAX_PROBLEM_CHARS])
        if len(problems) == MAX_PROBLEMS:
            break
    _refuse("arguments.schema", "; ".join(problems), _repair(declaration))


_SIZES: Final = {
    "maxLength": "characters, at most", "minLength": "characters, at least", "maxItems": "items, at most",
    "minItems": "items, at least", "maxProperties": "properties, at most", "minProperties": "properties, at least",
}  # fmt: skip
_BOUNDS: Final = {
    "minimum": "is below the minimum of", "maximum": "is above the maximum of", "exclusiveMinimum": "must be more than",
    "exclusiveMaximum": "must be less than", "multipleOf": "must be a multiple of", "type": "must be of type",
    "const": "must be", "enum": "must be one of", "pattern": "does not match", "format": "is not in the format",
}  # fmt: skip


def _problem(error: Any) -> str:
    """What is wrong, from the schema's words and sizes alone: the value itself may be long, secret or hostile."""
    name, value = error.kind.name, error.kind.value
    if name == "required":
        return f"{json.dumps(value)} is a required property"
    if name in ("additionalProperties", "unevaluatedProperties"):
        names = ", ".join(repr(str(item)[:40]) for item in value[:3])
        return f"unknown: {names}{' and more' if len(value) > 3 else ''}"
    if name in _SIZES:
        return f"{len(error.instance)} {_SIZES[name]} {value}"
    if name in _BOUNDS:
        listed = value if name == "enum" else sorted(value) if isinstance(value, list) and name == "type" else [value]
        return f"{_BOUNDS[name]} {', '.join(item if name == 'type' else json.dumps(item) for item in listed)}"
    if name == "uniqueItems":
        return "holds an item twice"
    return f"does not satisfy `{name}`"


def _repair(declaration: ToolDeclaration) -> str:
    properties, required = declaration.parameters.get("properties"), declaration.parameters.get("required")
    names = [
        f"{name} (required)" if isinstance(required, tuple) and name in required else name
        for name in (properties if isinstance(properties, Mapping) else ())
    ]
    return f"{declaration.name} takes: {', '.join(names) or 'no arguments'}."


def _refuse_unknown(view: Mapping[str, ToolDeclaration]) -> NoReturn:
    names = ", ".join(sorted(view)) or "none"
    raise Refused(
        Refusal(status="denied", code="tool.unknown", message="there is no such tool", hint=f"Your tools are: {names}.")
    )


def _refuse(code: str, message: str, hint: str) -> NoReturn:
    raise Refused(Refusal(status="invalid", code=code, message=message, hint=hint))
