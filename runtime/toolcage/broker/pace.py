"""How fast one resource may be asked, over all calls of the runtime: its own rate, and what its server asked for.

A server that answered 429 or 503 with Retry-After is left alone until then, up to HOLD_MOST_S: requests in between are
refused at once, with the seconds to wait. Windows are the `limits` library's. Thread-safe; lives as long as the broker.
"""

from __future__ import annotations

import email.utils
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from toolcage.broker.stream import Denied

if TYPE_CHECKING:
    from limits.strategies import MovingWindowRateLimiter

HOLD_MOST_S: Final = 300.0


class TooFast(Denied):
    """Not now. `wait_s` says when, in whole seconds."""

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__("egress.rate", message)
        self.wait_s = max(1, round(wait_s + 0.5))


class Pace:
    """What is known of each resource by name."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._held_until: dict[str, float] = {}
        self._limiter: MovingWindowRateLimiter | None = None

    def ask(self, resource: str, rate: tuple[int, int] | None) -> None:
        """Counts one request. `rate` is (count, seconds). Raises TooFast."""
        with self._lock:
            now = self._clock()
            held = self._held_until.get(resource, now)
            if held > now:
                raise TooFast("the server of this resource asked to be left alone for a while", held - now)
            if rate is not None:
                self._count(resource, *rate)

    def hold(self, resource: str, retry_after: str) -> None:
        """Takes a server's Retry-After: seconds, or a date. What is neither says nothing."""
        seconds = retry_after_s(retry_after)
        if seconds:
            with self._lock:
                self._held_until[resource] = self._clock() + min(seconds, HOLD_MOST_S)

    def _count(self, resource: str, count: int, seconds: int) -> None:
        from limits import RateLimitItemPerSecond

        item = RateLimitItemPerSecond(count, seconds)
        limiter = self._window()
        if not limiter.hit(item, resource):
            wait_s = limiter.get_window_stats(item, resource).reset_time - time.time()
            raise TooFast("this resource is asked more often than its operator allows", wait_s)

    def _window(self) -> MovingWindowRateLimiter:
        """Made when a resource first has a rate: the library costs more to import than to use."""
        if self._limiter is None:
            from limits.storage import MemoryStorage
            from limits.strategies import MovingWindowRateLimiter

            self._limiter = MovingWindowRateLimiter(MemoryStorage())
        return self._limiter


def retry_after_s(text: str) -> float | None:
    """The seconds that a Retry-After asks for, 0 for a date that is over; None for what is neither of
    the two."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
