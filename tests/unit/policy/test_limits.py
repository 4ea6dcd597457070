"""How limits are written, and what a used-up one means for a decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from toolcage.errors import PolicyError
from toolcage.policy.decide import decide
from toolcage.policy.limits import parse_limit
from toolcage.policy.model import Role
from toolcage.types import SessionFacts, ToolDeclaration

Load = Callable[..., Role]


def test_limits_are_read_as_amount_and_span() -> None:
    assert parse_limit("rate", "60/minute") == (60, "minute")
    assert parse_limit("calls", "300/session") == (300, "session")
    assert parse_limit("bytes", "10MiB/hour") == (10 * 1024 * 1024, "hour")
    assert parse_limit("seconds", "5/call") == (5, "call")


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ("{rate: 60}", "write a list"),
        ("{rate: 60/session}", "no span known for rate"),
        ("{rate: 0/minute}", "a whole number from 1"),
        ("{rate: 1.5/minute}", "a whole number from 1"),
        ("{rate: -1/minute}", "a whole number from 1"),
        ("{calls: 5/call}", "no span known for calls"),
        ("{calls: 5/month}", "no span known for calls"),
        ("{calls: [5/hour, 6/hour]}", "the second limit of calls per hour"),
        ("{bytes: 10/hour}", "is not a size"),
        ("{byte: 10KiB/hour}", "did you mean `bytes`"),
        ("{calls: []}", None),
    ],
)
def test_a_limit_that_would_not_limit_does_not_load(load: Load, limits: str, told: str | None) -> None:
    text = f"search_web: {{allow: [{{}}], limits: {limits}}}"
    if told is None:
        assert load(text).limits_of("search_web") == ()
        return
    with pytest.raises(PolicyError, match=told):
        load(text)


def test_a_used_up_limit_refuses_what_is_permitted_and_says_whether_waiting_helps(
    load: Load, declarations: Mapping[str, ToolDeclaration]
) -> None:
    role = load("search_web: {allow: [{term: {const: x}}], limits: {rate: 1/minute, calls: 9/session}}")
    rate, calls = (limit.rule for limit in role.limits_of("search_web"))

    def after(*spent: str, term: str = "x") -> tuple[str, str, bool]:
        known = SessionFacts(spent=frozenset(spent))
        made = decide(role, declarations["search_web"], {"term": term}, {}, known)
        return made.status, made.code, made.retryable

    assert after()[1] == "policy.allow"
    assert after("some.yaml:1 other rule")[1] == "policy.allow"
    assert after(rate) == ("limit_exceeded", "policy.rate", True)
    assert after(calls) == ("limit_exceeded", "policy.budget", False)
    assert after(rate, calls) == ("limit_exceeded", "policy.budget", False)
    assert after(rate, term="y") == ("denied", "policy.no_match", False)
