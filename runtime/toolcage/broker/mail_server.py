"""Where a mailbox's server is, and a connection to it that is encrypted before anything of worth is said.

With `starttls` the server is spoken to in the clear only up to its "go ahead", which is read byte by byte: whatever
somebody puts behind it stays in the socket, where the handshake trips over it, and is never taken for an answer that
came encrypted (the STARTTLS injections, CVE-2011-0411 and its kin). `none` reaches private addresses alone.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from toolcage.broker.dial import Resolve, Upstream, UpstreamStream, reach, secure, translated, wrap
from toolcage.broker.stream import Denied
from toolcage.secret_reference import SecretRef

MailTls: TypeAlias = Literal["implicit", "starttls", "none"]
LONGEST: Final = 2048
MOST_LINES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """One server and who logs in. `tls` says when encryption begins; it alone counts, not `upstream.tls`."""

    upstream: Upstream
    tls: MailTls
    user: str | None = None
    password: SecretRef | None = None

    @property
    def place(self) -> str:
        """Where it is, for the audit."""
        return f"{self.upstream.host}:{self.upstream.port}"


class ClearLines:
    """What is said before TLS begins."""

    def __init__(self, connected: socket.socket, server: MailServer) -> None:
        self._socket = connected
        self._server = server

    async def read(self) -> bytes:
        """The next line, without its end. Raises Denied, OSError; the caller bounds the time."""
        line = bytearray()
        while not line.endswith(b"\n"):
            if len(line) >= LONGEST:
                raise self.unreadable()
            piece = await asyncio.get_running_loop().sock_recv(self._socket, 1)
            if not piece:
                raise self.unreadable()
            line += piece
        return bytes(line).rstrip(b"\r\n")

    async def send(self, line: bytes) -> None:
        """Sends one line."""
        await asyncio.get_running_loop().sock_sendall(self._socket, line + b"\r\n")

    def unreadable(self) -> Denied:
        """The server does not speak its protocol."""
        return Denied("egress.protocol", "the mail server said something unreadable", self._server.place)

    def clear(self) -> Denied:
        """The server does not begin TLS."""
        return Denied("egress.tls", "the mail server does not encrypt", f"{self._server.place}: no STARTTLS")


AskTls: TypeAlias = Callable[[ClearLines], Awaitable[None]]
"""Reads the greeting and asks the server to begin TLS, in the protocol's words. Raises Denied."""


async def connect(server: MailServer, *, ask_tls: AskTls, connect_s: float, resolve: Resolve) -> UpstreamStream:
    """A connection, encrypted as `server` says. After STARTTLS the greeting has been read. Raises Denied."""
    upstream = replace(server.upstream, tls=server.tls != "none")
    with translated(upstream, connect_s):
        async with asyncio.timeout(connect_s):
            reached = await reach(upstream, resolve=resolve)
            if server.tls == "none":
                return await wrap(reached)
            if server.tls == "starttls":
                try:
                    await ask_tls(ClearLines(reached.socket, server))
                except BaseException:
                    reached.socket.close()
                    raise
            return await secure(reached, upstream)
