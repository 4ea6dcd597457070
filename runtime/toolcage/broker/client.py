"""The cage's end of a connection for a handler: the plain stream of the door as a `ClientStream` of an event loop.

The plain stream (`RawStream`, fulfilled by the cage's side, which this package does not know) never blocks and calls
back from a thread of its own when something has changed; here that wakes whoever waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, Protocol

PIECE: Final = 64 * 1024


class RawStream(Protocol):
    """One connection out of a cage. Nothing blocks."""

    @property
    def gone(self) -> bool:
        """Nothing can be sent or will come any more."""
        ...

    def watch(self, on_event: Callable[[], None]) -> None:
        """From now on `on_event` is called after every change, from any thread."""
        ...

    def take(self, most: int) -> bytes | None:
        """What has come; b"" at the end; None when nothing has come yet."""
        ...

    def put(self, data: bytes) -> int:
        """How many bytes of `data` were accepted."""
        ...

    def end(self) -> None:
        """Nothing more will be sent."""
        ...

    def close(self, *, at_once: bool) -> None:
        """Takes this end away."""
        ...


class Client:
    """A `ClientStream`. `on_gone` is called once when the cage took its end away before this side had ended."""

    def __init__(self, raw: RawStream, on_gone: Callable[[], object]) -> None:
        """In the loop that the handler runs in."""
        self._raw = raw
        self._on_gone = on_gone
        self._changed = asyncio.Event()
        self._ended = False
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed, and every connection with it
                loop.call_soon_threadsafe(self._wake)

        raw.watch(wake)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        if self._raw.gone and not self._ended:
            self._ended = True
            self._on_gone()

    async def read(self, n: int) -> bytes:
        """At least one byte and at most `n`; b"" once the cage has ended its side or is gone."""
        while True:
            self._changed.clear()
            piece = self._raw.take(n)
            if piece is not None:
                return piece
            await self._changed.wait()

    async def write(self, data: bytes) -> None:
        """Hands `data` to the cage; waits while the cage does not read. Raises ConnectionResetError when it is gone."""
        start = 0
        while start < len(data):
            if self._raw.gone:
                raise ConnectionResetError("the cage ended the connection")
            self._changed.clear()
            taken = self._raw.put(data[start : start + PIECE])
            start += taken
            if not taken:
                await self._changed.wait()

    async def end(self) -> None:
        """Half close."""
        self._ended = True
        self._raw.end()

    def abort(self) -> None:
        """Ends the connection both ways at once."""
        self._ended = True
        self._raw.close(at_once=True)

    def close(self) -> None:
        """Ends it in good order: what was written is still delivered."""
        self._ended = True
        self._raw.end()
        self._raw.close(at_once=False)
