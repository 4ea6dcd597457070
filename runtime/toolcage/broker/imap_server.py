"""One logged-in IMAP session at the operator's server: commands in one form, answers unit by unit, all bounded.

Encryption and login come first; a server that greets as if somebody had logged in already is refused, because that is
how STARTTLS is skipped. An answer is a line with its literals; its size is capped before it is read. Nothing of the
server's free text leaves this module but to the operator.
"""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from toolcage.broker.buffered import BufferedReader, Ended
from toolcage.broker.dial import Resolve, UpstreamStream
from toolcage.broker.imap_command import Part, quoted
from toolcage.broker.mail_server import ClearLines, MailServer, connect
from toolcage.broker.secret import read_secret
from toolcage.broker.stream import Denied

MAX_LINE: Final = 1024 * 1024
MAX_UNITS: Final = 100_000
_LITERAL: Final = re.compile(rb"\{([0-9]{1,10})\}\r\n\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One answer: its first line, and all of it as it came."""

    line: bytes
    whole: bytes


class ImapServer:
    """Open it with `log_in`. One command at a time."""

    def __init__(
        self, server: MailServer, stream: UpstreamStream, reader: BufferedReader, max_unit: int
    ) -> None:
        self._server = server
        self._stream = stream
        self._reader = reader
        self._max_unit = max_unit
        self._number = 0

    @property
    def address(self) -> str:
        """The server's address and port."""
        return self._stream.address

    async def ask(self, command: Sequence[Part]) -> AsyncIterator[Unit]:
        """The untagged answers to a command, until it is done. Raises Denied (`egress.refused`: NO or BAD), Ended."""
        tag = await self._send(command)
        for _ in range(MAX_UNITS):
            unit = await self._unit()
            if unit.line.startswith(b"* "):
                if unit.line[2:5].upper() == b"BYE":
                    raise Ended
                yield unit
                continue
            if unit.line.startswith(tag + b" "):
                self._check(unit.line[len(tag) + 1 :], command)
                return
            break
        raise self.unreadable()

    async def close(self) -> None:
        """Ends the connection."""
        await self._stream.close()

    def abort(self) -> None:
        """Ends the connection at once."""
        self._stream.abort()

    def unreadable(self) -> Denied:
        """The server does not speak its protocol."""
        return Denied("egress.protocol", "the mail server said something unreadable", self._server.place)

    async def greeted(self) -> None:
        """Reads the greeting, unless that was done before TLS. Raises Denied, Ended."""
        if self._server.tls == "starttls":
            return
        unit = await self._unit()
        if unit.line[:5].upper() != b"* OK ":
            raise self.unreadable()

    async def authenticate(self) -> None:
        """Logs in. Raises Denied (`egress.login`), Ended."""
        if self._server.user is None or self._server.password is None:
            raise Denied("egress.login", "this mailbox cannot be read from here", f"{self._server.place}: no user")
        offers = await self._offers()
        user, password = self._server.user.encode(), read_secret(self._server.password).encode()
        if "AUTH=PLAIN" in offers:
            await self._plain(b"\0" + user + b"\0" + password)
        elif "LOGINDISABLED" not in offers:
            async for _ in self.ask(["LOGIN", user, password]):
                pass
        else:
            raise Denied("egress.login", "the mail server offers no login that is supported", self._server.place)

    async def _offers(self) -> set[str]:
        found: set[str] = set()
        async for unit in self.ask(["CAPABILITY"]):
            words = unit.line.decode("ascii", "replace").upper().split()
            if words[1:2] == ["CAPABILITY"]:
                found |= set(words[2:])
        return found

    async def _plain(self, token: bytes) -> None:
        tag = await self._send(["AUTHENTICATE", "PLAIN"])
        await self._go_ahead()
        await self._stream.write(base64.b64encode(token) + b"\r\n")
        while (unit := await self._unit()).line.startswith(b"* "):
            continue
        if not unit.line.startswith(tag + b" "):
            raise self.unreadable()
        self._check(unit.line[len(tag) + 1 :], ["AUTHENTICATE"])

    async def _send(self, command: Sequence[Part]) -> bytes:
        """Writes a command, waiting for a go-ahead before each literal. Its tag."""
        self._number += 1
        tag = f"T{self._number}".encode()
        line = bytearray(tag)
        for number, part in enumerate(command):
            if number == 0 or (command[number - 1] != "(" and part != ")"):
                line += b" "
            written = part.encode("ascii") if isinstance(part, str) else quoted(part)
            if written is None:
                assert isinstance(part, bytes)
                await self._stream.write(bytes(line) + b"{%d}\r\n" % len(part))
                await self._go_ahead()
                line = bytearray(part)
            else:
                line += written
        await self._stream.write(bytes(line) + b"\r\n")
        return tag

    async def _go_ahead(self) -> None:
        while not (unit := await self._unit()).line.startswith(b"+"):
            if not unit.line.startswith(b"* "):
                raise Denied("egress.refused", "the mail server refused this", self._server.place)

    async def _unit(self) -> Unit:
        first = line = await self._line()
        whole = bytearray(line)
        while (literal := _LITERAL.search(line)) is not None:
            size = int(literal[1])
            if len(whole) + size > self._max_unit:
                text = f"an answer is larger than {self._max_unit} bytes; read a part, such as BODY.PEEK[]<0.100000>"
                raise Denied("egress.message", text, self._server.place)
            whole += await self._reader.exactly(size)
            line = await self._line()
            whole += line
            if len(whole) > self._max_unit:
                raise self.unreadable()
        return Unit(line=first, whole=bytes(whole))

    async def _line(self) -> bytes:
        line = await self._reader.line(MAX_LINE)
        if not line:
            raise Ended
        if not line.endswith(b"\r\n") or line.count(b"\r") > 1 or b"\0" in line:
            raise self.unreadable()
        return line

    def _check(self, result: bytes, command: Sequence[Part]) -> None:
        if result[:2].upper() == b"OK":
            return
        words = result.decode("utf-8", "replace").strip()[:300]
        operator = f"{self._server.place}: {command[0]!s} was answered {words}"
        if command[0] in ("AUTHENTICATE", "LOGIN"):
            raise Denied("egress.login", "the mail server refused the login", operator)
        raise Denied("egress.refused", "the mail server refused this", operator)


async def log_in(
    server: MailServer,
    *,
    count: Callable[[int], None],
    connect_s: float,
    answer_s: float,
    max_unit: int,
    resolve: Resolve,
) -> ImapServer:
    """A logged-in session. Raises Denied."""
    stream = await connect(server, ask_tls=_ask_tls, connect_s=connect_s, resolve=resolve)
    reader = BufferedReader(stream, count=count, idle_s=answer_s)
    session = ImapServer(server, stream, reader, max_unit)
    try:
        await session.greeted()
        await session.authenticate()
    except (Ended, ConnectionError):
        stream.abort()
        raise Denied("egress.unreachable", "the mail server ended the connection", server.place) from None
    except BaseException:
        stream.abort()
        raise
    return session


async def _ask_tls(lines: ClearLines) -> None:
    if (await lines.read())[:5].upper() != b"* OK ":
        raise lines.unreadable()
    await lines.send(b"T0 STARTTLS")
    for _ in range(10):
        line = await lines.read()
        if line[:6].upper() == b"T0 OK ":
            return
        if not line.startswith(b"* "):
            break
    raise lines.clear()
