"""One running call, as the warden sees it: four pipes, caps, and what has been written so far.

The payload passes through undecoded. Output beyond a cap is counted and dropped, and the call is marked for its end.
"""

from __future__ import annotations

import array
import os
import socket
import struct
import time
from collections.abc import Mapping

from toolcage.cage import wire
from toolcage.warden import counters
from toolcage.warden.door import READ_BYTES, Door


class Call:
    """Made from the host's order; the zygote forks the child that holds the other ends of the pipes."""

    def __init__(
        self,
        order: Mapping[str, object],
        spawn: socket.socket,
        *,
        reported: bool = False,
        outputs: tuple[tuple[int, int], tuple[int, int]] | None = None,
    ) -> None:
        """`reported`: a supervisor tells how the call goes, over a fifth pipe, which is then `report`, and serves the
        call's portals, whose frames go to it over a sixth, `downlink`. `outputs` are pipes for stdout and stderr that
        outlive the call; without them it gets its own."""
        output, answer, wall_s = order["output_bytes"], order["result_bytes"], order["wall_s"]
        ports = order["portals"]
        assert isinstance(ports, list)
        assert isinstance(output, int)
        assert isinstance(answer, int)
        assert isinstance(wall_s, int | float)
        self.caps = {wire.STDOUT: output, wire.STDERR: output, wire.RESULT: answer}
        self.written = dict.fromkeys(self.caps, 0)
        self.limit: str | None = None
        self.pid: int | None = None
        self.status: int | None = None
        self.over = False
        self.counters_before = counters.read()
        self._unsent = bytearray()
        self._payload_ended = False
        self._lasting = frozenset(end for pair in outputs or () for end in pair)
        stdout, stderr = outputs or (os.pipe(), os.pipe())
        payload, result = os.pipe(), os.pipe()
        self.payload: int | None = payload[1]
        self.readers = {stdout[0]: wire.STDOUT, stderr[0]: wire.STDERR, result[0]: wire.RESULT}
        theirs = [payload[0], stdout[1], stderr[1], result[1]]
        self.report: int | None = None
        self.downlink: int | None = None
        self._undelivered = bytearray()
        if reported:
            self.report, theirs_report = os.pipe()
            theirs.append(theirs_report)
        if reported and ports:
            theirs_downlink, self.downlink = os.pipe()
            theirs.append(theirs_downlink)
        message = b"f" + struct.pack(f"!{len(ports)}H", *ports)
        for descriptor in self.descriptors:
            os.set_blocking(descriptor, False)
        self.started = time.monotonic()
        self.deadline = self.started + wall_s
        try:
            spawn.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", theirs))])
        except OSError:  # the tool's own doing: nobody is left who could run the call
            self.over = True
        for descriptor in theirs:
            if descriptor not in self._lasting:
                os.close(descriptor)

    @property
    def feeding(self) -> bool:
        """Whether payload waits for the child to read."""
        return self.payload is not None and bool(self._unsent)

    def feed(self, piece: bytes, *, last: bool) -> None:
        """Passes payload on to the child, as much as its pipe takes now."""
        self._unsent += piece
        self._payload_ended = self._payload_ended or last
        if self.payload is None:
            self._unsent.clear()
            return
        try:
            while self._unsent:
                written = os.write(self.payload, self._unsent[:READ_BYTES])
                del self._unsent[:written]
        except BlockingIOError:
            return
        except OSError:  # the child is gone or closed its end: how it ended says the rest
            self._unsent.clear()
            self._payload_ended = True
        if self._payload_ended:
            os.close(self.payload)
            self.payload = None

    @property
    def delivering(self) -> bool:
        """Whether frames of portals wait for the supervisor."""
        return self.downlink is not None and bool(self._undelivered)

    def deliver(self, encoded: bytes) -> None:
        """Passes frames of portals on to the supervisor, as much as its pipe takes now. The host's credit bounds it."""
        if self.downlink is None:
            return
        self._undelivered += encoded
        try:
            while self._undelivered:
                written = os.write(self.downlink, self._undelivered[:READ_BYTES])
                del self._undelivered[:written]
        except BlockingIOError:
            return
        except OSError:  # the supervisor is gone: how it ended says the rest
            self._undelivered.clear()

    def drain(self, descriptor: int, door: Door) -> bool:
        """Moves one piece of output to the door. False when there is none: the end, or nothing for now."""
        stream = self.readers[descriptor]
        try:
            piece = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        if not piece:
            os.close(descriptor)
            del self.readers[descriptor]
            return False
        allowed = self.caps[stream] - self.written[stream]
        if allowed > 0:
            door.send(wire.encode(wire.DATA, stream, piece[:allowed]))
        self.written[stream] += len(piece)
        if self.written[stream] > self.caps[stream] and self.limit is None:
            self.limit = "result" if stream == wire.RESULT else "output"
        return True

    def close(self) -> None:
        """Releases every descriptor that is still open, but those that outlive the call."""
        for descriptor in self.descriptors:
            if descriptor not in self._lasting:
                os.close(descriptor)
        self.readers.clear()
        self.payload = self.report = self.downlink = None

    @property
    def descriptors(self) -> list[int]:
        """Every end of the call's pipes that the warden still holds."""
        single = (self.payload, self.report, self.downlink)
        return [*self.readers, *(end for end in single if end is not None)]
