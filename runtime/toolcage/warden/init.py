"""The warden: PID 1 of a cage and owner of its only door. Single-threaded, standard library only.

It reads frames, hands a call's payload on to a child without looking at it, carries the child's output to the host
under caps, kills everything when the program ends or a limit is hit, collects files once nothing runs any more, and
reports. It never blocks on the door, and ends itself when the door closes, when its lease is over, or when no frame
came for PING_S seconds.

It trusts the kernel and its own descriptors. It does not trust the tool, and it promises the host nothing: the host
reads whatever comes from here as hostile.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from typing import Any, NoReturn

from toolcage.cage import wire
from toolcage.warden import collect, counters, zygote
from toolcage.warden.call import Call
from toolcage.warden.door import BUFFER_BYTES, DOOR_IN, DOOR_OUT, Door
from toolcage.warden.portals import Portals

PING_S = 30.0
WORKSPACE, DATA = "/workspace", "/data"


class Warden:
    """The event loop around one call."""

    def __init__(self, spawn: socket.socket, wakeup: int, lease_s: float, *, program: int | None = None) -> None:
        """`program` is the process that waits to become the call's, where there is one already."""
        self._program = program
        self._door = Door()
        self._spawn = spawn
        self._wakeup = wakeup
        self._lease_end = time.monotonic() + lease_s
        self._call: Call | None = None
        self._portals: Portals | None = None
        self._ready = False
        self._files: dict[int, int] = {}
        self._reaped: dict[int, int] = {}
        self._pidfd: int | None = None
        self._selector = selectors.DefaultSelector()
        for descriptor in (DOOR_IN, wakeup, spawn.fileno()):
            self._selector.register(descriptor, selectors.EVENT_READ)

    def serve(self) -> None:
        """Runs until the door closes. Never returns."""
        while True:
            self._door.flush()
            self._watch()
            for key, _ in self._selector.select(self._timeout()):
                self._dispatch(key.fd)
            self._check_time()
            call = self._call
            if call is not None and (call.over or call.limit):
                self._finish(call)

    def _watch(self) -> None:
        self._want(DOOR_OUT, selectors.EVENT_WRITE, self._door.waiting)
        if self._portals is not None:
            self._want(self._portals.fileno(), selectors.EVENT_READ, not self._door.full)
        if self._call is None:
            return
        for descriptor in self._call.readers:
            self._want(descriptor, selectors.EVENT_READ, not self._door.full)
        if self._call.payload is not None:
            self._want(self._call.payload, selectors.EVENT_WRITE, self._call.feeding)

    def _want(self, descriptor: int, event: int, wanted: bool) -> None:
        watched = descriptor in self._selector.get_map()
        if wanted and not watched:
            self._selector.register(descriptor, event)
        elif watched and not wanted:
            self._selector.unregister(descriptor)

    def _timeout(self) -> float:
        ends = [self._lease_end, self._door.last_heard + PING_S]
        if self._call is not None:
            ends.append(self._call.deadline)
        return max(0.0, min(ends) - time.monotonic())

    def _check_time(self) -> None:
        now = time.monotonic()
        if now >= self._lease_end or now >= self._door.last_heard + PING_S:
            os._exit(0)
        if self._call is not None and now >= self._call.deadline and self._call.limit is None:
            self._call.limit = "wall"

    def _dispatch(self, descriptor: int) -> None:
        call = self._call
        if descriptor == DOOR_IN:
            for frame in self._door.read():
                self._on_frame(frame)
        elif descriptor == DOOR_OUT:
            self._door.flush()
        elif descriptor == self._wakeup:
            os.read(self._wakeup, 4096)
            self._reap()
        elif descriptor == self._spawn.fileno():
            self._on_zygote()
        elif self._portals is not None and descriptor == self._portals.fileno():
            self._portals.turn()
        elif call is not None and descriptor == self._pidfd:
            call.over = True
        elif call is not None and descriptor == call.payload:
            self._feed(call, b"", last=False)
        elif call is not None and descriptor in call.readers:
            call.drain(descriptor, self._door)
            if descriptor not in call.readers:
                self._selector.unregister(descriptor)

    def _on_frame(self, frame: wire.Frame) -> None:
        if frame.type == wire.PING:
            self._door.send(wire.encode(wire.PING))
        elif frame.type == wire.CONTROL:
            self._on_order(frame.control())
        elif wire.is_portal(frame):
            self._on_portal(frame)
        elif frame.stream == wire.PAYLOAD and self._call is not None:
            self._feed(self._call, frame.payload, last=frame.type == wire.END)
        elif frame.stream in self._files:
            self._on_file(frame)

    def _on_order(self, order: dict[str, Any]) -> None:
        if order["op"] == "put":
            path = os.path.join(DATA, os.path.basename(order["name"]))
            self._files[order["stream"]] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
        elif order["op"] == "call" and self._call is None and self._ready:
            opened = self._open_portals(order["portals"])
            self._call = self._begin(order)
            if not opened:  # no payload has come yet, so nothing of the tool runs
                self._call.limit = "portal"

    def _open_portals(self, ports: list[int]) -> bool:
        """Whether the call's listeners are there, before anything of the call is."""
        try:
            self._portals = Portals(ports, self._door.send, lambda: self._door.full) if ports else None
        except OSError:  # what an earlier call of the session left running has the port
            return False
        return True

    def _close_portals(self) -> None:
        if self._portals is None:
            return
        self._want(self._portals.fileno(), selectors.EVENT_READ, False)
        self._portals.close()
        self._portals = None

    def _on_portal(self, frame: wire.Frame) -> None:
        """One that comes when its call is over is dropped: it was under way."""
        if self._portals is not None:
            self._portals.take(frame)

    def _begin(self, order: dict[str, Any]) -> Call:
        call = Call(order, self._spawn)
        if self._program is not None:
            self._watch_program(call, self._program)
            call.over = call.over or self._pidfd is None
        return call

    def _on_file(self, frame: wire.Frame) -> None:
        if frame.type == wire.END:
            os.close(self._files.pop(frame.stream))
            self._door.send(wire.encode_control(op="stored", stream=frame.stream))
            return
        view = memoryview(frame.payload)
        while view:
            view = view[os.write(self._files[frame.stream], view) :]

    def _feed(self, call: Call, piece: bytes, *, last: bool) -> None:
        descriptor = call.payload
        call.feed(piece, last=last)
        if descriptor is not None and call.payload is None and descriptor in self._selector.get_map():
            self._selector.unregister(descriptor)

    def _on_zygote(self) -> None:
        message = self._spawn.recv(zygote.STATUS.size)
        if not message and not self._ready:
            os._exit(1)  # what it could not load stands on stderr
        if not message:  # the tool killed it; its children are ours now and so is their status
            self._selector.unregister(self._spawn.fileno())
            if self._call is None:
                os._exit(1)  # nobody is left who could run a call: the host sees the door close
            return
        pid, status = zygote.STATUS.unpack(message)
        if pid == 0:
            self._ready = True
            self._door.send(wire.encode_control(op="ready"))
        else:
            self._on_status(pid, status)

    def _on_status(self, pid: int, status: int) -> None:
        """What a zygote that serves many calls tells of the process behind one."""

    def _watch_program(self, call: Call, pid: int) -> None:
        """The end of the main program ends the call: a background child that holds its pipes open does not delay it."""
        call.pid = pid
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return  # already reaped, so it is over
        self._selector.register(self._pidfd, selectors.EVENT_READ)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                if self._call is not None:
                    self._call.over = True
                return
            if pid == 0:
                return
            self._reaped[pid] = status

    # the end of a call: kill, take the last output, collect files, report - in this order

    def _finish(self, call: Call) -> None:
        wall_s = time.monotonic() - call.started
        self._kill_all()
        self._close_portals()
        if call.status is None:
            call.status = self._late_status(call)
        self._drain_rest(call)
        self._report(call, wall_s, *self._collect())
        self._leave()

    def _collect(self) -> tuple[int, int]:
        return collect.send_produced(WORKSPACE, self._send_and_wait)

    def _drain_rest(self, call: Call) -> None:
        """No writer is left: what the pipes still hold is all there will be."""
        for descriptor in list(call.readers):
            while call.drain(descriptor, self._door):
                self._door.flush_until(BUFFER_BYTES, self._lease_end)

    def _report(
        self, call: Call, wall_s: float, found: int, sent: int, *, again: bool = False, peak: int | None = None
    ) -> None:
        """`again` says that another call may follow; `peak` replaces the cgroup's, which is of all calls so far."""
        after = counters.read()
        self._door.send(
            wire.encode_control(
                op="done",
                status=call.status,
                limit=call.limit,
                written={str(stream): count for stream, count in call.written.items()},
                artifacts_found=found,
                artifacts_sent=sent,
                oom_kills=after["oom_kills"] - call.counters_before["oom_kills"],
                pids_refused=after["pids_refused"] - call.counters_before["pids_refused"],
                memory_peak=after["memory_peak"] if peak is None else peak,
                again=again,
                cpu_s=(after["cpu_us"] - call.counters_before["cpu_us"]) / 1e6,
                wall_s=round(wall_s, 6),
            )
        )

    def _kill_all(self) -> None:
        """SIGKILL to every process but this one until the kernel says that there is none."""
        while True:
            try:
                os.kill(-1, signal.SIGKILL)
                pid, status = os.waitpid(-1, 0)
            except (ProcessLookupError, ChildProcessError):
                if self._no_children():
                    return
                continue
            self._reaped[pid] = status

    def _no_children(self) -> bool:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid:
            self._reaped[pid] = status
        return False

    def _late_status(self, call: Call) -> int | None:
        """How the program ended, from the zygote's last words or from our own reaping; None when neither knows."""
        self._spawn.setblocking(False)
        try:
            while message := self._spawn.recv(zygote.STATUS.size):
                pid, status = zygote.STATUS.unpack(message)
                if pid == call.pid and status != zygote.STARTED:
                    return int(status)
        except OSError:
            pass  # nothing more was said
        return self._reaped.get(call.pid) if call.pid is not None else None

    def _send_and_wait(self, encoded: bytes) -> None:
        """For what is sent when nothing runs any more: as fast as the host takes it, in bounded memory."""
        self._door.send(encoded)
        self._door.flush_until(BUFFER_BYTES, self._lease_end)

    def _leave(self) -> NoReturn:
        """A cage is used once: give the host its answer, then end. A container that has ended by itself costs the
        engine less to remove than one that it must kill first."""
        self._door.flush_until(0, self._lease_end)
        os._exit(0)
