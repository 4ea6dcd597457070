"""The line as a whole: no way around a stage, one choke point, an intent before anything runs, one closing each."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
import pickle
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

import toolcage
from toolcage import types
from toolcage.errors import DeclarationError, Refused
from toolcage.line.approve import approve
from toolcage.line.authorize import authorize
from toolcage.line.clean import clean
from toolcage.line.execute import execute
from toolcage.line.parse import parse
from toolcage.line.result import result
from toolcage.line.screen import screen
from toolcage.line.validate import validate
from toolcage.policy.model import Role

pytestmark = pytest.mark.docker

SEALED = [
    types.ToolCall, types.ValidCall, types.AuthorizedCall, types.ScreenedCall, types.ApprovedCall, types.CageOutput,
    types.CleanOutput,
]  # fmt: skip


# --- sealed types --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def genuine(lasting: Any) -> dict[type, Any]:
    """One real output of each stage, taken through the stages by hand."""
    runtime = lasting.runtime()
    role: Role = runtime.session().role
    view = {name: grant.declaration for name, grant in role.grants.items()}
    call = parse({"tool": "execute_python", "arguments": {"code": "6*7"}})
    valid = validate(call, view=view, validator=runtime._line.validator, dialect=runtime._line.dialect)
    authorized = authorize(valid, role=role)
    screened = screen(authorized)
    approved = asyncio.run(approve(screened, session="s", approver=None))
    output = asyncio.run(execute(approved, means=runtime._means, session="s"))
    made = [call, valid, authorized, screened, approved, output, clean(output)]
    return {type(item): item for item in made}


def _stages(runtime: Any, role: Any) -> dict[type, Callable[[Any], object]]:
    return {
        types.ToolCall: lambda item: validate(
            item, view={}, validator=runtime._line.validator, dialect=runtime._line.dialect
        ),
        types.ValidCall: lambda item: authorize(item, role=role),
        types.AuthorizedCall: screen,
        types.ScreenedCall: lambda item: asyncio.run(approve(item, session="s", approver=None)),
        types.ApprovedCall: lambda item: asyncio.run(execute(item, means=runtime._means, session="s")),
        types.CageOutput: clean,
        types.CleanOutput: lambda item: result(item, audit_id="a", duration_ms=0.0),
    }  # fmt: skip


def test_the_sealed_types_are_all_that_the_words_of_the_line_seal() -> None:
    assert set(types._minted) == set(SEALED)


@pytest.mark.parametrize("kind", SEALED, ids=lambda kind: kind.__name__)
def test_a_stages_output_cannot_be_built_outside_its_stage(kind: type, genuine: dict[type, Any]) -> None:
    one = genuine[kind]
    fields = {item.name: getattr(one, item.name) for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    builders: list[Callable[[], object]] = [
        kind,
        lambda: kind(**fields),
        lambda: kind.__init__(object.__new__(kind), **fields),
        lambda: copy.copy(one),
        lambda: copy.deepcopy(one),
        lambda: pickle.dumps(one),
        lambda: dataclasses.replace(one),
        lambda: types.claim_seal(kind),
    ]
    for build in builders:
        with pytest.raises(TypeError):
            build()


@pytest.mark.parametrize("kind", SEALED, ids=lambda kind: kind.__name__)
def test_what_was_forged_below_the_constructor_is_no_proof(kind: type, genuine: dict[type, Any], lasting: Any) -> None:
    forged = object.__new__(kind)
    for item in dataclasses.fields(kind):  # type: ignore[arg-type]
        object.__setattr__(forged, item.name, getattr(genuine[kind], item.name))
    derived = type("Derived", (kind,), {"__slots__": ()})
    child = object.__new__(derived)
    runtime = lasting.runtime()
    take = _stages(runtime, runtime.session().role)[kind]
    for fake in (forged, child):
        with pytest.raises(TypeError, match="made by its stage"):
            take(fake)


@pytest.mark.parametrize("kind", SEALED, ids=lambda kind: kind.__name__)
def test_a_stage_takes_nothing_but_the_output_of_the_one_before(
    kind: type, genuine: dict[type, Any], lasting: Any
) -> None:
    runtime = lasting.runtime()
    take = _stages(runtime, runtime.session().role)[kind]
    wrong = [item for other, item in genuine.items() if other is not kind]
    for item in [*wrong, None, {}, "call", {"tool": "execute_python"}, object()]:
        with pytest.raises(TypeError, match=f"expected a {kind.__name__}"):
            take(item)


def test_a_genuine_output_cannot_be_changed(genuine: dict[type, Any]) -> None:
    for one in genuine.values():
        for item in dataclasses.fields(one):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(one, item.name, None)
    arguments = genuine[types.ValidCall].arguments
    with pytest.raises(TypeError):
        arguments["code"] = "another program"


@pytest.mark.threat("P63")
def test_an_approved_call_that_host_code_kept_runs_at_most_once(genuine: dict[type, Any], lasting: Any) -> None:
    runtime = lasting.runtime()
    with pytest.raises(Refused) as caught:
        asyncio.run(execute(genuine[types.ApprovedCall], means=runtime._means, session="s"))
    assert (caught.value.refusal.status, caught.value.refusal.code) == ("approval_required", "approval.used")
    assert runtime.stats().get("created", 0) == 0


# --- one choke point -----------------------------------------------------------------------------------------------


@toolcage.tool("execute_python", description="Not the built-in one: only its name is used here.")
def namesake(code: str) -> str:
    return code


def test_every_way_in_leaves_an_intent_and_a_closing(installation: Any) -> None:
    runtime = installation.runtime()
    session = runtime.session()
    call = {"tool": "execute_python", "arguments": {"code": "6*7"}}

    async def awaited() -> list[Any]:
        return [await session.acall("execute_python", {"code": "6*7"})]

    def inside() -> list[Any]:
        with runtime.session():
            return [namesake.execute(code="6*7"), namesake("6*7")]

    ways: dict[str, Callable[[], list[Any]]] = {
        "call": lambda: [session.call("execute_python", {"code": "6*7"})],
        "call_raw, a mapping": lambda: [session.call_raw(call)],
        "call_raw, text": lambda: [session.call_raw(json.dumps(call))],
        "call_raw, bytes": lambda: [session.call_raw(json.dumps(call).encode())],
        "map": lambda: session.map([("execute_python", {"code": "6*7"})] * 2),
        "acall": lambda: asyncio.run(awaited()),
        "a tool's own execute": inside,
    }
    expected = 0
    for way, go in ways.items():
        results = go()
        assert [item.data for item in results] == [42] * len(results), way
        expected += len(results)
        kinds = Counter(item["type"] for item in installation.records())
        assert (kinds["intent"], kinds["closing"]) == (expected, expected), way
        last = [item for item in installation.records() if item["type"] == "closing"][-len(results) :]
        assert {item["audit_id"] if "audit_id" in item else f"{item['runtime']}:{item['seq']}" for item in last} == {
            item.audit_id for item in results
        }, way


def test_outside_a_session_a_tools_own_execute_is_denied_and_runs_nothing(installation: Any) -> None:
    runtime = installation.runtime()
    refused = namesake.execute(code="6*7")
    assert (refused.status, refused.code) == ("denied", "session.none")
    assert runtime.stats().get("created", 0) == 0


def test_a_tool_called_inside_a_session_gets_that_sessions_role_and_no_more(installation: Any) -> None:
    session = installation.session("version: 1\nrole: nobody\ntools: {}\n")
    with session:
        assert (namesake.execute(code="1").status, namesake.execute(code="1").code) == ("denied", "tool.unknown")


# --- the rail ------------------------------------------------------------------------------------------------------

MIXED = """
version: 1
role: coder
tools:
  execute_python:
    allow: [{code: {type: string, maxLength: 400}}]
    sandbox: {wall: 1s, memory: 64MiB}
  calculate_expression:
    ask: [{}]
    deny: [{mode: {const: decimal}}]
"""
ENDS: list[tuple[str, Mapping[str, object], str, str]] = [
    ("execute_python", {"code": "6*7"}, "ok", "ok"),
    ("execute_python", {"code": "1/0"}, "tool_error", "program.exit"),
    ("execute_python", {"code": "while True: pass"}, "timeout", "limit.wall"),
    ("execute_python", {"code": "bytearray(10**9)"}, "out_of_memory", "limit.memory"),
    ("execute_python", {"code": "while True: print('x' * 9999)"}, "limit_exceeded", "limit.output"),
    ("calculate_expression", {"expression": "1", "mode": "decimal"}, "denied", "policy.denied"),
    ("execute_python", {"code": "#" * 401}, "denied", "policy.no_match"),
    ("execute_python", {"code": "\0"}, "blocked", "text.nul"),
    ("execute_python", {"code": 7}, "invalid", "arguments.schema"),
    ("execute_python", {"code": "1", "privileged": True}, "invalid", "arguments.schema"),
    ("execute_python", {}, "invalid", "arguments.schema"),
    ("calculate_expression", {"expression": "1+1"}, "approval_required", "approval.required"),
    ("run_shell", {"command": "id"}, "denied", "tool.unknown"),
    ("execute_python", {"code": 2**60}, "malformed", "call.integer"),
]  # fmt: skip
RAN = ("ok", "tool_error", "timeout", "out_of_memory", "limit_exceeded")


@pytest.fixture(scope="module")
def mixed(lasting: Any) -> tuple[Any, list[Any]]:
    runtime = lasting.runtime(MIXED)
    session = runtime.session()
    return runtime, [session.call(tool, arguments) for tool, arguments, _, _ in ENDS]


def test_each_refusal_and_each_failure_has_its_own_status_and_code(mixed: tuple[Any, list[Any]]) -> None:
    assert [(item.status, item.code or "ok") for item in mixed[1]] == [(status, code) for *_, status, code in ENDS]
    for item in mixed[1]:
        assert item.success is (item.status == "ok")
        assert item.success or item.data is None


def test_a_refusal_tells_the_model_nothing_of_the_rule_or_the_host(mixed: tuple[Any, list[Any]], lasting: Any) -> None:
    for item in mixed[1]:
        told = json.dumps(item.to_dict()) + item.to_text()
        for secret in (str(lasting.folder), "role0.yaml", "maxLength", "tools.execute_python", "decimal"):
            assert secret not in told


def test_every_call_has_exactly_one_closing_and_an_intent_exactly_when_it_ran(
    mixed: tuple[Any, list[Any]], lasting: Any
) -> None:
    runtime, results = mixed
    mine = [item for item in lasting.records() if item["runtime"] == runtime._id]
    closings = {str(item["call_id"]): item for item in mine if item["type"] == "closing"}
    intents = {str(item["call_id"]): item for item in mine if item["type"] == "intent"}
    assert len([item for item in mine if item["type"] == "closing"]) == len(closings) == len(ENDS)
    for outcome in results:
        closing = closings[outcome.call_id]
        assert (closing["status"], closing["code"]) == (outcome.status, outcome.code or "ok")
        assert f"{closing['runtime']}:{closing['seq']}" == outcome.audit_id
        ran = outcome.status in RAN
        assert (outcome.call_id in intents) is ran
        if ran:
            intent = intents[outcome.call_id]
            assert closing["intent"] == intent["seq"] < closing["seq"]
            assert intent["arguments"] == closing["arguments"]
            assert "execute_python" in str(intent["rule"])


def test_only_what_ran_had_a_cage(mixed: tuple[Any, list[Any]]) -> None:
    runtime, results = mixed
    assert runtime.stats()["created"] == len([item for item in results if item.status in RAN])


@pytest.mark.threat("P57")
def test_nothing_in_a_call_reaches_the_containers_configuration(installation: Any) -> None:
    """Names that an engine's API knows, as arguments, as the tool's name and beside them: refused before a cage."""
    runtime = installation.runtime()
    session = runtime.session()
    words = ("Privileged", "Binds", "NetworkMode", "CapAdd", "image", "user", "env", "mounts", "sandbox", "runtime")
    for word in words:
        assert session.call("execute_python", {"code": "1", word: "host"}).code == "arguments.schema"
        raw = {"tool": "execute_python", "arguments": {"code": "1"}, word: "host"}
        assert session.call_raw(raw).code == "call.unknown_field"
    assert runtime.stats().get("created", 0) == 0


def test_a_name_that_is_taken_cannot_be_registered_over(installation: Any) -> None:
    tool = toolcage.StandardTool("execute_python", "Takes the place of another.", lambda code: code)
    with pytest.raises(DeclarationError, match="built-in"):
        installation.runtime(tools=[tool.param("code", "string")])


def test_the_declarations_of_a_role_cannot_be_changed(installation: Any) -> None:
    (declaration, *_) = installation.session().tools()
    assert isinstance(declaration.parameters, MappingProxyType)
    with pytest.raises(TypeError):
        declaration.parameters["additionalProperties"] = True
