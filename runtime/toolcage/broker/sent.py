"""Which messages a mailbox has sent, by key, so that a call that is tried again does not send twice.

A key belongs to one call's content; the line makes it. A message is remembered from before it is handed to the server:
when the server's answer is lost, nobody knows whether it was sent, and it is not sent again. Kept in the process, for a
window; a restart begins anew. Thread-safe, so that one may serve several runtimes' loops.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

WINDOW_S: Final = 24 * 3600.0
MOST: Final = 10_000

State = Literal["begun", "sent"]


@dataclass(slots=True, kw_only=True)
class _Entry:
    call: str
    state: State
    at: float


class Sent:
    """The memory of one mailbox."""

    def __init__(self, window_s: float = WINDOW_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._window_s = window_s
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}

    def begin(self, key: str, call: str) -> Literal["send", "already", "unknown", "again"]:
        """What to do with a message: `send` it (now it is begun), it was `already` sent for an earlier call, it is
        `unknown` whether it was, or this same call comes `again` with a second message."""
        with self._lock:
            self._forget()
            found = self._entries.get(key)
            if found is None:
                self._entries[key] = _Entry(call=call, state="begun", at=self._clock())
                return "send"
            if found.call == call:
                return "again"
            return "already" if found.state == "sent" else "unknown"

    def done(self, key: str) -> None:
        """The server took it."""
        with self._lock:
            if key in self._entries:
                self._entries[key].state = "sent"

    def failed(self, key: str) -> None:
        """It certainly was not sent; it may be tried again."""
        with self._lock:
            self._entries.pop(key, None)

    def _forget(self) -> None:
        """The old ones, and the oldest of too many. In order of age: entries are only ever added at the end."""
        oldest = self._clock() - self._window_s
        while self._entries:
            key, entry = next(iter(self._entries.items()))
            if entry.at > oldest and len(self._entries) < MOST:
                break
            del self._entries[key]
