"""OpenAPI's schemas as JSON Schema 2020-12: what asserts something is kept, references are written out.

OpenAPI 3.0 has a dialect of its own (`nullable`, boolean `exclusiveMinimum`); 3.1 is JSON Schema. Only known keywords
pass. A schema that contains itself is cut where it does, and said. What only a server can fill in (`readOnly`) is left
out, because these schemas describe what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import jsonschema_rs

from toolcage.tools.openapi.document import OpenApiDocument
from toolcage.tools.openapi.wording import Suspect, plain

MAX_SCHEMA_DEPTH: Final = 12
MAX_DESCRIPTION: Final = 200
MAX_ENUM: Final = 200
MAX_PROPERTIES: Final = 100
_TYPES: Final = frozenset(("string", "number", "integer", "boolean", "array", "object", "null"))
_NUMBERS: Final = ("minimum", "maximum", "multipleOf")
_COUNTS: Final = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_FORMATS: Final = frozenset(("date", "date-time", "time", "email", "uri", "uuid", "ipv4", "ipv6", "hostname"))
_COMBINED: Final = ("anyOf", "oneOf", "allOf")
_LINEAR: Final = jsonschema_rs.RegexOptions(size_limit=1024 * 1024)


@dataclass(slots=True, kw_only=True)
class SchemaWriter:
    """Converts the schemas of one operation; `notes` says what was left out."""

    document: OpenApiDocument
    suspect: Suspect
    notes: list[str] = field(default_factory=list)

    def written(self, node: Any, above: tuple[str, ...] = (), depth: int = 0) -> dict[str, Any]:
        """The schema behind `node`. Raises DeclarationError."""
        self.document.visited()
        found, way = self.document.resolved(node)
        if depth > MAX_SCHEMA_DEPTH or any(reference in above for reference in way):
            self.notes.append("a schema that contains itself, or is very deep, is open from there on")
            return {}
        if not isinstance(found, Mapping):
            return {}
        made = self._own(found)
        self._parts(found, made, (*above, *way), depth + 1)
        made = self._with_null(found, made)
        if "default" in made and not _fits(made):
            self.notes.append("a default does not fit its own schema; it is left out")
            del made["default"]
        return made

    def described(self, text: object, most: int = MAX_DESCRIPTION) -> str:
        """A description, or nothing where it speaks to a model."""
        words = plain(text, most)
        if words and self.suspect(str(text)):
            self.notes.append("a description speaks to a model; it is left out")
            return ""
        return words

    def _own(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """What the schema itself says."""
        made: dict[str, Any] = {}
        if (kind := _type(found.get("type"))) is not None:
            made["type"] = kind
        for name in _NUMBERS:
            if _is_number(found.get(name)):
                made[name] = found[name]
        for name in _COUNTS:
            if isinstance(found.get(name), int) and not isinstance(found[name], bool) and found[name] >= 0:
                made[name] = found[name]
        for name, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if found.get(name) is True and limit in made:  # OpenAPI 3.0
                made[name] = made.pop(limit)
            elif _is_number(found.get(name)):
                made[name] = found[name]
        if found.get("uniqueItems") is True:
            made["uniqueItems"] = True
        self._values(found, made)
        if words := self.described(found.get("description") or found.get("title")):
            made["description"] = words
        return made

    def _values(self, found: Mapping[str, Any], made: dict[str, Any]) -> None:
        values = found.get("enum")
        if isinstance(values, list) and 0 < len(values) <= MAX_ENUM and all(_is_plain(value) for value in values):
            made["enum"] = list(values)
        elif isinstance(values, list):
            self.notes.append("a list of values is too long or no plain one; any value is taken")
        for name in ("const", "default"):
            if name in found and _is_plain(found[name]):
                made[name] = found[name]
        if isinstance(found.get("format"), str) and found["format"] in _FORMATS:
            made["format"] = found["format"]
        pattern = found.get("pattern")
        if isinstance(pattern, str):
            if len(pattern) <= 500 and pattern.isprintable() and _is_linear(pattern):
                made["pattern"] = pattern
            else:
                self.notes.append("a pattern cannot be matched in linear time; it is left out")

    def _parts(self, found: Mapping[str, Any], made: dict[str, Any], above: tuple[str, ...], depth: int) -> None:
        properties = found.get("properties")
        if isinstance(properties, Mapping):
            self._properties(properties, found.get("required"), made, above, depth)
        if isinstance(found.get("items"), Mapping):
            made["items"] = self.written(found["items"], above, depth)
        more = found.get("additionalProperties")
        if more is False and "allOf" not in found:
            made["additionalProperties"] = False
        elif isinstance(more, Mapping):
            made["additionalProperties"] = self.written(more, above, depth)
        for name in _COMBINED:
            if isinstance(found.get(name), list) and found[name]:
                made[name] = [self.written(part, above, depth) for part in found[name][:20]]

    def _properties(
        self, properties: Mapping[str, Any], required: Any, made: dict[str, Any], above: tuple[str, ...], depth: int
    ) -> None:
        made.setdefault("type", "object")
        kept: dict[str, Any] = {}
        for name, part in list(properties.items())[:MAX_PROPERTIES]:
            if not name.isprintable() or len(name) > 100:
                self.notes.append("a property has no plain name; it is left out")
            elif self.document.mapping(part).get("readOnly") is not True:
                kept[name] = self.written(part, above, depth)
        if len(properties) > MAX_PROPERTIES:
            self.notes.append(f"of an object with {len(properties)} properties the first {MAX_PROPERTIES} are declared")
        made["properties"] = kept
        names = [name for name in required if name in kept] if isinstance(required, list) else []
        if names:
            made["required"] = list(dict.fromkeys(names))

    @staticmethod
    def _with_null(found: Mapping[str, Any], made: dict[str, Any]) -> dict[str, Any]:
        if found.get("nullable") is not True or "type" not in made:
            return made
        kinds = made["type"] if isinstance(made["type"], list) else [made["type"]]
        made["type"] = list(dict.fromkeys([*kinds, "null"]))
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
        return made


def _type(value: Any) -> str | list[str] | None:
    if isinstance(value, str):
        return value if value in _TYPES else None
    if isinstance(value, list):
        kinds = [kind for kind in value if isinstance(kind, str) and kind in _TYPES]
        return list(dict.fromkeys(kinds)) or None
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= 500 and value.isprintable()
    return value is None or isinstance(value, bool | int | float)


def _fits(schema: Mapping[str, Any]) -> bool:
    try:
        validator = jsonschema_rs.Draft202012Validator(
            dict(schema), pattern_options=_LINEAR, validate_formats=True, offline=True
        )
    except (ValueError, jsonschema_rs.ReferencingError):
        return False
    return bool(validator.is_valid(schema["default"]))


def _is_linear(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=_LINEAR)
    except ValueError:
        return False
    return True
