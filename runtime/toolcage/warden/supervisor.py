"""One call in `namespace` isolation, seen from just outside it.

Forked from the zygote for this call alone. It enters new namespaces, forks the call's first process into them and stays
outside the process namespace, so the tool can neither see nor signal it. When that process ends, the kernel has killed
everything that the call started; then the files are collected (the mounts are this process's too) and reported to the
warden over a pipe of its own. It never runs tool code and never reads the payload.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from toolcage.cage import wire
from toolcage.warden import collect, namespaces

WORKSPACE = "/workspace"


def supervise(become_child: Callable[[], Any], report: int, others: list[int], limits: dict[str, int]) -> None:
    """Runs the call. `become_child` is called in its first process and does not return. Never returns itself."""
    namespaces.enter()
    pid = os.fork()
    if pid == 0:
        os.close(report)
        namespaces.furnish(limits)
        become_child()
        os._exit(1)
    for descriptor in others:
        os.close(descriptor)
    _write(report, wire.encode_control(op="started", pid=pid))
    _, status, used = os.wait4(pid, 0)
    _write(report, wire.encode_control(op="ended"))
    found, sent = collect.send_produced(WORKSPACE, lambda encoded: _write(report, encoded))
    peak = used.ru_maxrss * 1024
    _write(report, wire.encode_control(op="collected", status=status, found=found, sent=sent, peak=peak))
    os._exit(0)


def try_once(limits: dict[str, int], filters: dict[str, bytes]) -> bool:
    """Whether this host gives every step of a call's isolation, found by taking them all with no tool behind."""
    tried = os.fork()
    if tried == 0:
        try:
            namespaces.enter()
            inner = os.fork()
            if inner == 0:
                namespaces.furnish(limits)
                namespaces.lock_down(filters)
                os._exit(0)
            os._exit(os.waitpid(inner, 0)[1] != 0)
        except OSError as error:
            os.write(2, f"{wire.NO_NAMESPACES}: {error}\n".encode())
            os._exit(1)
    return os.waitpid(tried, 0)[1] == 0


def _write(descriptor: int, encoded: bytes) -> None:
    view = memoryview(encoded)
    while view:
        view = view[os.write(descriptor, view) :]
