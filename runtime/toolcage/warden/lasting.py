"""The warden of a cage that keeps one interpreter for all calls of a session (`session` isolation).

A call is over when the interpreter says so, or dies. Then every process is stopped, what the pipes still hold is taken,
and changed files are collected; the next call lets everything run on. So threads and background processes live from
call to call and run only during calls; what they write belongs to the call that runs. A program can arrange to be woken
in between (a timer that sends SIGCONT): it gains processor time within the cage's limits and no channel, and the
collection does not rely on the stop. What cannot be stopped within STOP_S is ended with the cage. After a limit, or
when the interpreter is gone, everything is ended and no call follows, exactly as in a cage that is used once.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from typing import Any

from toolcage.cage import wire
from toolcage.warden import collect, zygote
from toolcage.warden.call import Call
from toolcage.warden.init import WORKSPACE, Warden

STOP_S = 1.0
LOOK_AGAIN_S = 0.001
_AT_REST = frozenset("TtZX")
_LONGEST_MESSAGE = 64


class SessionWarden(Warden):
    """The event loop around one interpreter and its calls."""

    def __init__(self, control: socket.socket, wakeup: int, lease_s: float, interpreter: int) -> None:
        super().__init__(control, wakeup, lease_s)
        self._interpreter = interpreter
        self._pidfd = os.pidfd_open(interpreter)
        self._selector.register(self._pidfd, selectors.EVENT_READ)
        self._outputs = (os.pipe(), os.pipe())  # both ends stay open here, so no program can end them for the next call
        self._known: collect.Known = {}

    def _begin(self, order: dict[str, Any]) -> Call:
        _signal_all(signal.SIGCONT)
        return Call(order, self._spawn, outputs=self._outputs)

    def _dispatch(self, descriptor: int) -> None:
        if descriptor != self._pidfd:
            super()._dispatch(descriptor)
        elif self._call is None:
            os._exit(1)  # nothing is left to serve the next call; the host sees the door close
        else:
            self._selector.unregister(descriptor)
            self._call.over = True

    def _on_zygote(self) -> None:
        """The interpreter's word, which is the program's: anything ends the call, and only an exit code says more."""
        message = self._spawn.recv(_LONGEST_MESSAGE)
        if not self._ready or not message:
            self._not_a_status(message)
        elif self._call is not None:
            self._call.status = _exit_status(message)
            self._call.over = True

    def _not_a_status(self, message: bytes) -> None:
        if not self._ready and message == zygote.READY:
            self._ready = True
            self._door.send(wire.encode_control(op="ready"))
        elif not self._ready:
            os._exit(1)  # what it could not load stands on stderr
        else:
            self._selector.unregister(self._spawn.fileno())

    def _finish(self, call: Call) -> None:
        if call.limit is None and call.status is not None and _stop_all():
            self._conclude(call)
        else:
            super()._finish(call)

    def _conclude(self, call: Call) -> None:
        wall_s = time.monotonic() - call.started
        self._close_portals()
        for descriptor in call.descriptors:
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        self._drain_rest(call)
        self._report(call, wall_s, *self._collect(), again=True)
        call.close()
        self._call = None

    def _collect(self) -> tuple[int, int]:
        return collect.send_produced(WORKSPACE, self._send_and_wait, self._known)

    def _late_status(self, call: Call) -> int | None:
        return self._reaped.get(self._interpreter)


def _exit_status(message: bytes) -> int | None:
    """A wait status; None for what is no exit code."""
    if len(message) != zygote.STATUS.size:
        return None
    _, code = zygote.STATUS.unpack(message)
    return int(code) << 8 if 0 <= code <= 0xFF else None


def _stop_all() -> bool:
    """Whether every process but this one is at rest."""
    end = time.monotonic() + STOP_S
    _signal_all(signal.SIGSTOP)
    while not all(state in _AT_REST for state in _states()):
        if time.monotonic() >= end:
            return False
        time.sleep(LOOK_AGAIN_S)
    return True


def _signal_all(number: int) -> None:
    try:
        os.kill(-1, number)  # one step for the kernel: a fork under way gets it too
    except ProcessLookupError:
        return


def _states() -> list[str]:
    """The state letter of every thread of every other process."""
    own = str(os.getpid())
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and name != own:
            try:
                threads = os.listdir(f"/proc/{name}/task")
                found += [_state(f"/proc/{name}/task/{thread}/stat") for thread in threads]
            except OSError:  # gone since it was listed
                continue
    return found


def _state(path: str) -> str:
    with open(path, "rb") as handle:
        return chr(handle.read(512).rpartition(b") ")[2][0])
