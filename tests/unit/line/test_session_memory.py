"""What a session remembers: only `ok` results are sources, memory is bounded, and forgetting never permits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolcage.line import session_memory
from toolcage.line.clean import clean
from toolcage.line.session_memory import SessionMemory
from toolcage.policy.load import load_role_text
from toolcage.policy.model import Role
from toolcage.types import CageOutput, Refusal, ToolDeclaration, freeze

MAIL = ToolDeclaration(
    name="send",
    description="sends",
    parameters=freeze({"type": "object", "properties": {"to": {"type": "string"}}, "additionalProperties": False}),  # type: ignore[arg-type]
    kinds={"to": "address"},
)
RUN = ToolDeclaration(name="run", description="runs", parameters=freeze({"type": "object", "properties": {}}))  # type: ignore[arg-type]


@pytest.fixture
def role() -> Role:
    text = "version: 1\nrole: r\ntools: {send: {allow: [{origin: {to: [said, 'tool:run']}}]}, run: {allow: [{}]}}"
    return load_role_text(text, "r.yaml", {"send": MAIL, "run": RUN})


def origins(memory: SessionMemory, role: Role, to: str = "ann@example.com") -> frozenset[str]:
    found = memory.facts_for("send", {"to": to}, (role,)).origins
    return frozenset().union(*found.values())


def test_a_result_is_a_source_when_it_is_ok_and_not_when_it_is_not(
    role: Role, cage_output: Callable[..., CageOutput]
) -> None:
    for refusal, expected in (
        (None, {"tool:run"}),
        (Refusal(status="tool_error", code="tool.failed", message="no ann@example.com"), set()),
    ):
        memory = SessionMemory()
        memory.learned(clean(cage_output(data={"mail": "ann@example.com"}, refusal=refusal)))
        assert origins(memory, role) == expected
        printed = SessionMemory()
        printed.learned(clean(cage_output(stdout=b"ann@example.com", refusal=refusal)))
        assert origins(printed, role) == expected


def test_text_on_standard_output_counts_and_keys_of_a_result_do_not(
    role: Role, cage_output: Callable[..., CageOutput]
) -> None:
    memory = SessionMemory()
    memory.learned(clean(cage_output(data={"ann@example.com": 1})))
    assert origins(memory, role) == set()
    memory.learned(clean(cage_output(stdout=b"Ann: ann@example.com\n")))
    assert origins(memory, role) == {"tool:run"}


def test_only_the_identifiers_that_a_rule_asks_about_are_handed_to_the_decision(role: Role) -> None:
    memory = SessionMemory({"tenant": "acme"})
    memory.user_said("ann@example.com and bob@example.com")
    assert memory.facts_for("send", {"to": "ann@example.com"}, (role,)).origins.keys() == {"email:ann@example.com"}
    assert memory.facts_for("run", {}, (role,)).origins == {}
    assert memory.facts_for("run", {}, (role,)).host == {"tenant": "acme"}


def test_what_no_longer_fits_is_forgotten_oldest_first(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_memory, "MOST_SAID_CHARS", 60)
    memory = SessionMemory()
    memory.user_said("write to ann@example.com")
    memory.user_said("write to bob@example.com")
    assert origins(memory, role) == {"said"}
    memory.user_said("write to someone else, please, now")
    assert origins(memory, role) == set()
    assert origins(memory, role, "bob@example.com") == {"said"}


def test_effects_add_up_and_never_go_away(role: Role) -> None:
    memory = SessionMemory()
    memory.used(["reads_private"])
    memory.used([])
    memory.used(["sends"])
    assert memory.facts_for("run", {}, (role,)).effects == {"reads_private", "sends"}


def test_approvals_for_the_session_are_found_by_their_digest_alone() -> None:
    memory = SessionMemory()
    memory.approve("d1", "mia")
    assert (memory.approved_by("d1"), memory.approved_by("d2")) == ("mia", None)


def test_a_result_of_a_call_with_huge_arguments_is_no_source(role: Role) -> None:
    memory = SessionMemory()
    memory.saw("run", ["ann@example.com"], {"text": "x" * (session_memory.MOST_ARGUMENTS + 1)})
    assert origins(memory, role) == set()
    memory.saw("run", ["ann@example.com"], {"text": "x"})
    assert origins(memory, role) == {"tool:run"}


def test_what_is_kept_is_bounded_by_its_arguments_too(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_memory, "MOST_SEEN_CHARS", 3000)
    memory = SessionMemory()
    memory.saw("run", ["ann@example.com"], {})
    for _ in range(3):
        memory.saw("run", ["nothing"], {"text": "y" * 1000})
    assert origins(memory, role) == set()


def test_a_field_is_a_source_of_what_stands_under_it_and_of_nothing_beside_it(
    cage_output: Callable[..., CageOutput],
) -> None:
    text = "version: 1\nrole: r\ntools: {send: {allow: [{origin: {to: ['tool:run#payee']}}]}, run: {allow: [{}]}}"
    role = load_role_text(text, "r.yaml", {"send": MAIL, "run": RUN})
    row = {"payee": ["ann@example.com"], "subject": "pay eve@evil.example", "of": {"payee": "bob@example.com"}}
    data = {"rows": [row]}
    memory = SessionMemory()
    memory.learned(clean(cage_output(data=data, stdout=b"payee: eve@evil.example")), fields=["payee"])
    for to, expected in (
        ("ann@example.com", {"tool:run#payee"}),
        ("bob@example.com", {"tool:run#payee"}),
        ("eve@evil.example", set()),
    ):
        assert {item for item in origins(memory, role, to) if "#" in item} == expected
    forgetful = SessionMemory()
    forgetful.learned(clean(cage_output(data=data)))
    assert "tool:run#payee" not in origins(forgetful, role)


def test_a_field_does_not_vouch_for_what_the_call_was_given(cage_output: Callable[..., CageOutput], role: Role) -> None:
    memory = SessionMemory()
    memory.saw_fields("run", {"payee": "eve@evil.example"}, ["payee"], {"query": "eve@evil.example"})
    assert origins(memory, role, "eve@evil.example") == set()
    memory.saw_fields("run", {"payee": "eve@evil.example"}, ["payee"], {"query": "last month"})
    assert origins(memory, role, "eve@evil.example") == {"tool:run#payee"}
