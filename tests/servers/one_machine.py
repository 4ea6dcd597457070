"""A runtime in namespaces of its own where every address of the Internet is this machine, and every name is known.

`python -m servers.one_machine FOLDER` reads a job from stdin and prints what happened. Whatever is connected, public,
private or metadata, by IPv4 or IPv6, reaches a listener here that notes which address it was: nothing can be reached
without being seen. Run it by `unshare --net --mount`, as root.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from servers.everywhere import TryNames, TryUrls
from toolcage import PoolTerms, Runtime

ENDPOINT = ("127.0.0.1", 8300)


class Catcher:
    """Listens on ports of every address there is; `reached` holds (address, port) of each connection."""

    def __init__(self, ports: list[int]) -> None:
        self.reached: list[tuple[str, int]] = []
        self._listeners = selectors.DefaultSelector()
        for port in ports:
            listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=200)
            self._listeners.register(listener, selectors.EVENT_READ)
        threading.Thread(target=self._catch, daemon=True).start()

    def _catch(self) -> None:
        while True:
            for key, _ in self._listeners.select():
                accepted, _ = key.fileobj.accept()  # type: ignore[union-attr]
                with accepted:
                    address, port = accepted.getsockname()[:2]
                    self.reached.append((address.removeprefix("::ffff:"), port))


class Endpoint:
    """The one endpoint that is granted: redirects `/v1/go/N` to the Nth URL, and keeps the head of each request."""

    def __init__(self, urls: list[str]) -> None:
        self.heads: list[str] = []
        self._urls = urls
        self._listener = socket.create_server(ENDPOINT, backlog=200)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            accepted, _ = self._listener.accept()
            with accepted, contextlib.suppress(OSError):
                head = accepted.recv(65536).decode("latin-1")
                self.heads.append(head)
                path = head.split(" ")[1]
                if path.startswith("/v1/go/"):
                    there = self._urls[int(path.removeprefix("/v1/go/"))].encode("utf-8", "replace")
                    accepted.sendall(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + there + b"\r\n\r\n")
                else:
                    accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


def prepare(folder: Path) -> None:
    """Every address is this machine's; names are those of the folder's hosts file."""
    subprocess.run(["mount", "--bind", str(folder / "hosts"), "/etc/hosts"], check=True)
    for command in ("link set lo up", "route add local 0.0.0.0/0 dev lo", "-6 route add local ::/0 dev lo"):
        subprocess.run(["ip", *command.split()], check=True)


def main(folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    """`urls`: what is tried; `calls`: what is called besides; `ports`: what is listened on."""
    prepare(folder)
    catcher, endpoint = Catcher(job["ports"]), Endpoint(job["urls"])
    runtime = Runtime.from_files(
        folder / "role.yaml", resources=folder / "resources.yaml", state_dir=folder / "state",
        pool=PoolTerms(min_idle=1), tools=[TryUrls(), TryNames()],
    )  # fmt: skip
    with runtime, runtime.session() as session:
        told = [session.call(name, {"urls": urls}).to_dict() for name, urls in job["tried"]]
        called = [session.call("call_api", arguments).to_dict() for arguments in job["calls"]]
    seen = len(catcher.reached)
    with socket.create_connection(("169.254.169.254", 80), timeout=5):
        pass  # the listeners do see what is reached
    return {
        "told": told, "called": called, "heads": endpoint.heads, "reached": catcher.reached[:seen],
        "would_be_seen": _eventually(lambda: catcher.reached[seen:] == [("169.254.169.254", 80)]),
    }  # fmt: skip


def _eventually(holds: Any) -> bool:
    ended = threading.Event()
    for _ in range(500):
        if holds():
            return True
        ended.wait(0.02)
    return False


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), json.load(sys.stdin))))
