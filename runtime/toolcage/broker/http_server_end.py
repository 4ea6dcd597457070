"""The server's end of one client's connection to an `http` portal: made when it is needed, read within bounds.

It keeps one connection at a time, and none beyond the client's. What may change something never meets a kept one: where
that breaks, nobody knows whether the server has read the request. What comes is counted as it comes, with its frames,
extensions and interim answers, and has a bound of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeAlias

import h11

from toolcage.broker.buffered import CHUNK
from toolcage.broker.request_head import MAX_HEAD
from toolcage.broker.stream import Connection, Denied

MOST_INTERIM: Final = 16
FRAMED: Final = 2
"""So many times the most that an answer may be may come from its server, with all that frames it."""


class Server(Protocol):
    """The endpoint's end of a connection."""

    address: str

    async def read(self, n: int) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...

    def abort(self) -> None: ...


Dial: TypeAlias = Callable[[], Awaitable[Server]]


class ServerEnd:
    """Speaks HTTP/1.1 to one server. `max_answer` bounds one answer in bytes. `arrived` counts those of the answer at
    hand."""

    def __init__(self, dial: Dial, note: Connection, *, idle_s: float, max_answer: int) -> None:
        self.arrived = 0
        self._dial = dial
        self._note = note
        self._idle_s = idle_s
        self._max_answer = max_answer
        self._server: Server | None = None
        self._http: h11.Connection | None = None

    async def connect(self, *, anew: bool) -> bool:
        """Whether the connection is a new one. Raises Denied."""
        self.arrived = 0
        if self._http is not None and not anew and self._is_at_rest(self._http):
            self._http.start_next_cycle()
            return False
        self.hang_up()
        self._server = await self._dial()
        self._note.address = self._server.address
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        return True

    async def send(self, request: h11.Request, piece: Callable[[], Awaitable[bytes]]) -> None:
        """A whole request, its body from `piece` until that gives nothing more. Raises ConnectionError, and whatever
        `piece` does."""
        await self._send(request)
        while data := await piece():
            await self._send(h11.Data(data=data))
        await self._send(h11.EndOfMessage())

    async def begin_answer(self) -> h11.Response:
        """The head of the answer. Raises h11.RemoteProtocolError, Denied."""
        for _ in range(MOST_INTERIM):
            event = await self._next_event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                break
        raise h11.RemoteProtocolError("no answer to the request")

    async def content(self) -> bytes:
        """The next piece of the answer; b"" at its end. Raises h11.RemoteProtocolError where it ends early, Denied."""
        while not isinstance(event := await self._next_event(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                raise h11.RemoteProtocolError("the answer ended early")
            if event.data:
                return bytes(event.data)
        return b""

    def hang_up(self) -> None:
        """Ends the connection, if there is one."""
        server, self._server, self._http = self._server, None, None
        if server is not None:
            server.abort()

    @staticmethod
    def _is_at_rest(http: h11.Connection) -> bool:
        """Whether an exchange is over and nothing has come behind its answer, where it would begin the next one."""
        return http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE} and not http.trailing_data[0]

    async def _send(self, event: Any) -> None:
        assert self._http is not None
        assert self._server is not None
        encoded = self._http.send(event)
        if encoded:
            async with asyncio.timeout(self._idle_s):
                await self._server.write(encoded)

    async def _next_event(self) -> Any:
        assert self._http is not None
        assert self._server is not None
        await asyncio.sleep(0)  # what has come may hold thousands of tiny events: other calls' connections get a turn
        while (event := self._http.next_event()) is h11.NEED_DATA:
            async with asyncio.timeout(self._idle_s):
                piece = await self._server.read(CHUNK)
            self._count_arrived(len(piece))
            self._http.receive_data(piece)
        return event

    def _count_arrived(self, size: int) -> None:
        self.arrived += size
        if self.arrived > FRAMED * self._max_answer + MAX_HEAD:
            raise Denied("egress.bytes_down", f"the answer is larger than {self._max_answer} bytes")
