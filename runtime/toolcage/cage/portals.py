"""The host's end of the connections that a call makes through its portals: streams in the frames of its door.

A cage may open a stream to a portal that its call has, within caps on how many are open and how many there were, and
send within the credit that it was given. Everything else (an unknown portal or stream, an id used twice, a byte without
credit or behind the end, credit for more than a window) is `DoorMalformed`, checked before anything is kept, and ends
the cage. What is kept is at most one window a stream and direction.

`Switch` is made for one call and closed with it: no stream outlives its call. The thread that runs the call feeds it
frames and takes what is to be sent; `PortalStream` is for whoever serves the connection, from any one other thread. It
knows no network: where a portal leads is the business of the callback.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolcage.cage import wire
from toolcage.cage.door import DoorMalformed
from toolcage.types import PortalKind

FIRST_PORT: Final = 8101
"""In-cage ports count up from here: below the kernel's ephemeral range, so that no other socket gets one by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portal:
    """One way out, as its cage sees it: a name, what is spoken there, and the port on the cage's loopback."""

    name: str
    kind: PortalKind
    port: int


OnConnection: TypeAlias = "Callable[[Portal, PortalStream], None]"
"""Called in the call's own thread for each new connection. Must not block and must not raise."""


class PortalStream:
    """One connection. Nothing here blocks; `on_event` is called, from the call's thread, when something has changed."""

    def __init__(self, switch: Switch, stream: int) -> None:
        self._switch = switch
        self._stream = stream
        self._inbound: deque[bytes] = deque()
        self._granted = wire.PORTAL_WINDOW
        self._owed = 0
        self._room = wire.PORTAL_WINDOW
        self._cage_ended = self._cage_closed = False
        self._ended = self._closed = self._gone = False
        self._on_event: Callable[[], None] | None = None

    def watch(self, on_event: Callable[[], None]) -> None:
        """From now on `on_event` is called after every change; it must not block."""
        self._on_event = on_event

    @property
    def gone(self) -> bool:
        """The other side took its end away, or the call is over: nothing can be sent or will come any more."""
        return self._gone

    @property
    def room(self) -> int:
        """How many bytes may be sent now."""
        return 0 if self._closed or self._ended or self._gone else self._room

    def take(self, most: int) -> bytes | None:
        """Up to `most` bytes that have come; b"" at the end; None when nothing has come yet."""
        with self._switch.lock:
            if not self._inbound:
                return b"" if self._cage_ended or self._gone or self._closed else None
            piece = self._inbound.popleft()
            if len(piece) > most:
                self._inbound.appendleft(piece[most:])
                piece = piece[:most]
            self._owed += len(piece)
            if self._owed >= wire.PORTAL_WINDOW // 2 and not self._cage_ended:
                self._granted += self._owed
                self._switch.queue(wire.encode(wire.CREDIT, self._stream, wire.CREDIT_BYTES.pack(self._owed)))
                self._owed = 0
            return piece

    def put(self, data: bytes) -> int:
        """Sends as much of `data` as there is room for and returns how much that was."""
        with self._switch.lock:
            taken = data[: self.room]
            self._room -= len(taken)
            for start in range(0, len(taken), wire.PORTAL_PIECE):
                self._switch.queue(wire.encode(wire.DATA, self._stream, taken[start : start + wire.PORTAL_PIECE]))
            return len(taken)

    def end(self) -> None:
        """Nothing more will be sent."""
        with self._switch.lock:
            if not self._ended and not self._closed and not self._gone:
                self._ended = True
                self._switch.queue(wire.encode(wire.END, self._stream))

    def close(self, *, at_once: bool) -> None:
        """Takes this end away. Unless `at_once`, what was sent before is still delivered. May be called again."""
        with self._switch.lock:
            if self._closed:
                return
            self._closed = True
            self._inbound.clear()
            if not self._gone or self._cage_closed:
                self._switch.queue(wire.encode(wire.CLOSE, self._stream, wire.AT_ONCE if at_once else wire.GENTLY))
            if self._cage_closed:
                self._switch.forget(self._stream)

    # for the switch, with its lock held

    def receive(self, frame: wire.Frame) -> None:
        if self._cage_closed:
            raise DoorMalformed("a frame behind the last of a stream")
        if frame.type == wire.CREDIT:
            self._more_room(frame.payload)
        elif frame.type == wire.CLOSE:
            self._cage_closed = self._gone = True
            if self._closed:
                self._switch.forget(self._stream)
        elif self._cage_ended:
            raise DoorMalformed("data behind the end of a stream")
        elif frame.type == wire.END:
            self._cage_ended = True
        elif len(frame.payload) > self._granted:
            raise DoorMalformed("more data on a stream than it has credit for")
        else:
            self._granted -= len(frame.payload)
            if not self._closed and frame.payload:
                self._inbound.append(frame.payload)

    def _more_room(self, payload: bytes) -> None:
        if len(payload) != wire.CREDIT_BYTES.size:
            raise DoorMalformed("credit that is no number")
        self._room += wire.CREDIT_BYTES.unpack(payload)[0]
        if self._room > wire.PORTAL_WINDOW:
            raise DoorMalformed("credit for more than was sent")

    def lose(self) -> None:
        self._gone = True

    def tell(self) -> None:
        """Without the lock."""
        if self._on_event is not None:
            self._on_event()


class Switch:
    """The streams of one call."""

    def __init__(self, portals: tuple[Portal, ...], on_connection: OnConnection) -> None:
        self.lock: Final = threading.RLock()
        self._portals = portals
        self._on_connection = on_connection
        self._streams: dict[int, PortalStream] = {}
        self._next = wire.FIRST_PORTAL_STREAM
        self._outgoing = bytearray()
        self._closed = False
        self._signalled = False
        self._wake_reader, self._wake_writer = os.pipe()
        for descriptor in (self._wake_reader, self._wake_writer):
            os.set_blocking(descriptor, False)

    def fileno(self) -> int:
        """Readable when there is something to send."""
        return self._wake_reader

    def take(self, frame: wire.Frame) -> None:
        """A frame of the cage that `wire.is_portal`. Raises DoorMalformed for one that may not come."""
        with self.lock:
            opened = frame.type == wire.OPEN
            stream = self._open(frame) if opened else self._streams.get(frame.stream)
            if stream is None:
                raise DoorMalformed("a frame of a stream that nobody opened")
            if not opened:
                stream.receive(frame)
        if opened:
            self._on_connection(self._portals[frame.payload[0]], stream)
        else:
            stream.tell()

    def outgoing(self) -> bytes:
        """What is to be sent to the cage; empty when nothing is."""
        with self.lock:
            if self._signalled:
                self._signalled = False
                os.read(self._wake_reader, 16)
            taken, self._outgoing = bytes(self._outgoing), bytearray()
            return taken

    def close(self) -> None:
        """The call is over: every stream is gone. A second call does nothing."""
        with self.lock:
            if self._closed:
                return
            self._closed = True
            streams, self._streams = list(self._streams.values()), {}
            self._outgoing.clear()
            for stream in streams:
                stream.lose()
            os.close(self._wake_reader)
            os.close(self._wake_writer)
        for stream in streams:
            stream.tell()

    # for the streams, with the lock held

    def queue(self, encoded: bytes) -> None:
        if self._closed:
            return
        self._outgoing += encoded
        if not self._signalled:
            self._signalled = True
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_writer, b"x")

    def forget(self, stream: int) -> None:
        self._streams.pop(stream, None)

    def _open(self, frame: wire.Frame) -> PortalStream:
        if len(frame.payload) != 1 or frame.payload[0] >= len(self._portals):
            raise DoorMalformed("a connection to a portal that the call does not have")
        if frame.stream != self._next or frame.stream >= wire.FIRST_PORTAL_STREAM + wire.MAX_PORTAL_OPENS:
            raise DoorMalformed("a stream's id that may not be used")
        if len(self._streams) >= wire.MAX_PORTAL_STREAMS:
            raise DoorMalformed("more streams than may be open")
        self._next += 1
        stream = self._streams[frame.stream] = PortalStream(self, frame.stream)
        return stream
