"""Where a cage's first process begins: the zygote is forked before anything was received, then the warden serves.

In a cage that is used once, the zygote becomes the call's own process. With `session` isolation it is the interpreter
that is forked; the two modules of that mode are sent to such cages only.

The bootstrap calls `main` with what the host sent ahead of the first frame. PID 1 is not dumpable and has one signal
handler, which does nothing but wake the loop: so it cannot be read, traced or signalled from inside.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
import sys
from typing import Any

from toolcage.cage import wire
from toolcage.warden import zygote
from toolcage.warden.init import Warden
from toolcage.warden.serial import SerialWarden


def main(bundle: dict[str, Any]) -> None:
    """Never returns."""
    zygote.prctl(zygote.PR_SET_DUMPABLE, 0)
    if bundle["tell"]:
        _tell_compiled([name for name, _ in bundle["pieces"]])
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # PID 1 without a handler cannot be signalled from inside
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    lasting = bundle["isolation"] == "session"
    pid = os.fork()
    if pid == 0:
        ours.close()
        if lasting:
            sys.modules["toolcage.warden.interpreter"].main(theirs, bundle)
        zygote.main(theirs, bundle)
    theirs.close()
    readable, writable = os.pipe()
    for descriptor in (readable, writable):
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    if lasting:
        warden = sys.modules["toolcage.warden.lasting"]
        warden.SessionWarden(ours, readable, float(bundle["lease_s"]), pid).serve()
    if bundle["isolation"] == "namespace":
        SerialWarden(ours, readable, float(bundle["lease_s"])).serve()
    Warden(ours, readable, float(bundle["lease_s"]), program=pid).serve()


def _tell_compiled(names: list[str]) -> None:
    """Our own modules as this Python compiles them, for the host to send to the next cages of the image."""
    code = [marshal.dumps(sys.modules["toolcage"].code_of(name)) for name in names]
    told = wire.encode_control(op="compiled", sizes=[len(piece) for piece in code])
    view = memoryview(told + wire.encode_stream(wire.CODE, b"".join(code)))
    while view:
        view = view[os.write(1, view) :]
