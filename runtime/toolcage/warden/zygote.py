"""The process that calls are made of. It holds no door and is forked from the warden before the first frame arrives.

It imports what every call needs and then waits on one socket for a set of descriptors. In a cage that is used once it
becomes the call's process itself. In one that serves many it forks a process for each call, ahead of the call; it never
gets a payload or a call's descriptor, and is not dumpable: forking calls from a process that decodes frames would leave
the arguments of one call in the memory of the next. Either way the standard streams are replaced, every other
descriptor is closed, and `child.run` reads the payload from a pipe of its own.
"""

from __future__ import annotations

import array
import binascii
import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import socket
import struct
import sys
from types import ModuleType
from typing import Any, NoReturn

from toolcage.cage import wire
from toolcage.warden import namespaces, supervisor

PR_SET_DUMPABLE = 4
STATUS = struct.Struct("!ii")
READY = STATUS.pack(0, 0)
STARTED = -1
_LIBC = ctypes.CDLL(None, use_errno=True)

ENVIRONMENT = {
    "HOME": "/workspace",
    "TMPDIR": "/tmp",  # noqa: S108 - the cage's own tmpfs
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "MPLCONFIGDIR": "/tmp/matplotlib",  # noqa: S108
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_MAX_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
}


def prctl(option: int, value: int) -> None:
    """The system call; raises OSError when the kernel refuses, because every use here is a protection."""
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl refused")


def main(control: socket.socket, bundle: dict[str, Any]) -> None:
    """Serves until the warden closes its end. Never returns."""
    prctl(PR_SET_DUMPABLE, 0)
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    os.environ.clear()
    os.environ.update(ENVIRONMENT)
    child = load(bundle)
    filters = {machine: binascii.a2b_base64(text) for machine, text in bundle["filters"].items()}
    if filters and not supervisor.try_once(bundle["limits"], filters):
        os._exit(1)
    if bundle["isolation"] == "container":
        _serve_once(control, child, bundle["limits"])
    os.dup2(null, 2)  # until here a failure to load is told to the operator
    gc.collect()
    gc.freeze()  # a collection in a child would otherwise copy every page that is shared with it now
    control.send(READY)
    while True:  # until the warden has closed its end, which ends the next line that writes there
        pid = os.fork()
        if pid == 0:
            _supervise(control, child, bundle["limits"], filters)
        control.send(STATUS.pack(pid, STARTED))
        control.send(STATUS.pack(pid, _await_end(pid)))
        os.waitpid(pid, 0)


def _serve_once(control: socket.socket, child: ModuleType, limits: dict[str, int]) -> NoReturn:
    """This very process becomes the call's, and is as ready for it as it can be before there is one."""
    _settle(limits)
    os.dup2(0, 2)  # until here a failure to load is told to the operator
    control.send(READY)
    received = receive(control)
    if received is None:
        os._exit(0)
    control.close()
    _run(child, received[0])


def _await_end(pid: int) -> int:
    """The wait status of a child, left unreaped: should this process be killed before it has told the status, the
    warden inherits the child and still learns it."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    return ended.si_status << 8 if ended.si_code == os.CLD_EXITED else ended.si_status


def load(bundle: dict[str, Any]) -> ModuleType:
    """The child's program, with what every call needs already imported. Returns its module."""
    child, top = sys.modules[__name__], sys.modules["toolcage"]
    for name in bundle["child_modules"]:
        child = top.load_module(name)
    for name in bundle["preload"]:
        with contextlib.suppress(ImportError):  # an image without it: the call itself will say so
            importlib.import_module(name)
    child.preload(bundle["tool_modules"], bundle["import_first"], top.code_of)
    return child


def receive(control: socket.socket) -> tuple[list[int], list[int]] | None:
    """The descriptors of the next call and the ports of its portals; None when the warden sends none any more."""
    try:
        message, ancillary, _, _ = control.recvmsg(1 + 2 * wire.MAX_PORTALS, socket.CMSG_SPACE(6 * 4))
    except OSError:
        return None
    if not message:
        return None
    received = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received.frombytes(content[: len(content) - len(content) % received.itemsize])
    ports = list(struct.unpack(f"!{len(message) // 2}H", message[1:]))
    return (list(received), ports) if len(received) in (4, 5, 6) else None


def _supervise(
    control: socket.socket, child: ModuleType, limits: dict[str, int], filters: dict[str, bytes]
) -> None:
    """In the fork, for `namespace` isolation: one process more, between this one and the tool. Never returns."""

    def become_child(descriptors: socket.socket) -> None:
        control.close()
        _settle(limits)
        namespaces.lock_down(filters)
        received = receive(descriptors)
        descriptors.close()
        if received is not None:
            _run(child, received[0])

    try:
        supervisor.supervise(become_child, lambda: receive(control), limits)
    finally:
        os._exit(1)


def _run(child: ModuleType, descriptors: list[int]) -> NoReturn:
    """Own streams, nothing else open, then the tool."""
    code = 1
    try:
        payload_fd, result_fd = _arrange(descriptors)
        code = child.run(read_payload(payload_fd), result_fd)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException as error:  # noqa: BLE001 - the outermost frame of the child
        os.write(2, f"tool could not be started: {type(error).__name__}\n".encode())
    finally:
        os._exit(code & 0xFF)


def become_a_tool() -> None:
    """The first to be killed when memory runs out, and never in the warden's way."""
    os.setsid()
    prctl(PR_SET_DUMPABLE, 1)
    with open("/proc/self/oom_score_adj", "w") as handle:
        handle.write("1000")
    os.nice(5)  # the warden must stay responsive beside a busy tool


def _settle(limits: dict[str, int]) -> None:
    """What a call's process needs that does not depend on the call."""
    become_a_tool()
    limit_files(limits)
    os.chdir("/workspace")


def _arrange(descriptors: list[int]) -> tuple[int, int]:
    payload, stdout, stderr, result = (os.dup2(fd, 100 + place) for place, fd in enumerate(descriptors))
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    payload, result = os.dup2(payload, 3), os.dup2(result, 4)
    os.closerange(5, 4096)
    os.set_inheritable(3, False)
    os.set_inheritable(4, False)
    return payload, result


def limit_files(limits: dict[str, int]) -> None:
    """No core dumps, and no file larger than all that may be written."""
    for name, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, limits["file_bytes"])):
        resource.setrlimit(name, (value, value))


def read_payload(descriptor: int) -> dict[str, object]:
    """The call: a length, a JSON document, then the bytes of each attached file, written to the workspace here."""
    with os.fdopen(descriptor, "rb") as stream:
        (length,) = struct.unpack("!I", stream.read(4))
        payload: dict[str, object] = json.loads(stream.read(length))
        for entry in payload.pop("files", []):  # type: ignore[attr-defined]
            _write_file(entry["name"], stream.read(entry["size"]))
    return payload


def _write_file(relative: str, content: bytes) -> None:
    name = os.path.join(supervisor.WORKSPACE, relative)
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "wb") as handle:
        handle.write(content)
    os.utime(name, ns=(0, 0))  # collect.ATTACHED_MTIME_NS: an unchanged input is not an artifact
