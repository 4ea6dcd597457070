"""When a repeating event takes place within a range, with a bound on the work that a stranger's rule can make.

A rule can ask for an occurrence every second for a thousand years, or for the thirtieth of February. So expansion is
bounded in occurrences and in time, all rules of a call together, and what is not finished is said. Rules are read by
dateutil (RFC 5545) in the event's own local time, so that ten o'clock stays ten o'clock when the clocks change.
Runs in the cage, where dateutil is; the timer needs the main thread, which a call's body has.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

MAX_OCCURRENCES: Final = 20_000
MAX_FOUND: Final = 2_000
BUDGET_S: Final = 2.0


class Unfinished(Exception):
    """The rule asks for more than is worked out here."""


class Budget:
    """The time that is left for all rules of one call."""

    def __init__(self, seconds: float = BUDGET_S) -> None:
        self._left = seconds

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Raises Unfinished inside when the time is used up."""
        if self._left <= 0:
            raise Unfinished

        def over(number: int, frame: object) -> None:
            raise Unfinished

        before = signal.signal(signal.SIGALRM, over)
        signal.setitimer(signal.ITIMER_REAL, self._left)
        try:
            yield
        finally:
            self._left = signal.setitimer(signal.ITIMER_REAL, 0)[0]
            signal.signal(signal.SIGALRM, before)


def occurrences(rule: str, first: date, before: datetime, after: datetime, budget: Budget) -> list[date]:
    """The starts, in the form of `first`, that lie in [`after`, `before`), by an RRULE's text.

    `first` is a date or a datetime with its zone; `after` and `before` have zones. Raises Unfinished, and ValueError
    for a rule that cannot be read.
    """
    from dateutil.rrule import rrulestr

    zone = first.tzinfo if isinstance(first, datetime) else None
    naive = first.replace(tzinfo=None) if isinstance(first, datetime) else datetime.combine(first, time())
    text, until = _without_until(rule, zone)
    end, earliest = _local(before, zone), _local(after, zone)
    found: list[date] = []
    with budget.spent():
        for number, at in enumerate(rrulestr(text, dtstart=naive)):
            if at >= end or (until is not None and at > until):
                break
            if number >= MAX_OCCURRENCES or len(found) >= MAX_FOUND:
                raise Unfinished
            if at >= earliest:
                found.append(at.replace(tzinfo=zone) if isinstance(first, datetime) else at.date())
    return found


def _without_until(rule: str, zone: Any) -> tuple[str, datetime | None]:
    """The rule without UNTIL, and UNTIL in local time: dateutil wants it in a form that calendars do not keep to."""
    parts = [part for part in rule.split(";") if part]
    until = next((part.partition("=")[2].strip() for part in parts if part.upper().startswith("UNTIL=")), None)
    kept = ";".join(part for part in parts if not part.upper().startswith("UNTIL="))
    if until is None:
        return kept, None
    if "T" not in until:
        return kept, datetime.strptime(until, "%Y%m%d") + timedelta(days=1, microseconds=-1)  # noqa: DTZ007 - local
    read = datetime.strptime(until.rstrip("Zz"), "%Y%m%dT%H%M%S")  # noqa: DTZ007 - local, or made so below
    return kept, _local(read.replace(tzinfo=UTC), zone) if until[-1] in "Zz" else read


def _local(at: datetime, zone: Any) -> datetime:
    return (at if zone is None else at.astimezone(zone)).replace(tzinfo=None)
