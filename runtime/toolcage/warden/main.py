"""Where a cage's first process begins: the zygote is forked before anything was received, then the warden serves.

With `session` isolation it is the interpreter that is forked; the two modules of that mode are sent to such cages only.

The bootstrap calls `main` with what the host sent ahead of the first frame. PID 1 is not dumpable and has one signal
handler, which does nothing but wake the loop: so it cannot be read, traced or signalled from inside.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import Any

from toolcage.warden import zygote
from toolcage.warden.init import Warden
from toolcage.warden.serial import SerialWarden


def main(bundle: dict[str, Any]) -> None:
    """Never returns."""
    zygote.prctl(zygote.PR_SET_DUMPABLE, 0)
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
    kind = SerialWarden if bundle["isolation"] == "namespace" else Warden
    kind(ours, readable, float(bundle["lease_s"])).serve()
