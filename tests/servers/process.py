"""A server process that is waited for, cannot outlive the tests, and says why it did not start."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

START_S = 30.0


def free_port() -> int:
    """A loopback port that nobody has now."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def program(*candidates: str) -> str:
    """The first of these programs that is installed; fails with what to do."""
    for name in candidates:
        if found := shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            return found
    raise RuntimeError(f"{candidates[0]} is not installed; run `make test-servers`")


def answers(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def as_user(name: str, command: Sequence[str]) -> list[str]:
    """The command, run as `name` where root runs the tests, and ended by the kernel when its parent ends."""
    setpriv = ["setpriv", "--pdeathsig", "INT"]
    if os.geteuid() == 0 and name != "root":
        setpriv += ["--reuid", name, "--regid", str(pwd.getpwnam(name).pw_gid), "--clear-groups"]
    return [*setpriv, *command]


def own(folder: Path, name: str) -> Path:
    """Gives everything in `folder` to `name` where root runs the tests, and lets that user reach it."""
    if os.geteuid() == 0:
        user = pwd.getpwnam(name)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)
    for parent in folder.parents:
        with suppress(OSError):
            if parent.stat().st_uid == os.geteuid():
                parent.chmod(parent.stat().st_mode | 0o011)
    return folder


class Process:
    """One running server. `stop` returns when it is gone."""

    def __init__(
        self, command: Sequence[str], log: Path, ready: Callable[[], bool], *, stop: signal.Signals = signal.SIGTERM
    ) -> None:
        self._log = log
        self._stop = stop
        with log.open("ab") as file:
            self._popen = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True, cwd="/"
            )
        end = time.monotonic() + START_S
        while not ready():
            if self._popen.poll() is not None or time.monotonic() > end:
                self.stop()
                raise RuntimeError(f"{command[0]} did not start:\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        if self._popen.poll() is None:
            self._popen.send_signal(self._stop)
        try:
            self._popen.wait(10)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait(10)
        with suppress(ProcessLookupError):  # workers that their master left behind
            os.killpg(self._popen.pid, signal.SIGKILL)

    def log(self) -> str:
        """What it has written so far."""
        return self._log.read_text(errors="replace")
