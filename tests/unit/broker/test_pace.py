"""A resource is asked no faster than its operator and its server allow, and what is refused says when to come back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from toolcage.broker.pace import HOLD_MOST_S, Pace, TooFast


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_requests_within_the_rate_pass_and_the_next_one_is_refused_with_the_time_to_wait() -> None:
    pace = Pace()
    for _ in range(3):
        pace.ask("api", (3, 60))
    with pytest.raises(TooFast) as refused:
        pace.ask("api", (3, 60))
    assert refused.value.code == "egress.rate"
    assert 0 < refused.value.wait_s <= 61
    pace.ask("another", (3, 60))


def test_without_a_rate_nothing_is_counted() -> None:
    pace = Pace()
    for _ in range(1000):
        pace.ask("api", None)


def test_a_server_that_asks_to_be_left_alone_is_left_alone_until_then_and_no_longer() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.hold("api", "30")
    with pytest.raises(TooFast) as refused:
        pace.ask("api", None)
    assert 30 <= refused.value.wait_s <= 31
    pace.ask("another", None)
    clock.now += 31
    pace.ask("api", None)


def test_no_server_can_ask_for_longer_than_the_most() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.hold("api", "999999999")
    clock.now += HOLD_MOST_S + 1
    pace.ask("api", None)


def test_a_date_is_understood_and_nonsense_says_nothing() -> None:
    pace = Pace()
    for nonsense in ("", "soon", "-5", "1e9", "٣", "Wed, 99 Foo 2020", "9" * 400):
        pace.hold("api", nonsense)
        pace.ask("api", None)
    pace.hold("api", format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True))
    with pytest.raises(TooFast):
        pace.ask("api", None)
