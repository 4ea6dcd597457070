"""Threads for what blocks, kept for the next call: making one costs a call more than its judgement.

As many run as there is work, none waits behind another; those that are done wait for more, up to a bound. They hold
nothing of the work they did. Daemon threads: a program that ends does not wait for a call that is stuck.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final

MOST_IDLE: Final = 16
Work = Callable[[], object]


class Workers:
    """Thread-safe. What is given to `run` must not raise."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._idle = 0
        """Those that wait, or will at once, less what is already given to them."""
        self._closed = False

    def run(self, work: Work) -> None:
        """Does `work` in a thread, at once. Never blocks; also after `close`."""
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._given.put(work)
                return
        threading.Thread(target=self._serve, args=([work],), daemon=True, name="toolcage-call").start()

    def close(self) -> None:
        """Ends the threads that wait; the others when their work is done. Does not wait for them."""
        with self._lock:
            self._closed = True
            waiting, self._idle = self._idle, 0
            for _ in range(waiting):
                self._given.put(None)

    def _serve(self, first: list[Work]) -> None:
        """`first` is emptied: the thread holds its arguments until it ends."""
        work: Work | None = first.pop()
        while work is not None:
            work()
            work = None  # it holds the call's arguments and output
            with self._lock:
                if self._closed or self._idle >= MOST_IDLE:
                    return
                self._idle += 1
            work = self._given.get()
