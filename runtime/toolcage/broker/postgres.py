"""The `postgres` portal: a cage that knows neither host, user nor password speaks to one database as one role.

The broker logs in (`postgres_login`) and fixes the session's terms; what the cage sends as user, database or options is
read and dropped. After that the messages of queries pass, and no others: no COPY data, no function calls, no
replication, no cancel requests. What the server reports is passed without its user, and a session that turns out to be
another role's, or to have been set from reading to writing, ends. Which statements may run is for the SQL screen and
for the role's own rights, not for this module: a role that may do too much is refused here only where the server says
that it is a superuser.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable
from typing import Final

from toolcage.broker import postgres_wire as wire
from toolcage.broker.buffered import CHUNK, BufferedReader, Ended
from toolcage.broker.dial import Resolve, UpstreamStream, system_resolve
from toolcage.broker.postgres_login import Login, PostgresConfig, log_in
from toolcage.broker.splice import Silence, together
from toolcage.broker.stream import ClientStream, Connection, Denied, PortalTerms

FROM_CAGE: Final = frozenset(b"QPBDESCHX")
"""Query, Parse, Bind, Describe, Execute, Sync, Close, Flush, Terminate."""
FROM_SERVER: Final = frozenset(b"123ACDEHINSTVZcdnst")
_PASSED_ON: Final = frozenset(
    {
        "server_version", "server_encoding", "client_encoding", "DateStyle", "IntervalStyle", "TimeZone",
        "integer_datetimes", "standard_conforming_strings", "default_transaction_read_only", "in_hot_standby",
    }
)  # fmt: skip
_SQLSTATES: Final = {"egress.login": "28000", "egress.command": "0A000", "egress.protocol": "08P01"}


async def serve(
    client: ClientStream,
    *,
    config: PostgresConfig,
    terms: PortalTerms,
    note: Connection,
    resolve: Resolve = system_resolve,
) -> None:
    """One connection from its first byte to its end. Raises Denied, after telling the cage so as a server would."""
    note.target = config.place
    reader = BufferedReader(client, count=lambda count: note.count_up(count, terms), idle_s=terms.idle_s)
    try:
        await _serve(client, reader, config, terms, note, resolve)
    except Ended:
        await client.end()
    except Denied as denied:
        with contextlib.suppress(ConnectionError):
            await client.write(wire.error(_SQLSTATES.get(denied.code, "08006"), denied.message))
            await client.end()
        raise


async def _serve(
    client: ClientStream,
    reader: BufferedReader,
    config: PostgresConfig,
    terms: PortalTerms,
    note: Connection,
    resolve: Resolve,
) -> None:
    minor = await _greet(client, reader)
    login = await log_in(
        config, connect_s=terms.connect_s, count=lambda count: note.count_down(count, terms), resolve=resolve
    )
    note.address = login.stream.address
    try:
        _check_role(login.parameters.items(), config)
        await client.write(_welcome(login, minor))
        silence = Silence(terms.idle_s)
        login.reader.patient()
        reader.patient()
        up = _queries(reader, login.stream, silence)
        down = _answers(login.reader, client, config, silence)
        await together(up, down, watch=silence.watch())
        await login.stream.close()
    finally:
        login.stream.abort()


async def _greet(client: ClientStream, reader: BufferedReader) -> bool:
    """Reads the cage's first messages. Whether it asked for a newer minor version. Raises Denied, Ended."""
    for _ in range(3):
        code, content = await wire.read_startup(reader)
        if code in (wire.SSL_REQUEST, wire.GSS_REQUEST):
            await client.write(b"N")
            continue
        if code == wire.CANCEL_REQUEST:
            raise Denied("egress.command", "a running statement cannot be cancelled through this portal")
        if code >> 16 != wire.PROTOCOL >> 16:
            raise Denied("egress.protocol", "this is not a PostgreSQL connection of version 3")
        if wire.read_pairs(content).get("replication", "false").lower() not in ("", "false", "off", "no", "0"):
            raise Denied("egress.command", "replication does not pass this portal")
        return code != wire.PROTOCOL
    raise Denied("egress.protocol", "this is not a PostgreSQL connection")


def _welcome(login: Login, newer: bool) -> bytes:
    """What the cage sees of the login: that it is in. The process id and its key stay here."""
    version = wire.message(b"v", struct.pack("!ii", wire.PROTOCOL, 0)) if newer else b""
    reported = b"".join(
        wire.message(b"S", wire.text(name) + wire.text(value))
        for name, value in login.parameters.items()
        if name in _PASSED_ON
    )
    ready = wire.message(b"K", bytes(8)) + wire.message(b"Z", b"I")
    return version + wire.message(b"R", bytes(4)) + reported + ready


async def _queries(reader: BufferedReader, upstream: UpstreamStream, silence: Silence) -> None:
    """The cage's messages, until it terminates or ends."""
    while (head := await wire.read_head(reader)) is not None:
        kind, length = head
        if kind[0] not in FROM_CAGE:
            raise Denied("egress.command", f"the message {kind.decode('latin-1')!r} does not pass this portal")
        if kind == b"X":
            break
        await _pass_on(kind, length, reader, upstream, silence)
    with contextlib.suppress(ConnectionError):
        await upstream.write(wire.message(b"X"))
    await upstream.end()


async def _answers(reader: BufferedReader, client: ClientStream, config: PostgresConfig, silence: Silence) -> None:
    """The server's messages; raises Ended when it ends, Denied."""
    while (head := await wire.read_head(reader)) is not None:
        kind, length = head
        if kind in (b"G", b"W"):
            raise Denied("egress.command", "COPY into the database does not pass this portal")
        if kind[0] not in FROM_SERVER:
            raise Denied("egress.protocol", "the database server said something unreadable")
        if kind != b"S":
            await _pass_on(kind, length, reader, client, silence)
            continue
        if length > wire.MAX_CONTROL:
            raise Denied("egress.protocol", "the database server said something unreadable")
        content = await reader.exactly(length)
        name, value = wire.read_pair(content)
        _check_role([(name, value)], config)
        if name in _PASSED_ON:
            await client.write(wire.message(b"S", content))
    raise Ended  # what the cage may still send has no one to go to


async def _pass_on(
    kind: bytes, length: int, reader: BufferedReader, sink: ClientStream, silence: Silence
) -> None:
    """One message, in pieces: its length is only bounded by the connection's own bounds."""
    try:
        await sink.write(wire.head(kind, length))
        while length:
            piece = await reader.some(min(length, CHUNK))
            if not piece:
                raise Ended
            length -= len(piece)
            silence.heard()
            await sink.write(piece)
    except ConnectionError:
        raise Ended from None
    silence.heard()


def _check_role(reported: Iterable[tuple[str, str]], config: PostgresConfig) -> None:
    for name, value in reported:
        if name == "is_superuser" and value == "on":
            text = "this database is configured with a role that may do anything"
            raise Denied("egress.role", text, f"{config.place}: {config.user} is a superuser; name a role that is not")
        if name == "default_transaction_read_only" and config.read_only and value != "on":
            raise Denied("egress.role", "the session is for reading and was set to write", config.place)
        if name == "session_authorization" and value != config.user:
            raise Denied("egress.role", "the session changed its role", f"{config.place}: became {value}")
