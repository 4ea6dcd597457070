"""Connects to a PostgreSQL server and logs in: TLS first, then the password by SCRAM, md5 or, inside TLS, in the clear.

The session's terms are fixed here, in the startup message. TLS is asked for with one byte read and no more, so nothing
that stood in front of it is taken for the server's word (CVE-2021-23222). SCRAM binds to the server's certificate where
the server can, and the server's own proof is demanded. A connection over a unix socket on which a broker that is root
was asked for nothing is refused: the kernel vouched for root, not for the role.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from ssl import SSLObject
from typing import Any, Final

from toolcage.broker import postgres_wire as wire
from toolcage.broker.buffered import BufferedReader, Ended
from toolcage.broker.dial import Resolve, Upstream, UpstreamStream, reach, secure, system_resolve, translated, wrap
from toolcage.broker.secret import read_secret
from toolcage.broker.stream import Denied
from toolcage.secret_reference import SecretRef

MOST_ITERATIONS: Final = 1_000_000
"""PostgreSQL asks for 4096; a server that asks for more than this is out to keep us busy."""
_NOTICE_A_LOST_CLIENT: Final = "SET client_connection_check_interval = '1s'"
"""Of PostgreSQL 14 and later, on Linux: a statement ends soon after its call was given up. Not a startup parameter,
because older servers would refuse the session."""
_ITERATIONS: Final = re.compile(r"(?:^|,)i=([0-9]{1,9})(?:,|$)")
_MOST_REPORTS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresConfig:
    """One database as one user. Either `server` or `socket`, the path of a unix socket.

    `server.tls` false is a connection in the clear, which reaches private addresses alone.
    """

    database: str
    user: str
    password: SecretRef | None
    server: Upstream | None = None
    socket: Path | None = None
    read_only: bool = True
    statement_s: float = 30.0

    @property
    def place(self) -> str:
        """Where it is, for the audit."""
        where = f"{self.server.host}:{self.server.port}" if self.server else f"unix:{self.socket}"
        return f"{where}/{self.database}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A session that is ready for its first statement. `parameters` is what the server reported."""

    stream: UpstreamStream
    reader: BufferedReader
    parameters: Mapping[str, str]


async def log_in(
    config: PostgresConfig, *, connect_s: float, count: Callable[[int], None], resolve: Resolve = system_resolve
) -> Login:
    """A session as the configured user on the configured database. Raises Denied, with everything closed."""
    where = config.server or Upstream(host=str(config.socket), port=0)
    with translated(where, connect_s):
        async with asyncio.timeout(connect_s):
            stream, tls = await _connect(config, resolve)
            try:
                reader = BufferedReader(stream, count=count, idle_s=connect_s)
                await stream.write(wire.startup(_terms(config)))
                await _Login(config, stream, reader, tls).run()
                parameters = await _settle(reader)
                await stream.write(wire.message(b"Q", wire.text(_NOTICE_A_LOST_CLIENT)))
                await _settle(reader, forgive=True)
                return Login(stream=stream, reader=reader, parameters=parameters)
            except Ended:
                stream.abort()
                raise Denied("egress.protocol", "the database server ended the login", config.place) from None
            except BaseException:
                stream.abort()
                raise


def _terms(config: PostgresConfig) -> dict[str, str]:
    """The startup parameters. The session may not outlive its statements, nor wait for long in between."""
    milliseconds = str(int(config.statement_s * 1000))
    return {
        "user": config.user,
        "database": config.database,
        "application_name": "toolcage",
        "client_encoding": "UTF8",
        "default_transaction_read_only": "on" if config.read_only else "off",
        "statement_timeout": milliseconds,
        "lock_timeout": milliseconds,
        "idle_in_transaction_session_timeout": milliseconds,
        "row_security": "on",
    }


async def _connect(config: PostgresConfig, resolve: Resolve) -> tuple[UpstreamStream, SSLObject | None]:
    if config.server is None:
        reader, writer = await asyncio.open_unix_connection(config.socket)
        return UpstreamStream(reader, writer, f"unix:{config.socket}"), None
    reached = await reach(config.server, resolve=resolve)
    if not config.server.tls:
        return await wrap(reached), None
    try:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(reached.socket, wire.request(wire.SSL_REQUEST))
        answer = await loop.sock_recv(reached.socket, 1)
        if answer != b"S":
            text = "the server of this resource cannot be verified"
            raise Denied("egress.tls", text, f"{config.place}: the server does not speak TLS")
    except BaseException:
        reached.socket.close()
        raise
    stream = await secure(reached, config.server)
    return stream, stream.ssl_object()


async def _settle(reader: BufferedReader, *, forgive: bool = False) -> dict[str, str]:
    """Reads what the server reports until it is ready. `forgive`: an error is no more than what it reports."""
    parameters: dict[str, str] = {}
    for _ in range(_MOST_REPORTS):
        kind, content = await wire.read_small(reader)
        match kind:
            case b"Z":
                return parameters
            case b"S":
                name, value = wire.read_pair(content)
                parameters[name] = value
            case b"E" if not forgive:
                raise refusal(content)
            case b"K" | b"N":
                continue
            case b"C" | b"E" if forgive:
                continue
            case _:
                break
    raise Denied("egress.protocol", "the database server said something unreadable")


class _Login:
    """One authentication exchange."""

    def __init__(
        self, config: PostgresConfig, stream: UpstreamStream, reader: BufferedReader, tls: SSLObject | None
    ) -> None:
        self._config = config
        self._stream = stream
        self._reader = reader
        self._tls = tls
        self._proved = False
        self._scram: Any = None
        self._scram_is_over = False

    async def run(self) -> None:
        """Until the server is satisfied and has proved itself as far as the method lets it. Raises Denied, Ended."""
        while True:
            kind, content = await wire.read_small(self._reader)
            if kind == b"E":
                raise refusal(content)
            if kind in (b"N", b"v"):
                continue
            if kind != b"R" or len(content) < 4:
                raise self._nonsense()
            if await self._step(struct.unpack("!i", content[:4])[0], content[4:]):
                return

    async def _step(self, code: int, data: bytes) -> bool:
        match code:
            case 0:
                self._check_end()
                return True
            case 3 if self._tls is not None or self._config.socket is not None:
                await self._answer(self._password().encode() + b"\0")
            case 3:
                text = "the database server asks for the password in the clear"
                raise Denied("egress.login", text, f"{self._config.place}: password authentication without TLS")
            case 5 if len(data) == 4:
                await self._answer(_md5(self._config.user, self._password(), data) + b"\0")
            case 10 if self._scram is None:
                await self._begin_scram(data)
            case 11 if self._scram is not None and not self._scram_is_over:
                await self._continue_scram(data)
            case 12 if self._scram is not None and not self._scram_is_over:
                self._end_scram(data)
            case _:
                text = "the database server asks for a login that is not supported"
                raise Denied("egress.login", text, f"{self._config.place}: authentication request {code}")
        return False

    def _check_end(self) -> None:
        if self._scram is not None and not self._scram_is_over:
            raise self._nonsense()
        if self._config.socket is not None and os.geteuid() == 0 and not self._proved:
            text = "this database cannot be used from here"
            operator = f"{self._config.place}: the socket asked for no password while toolcage runs as root; use one"
            raise Denied("egress.login", text, operator)

    async def _answer(self, content: bytes) -> None:
        self._proved = True
        await self._stream.write(wire.message(b"p", content))

    async def _begin_scram(self, data: bytes) -> None:
        from scramp import ScramClient, ScramException

        offered = [name.decode("ascii", "replace") for name in data.split(b"\0") if name]
        known = [name for name in offered if name in ("SCRAM-SHA-256", "SCRAM-SHA-256-PLUS")]
        binding = ("tls-server-end-point", self._tls) if self._tls and "SCRAM-SHA-256-PLUS" in known else None
        try:
            self._scram = ScramClient(known, self._config.user, self._password(), channel_binding=binding)
            first = self._scram.get_client_first().encode()
        except ScramException as cause:
            text = "the database server asks for a login that is not supported"
            raise Denied("egress.login", text, f"{self._config.place}: {cause}") from None
        await self._answer(self._scram.mechanism_name.encode() + b"\0" + struct.pack("!i", len(first)) + first)

    async def _continue_scram(self, data: bytes) -> None:
        from scramp import ScramException

        said = data.decode("utf-8", "replace")
        iterations = _ITERATIONS.search(said)
        if iterations is None or int(iterations[1]) > MOST_ITERATIONS:
            raise self._nonsense()
        try:
            self._scram.set_server_first(said)
            final = await asyncio.to_thread(self._scram.get_client_final)  # hundreds of milliseconds where it is long
        except ScramException as cause:
            raise self._nonsense(str(cause)) from None
        await self._answer(final.encode())

    def _end_scram(self, data: bytes) -> None:
        from scramp import ScramException

        try:
            self._scram.set_server_final(data.decode("utf-8", "replace"))
        except ScramException as cause:
            raise self._nonsense(str(cause)) from None
        self._scram_is_over = True

    def _password(self) -> str:
        if self._config.password is None:
            text = "this database cannot be used from here"
            raise Denied("egress.login", text, f"{self._config.place}: the server asks for a password; none is named")
        return read_secret(self._config.password)

    def _nonsense(self, detail: str = "the login went against its protocol") -> Denied:
        text = "the database server could not prove that it is the right one"
        return Denied("egress.login", text, f"{self._config.place}: {detail}")


def refusal(content: bytes) -> Denied:
    """What a server's error during login means."""
    sqlstate, words = wire.error_words(content)
    return Denied("egress.login", "the database server refused the login", f"{sqlstate}: {words}")


def _md5(user: str, password: str, salt: bytes) -> bytes:
    inner = hashlib.md5(password.encode() + user.encode(), usedforsecurity=False).hexdigest()
    return b"md5" + hashlib.md5(inner.encode() + salt, usedforsecurity=False).hexdigest().encode()
