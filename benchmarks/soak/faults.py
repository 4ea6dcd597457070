"""Faults to throw: an engine of one's own that can be stopped, a wire to it that can be cut or slowed, a full disk.

Nothing here touches the engine that others use: `OwnEngine` is a second dockerd with its own data, runtime folder,
socket, containerd and network namespace (without the last, a dockerd that is told to have no bridge would remove the
other engine's). It needs root; where it does not come up, the wire in front of the usual engine is all that is cut, and
the soak's result says so.
"""

from __future__ import annotations

import collections
import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import docker

START_S: Final = 60.0


class OwnEngine:
    """A dockerd of our own below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.socket = folder / "engine.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, tries: int = 4) -> None:
        """Raises RuntimeError when it does not answer, however often it is started: one that follows on a killed one
        may find that one's containerd about to end."""
        for _ in range(tries):
            if self._started():
                return
            self.stop(signal.SIGKILL)
        raise RuntimeError(f"an engine of our own did not come up; see {self._folder}/engine.log")

    def _started(self) -> bool:
        (self._folder / "engine.pid").unlink(missing_ok=True)
        with (self._folder / "engine.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["unshare", "--net", "--", "dockerd", f"--data-root={self._folder}/data",
                 f"--exec-root={self._folder}/exec", f"--host=unix://{self.socket}",
                 f"--pidfile={self._folder}/engine.pid", "--bridge=none", "--iptables=false", "--ip-masq=false"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + START_S
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(Exception):  # not there yet, in one of many ways
                client = self.client()
                client.ping()
                client.close()
                return True
            time.sleep(0.1)
        return False

    def remove(self) -> None:
        """Ends it, whatever of it a SIGKILL left behind, and its mounts: nothing below the folder is in use then."""
        self.stop()
        for pid in _processes_with(str(self._folder)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
        for mount in sorted((item for item in mounts if item.startswith(str(self._folder))), reverse=True):
            subprocess.run(["umount", "-l", mount], check=False)

    def client(self) -> docker.DockerClient:
        return docker.DockerClient(base_url=f"unix://{self.socket}", timeout=30)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Ends it: as an administrator would, or by SIGKILL as a crash does."""
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(30)
        self._process = None

    def load(self, image: str, source: docker.DockerClient) -> None:
        """Copies an image from another engine."""
        client = self.client()
        client.images.load(b"".join(source.images.get(image).save()))
        client.close()


def _processes_with(text: str) -> Iterator[int]:
    """Processes whose command line names our own engine's folder, which has a random name."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(folder.name) != os.getpid() and text.encode() in (folder / "cmdline").read_bytes():
                yield int(folder.name)


class Wire:
    """A unix socket in front of an engine's. It can be cut, opened again, and made slow. `cut_after` is what it is cut
    behind, once."""

    def __init__(self, path: Path, target: Path) -> None:
        self.address = f"unix://{path}"
        self.delay_s = 0.0
        self.cut_after: bytes | None = None
        self._path, self._target = path, target
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.open()

    def open(self) -> None:
        if self._listener is not None:
            return
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen(128)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Ends every connection, and no new one is taken."""
        if self._listener is None:
            return
        with self._lock:
            listener, self._listener = self._listener, None
            sockets = list(self._sockets)
        self._path.unlink()
        _shut(listener)
        listener.close()
        for item in sockets:
            _shut(item)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._target))
            except OSError:
                client.close()
                server.close()
                continue
            with self._lock:
                if self._listener is not listener:  # cut since it was taken
                    client.close()
                    server.close()
                    return
                self._sockets |= {client, server}
            threading.Thread(target=self._carry, args=(client, server), daemon=True).start()

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
        back.start()
        self._pump(client, server)
        back.join()
        with self._lock:
            self._sockets -= {client, server}
        client.close()
        server.close()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while piece := source.recv(65536):
                if self.delay_s:
                    time.sleep(self.delay_s)
                sink.sendall(piece)
                if self.cut_after is not None and self.cut_after in piece:
                    self.cut_after = None
                    self.cut()
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            _shut(source)
            _shut(sink)


def _shut(item: socket.socket) -> None:
    with contextlib.suppress(OSError):
        item.shutdown(socket.SHUT_RDWR)


class SmallDisk:
    """A tmpfs of a few megabytes for the runtimes' state, which can be filled. Needs root."""

    def __init__(self, folder: Path, size: str = "48m") -> None:
        self.folder = folder
        folder.mkdir(mode=0o700)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(folder)], capture_output=True
        )
        self.mounted = mounted.returncode == 0

    def fill(self) -> None:
        with contextlib.suppress(OSError), (self.folder / "filler").open("wb", buffering=0) as handle:
            while handle.write(bytes(4096)):
                pass

    def free(self) -> None:
        (self.folder / "filler").unlink(missing_ok=True)

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", str(self.folder)], check=False)


def open_descriptors() -> dict[str, int]:
    """This process's descriptors by what they are: `socket`, `pipe`, `anon_inode`, else `file`."""
    kinds: collections.Counter[str] = collections.Counter()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the folder's own
            target, colon, _ = os.readlink(f"/proc/self/fd/{name}").partition(":")
            kinds[target if colon else "file"] += 1
    return dict(kinds)
