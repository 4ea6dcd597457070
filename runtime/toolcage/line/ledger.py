"""Counts what calls use up, and says which limits are used up. What a used-up limit means is the policy's.

A call counts once the policy has let it through, whatever becomes of it later: a screen that blocks it, a person who
rejects it, a cage that fails. Bytes and seconds are known when a call ends and counted then, the seconds of
one that was cancelled too, so calls that run at the
same time can pass such a limit together; the next one is refused. Windows are the `limits` library's (moving for
counts; for bytes and seconds a window that starts with its first use); totals of a session or role are plain counters.
Everything is kept in this process. Thread-safe.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from toolcage.policy.limits import WINDOW_SECONDS, Limit

if TYPE_CHECKING:
    from limits import RateLimitItem

_PER_CALL: Final = ("rate", "calls")


class Ledger:
    """The counts of one runtime."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: Counter[tuple[str, ...]] = Counter()
        self._windows: _Windows | None = None

    def spent(self, limits: Iterable[Limit], session: str) -> frozenset[str]:
        """The rules of the limits that leave no room for another call."""
        with self._lock:
            return frozenset(limit.rule for limit in limits if not self._has_room(limit, session))

    def begin(self, limits: Iterable[Limit], session: str) -> None:
        """Counts a call that the policy has let through."""
        with self._lock:
            for limit in limits:
                if limit.measure in _PER_CALL:
                    self._count(limit, session, 1)

    def end(self, limits: Iterable[Limit], session: str, *, bytes_out: int, wall_s: float) -> None:
        """Counts what a call has used. A begun second counts whole."""
        used = {"bytes": bytes_out, "seconds": math.ceil(wall_s)}
        with self._lock:
            for limit in limits:
                if limit.measure not in _PER_CALL and used[limit.measure] > 0:
                    self._count(limit, session, used[limit.measure])

    def _has_room(self, limit: Limit, session: str) -> bool:
        if limit.is_window:
            return self._window().has_room(limit, _key(limit, session))
        return self._totals[_key(limit, session)] < limit.amount

    def _count(self, limit: Limit, session: str, amount: int) -> None:
        if limit.is_window:
            self._window().count(limit, _key(limit, session), amount)
        else:
            self._totals[_key(limit, session)] += amount

    def _window(self) -> _Windows:
        if self._windows is None:
            self._windows = _Windows()
        return self._windows


class _Windows:
    """Windows of time, made when a policy first has one: the library costs more to import than to use."""

    def __init__(self) -> None:
        from limits.storage import MemoryStorage
        from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter

        storage = MemoryStorage()
        self._moving = MovingWindowRateLimiter(storage)
        self._fixed = FixedWindowRateLimiter(storage)

    def has_room(self, limit: Limit, key: tuple[str, ...]) -> bool:
        strategy = self._moving if limit.measure in _PER_CALL else self._fixed
        return strategy.test(_item(limit), *key)

    def count(self, limit: Limit, key: tuple[str, ...], amount: int) -> None:
        if limit.measure in _PER_CALL:
            self._moving.hit(_item(limit), *key)
        else:
            self._fixed.hit(_item(limit), *key, cost=amount)


def _item(limit: Limit) -> RateLimitItem:
    from limits import RateLimitItemPerSecond

    return RateLimitItemPerSecond(limit.amount, WINDOW_SECONDS[limit.span])


def _key(limit: Limit, session: str) -> tuple[str, ...]:
    """Whose count it is: one session's for `rate` and `session`, else the role's."""
    whose = session if limit.span == "session" or limit.measure == "rate" else ""
    return (limit.role, limit.tool, limit.measure, limit.span, whose)
