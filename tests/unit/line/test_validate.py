"""Validate: the role's view decides what exists, the schema what fits, and an error says where and how to repair."""

from types import MappingProxyType
from typing import Any

import jsonschema_rs
import pytest

from toolcage.errors import Refused
from toolcage.facts.sql import SqlFacts
from toolcage.line.parse import parse
from toolcage.line.validate import compile_schema, validate
from toolcage.types import ToolDeclaration, ValidCall, freeze, thaw

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "pattern": "^(a|a)*b$"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "since": {"type": "string", "format": "date"},
        "filter": {"type": "object", "properties": {"kind": {"type": "string", "default": "all"}}},
        "sql": {"type": "string"},
    },
    "required": ["limit"],
    "additionalProperties": False,
}


def declaration(**changes: Any) -> ToolDeclaration:
    schema = freeze(changes.pop("schema", SCHEMA))
    assert isinstance(schema, MappingProxyType)
    return ToolDeclaration(
        name="search", description="", parameters=schema, kinds=MappingProxyType({"sql": "sql"}), **changes
    )


def check(arguments: dict[str, Any], tool: str = "search", **changes: Any) -> ValidCall:
    files = changes.pop("files", None)
    declared = declaration(**changes)
    return validate(
        parse({"tool": tool, "arguments": arguments}, files=files),
        view={"search": declared},
        validator=compile_schema,
        dialect=lambda _name: "sqlite",
    )


def refusal(arguments: dict[str, Any], **changes: Any) -> Any:
    with pytest.raises(Refused) as caught:
        check(arguments, **changes)
    return caught.value.refusal


def test_defaults_are_filled_at_every_depth_and_nothing_is_coerced() -> None:
    made = check({"filter": {}})
    assert thaw(made.arguments) == {"filter": {"kind": "all"}, "limit": 10}
    assert made.canonical == b'{"filter":{"kind":"all"},"limit":10}'
    assert refusal({"limit": "10"}).code == "arguments.schema"


def test_the_digest_is_of_the_arguments_with_their_defaults() -> None:
    assert check({}).digest == check({"limit": 10}).digest != check({"limit": 11}).digest


def test_a_tool_that_is_not_in_the_view_does_not_exist_and_leaks_no_schema() -> None:
    told = refusal({"secret_parameter": 1}, tool="hidden")
    assert (told.status, told.code) == ("denied", "tool.unknown")
    assert "secret_parameter" not in f"{told.message}{told.hint}"
    assert "search" in told.hint


@pytest.mark.parametrize("name", ["Search", "search ", "seаrch", "mcp:x/search"])
def test_a_name_that_only_looks_like_a_granted_one_does_not_exist(name: str) -> None:
    with pytest.raises(Refused) as caught:
        check({}, tool=name)
    assert caught.value.refusal.code in ("tool.unknown", "call.tool_name")


@pytest.mark.parametrize(
    ("arguments", "path", "word"),
    [
        ({"limit": 0}, "limit", "minimum"),
        ({"limit": 101}, "limit", "maximum"),
        ({"limit": True}, "limit", "integer"),
        ({"limit": 1.5}, "limit", "integer"),
        ({"query": "c"}, "query", "match"),
        ({"since": "yesterday"}, "since", "date"),
        ({"filter": {"kind": 3}}, "filter/kind", "string"),
        ({"unknown": 1}, "arguments", "unknown"),
    ],
)
def test_an_error_names_the_path_and_what_is_wrong_and_the_hint_the_arguments(
    arguments: dict[str, Any], path: str, word: str
) -> None:
    told = refusal(arguments)
    assert (told.status, told.code) == ("invalid", "arguments.schema")
    assert path in told.message
    assert word in told.message
    assert "limit (required)" in told.hint


def test_a_required_argument_without_a_default_is_demanded() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert '"a" is a required property' in refusal({}, schema=schema).message


def test_a_huge_value_does_not_come_back_in_the_error() -> None:
    assert len(refusal({"query": "c" * 500_000}).message) < 2000


@pytest.mark.parametrize(
    ("fragment", "value", "told"),
    [
        ({"type": "string", "maxLength": 5}, "hunter2" * 3, "a: 21 characters, at most 5"),
        ({"type": "string", "minLength": 9}, "hunter2", "a: 7 characters, at least 9"),
        ({"type": "string", "enum": ["x", "y"]}, "hunter2", 'a: must be one of "x", "y"'),
        ({"const": 3}, "hunter2", "a: must be 3"),
        ({"type": ["integer", "null"]}, "hunter2", "a: must be of type integer, null"),
        ({"type": "integer"}, {"hunter2": "hunter2"}, "a: must be of type integer"),
        ({"type": "string", "pattern": "^x$"}, "hunter2", 'a: does not match "^x$"'),
        ({"type": "string", "format": "date"}, "hunter2", 'a: is not in the format "date"'),
        ({"type": "array", "maxItems": 1}, ["hunter2", "x"], "a: 2 items, at most 1"),
        ({"type": "array", "uniqueItems": True}, ["hunter2", "hunter2"], "a: holds an item twice"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "hunter2", "a: does not satisfy `anyOf`"),
        ({"not": {"type": "string"}}, "hunter2", "a: does not satisfy `not`"),
        ({"type": "number", "maximum": 1}, 4711, "a: is above the maximum of 1"),
        ({"type": "number", "multipleOf": 2}, 4711, "a: must be a multiple of 2"),
        ({"type": "object", "maxProperties": 0}, {"b": "hunter2"}, "a: 1 properties, at most 0"),
        ({"contains": {"type": "integer"}}, ["hunter2"], "a: does not satisfy `contains`"),
    ],
)
def test_no_value_comes_back_in_an_error(fragment: dict[str, Any], value: Any, told: str) -> None:
    schema = {"type": "object", "properties": {"a": fragment}, "required": ["a"]}
    message = refusal({"a": value}, schema=schema).message
    assert message == told
    assert "hunter2" not in message
    assert "4711" not in message


def test_a_pattern_that_backtracks_elsewhere_is_matched_in_linear_time() -> None:
    assert refusal({"query": "a" * 200_000 + "c"}).code == "arguments.schema"


def test_a_remote_reference_is_not_fetched() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}
    with pytest.raises(jsonschema_rs.ValidationError, match=r"127\.0\.0\.1"):
        compile_schema(declaration(schema=schema))


def test_files_are_refused_by_a_tool_that_takes_none_and_taken_by_one_that_does() -> None:
    assert refusal({}, files={"a": b""}).code == "files.not_accepted"
    assert check({}, files={"a": b""}, accepts_files=True).call.files[0].name == "a"


def test_each_argument_of_a_kind_is_read_into_facts_once() -> None:
    facts = check({"sql": "SELECT name FROM users"}).facts["sql"]
    assert isinstance(facts, SqlFacts)
    assert facts.tables == {"users"}


def test_an_argument_that_cannot_be_read_as_its_kind_is_blocked() -> None:
    told = refusal({"sql": "SELECT FROM WHERE (("})
    assert told.status == "blocked"
    assert told.code.startswith("sql.")
