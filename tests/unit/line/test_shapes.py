"""Calls as the model APIs write them: each exact shape is the same call, everything beside it is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolcage.errors import Refused
from toolcage.line.parse import MAX_DEPTH, parse
from toolcage.line.shapes import plain_call

ARGUMENTS = {"expression": "1+1"}
TEXT = json.dumps(ARGUMENTS)
SHAPES: list[dict[str, Any]] = [
    {"tool": "calc", "arguments": ARGUMENTS},
    {"name": "calc", "arguments": ARGUMENTS},
    {"name": "calc", "arguments": TEXT},
    {"function": {"name": "calc", "arguments": TEXT}},
    {"function": {"name": "calc", "arguments": ARGUMENTS}},
    {"id": "call_1", "type": "function", "function": {"name": "calc", "arguments": TEXT}},
    {"name": "calc", "input": ARGUMENTS},
    {"id": "toolu_1", "type": "tool_use", "name": "calc", "input": ARGUMENTS},
]


@pytest.mark.parametrize("shape", SHAPES, ids=json.dumps)
@pytest.mark.parametrize("as_text", [False, True])
def test_every_known_shape_is_the_same_call(shape: dict[str, Any], as_text: bool) -> None:
    call = parse(plain_call(json.dumps(shape) if as_text else shape))
    assert (call.tool, dict(call.arguments)) == ("calc", ARGUMENTS)
    assert call.digest == parse({"tool": "calc", "arguments": ARGUMENTS}).digest


@pytest.mark.parametrize(
    "shape",
    [
        {"name": "calc", "arguments": ARGUMENTS, "input": {"expression": "2+2"}},
        {"name": "calc", "tool": "other", "arguments": ARGUMENTS},
        {"tool": "calc", "input": ARGUMENTS},
        {"tool": "calc", "arguments": TEXT},
        {"name": "calc", "input": TEXT},
        {"name": "calc"},
        {"name": "calc", "arguments": ARGUMENTS, "type": "function"},
        {"function": {"name": "calc", "arguments": ARGUMENTS}, "name": "other"},
        {"function": {"name": "calc", "arguments": ARGUMENTS}, "arguments": ARGUMENTS},
        {"function": {"name": "calc", "arguments": ARGUMENTS, "strict": True}},
        {"function": {"name": "calc", "input": ARGUMENTS}},
        {"function": {"function": {"name": "calc", "arguments": ARGUMENTS}}},
        {"function": "calc"},
        {"type": "tool_use", "function": {"name": "calc", "arguments": ARGUMENTS}},
        {"type": "function", "name": "calc", "input": ARGUMENTS},
        {"id": 7, "name": "calc", "input": ARGUMENTS},
        {"id": {"tool": "other"}, "name": "calc", "input": ARGUMENTS},
        {"name": "calc", "arguments": json.dumps(TEXT)},
        {"name": "calc", "arguments": "[1]"},
        {"name": "calc", "arguments": ""},
        {"name": "calc", "arguments": "{'expression': '1'}"},
        {"name": "calc", "arguments": '{"expression": "1", "expression": "2"}'},
        {"name": "calc", "arguments": '{"a": {"b": 1, "b": 2}}'},
        {"name": "calc", "arguments": '{"a": NaN}'},
        {"name": "calc", "arguments": '{"a": 123456789012345678901}'},
        {"name": "calc", "arguments": '{"a": ' + "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2) + "}"},
        {"name": ["calc"], "arguments": ARGUMENTS},
        {},
    ],
    ids=lambda shape: json.dumps(shape)[:80],
)
@pytest.mark.parametrize("as_text", [False, True])
def test_anything_beside_a_known_shape_is_malformed(shape: dict[str, Any], as_text: bool) -> None:
    with pytest.raises(Refused) as caught:
        parse(plain_call(json.dumps(shape) if as_text else shape))
    assert caught.value.refusal.status == "malformed"


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "calc", "name": "other", "arguments": {}}',
        '{"name": "calc", "arguments": {}, "arguments": {}}',
        '{"name": "calc", "input": {}, "input": {"a": 1}}',
        '{"function": {"name": "calc", "arguments": {}}, "function": {"name": "other", "arguments": {}}}',
        '{"function": {"name": "calc", "name": "other", "arguments": {}}}',
        '"{\\"tool\\": \\"calc\\"}"',
        "[]",
        "null",
    ],
)
def test_a_key_that_stands_twice_and_text_within_text_are_malformed(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(plain_call(text))
    assert caught.value.refusal.status == "malformed"
