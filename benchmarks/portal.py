"""What a portal adds to a request, and what 500 calls through portals leave behind.

The same client code asks the same HTTPS server on loopback: directly from this process, and from a cage through its
`http` portal, in turns. A request on its own connection pays the server's TLS handshake either way (in the cage the
broker does it); one on a kept connection pays only the way there and back. Then 500 calls in a row, each with a
connection: descriptors, threads and tasks of this process before and after.
"""

from __future__ import annotations

import asyncio
import gc
import http.client
import http.server
import os
import shutil
import ssl
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trustme

from benchmarks.portal_tool import AskRepeatedly, timed
from toolcage import PoolTerms, Runtime, Session
from toolcage.state import default_state_dir

ROUNDS = 10
REQUESTS = 20
LARGE = 4 * 1024 * 1024
CALLS = 500
_RESOURCES = """
version: 1
endpoints:
  local: {{url: "https://localhost:{port}/", allow_private: true, ca: ca.pem}}
"""
_POLICY = """
version: 1
role: measure
tools:
  ask_repeatedly:
    resources: {endpoint: [local]}
    allow: [{}]
    output: {max_bytes: 1MiB}
"""


def run() -> dict[str, Any]:
    """Milliseconds per request (p50) by way and kind of connection, what the portal adds, MiB/s, and what is left."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _server(Path(folder)) as port,
        _runtime(Path(folder), port) as runtime,
        runtime.session() as session,
    ):
        figures = _latency(session, _direct(Path(folder), port))
        return {**figures, "after 500 calls": _left(session)}


def _latency(session: Session, direct: Callable[[], http.client.HTTPConnection]) -> dict[str, Any]:
    times: dict[tuple[str, bool], list[float]] = {}
    for _ in range(ROUNDS + 1):
        for kept in (False, True):
            times.setdefault(("direct", kept), []).extend(timed(direct, "/small", REQUESTS, kept)["ms"][1:])
            times.setdefault(("portal", kept), []).extend(_in_cage(session, "/small", REQUESTS, kept)["ms"][1:])
    medians = {key: statistics.median(values[REQUESTS:]) for key, values in times.items()}
    large = {"direct": timed(direct, "/large", 4, True)["ms"], "portal": _in_cage(session, "/large", 4, True)["ms"]}
    return {
        "unit": "ms per request, p50",
        "rounds": ROUNDS,
        **{f"{way}, {'kept' if kept else 'own'} connection": round(value, 2) for (way, kept), value in medians.items()},
        "added, own connection": round(medians["portal", False] - medians["direct", False], 2),
        "added, kept connection": round(medians["portal", True] - medians["direct", True], 2),
        "MiB/s": {way: round(LARGE / 2**20 / (statistics.median(ms) / 1000), 1) for way, ms in large.items()},
    }


def _left(session: Session) -> dict[str, Any]:
    _in_cage(session, "/small", 1, False)
    before = _counted()
    started = time.monotonic()
    for _ in range(CALLS):
        _in_cage(session, "/small", 1, False)
    seconds = time.monotonic() - started
    end = time.monotonic() + 20
    while _counted() != before and time.monotonic() < end:
        time.sleep(0.05)
    after = _counted()
    return {"calls/s": round(CALLS / seconds, 1), **{name: after[name] - before[name] for name in before}}


def _counted() -> dict[str, int]:
    gc.collect()
    tasks = sum(isinstance(item, asyncio.Task) and not item.done() for item in gc.get_objects())
    return {"descriptors": len(os.listdir("/proc/self/fd")), "threads": threading.active_count(), "tasks": tasks}


def _in_cage(session: Session, path: str, requests: int, kept: bool) -> dict[str, Any]:
    result = session.call("ask_repeatedly", {"path": path, "requests": requests, "kept": kept})
    if not result.success:
        raise RuntimeError(f"the call failed: {result!r}")
    return dict(result.data)


def _direct(folder: Path, port: int) -> Callable[[], http.client.HTTPConnection]:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    return lambda: http.client.HTTPSConnection("localhost", port, context=context)


@contextmanager
def _runtime(folder: Path, port: int) -> Iterator[Runtime]:
    (folder / "state").mkdir(mode=0o700)
    shutil.copy(default_state_dir() / "images.lock", folder / "state")
    (folder / "policy.yaml").write_text(_POLICY)
    (folder / "resources.yaml").write_text(_RESOURCES.format(port=port))
    with Runtime.from_files(
        folder / "policy.yaml", resources=folder / "resources.yaml", tools=[AskRepeatedly()],
        state_dir=folder / "state", pool=PoolTerms(min_idle=1),
    ) as runtime:  # fmt: skip
        yield runtime


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        body = b"x" * (LARGE if self.path == "/large" else 200)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def _server(folder: Path) -> Iterator[int]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
