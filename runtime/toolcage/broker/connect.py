"""The `connect` portal: an HTTP CONNECT proxy that leads to the granted hosts and ports and nowhere else.

For programs that bring their own TLS. The name is resolved here, once, its address judged and pinned; inside the cage
there is no resolver. TLS that begins with the first byte must ask for that same name (`client_hello`): at one address
live many. No credentials, no plain HTTP through it, no address in place of a name, no port but the granted.
What is refused is an answer with a JSON body that names the code.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from toolcage.broker.answers import answer, status_of
from toolcage.broker.buffered import BufferedReader, Ended
from toolcage.broker.client_hello import NeedsMore, check_hello
from toolcage.broker.request_head import RequestHead, bad, read_head
from toolcage.broker.splice import splice
from toolcage.broker.stream import ClientStream, Connection, Denied, PortalTerms
from toolcage.facts.host import read_host

_NAME: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PIECE: Final = 4096
_MADE: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Server(ClientStream, Protocol):
    """The far end of a tunnel."""

    @property
    def address(self) -> str:
        """The pinned address with its port."""
        ...


DialTo: TypeAlias = "Callable[[str, int], Awaitable[Server]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectConfig:
    """`granted` holds (host, port); a host is a name in lower case, or `*.` and a domain for every host below it."""

    granted: frozenset[tuple[str, int]]


async def serve(
    client: ClientStream, *, config: ConnectConfig, dial: DialTo, terms: PortalTerms, note: Connection
) -> None:
    """Serves one connection. Raises Denied, when the client has been told."""
    reader = BufferedReader(client, count=lambda size: note.count_up(size, terms), idle_s=terms.idle_s)
    try:
        async with asyncio.timeout(terms.idle_s):
            head = await read_head(reader)
        if head is None:
            return
        host, port = _granted(head, config, note)
        server = await dial(host, port)
    except Denied as denied:
        await _tell(client, denied, terms)
        raise
    except Ended:
        return
    try:
        note.address = server.address
        await client.write(_MADE)
        early = await reader.some() if reader.pending else b""
        note.bytes_up -= len(early)  # it is counted again where it goes on
        await splice(_Judged(client, early, host), server, terms=terms, note=note)
    finally:
        server.abort()


class _Judged:
    """The cage's end of a tunnel. Nothing that it sends is passed on before its first message is known to be for
    `host`, where it is TLS."""

    def __init__(self, client: ClientStream, early: bytes, host: str) -> None:
        self._client = client
        self._held = bytearray(early)
        self._host = host
        self._judged = False

    async def read(self, n: int) -> bytes:
        """As every stream's. Raises Denied."""
        while not self._judged:
            try:
                check_hello(bytes(self._held), self._host)
            except NeedsMore:
                piece = await self._client.read(_PIECE)
                if not piece:
                    return b""  # half a message leads nowhere
                self._held += piece
            else:
                self._judged = True
        if not self._held:
            return await self._client.read(n)
        taken = bytes(self._held[:n])
        del self._held[:n]
        return taken

    async def write(self, data: bytes) -> None:
        await self._client.write(data)

    async def end(self) -> None:
        await self._client.end()

    def abort(self) -> None:
        self._client.abort()


def _granted(head: RequestHead, config: ConnectConfig, note: Connection) -> tuple[str, int]:
    """Where the tunnel leads. Raises Denied."""
    note.target = f"{head.method} {head.target[:300]}"
    if head.method != "CONNECT":
        text = (
            "this proxy makes tunnels for https only (CONNECT host:port); plain http:// addresses cannot be reached"
        )
        raise Denied("egress.plain_http", text, f"{head.method} {head.target[:300]}")
    if head.has_body:
        raise bad("has a body, which CONNECT cannot have")
    name, colon, digits = head.target.rpartition(":")
    port = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 5 else 0
    host = read_host(name) if colon else None
    named = host is not None and host.ip is None and host.spelled and _NAME.fullmatch(host.name) is not None
    if host is None or not named or not 0 < port < 65536:
        raise Denied("egress.host_not_granted", "name a granted host and port, such as api.example.com:443",
                     f"CONNECT {head.target[:300]}")  # fmt: skip
    if not any(port == granted and _is(host.name, wanted) for wanted, granted in config.granted):
        text = f"{host.name}:{port} is not among the hosts and ports that this tool may reach"
        raise Denied("egress.host_not_granted", text, f"CONNECT {head.target[:300]}")
    return host.name, port


def _is(name: str, wanted: str) -> bool:
    return name.endswith(wanted[1:]) if wanted.startswith("*.") else name == wanted


async def _tell(client: ClientStream, denied: Denied, terms: PortalTerms) -> None:
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(terms.idle_s):
            await client.write(answer(denied, status_of(denied)))
            await client.end()
