"""An HTTPS server of few words: what it answers is set by a test, and it keeps what it was asked, byte by byte."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable

from servers.authority import Authority

Answer = Callable[[socket.socket, bytes], None]


def plain(body: bytes, status: str = "200 OK", *headers: str) -> Answer:
    """Answers a request with a body and its length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]

    def answer(connection: socket.socket, _: bytes) -> None:
        connection.sendall("\r\n".join(lines).encode("latin-1") + body)

    return answer


def raw(*pieces: bytes) -> Answer:
    """Answers with these bytes, each sent on its own, and ends the connection."""

    def answer(connection: socket.socket, _: bytes) -> None:
        for piece in pieces:
            connection.sendall(piece)
        raise EOFError

    return answer


class HttpServer:
    """Listens on loopback until `stop`. `asked` holds each request, head and body; `connections` counts."""

    def __init__(self, authority: Authority | None, name: str = "localhost") -> None:
        self.answer: Answer = plain(b"fine")
        self.asked: list[bytes] = []
        self.connections = 0
        self._context: ssl.SSLContext | None = None
        if authority is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate = authority.issue(f"http-{name}", name)
            self._context.load_cert_chain(certificate.chain, certificate.key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(accepted)
            thread = threading.Thread(target=self._one, args=(accepted,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _one(self, accepted: socket.socket) -> None:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = accepted
        try:
            if self._context is not None:
                connection = self._context.wrap_socket(accepted, server_side=True)
            while request := _request(connection):
                self.asked.append(request)
                self.answer(connection, request)
        except (OSError, EOFError):
            pass
        finally:
            self._open.discard(accepted)
            connection.close()


def _request(connection: socket.socket) -> bytes:
    """A head and the body that it announces; b"" at the end. Raises EOFError in the middle of a body."""
    read = b""
    while b"\r\n\r\n" not in read:
        piece = connection.recv(65536)
        if not piece:
            return b""
        read += piece
    head, _, body = read.partition(b"\r\n\r\n")
    lower = head.lower()
    length = next((int(line[15:]) for line in lower.split(b"\r\n") if line.startswith(b"content-length:")), 0)
    chunked = b"transfer-encoding: chunked" in lower
    while len(body) < length or (chunked and not body.endswith(b"0\r\n\r\n")):
        piece = connection.recv(65536)
        if not piece:
            raise EOFError
        body += piece
    return head + b"\r\n\r\n" + body
