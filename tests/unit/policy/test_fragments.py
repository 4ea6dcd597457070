"""Fragments of JSON Schema in entries: what constrains is kept, what would silently constrain nothing does not load."""

from __future__ import annotations

from typing import Any

import pytest

from toolcage.policy.fragments import ArgumentShape, FragmentProblem, compile_fragment, never_matches
from toolcage.types import Kind

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 1, "maximum": 1000}
EITHER = {"type": ["array", "object"]}
FILTER = {"type": "object", "properties": {"site": TEXT}, "additionalProperties": False}


def shape(schema: Any, kind: Kind = "text", **definitions: Any) -> ArgumentShape:
    return ArgumentShape(schema=schema, kind=kind, definitions=definitions)


@pytest.mark.parametrize(
    ("fragment", "schema", "yes", "no"),
    [
        ({}, TEXT, ["", "x"], []),
        ({"const": "x"}, TEXT, ["x"], ["X", "x "]),
        ({"enum": ["x", "y"]}, TEXT, ["y"], ["z"]),
        ({"pattern": "^[a-z]+$"}, TEXT, ["abc"], ["abc\n", "Abc", "a1", ""]),
        ({"pattern": r"\A(?:a|b)\z"}, TEXT, ["a", "b"], ["ab", "a\n"]),
        ({"format": "email"}, TEXT, ["a@example.com"], ["a"]),
        ({"format": "uuid"}, TEXT, ["7f2f8f3c-6c3c-4b7e-9f5e-1d2c3b4a5f60"], ["7f2f"]),
        ({"maxLength": 3}, TEXT, ["abc"], ["abcd"]),
        ({"maximum": 10}, COUNT, [10], [11]),
        ({"multipleOf": 5}, COUNT, [10], [11]),
        ({"not": {"const": 7}}, COUNT, [6], [7]),
        ({"anyOf": [{"const": 1}, {"minimum": 100}]}, COUNT, [1, 100], [2]),
        ({"type": "array", "maxItems": 1}, EITHER, [[1]], [[1, 2], {}]),
        ({"type": "array", "items": {"type": "string", "maxLength": 1}}, EITHER, [["a"]], [["ab"], [1]]),
        ({"required": ["site"], "properties": {"site": {"const": "a"}}}, FILTER, [{"site": "a"}], [{}, {"site": "b"}]),
    ],
)
def test_a_sound_fragment_loads_and_decides(
    fragment: dict[str, Any], schema: dict[str, Any], yes: list[Any], no: list[Any]
) -> None:
    validator = compile_fragment(fragment, shape(schema), "allow")
    assert all(validator.is_valid(value) for value in yes)
    assert not any(validator.is_valid(value) for value in no)


@pytest.mark.parametrize(
    ("fragment", "schema", "said"),
    [
        # unknown words, which JSON Schema would ignore
        ({"patern": "^a$"}, TEXT, "did you mean `pattern`?"),
        ({"Const": "x"}, TEXT, "did you mean `const`?"),
        ({"anyOf": [{"cnst": 1}]}, COUNT, "did you mean `const`?"),
        ({"type": "array", "items": {"enumm": [1]}}, EITHER, "did you mean `enum`?"),
        ({"format": "e-mail"}, TEXT, "Unknown format"),
        ({"default": "x"}, TEXT, "asserts nothing"),
        ({"contentEncoding": "base64"}, TEXT, "asserts nothing"),
        # references
        ({"$ref": "https://example.com/schema"}, TEXT, "stands alone"),
        ({"$ref": "file:///etc/passwd"}, TEXT, "stands alone"),
        ({"$ref": "#"}, TEXT, "stands alone"),
        ({"not": {"$ref": "#"}}, TEXT, "stands alone"),
        ({"$defs": {}}, TEXT, "stands alone"),
        ({"$dynamicRef": "#a"}, TEXT, "stands alone"),
        # not JSON Schema
        ({"type": "strin"}, TEXT, "not JSON Schema"),
        ({"maxLength": "3"}, TEXT, "not JSON Schema"),
        ({"enum": "x"}, TEXT, "not JSON Schema"),
        # says nothing about a value that can come
        ({"pattern": "^a$"}, COUNT, "says nothing about a value of type number"),
        ({"minimum": 1}, TEXT, "says nothing about a value of type string"),
        ({"maxItems": 3}, EITHER, "says nothing about a value of type object"),
        ({"pattern": "^a$"}, {"type": ["string", "null"]}, "says nothing about a value of type null"),
        ({"maxLength": 1}, {}, "says nothing about"),
        ({"anyOf": [{"maxItems": 3}, {"const": 1}]}, EITHER, "says nothing about a value of type object"),
        ({"type": "array", "items": {"maxLength": 1}}, EITHER, "says nothing about"),
        ({"additionalProperties": {"maxLength": 3}}, FILTER, "says nothing about"),
        ({"properties": {"sit": {"const": "a"}}}, FILTER, "has no property `sit`"),
        # never matches
        ({"const": 5}, TEXT, "no valid value of this argument can match"),
        ({"enum": []}, TEXT, "no valid value of this argument can match"),
        ({"enum": [0, 1001]}, COUNT, "no valid value of this argument can match"),
        ({"type": "string"}, COUNT, "no valid value of this argument can match"),
        ({"minimum": 1001}, COUNT, "no valid value of this argument can match"),
        ({"minimum": 9, "maximum": 3}, COUNT, "no valid value of this argument can match"),
        ({"const": "Exact"}, {"enum": ["exact", "decimal"]}, "no valid value of this argument can match"),
        ({"allOf": [{"const": 1}, {"const": 2}]}, COUNT, "no valid value of this argument can match"),
        ({"not": {}}, TEXT, "no valid value of this argument can match"),
        ({"pattern": "^a$", "const": "b"}, TEXT, "no valid value of this argument can match"),
        # patterns, wherever they stand
        ({"pattern": "a"}, TEXT, "not anchored"),
        ({"not": {"pattern": "a"}}, TEXT, "not anchored"),
        ({"patternProperties": {"a": {}}}, FILTER, "not anchored"),
        ({"propertyNames": {"pattern": "a"}}, FILTER, "not anchored"),
    ],
)
def test_a_fragment_that_could_silently_not_apply_is_refused(
    fragment: dict[str, Any], schema: dict[str, Any], said: str
) -> None:
    with pytest.raises(FragmentProblem) as caught:
        compile_fragment(fragment, shape(schema), "allow")
    assert said in caught.value.text


@pytest.mark.parametrize("fragment", [None, True, False, "x", 3, ["x"]])
def test_anything_but_a_mapping_is_no_rule(fragment: Any) -> None:
    with pytest.raises(FragmentProblem, match="write a mapping"):
        compile_fragment(fragment, shape(TEXT), "allow")


@pytest.mark.parametrize("kind", ["sql", "python", "shell", "html"])
def test_a_rule_on_the_text_of_a_language_is_refused_where_it_could_be_written_around(kind: Kind) -> None:
    for effect in ("allow", "ask", "deny"):
        with pytest.raises(FragmentProblem, match="many spellings"):
            compile_fragment({"pattern": "^SELECT .*$"}, shape(TEXT, kind), effect)  # type: ignore[arg-type]
    for effect in ("ask", "deny"):
        with pytest.raises(FragmentProblem, match="many spellings"):
            compile_fragment({"const": "DROP TABLE x"}, shape(TEXT, kind), effect)  # type: ignore[arg-type]
    assert compile_fragment({"const": "SELECT 1"}, shape(TEXT, kind), "allow").is_valid("SELECT 1")


def test_the_tools_own_definitions_count_when_matching_is_judged() -> None:
    mode = {"$ref": "#/$defs/mode"}
    definitions = {"mode": {"type": "string", "enum": ["a", "b"]}}
    assert compile_fragment({"const": "a"}, shape(mode, **definitions), "allow").is_valid("a")
    with pytest.raises(FragmentProblem, match="can match"):
        compile_fragment({"const": "c"}, shape(mode, **definitions), "allow")


def test_a_tool_schema_that_refers_to_itself_does_not_hang_the_loader() -> None:
    loop = {"loop": {"anyOf": [{"$ref": "#/$defs/loop"}, {"type": "string"}]}, "spin": {"$ref": "#/$defs/spin"}}
    for name in loop:
        compile_fragment({"type": "string", "maxLength": 3}, shape({"$ref": f"#/$defs/{name}"}, **loop), "allow")


def test_never_matching_is_claimed_only_when_proven() -> None:
    assert never_matches({"const": 0}, shape(COUNT))
    assert not never_matches({"const": 1}, shape(COUNT))
    assert not never_matches({"const": 0}, shape({"$ref": "https://example.com/unknown"}))
