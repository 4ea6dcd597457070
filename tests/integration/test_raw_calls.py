"""Calls as a model may write them: hostile JSON through `call_raw`, refused before a cage is touched, and recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

pytestmark = pytest.mark.docker


class Evil(Mapping[str, object]):
    """A mapping that answers differently each time it is read."""

    def __init__(self) -> None:
        self.reads = 0

    def __getitem__(self, key: str) -> object:
        self.reads += 1
        return {"code": "'first'"} if self.reads < 2 else {"code": "'second'"}

    def __iter__(self) -> Any:
        return iter(("arguments",))

    def __len__(self) -> int:
        return 1


HOSTILE: dict[str, tuple[Any, str]] = {
    "empty": (b"", "call.not_json"),
    "not JSON": ("execute_python(code)", "call.not_json"),
    "single quotes": ("{'tool':'execute_python'}", "call.not_json"),
    "trailing text": ('{"tool":"execute_python","arguments":{"code":"1"}} and then', "call.not_json"),
    "two documents": ('{"tool":"execute_python"}{"tool":"run_shell"}', "call.not_json"),
    "a list": ("[]", "call.not_object"),
    "a text": ('"execute_python"', "call.not_object"),
    "null": ("null", "call.not_object"),
    "python None": (None, "call.not_object"),
    "a python list": ([], "call.not_object"),
    "no tool": ('{"arguments":{}}', "call.tool_name"),
    "tool is a number": ('{"tool":1,"arguments":{}}', "call.tool_name"),
    "tool with a newline": ('{"tool":"execute_python\\n","arguments":{}}', "call.tool_name"),
    "homoglyph": ('{"tool":"execute_pythоn","arguments":{}}', "call.tool_name"),
    "full width": ('{"tool":"ｅxecute_python","arguments":{}}', "call.tool_name"),
    "unknown field": ('{"tool":"execute_python","arguments":{"code":"1"},"role":"admin"}', "call.unknown_field"),
    "arguments as text": ('{"tool":"execute_python","arguments":"{}"}', "call.arguments"),
    "arguments as list": ('{"tool":"execute_python","arguments":[["code","1"]]}', "call.arguments"),
    "the tool twice": ('{"tool":"execute_python","tool":"run_shell","arguments":{}}', "call.duplicate_key"),
    "an argument twice": ('{"tool":"execute_python","arguments":{"code":"1","code":"2"}}', "call.duplicate_key"),
    "twice by an escape": ('{"tool":"execute_python","arguments":{"code":"1","\\u0063ode":"2"}}', "call.duplicate_key"),
    "NaN": ('{"tool":"execute_python","arguments":{"code":NaN}}', "call.number"),
    "Infinity": ('{"tool":"execute_python","arguments":{"code":-Infinity}}', "call.number"),
    "1e999": ('{"tool":"execute_python","arguments":{"code":1e999}}', "call.number"),
    "2^53 + 1": ('{"tool":"execute_python","arguments":{"code":9007199254740993}}', "call.integer"),
    "a million digits": ('{"tool":"execute_python","arguments":{"code":' + "9" * 10**6 + "}}", "call.integer"),
    "a lone surrogate": ('{"tool":"execute_python","arguments":{"code":"\\ud800"}}', "call.surrogate"),
    "a surrogate key": ('{"tool":"execute_python","arguments":{"\\udfff":1}}', "call.surrogate"),
    "a python surrogate": ({"tool": "execute_python", "arguments": {"code": "\ud800"}}, "call.surrogate"),
    "a text surrogate": ('{"tool":"execute_python","arguments":{"code":"\ud800"}}', "call.encoding"),
    "not UTF-8": (b'{"tool":"execute_python","arguments":{"code":"\xff"}}', "call.encoding"),
    "UTF-16": ('{"tool":"execute_python","arguments":{}}'.encode("utf-16"), "call.encoding"),
    "a byte order mark": (b'\xef\xbb\xbf{"tool":"execute_python","arguments":{"code":"1"}}', "call.not_json"),
    "deep lists": ('{"tool":"execute_python","arguments":{"code":' + "[" * 10**5 + "]" * 10**5 + "}}", "call.too_deep"),
    "deep objects": ('{"tool":"t","arguments":' + '{"a":' * 10**5 + "1" + "}" * 10**5 + "}", "call.too_deep"),
    "many values": ({"tool": "execute_python", "arguments": {"code": [0] * 60_000}}, "call.too_many_values"),
    "a set": ({"tool": "execute_python", "arguments": {"code": {1}}}, "call.not_json"),
    "bytes inside": ({"tool": "execute_python", "arguments": {"code": b"1"}}, "call.not_json"),
    "a key that is no text": ({"tool": "execute_python", "arguments": {1: "1"}}, "call.key"),
    "python NaN": ({"tool": "execute_python", "arguments": {"code": float("nan")}}, "call.number"),
}  # fmt: skip


@pytest.fixture(scope="module")
def answers(lasting: Any) -> tuple[Any, dict[str, Any]]:
    runtime = lasting.runtime()
    session = runtime.session()
    return runtime, {name: session.call_raw(raw) for name, (raw, _) in HOSTILE.items()}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_json_is_malformed_with_a_code_and_a_hint(answers: tuple[Any, dict[str, Any]], name: str) -> None:
    result = answers[1][name]
    assert (result.status, result.code) == ("malformed", HOSTILE[name][1])
    assert result.hint
    assert len(str(result.error)) < 300
    assert str(result.error).isprintable()


def test_each_of_them_is_recorded_and_none_had_a_cage(answers: tuple[Any, dict[str, Any]], lasting: Any) -> None:
    runtime, results = answers
    assert runtime.stats().get("created", 0) == 0
    closings = [item for item in lasting.records() if item["type"] == "closing"]
    assert {f"{item['runtime']}:{item['seq']}" for item in closings} == {item.audit_id for item in results.values()}
    assert not [item for item in lasting.records() if item["type"] == "intent"]


@pytest.mark.threat("P61")
@pytest.mark.parametrize(
    "tool",
    ["Execute_Python", "EXECUTE_PYTHON", "execute_python ", " execute_python", "execute-python", "execute_python/",
     "mcp:local/execute_python", "toolcage.tools.execute_python", "run_shell", "query_database", "execute_python:v1"],
)  # fmt: skip
def test_no_spelling_of_a_tool_reaches_it_but_its_own(installation: Any, tool: str) -> None:
    runtime = installation.runtime()
    result = runtime.session().call_raw({"tool": tool, "arguments": {"code": "1"}})
    assert result.code in ("tool.unknown", "call.tool_name")
    assert runtime.stats().get("created", 0) == 0


@pytest.mark.threat("P61")
def test_an_alias_gives_the_tools_own_grant_and_a_role_without_it_nothing(installation: Any) -> None:
    expression = {"tool": "calculate", "arguments": {"expression": "6*7"}}
    assert installation.session().call_raw(expression).data["text"] == "42"
    without = installation.session("version: 1\nrole: r\ntools: {execute_python: {allow: [{}]}}\n")
    result = without.call_raw(expression)
    assert (result.status, result.code) == ("denied", "tool.unknown")
    assert "expression" not in str(result.hint)  # nothing of the hidden tool's schema
    assert "calculate" not in f"{result.error}{result.hint}"


def test_what_was_judged_is_what_runs_even_when_the_callers_object_changes(installation: Any) -> None:
    arguments = {"code": "'judged'"}
    seen: list[object] = []

    def approver(request: Any) -> bool:
        seen.append(request.arguments["code"])
        arguments["code"] = "'changed'"
        return True

    policy = "version: 1\nrole: r\ntools: {execute_python: {ask: [{}]}}\n"
    result = installation.session(policy, approver=approver).call("execute_python", arguments)
    assert (result.data, seen) == ("judged", ["'judged'"])


def test_a_mapping_that_reads_differently_each_time_is_read_as_one_call(installation: Any) -> None:
    """Whatever was frozen is what all stages, the audit and the cage see."""

    class Raw(dict[str, object]):
        def get(self, key: str, default: object = None) -> object:
            return Evil.__getitem__(shared, key) if key == "arguments" else super().get(key, default)

    shared = Evil()
    result = installation.session().call_raw(Raw(tool="execute_python", arguments={}))
    recorded = [json.loads(str(item["arguments"]))["code"] for item in installation.records() if "arguments" in item]
    assert {f"'{result.data}'"} == set(recorded)


def test_plain_calls_pass_in_every_form(installation: Any) -> None:
    session = installation.session()
    frozen = MappingProxyType({"tool": "execute_python", "arguments": MappingProxyType({"code": "'ü' * 2"})})
    for raw in (frozen, '{"tool":"execute_python","arguments":{"code":"\'\\u00fc\' * 2"}}'):
        assert session.call_raw(raw).data == "üü"


def test_a_missing_argument_object_is_an_empty_one(installation: Any) -> None:
    result = installation.session().call_raw('{"tool":"execute_python"}')
    assert (result.status, result.code) == ("invalid", "arguments.schema")
    assert "code" in str(result.error)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"code": 1}, "code"),
        ({"code": None}, "code"),
        ({"code": ["1"]}, "code"),
        ({"code": ""}, "code"),
        ({"code": "x" * 300_000}, "code"),
        ({"cod": "1"}, "cod"),
        ({"code": "1", "timeout": 3600}, "timeout"),
        ({}, "code"),
    ],
)
def test_arguments_that_do_not_fit_are_invalid_and_name_the_place(
    installation: Any, arguments: dict[str, object], names: str
) -> None:
    result = installation.session().call("execute_python", arguments)
    assert (result.status, result.code) == ("invalid", "arguments.schema")
    assert names in str(result.error)
    assert "code (required)" in str(result.hint)
    assert len(str(result.error)) < 2000
