"""The warden of a cage that serves many calls, one at a time, each in namespaces of its own (`namespace` isolation).

What it does differently: the process behind a call, its supervisor, is there before the call, tells when the call's
first process ended, and sends the files; after a call that ended well the cage waits for the next one. After any error
or limit, and when the supervisor itself fails, it ends everything and serves no more, exactly as a cage that is used
once.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from typing import Any

from toolcage.cage import wire
from toolcage.warden import counters, zygote
from toolcage.warden.call import Call
from toolcage.warden.door import READ_BYTES
from toolcage.warden.init import Warden

END_S = 3.0
HELD_BYTES = 8 * 1024 * 1024


class SerialWarden(Warden):
    """The event loop around one call after another."""

    _base_bytes: int | None = None
    _supervisor: int | None = None
    """Of the call that runs, else of the next one."""
    _finished: int | None = None

    def _begin(self, order: dict[str, Any]) -> Call:
        call = Call(order, self._spawn, reported=True)
        self._decoder = wire.Decoder()
        self._ending: float | None = None
        self._collected: tuple[int, int] | None = None
        self._peak = 0
        if self._base_bytes is None:
            self._base_bytes = counters.held_bytes()
        return call

    def _watch(self) -> None:
        super()._watch()
        if self._call is not None and self._call.report is not None:
            self._want(self._call.report, selectors.EVENT_READ, not self._door.full)
        if self._call is not None and self._call.downlink is not None:
            self._want(self._call.downlink, selectors.EVENT_WRITE, self._call.delivering)

    def _timeout(self) -> float:
        if self._call is not None and self._ending is not None:
            return max(0.0, self._ending - time.monotonic())
        return super()._timeout()

    def _dispatch(self, descriptor: int) -> None:
        if self._call is not None and descriptor == self._call.report:
            self._on_report(self._call)
        elif self._call is not None and descriptor == self._call.downlink:
            self._call.deliver(b"")
        else:
            super()._dispatch(descriptor)

    def _open_portals(self, ports: list[int]) -> bool:
        """The supervisor's business: the listeners belong into the call's own network namespace."""
        return True

    def _on_portal(self, frame: wire.Frame) -> None:
        if self._call is not None:
            self._call.deliver(wire.encode(frame.type, frame.stream, frame.payload))

    def _on_report(self, call: Call) -> None:
        """The supervisor is our own program, but it has read a hostile folder: only frames that belong here pass."""
        assert call.report is not None
        piece = os.read(call.report, READ_BYTES)
        if not piece:
            self._want(call.report, selectors.EVENT_READ, wanted=False)
            os.close(call.report)
            call.report, call.over = None, True
            return
        for frame in self._decoder.feed(piece):
            message = frame.control() if frame.type == wire.CONTROL else {"op": "data"}
            if message["op"] == "started":
                call.pid = int(str(message["pid"]))
                self._supervisor = int(str(message["supervisor"]))
            elif message["op"] == "ended":  # in time: what is left to do is ours and has a deadline of its own
                call.deadline = time.monotonic() + END_S
            elif message["op"] == "collected":
                self._peak = int(str(message["peak"]))
                call.status = int(str(message["status"]))
                self._collected = int(str(message["found"])), int(str(message["sent"]))
                call.over = True
            else:
                self._door.send(wire.encode(frame.type, frame.stream, frame.payload))

    def _on_status(self, pid: int, status: int) -> None:
        if status == zygote.STARTED:
            if pid != self._finished:  # its call was over before this could be told
                self._supervisor = pid
        elif pid == self._supervisor and self._call is None:
            os._exit(1)  # what the next call needs cannot be had: the host sees the door close
        elif pid == self._supervisor and self._call is not None:
            while self._call.report is not None and self._collected is None:  # what it said may not have been read yet
                self._on_report(self._call)
            self._call.over = True

    def _finish(self, call: Call) -> None:
        if not call.over and self._ending is None:
            self._ending = time.monotonic() + END_S
            victim = call.pid or self._supervisor
            if victim is not None:
                with contextlib.suppress(ProcessLookupError):  # it ended by itself at this very moment
                    os.kill(victim, signal.SIGKILL)
        if not call.over and self._ending is not None and time.monotonic() < self._ending:
            return  # the supervisor collects what is there and reports
        if self._collected is None:
            call.limit = call.limit or "isolation"
            super()._finish(call)
        else:
            self._conclude(call, *self._collected)

    def _conclude(self, call: Call, found: int, sent: int) -> None:
        wall_s = time.monotonic() - call.started
        for descriptor in call.descriptors:
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        self._drain_rest(call)
        again = call.status == 0 and call.limit is None and not self._is_held()
        self._report(call, wall_s, found, sent, again=again, peak=self._peak)
        call.close()
        self._call, self._finished, self._supervisor = None, self._supervisor, None
        if not again:
            self._kill_all()
            self._leave()

    def _is_held(self) -> bool:
        """Whether the call left memory behind: sockets in flight to themselves, for one, pin files until the kernel's
        collector runs. The next call must not pay for it."""
        return counters.held_bytes() > (self._base_bytes or 0) + HELD_BYTES
