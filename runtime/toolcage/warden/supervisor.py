"""One call in `namespace` isolation, seen from just outside it.

Forked from the zygote for this call alone, before there is one: it enters new namespaces and forks the call's first
process into them, which makes itself ready and waits. It stays outside the process namespace, so the tool can neither
see nor signal it. Then it passes the call's descriptors on. When that process ends, the kernel has killed everything
that the call started; then the files are collected (the mounts are this process's too) and reported to the warden over
a pipe of its own. It never runs tool code and never reads the payload. The listeners of the call's portals are its own,
in the call's network namespace: while the program runs it carries their bytes.
"""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable
from typing import Any

from toolcage.cage import wire
from toolcage.warden import collect, namespaces
from toolcage.warden.portals import Portals

WORKSPACE = "/workspace"
READ_BYTES = 64 * 1024


def supervise(
    become_child: Callable[[socket.socket], Any],
    take: Callable[[], tuple[list[int], list[int]] | None],
    limits: dict[str, int],
) -> None:
    """Runs one call. `become_child` is called in its first process, with where its descriptors will come from, and does
    not return. `take` waits for the call: its descriptors (the program's four, the report, and what brings the host's
    frames for portals) and the portals' ports. Never returns itself."""
    namespaces.enter()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        namespaces.furnish(limits)
        become_child(theirs)
        os._exit(1)
    theirs.close()
    taken = take()
    if taken is None:
        os._exit(0)
    descriptors, ports = taken
    others, report, downlink = descriptors[:4], descriptors[4], next(iter(descriptors[5:]), None)
    portals = Portals(ports, lambda encoded: _write(report, encoded), lambda: False) if ports else None
    socket.send_fds(ours, [b"f"], others)
    ours.close()
    for descriptor in others:
        os.close(descriptor)
    _write(report, wire.encode_control(op="started", pid=pid, supervisor=os.getpid()))
    if portals is not None and downlink is not None:
        _carry(portals, downlink, pid)
        portals.close()
    _, status, used = os.wait4(pid, 0)
    _write(report, wire.encode_control(op="ended"))
    found, sent = collect.send_produced(WORKSPACE, lambda encoded: _write(report, encoded))
    peak = used.ru_maxrss * 1024
    _write(report, wire.encode_control(op="collected", status=status, found=found, sent=sent, peak=peak))
    os._exit(0)


def _carry(portals: Portals, downlink: int, pid: int) -> None:
    """Until the program has ended."""
    decoder = wire.Decoder()
    with selectors.DefaultSelector() as selector:
        ended = os.pidfd_open(pid)
        for descriptor in (ended, downlink, portals.fileno()):
            selector.register(descriptor, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in selector.select()}
            if ended in ready:
                return
            if downlink in ready:
                piece = os.read(downlink, READ_BYTES)
                if not piece:
                    return
                for frame in decoder.feed(piece):
                    portals.take(frame)
            if portals.fileno() in ready:
                portals.turn()


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
