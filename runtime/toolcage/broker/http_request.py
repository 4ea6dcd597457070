"""One request of a cage, once its head has been read and judged: its body as it comes, kept where it may be sent again.

The body is cut by h11 and passed on piece by piece; its trailers stay on the cage's side, and what stands behind it is
the next request, to be judged like any. Where the request may have to be sent once more, what fits into MOST_KEPT is
read ahead of everything else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import h11

from toolcage.broker.buffered import BufferedReader, Ended
from toolcage.broker.request_head import MAX_HEAD, RequestHead, bad

Tell = Callable[[bytes | None], Awaitable[None]]


class ClientRequest:
    """`kept` is what was read ahead of the body, `whole` whether that is all of it. Raises Denied."""

    def __init__(self, head: RequestHead, reader: BufferedReader, tell: Tell) -> None:
        self.head = head
        self.kept = self._left = b""
        self.whole = False
        self._reader = reader
        self._tell = tell
        self._over = False
        self.http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self.http.receive_data(head.raw)
        if not isinstance(self._next(), h11.Request):
            raise bad("is not one")

    @property
    def another_may_follow(self) -> bool:
        """Whether the client's connection may go on."""
        return self.http.our_state is h11.DONE and self.http.their_state is h11.DONE

    async def read_ahead(self, most: int) -> None:
        """Keeps the body, up to about `most` bytes of it. Raises Denied, Ended."""
        pieces = bytearray()
        while len(pieces) <= most and (piece := await self._coming()):
            pieces += piece
        self.kept = self._left = bytes(pieces)
        self.whole = self._over

    def begin(self) -> None:
        """What was kept of the body is to be passed on, maybe not for the first time."""
        self._left = self.kept

    async def piece(self) -> bytes:
        """The next piece of the body; b"" at its end. Raises Denied, Ended."""
        kept, self._left = self._left, b""
        return kept or await self._coming()

    async def _coming(self) -> bytes:
        if self.http.they_are_waiting_for_100_continue:
            await self._tell(self.http.send(h11.InformationalResponse(status_code=100, headers=[])))
        while not self._over:
            event = self._next()
            if event is h11.NEED_DATA:
                if not (piece := await self._reader.some()):
                    raise Ended
                self.http.receive_data(piece)
            elif isinstance(event, h11.Data):
                return bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self._over = True
                self._reader.put_back(self.http.trailing_data[0])
            else:
                raise Ended
        return b""

    def _next(self) -> Any:
        """Raises Denied where the client is not understood, so that it is not taken for the server's fault."""
        try:
            return self.http.next_event()
        except h11.RemoteProtocolError as error:
            raise bad(f"cannot be read ({error})") from None
