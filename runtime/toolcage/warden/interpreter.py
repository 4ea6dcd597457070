"""The interpreter of a cage with `session` isolation: one process that runs every call of its session, one at a time.

Forked from the warden before the first frame, in the zygote's place. Each call brings its own payload and result pipes;
stdout and stderr are the session's. The program's modules, variables, threads and open files stay from call to call:
that is what this mode is for, so nothing here protects one call from the one before. It is the tool's process through
and through: whatever it tells the warden is the tool's word. Only the process that began as the interpreter answers; a
fork that a program forgot to end does not.
"""

from __future__ import annotations

import os
import socket
from types import ModuleType
from typing import Any

from toolcage.warden import zygote

CONTROL = 3


def main(control: socket.socket, bundle: dict[str, Any]) -> None:
    """Serves until the warden closes its end. Never returns."""
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    os.environ.clear()
    os.environ.update(zygote.ENVIRONMENT)
    child = zygote.load(bundle)
    zygote.become_a_tool()
    zygote.limit_files(bundle["limits"])
    os.chdir("/workspace")
    os.dup2(null, 2)  # until here a failure to load is told to the operator
    os.dup2(control.detach(), CONTROL, inheritable=False)
    os.closerange(CONTROL + 1, 4096)
    calls = socket.socket(fileno=CONTROL)
    calls.send(zygote.READY)
    own = os.getpid()
    while True:
        try:
            _serve(calls, child, own)
        except BaseException:  # noqa: BLE001, S112 - a signal handler of the program raised here
            continue


def _serve(calls: socket.socket, child: ModuleType, own: int) -> None:
    received = zygote.receive(calls)
    if received is None:
        os._exit(0)
    code = _run(child, received[0])
    if os.getpid() != own:
        os._exit(code)
    calls.send(zygote.STATUS.pack(own, code))


def _run(child: ModuleType, descriptors: list[int]) -> int:
    payload, stdout, stderr, result = descriptors
    for descriptor, place in ((stdout, 1), (stderr, 2)):
        os.dup2(descriptor, place)
        os.close(descriptor)
    for descriptor in (payload, result):
        os.set_inheritable(descriptor, False)
    try:
        return int(child.run(zygote.read_payload(payload), result)) & 0xFF
    except BaseException as error:  # noqa: BLE001 - the outermost frame of the call
        os.write(2, f"tool could not be started: {type(error).__name__}\n".encode())
        os.close(result)
        return 1
