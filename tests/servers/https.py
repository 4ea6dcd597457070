"""A small HTTPS server whose answers are a Python function: for interfaces that nobody runs on loopback.

Real sockets, real TLS by the tests' authority. It keeps what it was asked. An answer's body may be an iterator, for a
server that is slow or never ends; a handler that waits does so on `ending`, so that nothing outlives the test.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from servers.authority import Authority


@dataclass(frozen=True)
class Request:
    """What came in. Names of headers are lower case."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Response:
    """What goes out. A body of pieces is sent without a length, until the client is gone."""

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any, status: int = 200, **headers: str) -> Response:
        """JSON."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return cls(status, json.dumps(value).encode(), {"Content-Type": "application/json", **named})


Respond = Callable[[Request], Response]


class HttpsServer:
    """Serves on a loopback port until `stop`. `respond` may be replaced at any time."""

    def __init__(self, respond: Respond, authority: Authority | None) -> None:
        self.respond = respond
        self.requests: list[Request] = []
        self.ending = threading.Event()
        self._server = _Server(self, None if authority is None else _context(authority))
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def origin(self) -> str:
        return f"{'https' if self._server.context else 'http'}://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.ending.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def _context(authority: Authority) -> ssl.SSLContext:
    certificate = authority.issue("https")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    return context


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, owner: HttpsServer, context: ssl.SSLContext | None) -> None:
        self.owner = owner
        self.context = context
        super().__init__(("127.0.0.1", 0), _Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the connection's own thread, so that a client that says nothing holds up nobody."""
        with contextlib.suppress(OSError):  # the client is gone, or trusts somebody else
            if self.context is None:
                super().finish_request(request, client_address)
                return
            with self.context.wrap_socket(request, server_side=True) as wrapped:
                super().finish_request(wrapped, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Quiet: a client that leaves is what tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        asked = Request(
            method=self.command, path=parts.path, query=parse_qs(parts.query, keep_blank_values=True),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(int(self.headers.get("Content-Length") or 0)),
        )  # fmt: skip
        self.server.owner.requests.append(asked)
        self._send(self.server.owner.respond(asked))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve  # noqa: N815

    def _send(self, response: Response) -> None:
        whole = response.body if isinstance(response.body, bytes) else None
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if whole is not None:
            self.send_header("Content-Length", str(len(whole)))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        if whole is not None:
            self.wfile.write(whole)
            return
        for piece in response.body:  # type: ignore[attr-defined]
            self.wfile.write(piece)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""
