"""The warden's end of the door: non-blocking both ways, with a bounded amount of output waiting.

The host going away, however it goes, ends the cage at once: there is nobody left to work for.
"""

from __future__ import annotations

import os
import selectors
import time

from toolcage.cage import wire

DOOR_IN, DOOR_OUT = 0, 1
BUFFER_BYTES = 1 << 20
READ_BYTES = 64 * 1024


class Door:
    """Frames in, encoded frames out. `full` asks the caller to stop producing."""

    def __init__(self) -> None:
        self._decoder = wire.Decoder()
        self._out = bytearray()
        self.last_heard = time.monotonic()
        for descriptor in (DOOR_IN, DOOR_OUT):
            os.set_blocking(descriptor, False)

    @property
    def full(self) -> bool:
        return len(self._out) >= BUFFER_BYTES

    @property
    def waiting(self) -> bool:
        return bool(self._out)

    def read(self) -> list[wire.Frame]:
        """The frames that have arrived."""
        try:
            piece = os.read(DOOR_IN, READ_BYTES)
        except BlockingIOError:
            return []
        if not piece:
            os._exit(0)
        self.last_heard = time.monotonic()
        return self._decoder.feed(piece)

    def send(self, encoded: bytes) -> None:
        """Queues encoded frames, to leave together with what else this turn of the loop brings, or as a full piece:
        each write wakes a chain of processes on the way to the host."""
        self._out += encoded
        if len(self._out) >= READ_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what the host takes now."""
        try:
            while self._out:
                written = os.write(DOOR_OUT, self._out[:READ_BYTES])
                del self._out[:written]
        except BlockingIOError:
            return
        except OSError:
            os._exit(0)

    def flush_until(self, level: int, lease_end: float) -> None:
        """Waits until at most `level` bytes wait, or ends the cage with its lease. Used when nothing runs any more."""
        with selectors.DefaultSelector() as selector:
            selector.register(DOOR_OUT, selectors.EVENT_WRITE)
            while len(self._out) > level:
                if time.monotonic() >= lease_end:
                    os._exit(0)
                selector.select(1.0)
                self.flush()
