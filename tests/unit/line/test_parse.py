"""Parse: one well-formed call out of whatever arrives, everything else refused as malformed with a code of its own."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcage.errors import Refused
from toolcage.line.parse import MAX_BYTES, MAX_DEPTH, MAX_FILE_BYTES, MAX_FILES, parse
from toolcage.types import ToolCall, thaw

CALL = {"tool": "t", "arguments": {}}


def code_of(raw: Any, **options: Any) -> str:
    with pytest.raises(Refused) as caught:
        parse(raw, **options)
    assert caught.value.refusal.status == "malformed"
    assert caught.value.refusal.hint
    return caught.value.refusal.code


def call(**arguments: Any) -> dict[str, Any]:
    return {"tool": "t", "arguments": arguments}


def test_bytes_text_and_mapping_give_the_same_call() -> None:
    raw = {"tool": "t", "arguments": {"b": [1, {"c": None}], "a": "é"}}
    made = [parse(raw), parse(json.dumps(raw)), parse(json.dumps(raw).encode())]
    assert {item.canonical for item in made} == {'{"a":"é","b":[1,{"c":null}]}'.encode()}
    assert len({item.digest for item in made}) == 1
    assert len({item.call_id for item in made}) == 3


def test_arguments_may_be_left_out() -> None:
    assert parse({"tool": "t"}).arguments == {}


def test_the_parsed_call_does_not_change_with_the_caller_s_object() -> None:
    inner = {"list": [1]}
    made = parse(call(inner=inner))
    inner["list"].append(2)
    assert thaw(made.arguments) == {"inner": {"list": [1]}}
    with pytest.raises(TypeError):
        made.arguments["inner"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "call.not_json"),
        (b"{", "call.not_json"),
        (b"[]", "call.not_object"),
        (b'"tool"', "call.not_object"),
        (b"\xff{}", "call.encoding"),
        ('{"tool":"t","arguments":{"a":"\ud800"}}', "call.encoding"),
        (b'{"tool":"t","arguments":{"a":"\\ud800"}}', "call.surrogate"),
        (b'{"tool":"t","arguments":{"\\udfff":1}}', "call.surrogate"),
        (b'{"tool":"t","arguments":{"a":1,"a":2}}', "call.duplicate_key"),
        (b'{"tool":"t","tool":"u"}', "call.duplicate_key"),
        (b'{"tool":"t","arguments":{"a":{"b":1,"\\u0062":2}}}', "call.duplicate_key"),
        (b'{"tool":"t","arguments":{"a":NaN}}', "call.number"),
        (b'{"tool":"t","arguments":{"a":-Infinity}}', "call.number"),
        (b'{"tool":"t","arguments":{"a":1e999}}', "call.number"),
        (b'{"tool":"t","arguments":{"a":9007199254740992}}', "call.integer"),
        (b'{"tool":"t","arguments":{"a":' + b"9" * 100_000 + b"}}", "call.integer"),
        (b'{"tool":"t","role":"admin"}', "call.unknown_field"),
        (b'{"arguments":{}}', "call.tool_name"),
        (b'{"tool":7}', "call.tool_name"),
        (b'{"tool":"t\\u0000"}', "call.tool_name"),
        ('{"tool":"execute_pythоn"}', "call.tool_name"),
        (b'{"tool":"t","arguments":[]}', "call.arguments"),
        (b'{"tool":"t","arguments":null}', "call.arguments"),
        (b'{"tool":"t","arguments":' + b'{"a":' * 40 + b"1" + b"}" * 40 + b"}", "call.too_deep"),
        (b'{"tool":"t","arguments":' + b"[" * 500_000, "call.too_deep"),
        (b'{"tool":"t"}' + b" " * MAX_BYTES, "call.too_large"),
        (b'{"tool":"t","arguments":{"a":[' + b"0," * 60_000 + b"0]}}", "call.too_many_values"),
    ],
)
def test_raw_json_that_is_not_one_plain_call_is_refused(raw: Any, code: str) -> None:
    assert code_of(raw) == code


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"a": math.nan}, "call.number"),
        ({"a": math.inf}, "call.number"),
        ({"a": 2**53}, "call.integer"),
        ({"a": b"bytes"}, "call.not_json"),
        ({"a": {1, 2}}, "call.not_json"),
        ({"a": object()}, "call.not_json"),
        ({1: "a"}, "call.key"),
        ({"a": "x" * (MAX_BYTES + 1)}, "call.too_large"),
        ({"a": "\ud800"}, "call.surrogate"),
    ],
)
def test_a_mapping_is_checked_like_raw_json(arguments: Any, code: str) -> None:
    assert code_of({"tool": "t", "arguments": arguments}) == code


def test_a_mapping_that_contains_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    assert code_of({"tool": "t", "arguments": loop}) == "call.too_deep"


def test_the_deepest_allowed_call_passes_raw_and_built() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    raw = call(a=value)
    assert parse(raw).digest == parse(json.dumps(raw)).digest
    assert code_of(call(a=[value])) == code_of(json.dumps(call(a=[value]))) == "call.too_deep"


def test_the_largest_exact_integers_pass() -> None:
    assert parse(call(a=2**53 - 1, b=-(2**53) + 1)).canonical == b'{"a":9007199254740991,"b":-9007199254740991}'


def test_brackets_inside_strings_are_not_nesting() -> None:
    assert parse(json.dumps(call(a="[" * 1000 + '"' + "{" * 1000))).tool == "t"


def test_an_alias_is_resolved_by_the_exact_table_only() -> None:
    aliases = {"calculate": "calculate_expression"}
    assert parse({"tool": "calculate"}, aliases=aliases).tool == "calculate_expression"
    assert parse({"tool": "Calculate"}, aliases=aliases).tool == "Calculate"


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "a\\b", "a\nb", "a\x00", "a\x1b[0m", "x" * 101,
     "/".join("abcdefghi"), "\ud800", "é" * 99 + "/" + "é" * 99],
)  # fmt: skip
def test_a_file_name_that_is_not_plain_and_relative_is_refused(name: str) -> None:
    assert code_of(CALL, files={name: b""}) == "file.name"


def test_plain_file_names_pass_in_sorted_order() -> None:
    made = parse(CALL, files={"b/c.csv": b"2", "a.txt": b"1", "…ünï": b"3"})
    assert [item.name for item in made.files] == ["a.txt", "b/c.csv", "…ünï"]


def test_too_many_too_large_and_non_bytes_files_are_refused() -> None:
    assert code_of(CALL, files={f"f{number}": b"" for number in range(MAX_FILES + 1)}) == "file.too_many"
    assert code_of(CALL, files={"f": b"x" * (MAX_FILE_BYTES + 1)}) == "file.too_large"
    assert code_of(CALL, files={"f": "text"}) == "file.content"


def test_the_digest_covers_arguments_file_names_and_contents() -> None:
    digests = {
        parse(CALL).digest,
        parse(call(a=1)).digest,
        parse(CALL, files={"a": b"1"}).digest,
        parse(CALL, files={"b": b"1"}).digest,
        parse(CALL, files={"a": b"2"}).digest,
    }
    assert len(digests) == 5


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
@settings(max_examples=200)
def test_any_value_is_parsed_or_refused_and_never_raises_anything_else(value: Any) -> None:
    for raw in (value, {"tool": "t", "arguments": value}, json.dumps({"tool": "t", "arguments": value})):
        try:
            made = parse(raw)
        except Refused:
            continue
        assert isinstance(made, ToolCall)
        as_numbers = json.loads(json.dumps(thaw(made.arguments)), parse_int=float)
        assert json.loads(made.canonical, parse_int=float) == as_numbers


@given(st.binary(max_size=300))
def test_any_bytes_are_parsed_or_refused_and_never_raise_anything_else(raw: bytes) -> None:
    try:
        parse(raw)
    except Refused:
        return
