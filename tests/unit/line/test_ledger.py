"""What is counted against which limit, and when a limit leaves no room for another call."""

from __future__ import annotations

import time

import pytest

from toolcage.line.ledger import Ledger
from toolcage.policy.limits import Limit, Measure, Span


def limit(measure: Measure, amount: int, span: Span, role: str = "team", tool: str = "search") -> Limit:
    return Limit(measure=measure, amount=amount, span=span, role=role, tool=tool, rule=f"{role} {measure}/{span}")


def spent_after(item: Limit, calls: int, *, sessions: tuple[str, ...] = ("s",)) -> bool:
    ledger = Ledger()
    for number in range(calls):
        session = sessions[number % len(sessions)]
        ledger.begin([item], session)
        ledger.end([item], session, bytes_out=100, wall_s=0.2)
    return item.rule in ledger.spent([item], sessions[0])


@pytest.mark.parametrize(
    ("item", "most"),
    [
        (limit("calls", 3, "session"), 3),
        (limit("calls", 3, "role"), 3),
        (limit("calls", 3, "hour"), 3),
        (limit("rate", 3, "minute"), 3),
        (limit("bytes", 300, "session"), 3),
        (limit("bytes", 250, "hour"), 3),  # the third call began below the limit
        (limit("seconds", 3, "session"), 3),  # a begun second counts whole
        (limit("seconds", 3, "day"), 3),
    ],
)
def test_a_limit_leaves_room_until_it_is_used_up_and_not_after(item: Limit, most: int) -> None:
    assert not spent_after(item, most - 1)
    assert spent_after(item, most)


@pytest.mark.parametrize(
    ("item", "shared"),
    [
        (limit("calls", 2, "session"), False),
        (limit("rate", 2, "minute"), False),
        (limit("calls", 2, "hour"), True),
        (limit("calls", 2, "role"), True),
        (limit("bytes", 200, "role"), True),
        (limit("bytes", 200, "session"), False),
    ],
)
def test_sessions_share_the_spans_of_the_role_and_not_those_of_the_session(item: Limit, shared: bool) -> None:
    assert spent_after(item, 2, sessions=("a", "b")) is shared


def test_each_tool_and_each_role_has_its_own_count() -> None:
    ledger = Ledger()
    ledger.begin([limit("calls", 1, "role")], "s")
    others = [limit("calls", 1, "role", tool="other"), limit("calls", 1, "role", role="other")]
    assert ledger.spent([limit("calls", 1, "role")], "s")
    assert not ledger.spent(others, "s")


def test_a_window_frees_itself_and_a_total_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, now = Ledger(), time.time()
    items = [limit("rate", 1, "minute"), limit("calls", 1, "hour"), limit("bytes", 1, "hour"),
             limit("calls", 1, "session")]  # fmt: skip
    monkeypatch.setattr(time, "time", lambda: now)
    ledger.begin(items, "s")
    ledger.end(items, "s", bytes_out=9, wall_s=1)
    assert len(ledger.spent(items, "s")) == 4
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert ledger.spent(items, "s") == {"team calls/hour", "team bytes/hour", "team calls/session"}
    monkeypatch.setattr(time, "time", lambda: now + 3700)
    assert ledger.spent(items, "s") == {"team calls/session"}


def test_a_call_that_used_nothing_uses_up_no_bytes() -> None:
    ledger, item = Ledger(), limit("bytes", 1, "session")
    ledger.end([item], "s", bytes_out=0, wall_s=0)
    assert not ledger.spent([item], "s")
