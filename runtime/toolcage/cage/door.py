"""The host's end of a cage's door: frames over the engine's attach stream, every byte of it hostile.

The engine multiplexes the container's stdout (our frames) and stderr (the warden's last words, kept for the operator up
to a cap). Both headers are checked against caps before anything is allocated. Every wait has a deadline; the socket is
non-blocking, so no stream, however stuck, holds a thread longer than it was given. Anything malformed ends the door.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from typing import Final, Protocol

from toolcage.cage import wire

READ_BYTES: Final = 64 * 1024
LAST_WORDS_BYTES: Final = 16 * 1024
_MUX_HEADER: Final = 8
_STDOUT, _STDERR = 1, 2


class DoorClosed(Exception):
    """The other end is gone: the cage ended, was killed, or the engine went away."""


class DoorTimeout(Exception):
    """The deadline passed before the other end answered or took what was sent."""


class DoorMalformed(Exception):
    """The cage sent something that is not our protocol. It must be killed."""


class Outbox(Protocol):
    """What others want sent while somebody waits for frames."""

    def fileno(self) -> int:
        """A descriptor that is readable when there is something."""
        ...

    def outgoing(self) -> bytes:
        """Encoded frames; empty when there is nothing."""
        ...


class Door:
    """One attached stream. Used by one thread at a time, except `shut`, which any thread may call."""

    def __init__(self, stream: socket.socket) -> None:
        self._socket = stream
        self._socket.setblocking(False)
        self._decoder = wire.Decoder()
        self._header = bytearray()
        self._channel = 0
        self._left = 0
        self._frames: list[wire.Frame] = []
        self._unsent = memoryview(b"")
        self.last_words = bytearray()

    def send(self, encoded: bytes, deadline: float) -> None:
        """Writes all of it, behind what was taken of an outbox. Raises DoorTimeout at `deadline` (monotonic seconds),
        DoorClosed when nobody reads."""
        self._unsent = memoryview(bytes(self._unsent) + encoded if self._unsent else encoded)
        while self._unsent:
            if (event := self._push()) is not None:
                self._wait(event, deadline)

    def receive(self, deadline: float, outbox: Outbox | None = None) -> wire.Frame:
        """The next frame. What `outbox` has is sent while it is awaited, as far as the cage takes it.

        Raises DoorTimeout, DoorClosed or DoorMalformed.
        """
        self._check(deadline)
        if outbox is not None:
            return self._converse(deadline, outbox)
        while not self._frames:
            self._take(self._read(deadline))
            self._check(deadline)
        return self._frames.pop(0)

    def _converse(self, deadline: float, outbox: Outbox) -> wire.Frame:
        while True:
            self._unsent = self._unsent or memoryview(outbox.outgoing())
            writing = self._push()
            if self._frames:
                return self._frames.pop(0)
            piece, reading = self._try_read()
            if piece:
                self._take(piece)
            elif writing is not None or not self._unsent:
                self._wait(reading | (writing or 0), deadline, None if self._unsent else outbox.fileno())
            self._check(deadline)

    def silent(self) -> bool:
        """Whether the stream is open and nothing has come: how the door of an idle cage is, and a dead one's is not."""
        try:
            self._socket.recv(1)  # whatever comes unasked ends the cage, so nothing is lost by taking it
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        return False

    def shut(self) -> None:
        """Ends the stream; a thread that waits on it gets DoorClosed."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # already gone

    def close(self) -> None:
        """Releases the descriptor."""
        self.shut()
        self._socket.close()

    @staticmethod
    def _check(deadline: float) -> None:
        """Also when there is always something to read: a cage that never stops talking has no more time than others."""
        if time.monotonic() >= deadline:
            raise DoorTimeout

    def _read(self, deadline: float) -> bytes:
        while True:
            piece, event = self._try_read()
            if piece:
                return piece
            self._wait(event, deadline)

    def _try_read(self) -> tuple[bytes, int]:
        """What is there now, and otherwise what to wait for."""
        try:
            piece = self._socket.recv(READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError):
            return b"", select.POLLIN
        except ssl.SSLWantWriteError:
            return b"", select.POLLOUT
        except OSError as error:
            raise DoorClosed from error
        if not piece:
            raise DoorClosed
        return piece, 0

    def _push(self) -> int | None:
        """Writes what goes now. What to wait for before the rest goes; None when something went or nothing waits."""
        if not self._unsent:
            return None
        try:
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except (BlockingIOError, ssl.SSLWantWriteError):
            return select.POLLOUT
        except ssl.SSLWantReadError:
            return select.POLLIN
        except OSError as error:
            raise DoorClosed from error
        return None

    def _wait(self, event: int, deadline: float, beside: int | None = None) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise DoorTimeout
        poller = select.poll()
        if beside is not None:
            poller.register(beside, select.POLLIN)
        try:
            poller.register(self._socket, event)
        except ValueError as error:  # closed by another thread
            raise DoorClosed from error
        if not poller.poll(left * 1000):
            raise DoorTimeout

    def _take(self, piece: bytes) -> None:
        """Undoes the engine's multiplexing, in pieces of any size."""
        view = memoryview(piece)
        while view:
            if self._left == 0:
                wanted = _MUX_HEADER - len(self._header)
                self._header += view[:wanted]
                view = view[wanted:]
                if len(self._header) < _MUX_HEADER:
                    return
                self._channel, self._left = self._header[0], int.from_bytes(self._header[4:], "big")
                self._header.clear()
                if self._channel not in (_STDOUT, _STDERR):
                    raise DoorMalformed("unknown channel in the engine's stream")
            part, view = view[: self._left], view[self._left :]
            self._left -= len(part)
            self._deliver(bytes(part))

    def _deliver(self, part: bytes) -> None:
        if self._channel == _STDERR:
            self.last_words += part[: LAST_WORDS_BYTES - len(self.last_words)]
            return
        try:
            self._frames += self._decoder.feed(part)
        except wire.WireError as error:
            raise DoorMalformed(str(error)) from error
