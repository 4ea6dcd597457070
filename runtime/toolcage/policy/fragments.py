"""What an entry may say about one argument: a JSON Schema 2020-12 fragment that cannot silently say nothing.

JSON Schema ignores what it does not know and what does not fit a value's type; in a policy each of those is a hole. So
this module refuses, at load: unknown keywords and formats, annotations that assert nothing, a keyword that says
nothing about a type the argument may have (`maxItems` where an object is possible too), a property that the argument
cannot have, unanchored or non-linear patterns, references (a fragment stands alone), rules over the *text* of a
language, and a fragment that no valid value of the argument can match. What is left is compiled once. Trusts the
tool's own schema.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import jsonschema
import jsonschema_rs

from toolcage.policy.patterns import LINEAR_REGEX, check_pattern
from toolcage.types import Kind

FragmentPath = tuple[str | int, ...]

_BY_TYPE: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": (
        "items", "prefixItems", "contains", "minContains", "maxContains", "minItems", "maxItems", "uniqueItems",
        "unevaluatedItems",
    ),
    "object": (
        "properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties",
        "maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
    ),
}  # fmt: skip
_TYPE_OF: Final = {keyword: name for name, keywords in _BY_TYPE.items() for keyword in keywords}
_ANY_TYPE: Final = ("type", "const", "enum", "allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_NOTES: Final = ("title", "description", "$comment")
KEYWORDS: Final = frozenset((*_TYPE_OF, *_ANY_TYPE, *_NOTES))
_ALL_TYPES: Final = frozenset({"null", "boolean", "number", "string", "array", "object"})

_REASONS: Final = {
    "default": "it asserts nothing; remove it",
    "examples": "it asserts nothing; remove it",
    "contentEncoding": "it asserts nothing; use pattern or format",
    "contentMediaType": "it asserts nothing; use pattern or format",
    "contentSchema": "it asserts nothing; remove it",
    "$ref": "a rule stands alone; write the referenced schema out",
    "$dynamicRef": "a rule stands alone; write the referenced schema out",
    "$defs": "a rule stands alone; write each schema out where it applies",
    "$id": "a rule stands alone; remove it",
    "$schema": "rules are JSON Schema 2020-12 always; remove it",
    "$anchor": "a rule stands alone; remove it",
}

_SAME_VALUE_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SAME_VALUE: Final = ("not", "if", "then", "else")
_CHILD: Final = ("items", "contains", "unevaluatedItems", "additionalProperties", "unevaluatedProperties")
_CHILD_MAPS: Final = ("properties", "patternProperties")

_LANGUAGES: Final = frozenset({"sql", "python", "shell", "html"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentShape:
    """What the tool's own schema says about the argument that a fragment narrows."""

    schema: Any
    kind: Kind
    definitions: Mapping[str, Any] = field(default_factory=dict)


class FragmentProblem(Exception):
    """What is wrong with a fragment and where in it. Becomes a load error with file and line."""

    def __init__(self, path: FragmentPath, text: str) -> None:
        super().__init__(text)
        self.path = path
        self.text = text


def compile_fragment(
    fragment: Any, shape: ArgumentShape, effect: Literal["allow", "ask", "deny"]
) -> jsonschema_rs.Validator:
    """The fragment, checked and compiled. Raises FragmentProblem, with what to write instead."""
    if not isinstance(fragment, dict):
        raise FragmentProblem((), "not a rule; write a mapping of JSON Schema keywords, or {} for any value")
    _check_language(fragment, shape.kind, effect)
    _check_keywords(fragment, ())
    _check_metaschema(fragment)
    validator = _compiled(fragment)
    _check_applies(fragment, _ToolNode(shape.schema, shape.definitions), _ALL_TYPES, ())
    if never_matches(fragment, shape):
        raise FragmentProblem((), "no valid value of this argument can match; compare it with the tool's schema")
    return validator


def never_matches(fragment: Any, shape: ArgumentShape) -> bool:
    """True only if it is proven that no valid value of the argument matches the fragment."""
    tool_side = {"allOf": [shape.schema]}
    if shape.definitions:
        tool_side["$defs"] = dict(shape.definitions)  # type: ignore[assignment]
    try:
        both = _canonical(fragment).intersect(_canonical(tool_side))
        return both.satisfiability() is jsonschema_rs.canonical.Satisfiability.NO
    except (ValueError, jsonschema_rs.canonical.CanonicalizationError, jsonschema_rs.ReferencingError):
        # a proof was not found: the fragment stands, and at decision time it is judged like any other
        return False


def _canonical(schema: Any) -> jsonschema_rs.CanonicalSchema:
    return jsonschema_rs.canonicalize(
        schema, draft=jsonschema_rs.Draft202012, validate_formats=True, pattern_options=LINEAR_REGEX, offline=True
    )


def _compiled(fragment: dict[str, Any]) -> jsonschema_rs.Validator:
    try:
        return jsonschema_rs.Draft202012Validator(
            fragment, validate_formats=True, ignore_unknown_formats=False, pattern_options=LINEAR_REGEX, offline=True
        )
    except ValueError as cause:
        raise FragmentProblem((), f"not usable as JSON Schema: {str(cause).splitlines()[0]}") from None


def _check_metaschema(fragment: dict[str, Any]) -> None:
    try:
        # no format checker: patterns are not Python's, `check_pattern` has judged them already
        jsonschema.Draft202012Validator.check_schema(fragment, format_checker=jsonschema.FormatChecker(formats=()))
    except jsonschema.SchemaError as cause:
        raise FragmentProblem(tuple(cause.absolute_path), f"not JSON Schema: {cause.message[:200]}") from None


def _check_language(fragment: dict[str, Any], kind: Kind, effect: str) -> None:
    if kind not in _LANGUAGES:
        return
    textual = ("pattern",) if effect == "allow" else ("pattern", "const", "enum")
    for path, node in _nodes(fragment, ()):
        for keyword in textual:
            if keyword in node:
                raise FragmentProblem(
                    (*path, keyword),
                    f"`{keyword}` on {kind} text under `{effect}`: one meaning has many spellings, so this rule could"
                    " be written around; state it on facts (as `sql: {tables: […]}`) or leave the grant out",
                )


def _check_keywords(fragment: dict[str, Any], start: FragmentPath) -> None:
    for path, node in _nodes(fragment, start):
        for keyword in node:
            if keyword not in KEYWORDS:
                raise FragmentProblem((*path, keyword), _unknown_keyword(keyword))
        _check_patterns(node, path)


def _check_patterns(node: dict[str, Any], path: FragmentPath) -> None:
    found: list[tuple[FragmentPath, Any]] = []
    if "pattern" in node:
        found.append(((*path, "pattern"), node["pattern"]))
    if isinstance(by_pattern := node.get("patternProperties"), dict):
        found.extend(((*path, "patternProperties", key), key) for key in by_pattern)
    for where, pattern in found:
        if isinstance(pattern, str):  # anything else is the metaschema's to refuse
            try:
                check_pattern(pattern)
            except ValueError as cause:
                raise FragmentProblem(where, str(cause)) from None


def _unknown_keyword(keyword: str) -> str:
    if keyword in _REASONS:
        return f"the keyword `{keyword}`: {_REASONS[keyword]}"
    near = nearest(keyword, KEYWORDS)
    return f"the keyword `{keyword}` is not JSON Schema 2020-12 and would be ignored; " + (
        f"did you mean `{near}`?" if near else "see docs/policy-reference.md for the keywords"
    )


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, or None."""
    found = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return found[0] if found else None


def _nodes(node: Any, path: FragmentPath) -> Iterator[tuple[FragmentPath, dict[str, Any]]]:
    """Every sub-schema of a fragment, itself first, with its path."""
    if not isinstance(node, dict):
        return
    yield path, node
    for keyword in (*_SAME_VALUE, *_CHILD, "propertyNames"):
        yield from _nodes(node.get(keyword), (*path, keyword))
    for keyword in (*_SAME_VALUE_LISTS, "prefixItems"):
        for index, item in enumerate(_list(node.get(keyword))):
            yield from _nodes(item, (*path, keyword, index))
    for keyword in (*_CHILD_MAPS, "dependentSchemas"):
        for key, item in _mapping(node.get(keyword)).items():
            yield from _nodes(item, (*path, keyword, key))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# --- does each keyword say something about every value that can come here? -----------------------------------------


@dataclass(frozen=True, slots=True)
class _ToolNode:
    """A place in the tool's own schema. `schema` None = nothing is known, every JSON value may come here."""

    schema: Any
    definitions: Mapping[str, Any]

    def resolved(self) -> Mapping[str, Any]:
        schema, hops = self.schema, 0
        while isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str) and hops < 8:
            schema, hops = self.definitions.get(reference.removeprefix("#/$defs/")), hops + 1
        return _mapping(schema)

    def types(self, depth: int = 0) -> frozenset[str]:
        schema = self.resolved()
        found = _stated_types(schema)
        for keyword in ("anyOf", "oneOf") if depth < 8 else ():  # a stranger's schema may refer to itself
            branches = [_ToolNode(branch, self.definitions) for branch in _list(schema.get(keyword))]
            if branches:
                found &= frozenset[str]().union(*(branch.types(depth + 1) for branch in branches))
        return found

    def child(self, keyword: str, key: str | None = None) -> _ToolNode:
        value = self.resolved().get(keyword)
        return _ToolNode(_mapping(value).get(key) if key is not None else value, self.definitions)

    def lacks(self, name: str) -> bool:
        schema = self.resolved()
        closed = schema.get("additionalProperties") is False and not schema.get("patternProperties")
        return closed and name not in _mapping(schema.get("properties"))


def _check_applies(node: Any, tool: _ToolNode, inherited: frozenset[str], path: FragmentPath) -> None:
    if not isinstance(node, dict):
        return
    types = inherited & tool.types() & _stated_types(node)
    for keyword in node:
        wanted = _TYPE_OF.get(keyword)
        if wanted and not types <= {wanted}:
            raise FragmentProblem((*path, keyword), _says_nothing(keyword, wanted, types - {wanted}))
    for keyword in _SAME_VALUE:
        _check_applies(node.get(keyword), tool, types, (*path, keyword))
    for keyword in _SAME_VALUE_LISTS:
        for index, item in enumerate(_list(node.get(keyword))):
            _check_applies(item, tool, types, (*path, keyword, index))
    _check_children(node, tool, path)


def _check_children(node: dict[str, Any], tool: _ToolNode, path: FragmentPath) -> None:
    unknown = _ToolNode(None, tool.definitions)
    for name, item in _mapping(node.get("properties")).items():
        if tool.lacks(name):
            where = (*path, "properties", name)
            raise FragmentProblem(where, f"the argument has no property `{name}`, so this never applies; correct it")
        _check_applies(item, tool.child("properties", name), _ALL_TYPES, (*path, "properties", name))
    for name, item in _mapping(node.get("patternProperties")).items():
        _check_applies(item, unknown, _ALL_TYPES, (*path, "patternProperties", name))
    for name, item in _mapping(node.get("dependentSchemas")).items():
        _check_applies(item, tool, frozenset({"object"}), (*path, "dependentSchemas", name))
    for keyword in _CHILD:
        child = tool.child("items") if keyword in ("items", "contains", "unevaluatedItems") else unknown
        _check_applies(node.get(keyword), child, _ALL_TYPES, (*path, keyword))
    for index, item in enumerate(_list(node.get("prefixItems"))):
        _check_applies(item, tool.child("items"), _ALL_TYPES, (*path, "prefixItems", index))
    _check_applies(node.get("propertyNames"), unknown, frozenset({"string"}), (*path, "propertyNames"))


def _stated_types(schema: Mapping[str, Any]) -> frozenset[str]:
    if "const" in schema:
        return frozenset({_type_of_value(schema["const"])})
    if isinstance(options := schema.get("enum"), list | tuple):
        return frozenset(_type_of_value(option) for option in options)
    stated = schema.get("type")
    if stated is None:
        return _ALL_TYPES
    names = [stated] if isinstance(stated, str) else stated
    return frozenset("number" if name == "integer" else name for name in names)


def _type_of_value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def _says_nothing(keyword: str, wanted: str, others: frozenset[str]) -> str:
    named = ", ".join(sorted(others))
    return f"`{keyword}` says nothing about a value of type {named}, which would match; add `type: {wanted}`" + (
        "" if wanted != "number" else " (or integer)"
    )
