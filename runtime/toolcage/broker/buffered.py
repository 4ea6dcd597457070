"""Lines and counted bytes out of a stream of hostile pieces, each with a cap before anything is kept.

Whatever the other side sends, no more than the cap of the read that is waited for is held. Every byte is reported to
`count` as it arrives, which may refuse; every wait for a byte is bounded by `idle_s`. Used for both ends: what a cage
sends and what a server answers are trusted alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from toolcage.broker.stream import Denied

CHUNK: Final = 64 * 1024


class Source(Protocol):
    """What bytes come from: the cage's end or the server's."""

    async def read(self, n: int) -> bytes:
        """At least one byte and at most `n`; b"" at the end."""
        ...


class Ended(Exception):
    """The stream ended in the middle of what was being read."""


class BufferedReader:
    """Reads from one source. One reader at a time."""

    def __init__(self, source: Source, *, count: Callable[[int], None], idle_s: float) -> None:
        self._source = source
        self._count = count
        self._idle_s: float | None = idle_s
        self._kept = bytearray()
        self._ended = False

    @property
    def pending(self) -> int:
        """How many bytes have arrived and were not taken."""
        return len(self._kept)

    def patient(self) -> None:
        """From now on a wait has no bound here: a clock for both directions (`splice.Silence`) has begun."""
        self._idle_s = None

    async def line(self, limit: int) -> bytes:
        """The next line with its LF, of at most `limit` bytes in all; b"" at a clean end.

        Raises Denied (`egress.line`) for a longer one, Ended in the middle of one.
        """
        start = 0
        while (at := self._kept.find(b"\n", start, limit)) < 0:
            if len(self._kept) >= limit:
                raise Denied("egress.line", f"a line on this connection is longer than {limit} bytes")
            start = len(self._kept)
            if not await self._more(limit - start):
                if self._kept:
                    raise Ended
                return b""
        return self._take(at + 1)

    async def exactly(self, count: int) -> bytes:
        """The next `count` bytes, which the caller has bounded. Raises Ended."""
        while len(self._kept) < count:
            if not await self._more(count - len(self._kept)):
                raise Ended
        return self._take(count)

    async def some(self, most: int = CHUNK) -> bytes:
        """What is there, or the next piece to come; b"" at the end."""
        if not self._kept:
            await self._more(most)
        return self._take(min(most, len(self._kept)))

    def put_back(self, data: bytes) -> None:
        """Makes `data`, which was read before, the next to be read. It is not counted again."""
        self._kept[:0] = data

    async def _more(self, most: int) -> bool:
        if self._ended:
            return False
        try:
            async with asyncio.timeout(self._idle_s):
                piece = await self._source.read(min(most, CHUNK))
        except TimeoutError:
            raise Denied("egress.idle", f"nothing was sent on this connection for {self._idle_s or 0:g} s") from None
        if not piece:
            self._ended = True
            return False
        self._count(len(piece))
        self._kept += piece
        return True

    def _take(self, count: int) -> bytes:
        taken = bytes(self._kept[:count])
        del self._kept[:count]
        return taken
