"""What a declaration must be before the host works with it, from our own code or from a cage that described a file.

A stranger's description is hostile data. Every field is checked by type and size. Every text must be printable (no
controls, bidi controls, zero-width, tag or variation-selector characters): what a person reviews is what a model reads.
The schema must be valid JSON Schema 2020-12 within size and depth, with references that stay inside it and patterns
that match in linear time. What a stranger says of effects, kinds, resources and image is not taken over at all.

Deliberately does not judge whether a description is *true*, or whether its words try to steer a model.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeVar

import jsonschema
import jsonschema.exceptions
import jsonschema_rs
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from toolcage.errors import DeclarationError
from toolcage.tools.base import NAME
from toolcage.types import (
    EFFECTS,
    WRITING_USES,
    Effect,
    FileUse,
    Isolation,
    Kind,
    ResourceKind,
    ToolDeclaration,
    freeze,
)

SCHEMA_BYTES: Final = 64 * 1024
SCHEMA_DEPTH: Final = 24
DESCRIPTION_CHARS: Final = 4096
TOOLS_PER_FILE: Final = 64
STRANGER_WALL_S: Final = 10.0
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_LINEAR: Final = jsonschema_rs.RegexOptions(size_limit=1024 * 1024)
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_REBASING: Final = ("$id", "id", "$vocabulary", "$anchor", "$dynamicAnchor")

_Model = TypeVar("_Model", bound=BaseModel)
_Name = Annotated[str, StringConstraints(pattern=f"^{NAME.pattern}$", max_length=64)]
_Image = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
_Path = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,3}$", max_length=200)
]


class Declared(BaseModel):
    """A declaration as `base.declaration_of` makes it. Closed: another field is an error."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: _Name
    description: Annotated[str, StringConstraints(min_length=1, max_length=DESCRIPTION_CHARS)]
    parameters: dict[str, Any]
    kinds: Annotated[dict[str, Kind], Field(max_length=64)]
    effects: Annotated[list[Effect], Field(max_length=len(EFFECTS))]
    resources: Annotated[dict[str, ResourceKind], Field(max_length=64)]
    image: _Image
    isolation: Isolation
    wall_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
    idempotent: bool
    accepts_files: bool
    file_uses: Annotated[dict[str, FileUse], Field(max_length=64)] = {}
    effects_need: Annotated[dict[Effect, list[str]], Field(max_length=len(EFFECTS))] = {}


class Found(BaseModel):
    """One tool of a described file, and the way to it."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    attribute: _Path
    how: Literal["attribute", "class"]
    declaration: Declared


class Description(BaseModel):
    """What a cage says about a file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    tools: Annotated[list[Found], Field(max_length=TOOLS_PER_FILE)]
    problems: Annotated[list[str], Field(max_length=1000)]


def admit(declared: Mapping[str, Any]) -> ToolDeclaration:
    """A declaration made by the host's own code. Raises: DeclarationError that names the field and what is wrong."""
    return _admitted(_parsed(Declared, declared, _label(declared)), trusted=True)


def admit_stranger(declared: Declared) -> ToolDeclaration:
    """A declaration that came out of a cage: all effects, all text, its own container. Raises: DeclarationError."""
    return _admitted(declared, trusted=False)


def read_description(described: object) -> Description:
    """A cage's description as checked data, at least one tool, each name once. Raises: DeclarationError."""
    description = _parsed(Description, _plain(described), "the file's description")
    if description.problems:
        raise DeclarationError(f"{shown(description.problems[0])}; mend it there")
    names = [found.declaration.name for found in description.tools]
    if not names:
        raise DeclarationError(
            "it holds no tool: a function under @tool, or a class of Tool that defines `execute` and can be built"
            " without arguments"
        )
    if len(set(names)) != len(names):
        raise DeclarationError("two of its tools have the same name")
    return description


def shown(text: str) -> str:
    """Foreign text inside a message of ours: one line, printable, shortened."""
    return "".join(character if _printable(character) and character != "\n" else "?" for character in text[:300])


def _plain(described: object) -> object:
    """Frozen JSON as plain dicts and lists, which the models ask for; anything else as it is, for them to refuse."""
    if isinstance(described, Mapping):
        return {key: _plain(item) for key, item in described.items()}
    return [_plain(item) for item in described] if isinstance(described, list | tuple) else described


# --- checks --------------------------------------------------------------------------------------------------------


def _parsed(model: type[_Model], value: object, label: str) -> _Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top"
        raise DeclarationError(f"{label} cannot be used: at {shown(where)}: {first['msg']}") from None


def _label(declared: Mapping[str, Any]) -> str:
    return f"tool {shown(str(declared.get('name')))}"


def _admitted(declared: Declared, *, trusted: bool) -> ToolDeclaration:
    label = f"tool {declared.name}"
    _check_text(declared.description, f"{label}: its description")
    _check_schema(declared.parameters, label)
    unknown = sorted(declared.kinds.keys() - declared.parameters["properties"].keys())
    if unknown and trusted:
        raise DeclarationError(f"{label}: kinds names {', '.join(unknown)}, which it has no parameter for")
    odd = sorted(word for word in declared.resources if not word.isidentifier())
    if odd and trusted:
        raise DeclarationError(f"{label}: resources names {', '.join(odd)}, neither a parameter nor a plain word")
    if trusted:
        _check_file_uses(declared, label)
        _check_effects_need(declared, label)
    parameters = freeze(declared.parameters)
    assert isinstance(parameters, Mapping)
    if not trusted:
        return ToolDeclaration(
            name=declared.name,
            description=declared.description,
            parameters=parameters,
            effects=frozenset(EFFECTS),
            wall_s=min(declared.wall_s, STRANGER_WALL_S),
            accepts_files=declared.accepts_files,
            trusted=False,
        )
    return ToolDeclaration(
        name=declared.name,
        description=declared.description,
        parameters=parameters,
        kinds=MappingProxyType(dict(declared.kinds)),
        effects=frozenset(declared.effects),
        resources=MappingProxyType(dict(declared.resources)),
        image=declared.image,
        isolation=declared.isolation,
        wall_s=declared.wall_s,
        idempotent=declared.idempotent,
        accepts_files=declared.accepts_files,
        file_uses=MappingProxyType(dict(declared.file_uses)),
        effects_need=MappingProxyType({effect: tuple(needed) for effect, needed in declared.effects_need.items()}),
    )


def _check_effects_need(declared: Declared, label: str) -> None:
    """A condition names an effect that there is, and arguments that a call can leave out."""
    required = declared.parameters.get("required", [])
    for effect, needed in declared.effects_need.items():
        if effect not in declared.effects:
            raise DeclarationError(f"{label}: effects_need names the effect {effect}, which it does not declare")
        odd = [name for name in needed if name not in declared.parameters["properties"] or name in required]
        if odd or not needed:
            named = ", ".join(odd) or "nothing"
            raise DeclarationError(f"{label}: effects_need of {effect} names {named}; name optional arguments")


def _check_file_uses(declared: Declared, label: str) -> None:
    """What works on files of a workspace says which workspace, by which paths, and whether it writes."""
    workspaces = [argument for argument, kind in declared.resources.items() if kind == "workspace"]
    if not declared.file_uses and not workspaces:
        return
    properties = declared.parameters["properties"]
    if len(workspaces) != 1 or workspaces[0] not in properties or not declared.file_uses:
        raise DeclarationError(
            f"{label}: file_uses and one argument that names a workspace (`resources`) go together; declare both"
        )
    for argument in declared.file_uses:
        fragment = properties.get(argument, {})
        if declared.kinds.get(argument) != "path" or fragment.get("type") != "string":
            raise DeclarationError(f"{label}: file_uses names {argument}, which is no text of kind path; declare that")
    written = [argument for argument, use in declared.file_uses.items() if use in WRITING_USES]
    if len(written) > 1:
        raise DeclarationError(f"{label}: it writes {len(written)} files; a call brings back one, so split the tool")
    if written and "writes" not in declared.effects:
        raise DeclarationError(f"{label}: it writes files; declare the effect writes")
    if "by_mode" in declared.file_uses.values() and "mode" not in properties:
        raise DeclarationError(f"{label}: file_uses by_mode asks for an argument mode; declare it, or name the use")


def _check_schema(schema: dict[str, Any], label: str) -> None:
    _check_node(schema, label, depth=0)
    if len(json.dumps(schema)) > SCHEMA_BYTES:
        raise DeclarationError(
            f"{label}: its schema is larger than {SCHEMA_BYTES} bytes; describe less, or split the tool"
        )
    properties = schema.get("properties")
    closed = schema.get("type") == "object" and schema.get("additionalProperties") is False
    if not closed or not isinstance(properties, dict):
        raise DeclarationError(f"{label}: its schema is not an object schema with additionalProperties false")
    if schema.get("$schema", _DIALECT) != _DIALECT:
        raise DeclarationError(f"{label}: its schema is not JSON Schema 2020-12")
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
        lenient = jsonschema_rs.Draft202012Validator(
            {**schema, "required": []}, pattern_options=_LINEAR, validate_formats=True, offline=True
        )
    except jsonschema.exceptions.SchemaError as error:
        raise DeclarationError(f"{label}: its schema is not valid: {shown(error.message)}") from None
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise DeclarationError(f"{label}: its schema cannot be used: {shown(str(error))}") from None
    for name, fragment in properties.items():
        # A default that the schema refuses would turn every call that leaves the argument out into a wrong one.
        if isinstance(fragment, dict) and "default" in fragment and not lenient.is_valid({name: fragment["default"]}):
            raise DeclarationError(f"{label}: the default of parameter {shown(name)} does not fit its own schema")


def _check_node(value: Any, label: str, *, depth: int) -> None:
    """Depth, text and references of the whole schema, also of parts that no keyword reaches."""
    if depth > SCHEMA_DEPTH:
        raise DeclarationError(f"{label}: its schema is nested deeper than {SCHEMA_DEPTH} levels; make it flatter")
    if isinstance(value, str):
        _check_text(value, f"{label}: a text in its schema")
    elif isinstance(value, list):
        for item in value:
            _check_node(item, label, depth=depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key, f"{label}: a name in its schema")
            _check_reference(key, item, label)
            _check_node(item, label, depth=depth + 1)


def _check_reference(key: str, value: Any, label: str) -> None:
    # A *property* with such a name holds a schema, which is no string.
    if not isinstance(value, str):
        return
    if key in _REFERENCES and not value.startswith("#"):
        raise DeclarationError(f"{label}: its schema refers to {shown(value)}, outside itself; copy that into $defs")
    if key in _REBASING:
        raise DeclarationError(f"{label}: its schema sets {key}, which moves its references; leave it out")


def _check_text(text: str, what: str) -> None:
    for place, character in enumerate(text):
        if not _printable(character):
            raise DeclarationError(f"{what} has the unprintable character U+{ord(character):04X} at {place}; remove it")


def _printable(character: str) -> bool:
    if character in "\n\t" or " " <= character <= "~":
        return True
    code = ord(character)
    selector = 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180F
    filler = code in (0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800)  # blank, and in no format category
    return (
        not selector
        and not filler
        and unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    )
