"""Serves the connections of calls: one event loop in a thread of its own, and one `Passage` for each call.

A passage exists as long as its call: `end` cancels what still runs and returns when every connection is over. Each
connection is bounded by its portal's terms, whatever its handler does; a handler's own fault is a failed connection and
nothing else. What is known of each is told to `on_record` when it is over, up to RECORDS of one call one by one, the
rest as sums of those that reached the same, and a call that reaches more different things than SUMS is let reach no
more: nothing is reached that no record names. It decides nothing: where a portal leads is in the handler that its `Way`
holds.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from toolcage.broker.buffered import Ended
from toolcage.broker.client import Client, RawStream
from toolcage.broker.stream import ClientStream, Connection, Denied, PortalTerms

RECORDS: Final = 64
SUMS: Final = 1000
DENIALS: Final = 8
END_S: Final = 5.0
_LOG: Final = logging.getLogger("toolcage")

Serve: TypeAlias = "Callable[[ClientStream, Connection], Awaitable[None]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The outer end of one portal of a call: its kind's word, its bounds, and the handler with all that it needs."""

    kind: str
    terms: PortalTerms
    serve: Serve = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One connection that is over, or the sum of `count` of them."""

    connection: Connection
    seconds: float
    count: int = 1


OnRecord: TypeAlias = "Callable[[Record], None]"


class Broker:
    """Starts its thread with the first call that has portals. `close` ends every connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def passage(self, ways: Mapping[str, Way], on_record: OnRecord) -> Passage:
        """What serves the connections of one call. `on_record` is called in the broker's thread and must not block.

        Raises RuntimeError when the broker is closed.
        """
        return Passage(self._running_loop(), dict(ways), on_record)

    def close(self) -> None:
        """Ends the loop and every connection that is left. Returns when that is done, within a bound."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_end_all(), loop).result(END_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(END_S)
        if not thread.is_alive():
            loop.close()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise RuntimeError("the broker is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="toolcage-broker")
                self._thread.start()
            return self._loop


async def _end_all() -> None:
    running = asyncio.all_tasks() - {asyncio.current_task()}
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


class Passage:
    """The connections of one call. `connect` and `end` are for the call's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ways: Mapping[str, Way], on_record: OnRecord) -> None:
        self._loop = loop
        self._ways = ways
        self._on_record = on_record
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: dict[str, int] = dict.fromkeys(ways, 0)
        self._told = 0
        self._sums: dict[tuple[str, str, str, str], Record] = {}
        self._denials: list[Connection] = []
        self._began = time.monotonic()

    def connect(self, portal: str, raw: RawStream) -> None:
        """A new connection to the portal of that name. Does not block."""
        with contextlib.suppress(RuntimeError):  # the loop was closed
            self._loop.call_soon_threadsafe(self._begin, portal, raw)

    def end(self) -> tuple[Connection, ...]:
        """Ends what is left of every connection. Returns what was refused, up to DENIALS, once everything is over."""
        ending = self._finish()
        try:
            asyncio.run_coroutine_threadsafe(ending, self._loop).result(END_S)
        except RuntimeError:  # the broker was closed, and every connection with it
            ending.close()
        except (TimeoutError, concurrent.futures.CancelledError):
            _LOG.warning("connections of a call were not over within %g s of its end", END_S)
            self._tell_unfinished()
        return tuple(self._denials)

    def _tell_unfinished(self) -> None:
        """That a connection was there is on record even when its end is not known."""
        for portal, count in self._open.items():
            if count:
                note = Connection(portal=portal, kind=self._ways[portal].kind)
                _settle(note, "open", "egress.internal", "", f"not over within {END_S:g} s of the call's end")
                self._on_record(Record(connection=note, seconds=END_S, count=count))

    # in the loop

    def _begin(self, portal: str, raw: RawStream) -> None:
        task = self._loop.create_task(self._run(portal, raw))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self) -> None:
        await asyncio.sleep(0)  # one that was not begun would leave no record when it is cancelled
        for task in self._tasks:
            if not task.cancelling():  # a second time would interrupt it while it lets go
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for record in self._sums.values():
            self._on_record(record)

    async def _run(self, portal: str, raw: RawStream) -> None:
        """One connection from beginning to end. Never raises."""
        way = self._ways[portal]
        note = Connection(portal=portal, kind=way.kind, call_began=self._began)
        began = time.monotonic()
        task = asyncio.current_task()
        assert task is not None
        client = Client(raw, task.cancel)
        self._open[portal] += 1
        try:
            await self._serve(way, client, note, self._open[portal])
        finally:
            self._open[portal] -= 1
            self._record(Record(connection=note, seconds=time.monotonic() - began))

    async def _serve(self, way: Way, client: Client, note: Connection, place: int) -> None:
        try:
            if place > way.terms.max_connections:
                text = f"more than {way.terms.max_connections} connections to this portal are open at once"
                raise Denied("egress.connections", text)
            if len(self._sums) + len(self._tasks) > SUMS:
                raise Denied("egress.connections", "the call has reached more different things than can be recorded")
            async with asyncio.timeout(way.terms.total_s):
                await way.serve(client, note)
        except Denied as denied:
            limit = denied.code in _LIMITS
            _settle(note, "limit" if limit else "denied", denied.code, denied.message, denied.operator)
        except TimeoutError:
            text = f"the connection was open for longer than {way.terms.total_s:g} s"
            _settle(note, "limit", "egress.time", text, text)
            client.abort()
        except asyncio.CancelledError:
            _settle(note, "cancelled", "egress.cancelled", "", "the call was over or the tool ended the connection")
            client.abort()
        except (OSError, Ended) as error:
            _settle(note, "failed", "egress.broken", "the connection broke", f"{type(error).__name__}: {error}")
            client.abort()
        except Exception as error:  # noqa: BLE001 - a handler's outermost frame: its fault ends one connection
            text = f"{type(error).__name__}: {error}"[:500]
            _settle(note, "failed", "egress.internal", "the connection could not be served", text)
            client.abort()
        else:
            note.verdict = "closed"
        client.close()

    def _record(self, record: Record) -> None:
        note = record.connection
        if note.verdict in ("denied", "limit", "failed") and len(self._denials) < DENIALS:
            self._denials.append(note)
        self._told += 1
        if self._told <= RECORDS:
            self._on_record(record)
            return
        key = (note.portal, note.verdict, note.reason, note.target if note.address or note.cached else "")
        self._sums[key] = _sum(self._sums.get(key), record)


_LIMITS: Final = frozenset(
    ("egress.bytes_up", "egress.bytes_down", "egress.idle", "egress.time", "egress.connections", "egress.rate")
)


def _settle(note: Connection, verdict: str, reason: str, message: str, detail: str) -> None:
    note.verdict = verdict  # type: ignore[assignment]
    note.reason, note.message, note.detail = reason, message, detail


def _sum(earlier: Record | None, record: Record) -> Record:
    if earlier is None:
        return Record(connection=record.connection, seconds=record.seconds, count=1)
    into, more = earlier.connection, record.connection
    into.bytes_up += more.bytes_up
    into.bytes_down += more.bytes_down
    into.cached += more.cached
    return Record(connection=into, seconds=earlier.seconds + record.seconds, count=earlier.count + 1)
