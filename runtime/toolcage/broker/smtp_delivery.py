"""Hands one prepared message to the operator's mail server: login, envelope, content; all recipients or none.

The login is PLAIN or LOGIN, after TLS, except at a private address that the operator set to `none`. Answers are bounded
in number and length; what kind of answer it was reaches the cage, the server's words the operator alone. What was lost
after the whole message was handed over is `Uncertain`: it may have been sent.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Sequence
from typing import Final

from toolcage.broker.buffered import BufferedReader, Ended
from toolcage.broker.dial import Resolve, UpstreamStream
from toolcage.broker.mail_server import LONGEST, MOST_LINES, ClearLines, MailServer, connect
from toolcage.broker.secret import read_secret
from toolcage.broker.stream import Denied

_CHUNK: Final = 64 * 1024
_HELLO: Final = "EHLO toolcage"


class Uncertain(Exception):
    """The connection was lost after the whole message had been handed over."""


async def deliver(
    server: MailServer,
    message: bytes,
    *,
    sender: str,
    recipients: Sequence[str],
    connect_s: float,
    answer_s: float,
    resolve: Resolve,
) -> str:
    """Sends `message` (prepared, with its final dot) to all `recipients`. The address of the server that took it.

    Raises Denied when it was certainly not sent, Uncertain when nobody knows.
    """
    stream = await connect(server, ask_tls=_ask_tls, connect_s=connect_s, resolve=resolve)
    session = _Session(server, stream, answer_s)
    try:
        await session.begin()
        await session.log_in()
        await session.expect(f"MAIL FROM:<{sender}>{session.body(message)}", 250)
        for recipient in recipients:
            await session.expect(f"RCPT TO:<{recipient}>", 250, 251)
        await session.expect("DATA", 354)
        await session.hand_over(message)
        await session.leave()
        return stream.address
    except (Ended, ConnectionError):
        raise Denied("egress.unreachable", "the mail server ended the connection", server.place) from None
    finally:
        stream.abort()


async def log_in_only(server: MailServer, *, connect_s: float, resolve: Resolve) -> None:
    """Connects and logs in, and leaves: that the server is there and takes the account. Raises Denied."""
    stream = await connect(server, ask_tls=_ask_tls, connect_s=connect_s, resolve=resolve)
    session = _Session(server, stream, connect_s)
    try:
        await session.begin()
        await session.log_in()
        await session.expect("QUIT", 221)
    except (Ended, ConnectionError):
        raise Denied("egress.unreachable", "the mail server ended the connection", server.place) from None
    finally:
        stream.abort()


async def _ask_tls(lines: ClearLines) -> None:
    if await _clear_code(lines) != b"220":
        raise lines.unreadable()
    await lines.send(_HELLO.encode())
    if await _clear_code(lines) != b"250":
        raise lines.unreadable()
    await lines.send(b"STARTTLS")
    if await _clear_code(lines) != b"220":
        raise lines.clear()


async def _clear_code(lines: ClearLines) -> bytes:
    for _ in range(MOST_LINES):
        line = await lines.read()
        if line[3:4] != b"-":
            return line[:3]
    raise lines.unreadable()


class _Session:
    """What is said once the connection is as safe as the server's entry demands."""

    def __init__(self, server: MailServer, stream: UpstreamStream, answer_s: float) -> None:
        self._server = server
        self._stream = stream
        self._reader = BufferedReader(stream, count=lambda _: None, idle_s=answer_s)
        self._offers: dict[str, str] = {}

    async def begin(self) -> None:
        """Greeting, unless it was read before TLS, and what the server offers."""
        if self._server.tls != "starttls":
            await self._answer("the greeting", (220,))
        for line in (await self.expect(_HELLO, 250))[1:]:
            word, _, rest = line.decode("ascii", "replace").upper().partition(" ")
            self._offers[word] = rest

    async def log_in(self) -> None:
        """As the configured user, where there is one."""
        if self._server.user is None or self._server.password is None:
            return
        methods = self._offers.get("AUTH", "").split()
        user, password = self._server.user.encode(), read_secret(self._server.password).encode()
        if "PLAIN" in methods:
            await self._say(f"AUTH PLAIN {_base64(b'%c%b%c%b' % (0, user, 0, password))}", "the login", (235,))
        elif "LOGIN" in methods:
            await self._say("AUTH LOGIN", "the login", (334,))
            await self._say(_base64(user), "the login", (334,))
            await self._say(_base64(password), "the login", (235,))
        else:
            raise Denied("egress.login", "the mail server offers no login that is supported", self._server.place)

    async def expect(self, command: str, *codes: int) -> list[bytes]:
        """Says `command` and reads its answer, which must have one of the codes. Raises Denied, Ended."""
        return await self._say(command, command.partition(":")[0], codes)

    def body(self, message: bytes) -> str:
        """The option that says that the content has bytes above 127. Raises Denied where the server takes none."""
        if message.isascii():
            return ""
        if "8BITMIME" not in self._offers:
            text = "the mail server takes 7-bit messages only; encode the content as base64 or quoted-printable"
            raise Denied("egress.message", text, self._server.place)
        return " BODY=8BITMIME"

    async def hand_over(self, message: bytes) -> None:
        """The content with its final dot. Raises Denied, ConnectionError before it, Uncertain after it."""
        start = len(message) - min(_CHUNK, len(message))
        for at in range(0, start, _CHUNK):
            await self._stream.write(message[at : min(at + _CHUNK, start)])
        try:
            await self._stream.write(message[start:])
            await self._answer("the message", (250,))
        except (Ended, ConnectionError):
            raise Uncertain from None
        except Denied as denied:
            if denied.code in ("egress.refused", "egress.later"):
                raise
            raise Uncertain from None

    async def leave(self) -> None:
        """Says goodbye, whatever comes of that."""
        with contextlib.suppress(ConnectionError):
            await self._stream.write(b"QUIT\r\n")
        await self._stream.close()

    async def _say(self, line: str, what: str, codes: Sequence[int]) -> list[bytes]:
        await self._stream.write(f"{line}\r\n".encode())
        return await self._answer(what, codes)

    async def _answer(self, what: str, codes: Sequence[int]) -> list[bytes]:
        """The lines of an answer. `what` it answers stands in messages: never the line itself, which may be a login."""
        lines: list[bytes] = []
        for _ in range(MOST_LINES):
            line = await self._reader.line(LONGEST)
            if not line:
                raise Ended
            code, mark = line[:3], line[3:4]
            if not code.isdigit() or mark not in (b" ", b"-", b"\r", b"\n"):
                break
            lines.append(line[4:].strip())
            if mark == b"-":
                continue
            if int(code) in codes:
                return lines
            words = b" / ".join(lines).decode("utf-8", "replace")[:300]
            operator = f"{self._server.place}: {what} was answered {code.decode()} {words}"
            if what == "the login":
                raise Denied("egress.login", "the mail server refused the login", operator)
            if code.startswith(b"4"):
                raise Denied("egress.later", f"the mail server refused {what} for now ({code.decode()})", operator)
            raise Denied("egress.refused", f"the mail server refused {what} ({code.decode()})", operator)
        raise Denied("egress.protocol", "the mail server said something unreadable", self._server.place)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
