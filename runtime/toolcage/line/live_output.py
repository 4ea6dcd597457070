"""Output handed to the caller's own callback while a call runs, cleaned like the result.

The callback runs in a thread of its own, because it is the caller's code: one that blocks or raises loses its live view
and nothing else. The call's deadline, its result and its record do not wait for it. What waits for the callback is
bounded by the cleaner's cap. An exception ends the view and is one line of the `toolcage` log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from toolcage.audit.report import one_line
from toolcage.cleaning.stream import StreamCleaner
from toolcage.types import OutputTerms

LINGER_S: Final = 1.0
_LOG: Final = logging.getLogger("toolcage")
OnText = Callable[[str, str], None]
OnBytes = Callable[[str, bytes], None]


@contextlib.asynccontextmanager
async def live_output(
    terms: OutputTerms, on_output: OnText | None, exact_secrets: Sequence[str]
) -> AsyncIterator[OnBytes | None]:
    """The byte callback for `execute`, or None when nobody watches. When the block ends the callback has had
    everything, or is more than LINGER_S behind and gets the rest later. `exact_secrets` are redacted."""
    if on_output is None:
        yield None
        return
    view = _View(terms, on_output, exact_secrets)
    try:
        yield view.feed
    finally:
        await view.close()


class _View:
    def __init__(self, terms: OutputTerms, on_output: OnText, exact_secrets: Sequence[str]) -> None:
        self._on_output = on_output
        self._texts: queue.SimpleQueue[tuple[str, str] | None] = queue.SimpleQueue()
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._stdout = StreamCleaner(terms, lambda text: self._texts.put(("stdout", text)), exact_secrets)
        self._stderr = StreamCleaner(terms, lambda text: self._texts.put(("stderr", text)), exact_secrets)
        threading.Thread(target=self._show, daemon=True, name="toolcage-output").start()

    def feed(self, name: str, piece: bytes) -> None:
        """Takes output from the worker thread. Never blocks."""
        if not self._closed:
            (self._stdout if name == "stdout" else self._stderr).feed(piece)

    async def close(self) -> None:
        self._closed = True
        self._stdout.close()
        self._stderr.close()
        self._texts.put(None)
        await asyncio.wait([self._ended], timeout=LINGER_S)

    def _show(self) -> None:
        try:
            while (item := self._texts.get()) is not None:
                self._on_output(*item)
        except Exception as error:  # noqa: BLE001 - the caller's own code, in a thread that has nobody to raise to
            _LOG.warning("%s", one_line(f"on_output raised {type(error).__name__}: {error}; the live view ends"))
        finally:
            with contextlib.suppress(RuntimeError):  # the loop was closed while the callback kept us
                self._loop.call_soon_threadsafe(self._note_end)

    def _note_end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)
