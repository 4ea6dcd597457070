"""Carries bytes both ways between a cage and a server, counted, with one clock for silence.

A side that ends is ended on the other side too, and the rest of the other direction still flows. A cap, a silence or a
broken connection ends both; nothing is left running or open that this module was given.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from toolcage.broker.buffered import CHUNK, Source
from toolcage.broker.stream import ClientStream, Connection, Denied, PortalTerms


class Silence:
    """When a byte last passed, either way."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._last = time.monotonic()

    def heard(self) -> None:
        """A byte has passed."""
        self._last = time.monotonic()

    async def watch(self) -> None:
        """Returns never; raises Denied (`egress.idle`) once nothing has passed for too long."""
        while (left := self._last + self._idle_s - time.monotonic()) > 0:
            await asyncio.sleep(left)
        raise Denied("egress.idle", f"nothing passed on this connection for {self._idle_s:g} s")


async def splice(client: ClientStream, upstream: ClientStream, *, terms: PortalTerms, note: Connection) -> None:
    """Until both sides have ended. Raises Denied for a cap or a silence; a connection that breaks is an end."""
    silence = Silence(terms.idle_s)
    up = pump(client, upstream, lambda count: note.count_up(count, terms), silence)
    down = pump(upstream, client, lambda count: note.count_down(count, terms), silence)
    await together(up, down, watch=silence.watch())


async def pump(source: Source, sink: ClientStream, count: Callable[[int], None], silence: Silence) -> None:
    """One direction, until the source ends; then the sink is ended."""
    while piece := await source.read(CHUNK):
        count(len(piece))
        silence.heard()
        try:
            await sink.write(piece)
        except ConnectionError:
            return
        silence.heard()
    await sink.end()


async def together(*work: Coroutine[Any, Any, None], watch: Coroutine[Any, Any, None] | None = None) -> None:
    """Until all `work` is done or one part, or the watch, raises; that is raised. Nothing runs on afterwards."""
    tasks = [asyncio.create_task(item) for item in work]
    watching = [] if watch is None else [asyncio.create_task(watch)]
    try:
        left: set[asyncio.Task[None]] = set(tasks)
        while left:
            done, _ = await asyncio.wait({*left, *watching}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            left -= done
    finally:
        for task in (*tasks, *watching):
            task.cancel()
        await asyncio.gather(*tasks, *watching, return_exceptions=True)
