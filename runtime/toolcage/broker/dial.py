"""Opens a connection to what the operator named: resolved once, judged, and made to exactly the judged address.

The name is asked for once per connection, every answer is judged (`addresses`), and the socket goes to an address,
never to a name, so nothing can change in between. TLS is verified against the name, 1.2 at least, by the system's
authorities or by the operator's file alone. A connection in the clear leaves this machine and its private networks only
where the caller says so. Everything together is bounded by one deadline. What fails is `Denied` with a text for the
model that names no address, and the whole story for the operator.

Deliberately absent: proxies from the environment, key logs, client certificates, retries.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final, TypeAlias

from toolcage.broker.addresses import literal, on_site, permitted
from toolcage.broker.stream import Denied
from toolcage.facts.ip import IP

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""The numeric addresses of a name, in the order in which to try them. Raises OSError."""

STAGGER_S: Final = 0.3
"""The next address is tried when the one before has not answered for so long (RFC 8305 says 0.25 s)."""
CLOSE_S: Final = 1.0
_BUFFER: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Where a portal leads. `tls` says whether TLS begins with the connection; who begins it later calls `secure`.

    `clear_to_public`: without TLS, a public address may be reached too; for tunnels whose ends encrypt by themselves.
    """

    host: str
    port: int
    tls: bool = True
    ca: Path | None = None
    allow_private: bool = False
    clear_to_public: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A connected socket, and the address that it was connected to."""

    socket: socket.socket
    address: str


class UpstreamStream:
    """The server's end of a connection, in the form of `ClientStream`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str) -> None:
        self._reader = reader
        self._writer = writer
        self.address = address

    async def read(self, n: int) -> bytes:
        """At least one byte and at most `n`; b"" at the end. A connection that breaks is an end too."""
        try:
            return await self._reader.read(n)
        except (OSError, ssl.SSLError):
            return b""

    async def write(self, data: bytes) -> None:
        """Sends `data`; waits while the server does not read. Raises ConnectionError when it is gone."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            raise
        except (OSError, ssl.SSLError) as cause:
            raise ConnectionError(str(cause)) from None

    async def end(self) -> None:
        """Says that nothing more will be sent. TLS has no half close: there it does nothing."""
        if self._writer.can_write_eof() and not self._writer.is_closing():
            with contextlib.suppress(OSError):
                self._writer.write_eof()

    def ssl_object(self) -> ssl.SSLObject | None:
        """The TLS session, to bind a login to it."""
        found: ssl.SSLObject | None = self._writer.get_extra_info("ssl_object")
        return found

    async def close(self) -> None:
        """Ends the connection in good order where the server plays along within a moment, and at once otherwise."""
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._writer.wait_closed()
        except (OSError, ssl.SSLError):
            return
        finally:
            self.abort()

    def abort(self) -> None:
        """Ends the connection at once."""
        self._writer.transport.abort()


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """The system's resolver: hosts file and DNS as the operator set them up."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(item[4][0]) for item in found]


async def open_stream(upstream: Upstream, *, connect_s: float, resolve: Resolve = system_resolve) -> UpstreamStream:
    """A connection to `upstream`, with TLS where it says so. Raises Denied."""
    with translated(upstream, connect_s):
        async with asyncio.timeout(connect_s):
            reached = await reach(upstream, resolve=resolve)
            return await secure(reached, upstream) if upstream.tls else await wrap(reached)


async def reach(upstream: Upstream, *, resolve: Resolve = system_resolve) -> Reached:
    """A plain connection to one of its permitted addresses. Inside `translated` and a timeout; raises OSError too."""
    host = upstream.host
    found = [host] if literal(host) is not None else await resolve(host, upstream.port)
    addresses = permitted(host, found, allow_private=upstream.allow_private)
    if not upstream.tls and not upstream.clear_to_public and not all(map(on_site, addresses)):
        text = "this place would be reached without encryption over a public network"
        raise Denied("egress.clear", text, f"{host} is at {addresses[0]}: TLS is needed there")
    connected, address = await _first(addresses, upstream.port)
    return Reached(socket=connected, address=socket_text(str(address), upstream.port))


async def secure(reached: Reached, upstream: Upstream) -> UpstreamStream:
    """Begins TLS on the socket, verified against the name. Takes the socket over, also when it fails.

    What the server sent before it, unasked, is read as TLS and breaks the handshake.
    """
    try:
        context = tls_context(upstream.ca)
    except Denied:
        reached.socket.close()
        raise
    try:
        reader, writer = await asyncio.open_connection(
            sock=reached.socket, ssl=context, server_hostname=upstream.host, limit=_BUFFER, ssl_shutdown_timeout=CLOSE_S
        )
    except ConnectionError:
        operator = f"{upstream.host}: the server ended the connection during the TLS handshake"
        raise Denied("egress.tls", "the server of this resource cannot be verified", operator) from None
    return UpstreamStream(reader, writer, reached.address)


async def wrap(reached: Reached) -> UpstreamStream:
    """The socket as a stream, without TLS. Takes the socket over, also when it fails."""
    reader, writer = await asyncio.open_connection(sock=reached.socket, limit=_BUFFER)
    return UpstreamStream(reader, writer, reached.address)


def tls_context(ca: Path | None) -> ssl.SSLContext:
    """A verifying context that trusts the system's authorities, or those in `ca` alone. Raises Denied."""
    try:
        return _context(ca, 0 if ca is None else ca.stat().st_mtime_ns)
    except (OSError, ssl.SSLError) as cause:
        text = "the server of this resource cannot be verified"
        raise Denied("egress.tls", text, f"the authorities in {ca} cannot be read: {cause}") from None


@lru_cache(maxsize=64)
def _context(ca: Path | None, changed_ns: int) -> ssl.SSLContext:
    del changed_ns  # a renewed file is read again
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # not create_default_context: that obeys SSLKEYLOGFILE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cafile=ca)
    return context


def socket_text(host: str, port: int) -> str:
    """`host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def _first(addresses: Sequence[IP], port: int) -> tuple[socket.socket, IP]:
    """The first connection that is made, later ones begun while earlier ones wait. The others are given up."""
    running: dict[asyncio.Task[socket.socket], IP] = {}
    last: OSError = OSError("the name has no address")
    left = list(addresses)
    try:
        while left or running:
            if left:
                address = left.pop(0)
                running[asyncio.create_task(_connect(address, port))] = address
            done, _ = await asyncio.wait(running, timeout=STAGGER_S if left else None,
                                         return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
            for task in done:
                address = running.pop(task)
                cause = task.exception()
                if cause is None:
                    return task.result(), address
                if not isinstance(cause, OSError):
                    raise cause
                last = cause
        raise last
    finally:
        await _give_up(running)


async def _give_up(tasks: dict[asyncio.Task[socket.socket], IP]) -> None:
    for task in tasks:
        task.cancel()
    for made in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(made, socket.socket):
            made.close()


async def _connect(address: IP, port: int) -> socket.socket:
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(made, (str(address), port))
    except BaseException:
        made.close()
        raise
    return made


@contextlib.contextmanager
def translated(upstream: Upstream, connect_s: float) -> Iterator[None]:
    """Turns what goes wrong on the way to `upstream` into Denied."""
    where = socket_text(upstream.host, upstream.port)
    try:
        yield
    except TimeoutError:
        text = "the server of this resource does not answer"
        raise Denied("egress.timeout", text, f"{where} did not answer within {connect_s:g} s") from None
    except socket.gaierror as cause:
        raise Denied("egress.name", "the server's name cannot be found", f"{where}: {cause.strerror}") from None
    except ssl.SSLCertVerificationError as cause:
        text = "the server of this resource cannot be verified"
        raise Denied("egress.tls", text, f"{where}: {cause.verify_message}") from None
    except ssl.SSLError as cause:
        raise Denied("egress.tls", "the server of this resource cannot be verified", f"{where}: {cause}") from None
    except OSError as cause:
        text = "the server of this resource cannot be reached"
        raise Denied("egress.unreachable", text, f"{where}: {cause.strerror or cause}") from None
