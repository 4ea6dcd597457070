"""The `smtp` portal: a cage may hand over one message, from the mailbox's address to the recipients of its call.

The cage speaks a small SMTP with us: EHLO, HELO, MAIL, RCPT, DATA, RSET, NOOP, QUIT, one command at a time. Nothing
that it says reaches the mail server as it said it: the message is read whole, held to the envelope and rebuilt
(`smtp_message`), then delivered to all recipients or none (`smtp_delivery`). A call sends one message, and one that was
sent for the same key is not sent again (`sent`). A command that comes before the answer to the one before it, and a
line that does not end in CRLF, end the connection: that is how one message becomes two.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from dataclasses import dataclass
from typing import Final

from toolcage.broker.buffered import BufferedReader, Ended
from toolcage.broker.dial import Resolve, system_resolve
from toolcage.broker.mail_server import MailServer
from toolcage.broker.sent import Sent
from toolcage.broker.smtp_delivery import Uncertain, deliver
from toolcage.broker.smtp_message import message_id, prepared, same_mailbox
from toolcage.broker.stream import ClientStream, Connection, Denied, PortalTerms

_PASSING: Final = ("egress.later", "egress.timeout", "egress.unreachable")
MAX_COMMAND: Final = 512
MAX_TEXT_LINE: Final = 1000
_PATH: Final = re.compile(r"(MAIL FROM|RCPT TO): ?<([^<>\s]{3,254})>((?: [A-Za-z0-9=-]+)*)", re.IGNORECASE)
_OPTION: Final = re.compile(r"SIZE=[0-9]{1,12}|BODY=(?:7BIT|8BITMIME)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpConfig:
    """One call's way out. `recipients` are those of the approved call; `key` is the same when that call is tried again
    and None when every call is another one; `call` tells calls apart."""

    server: MailServer
    sender: str
    recipients: frozenset[str]
    max_message: int
    call: str
    key: str | None = None


async def serve(
    client: ClientStream,
    *,
    config: SmtpConfig,
    sent: Sent,
    terms: PortalTerms,
    note: Connection,
    resolve: Resolve = system_resolve,
) -> None:
    """One connection. Raises Denied for what was refused, after telling the cage. `sent` is the mailbox's memory."""
    note.target = config.server.place
    session = _Session(client, config, sent, terms, note, resolve)
    try:
        await session.run()
    except Ended:
        await client.end()
    except Denied as denied:
        with contextlib.suppress(ConnectionError):
            await client.write(f"421 4.7.0 {denied.message}\r\n".encode())
            await client.end()
        raise
    if session.refused is not None:
        raise session.refused


class _Session:
    """One connection's state: an envelope that grows, at most one message, and what was refused of them."""

    def __init__(
        self,
        client: ClientStream,
        config: SmtpConfig,
        sent: Sent,
        terms: PortalTerms,
        note: Connection,
        resolve: Resolve,
    ) -> None:
        self._client = client
        self._config = config
        self._sent = sent
        self._terms = terms
        self._note = note
        self._resolve = resolve
        self._reader = BufferedReader(client, count=lambda count: note.count_up(count, terms), idle_s=terms.idle_s)
        self._allowed = {same_mailbox(item): item for item in config.recipients}
        self._greeted = False
        self._from = False
        self._to: dict[str, str] = {}
        self.refused: Denied | None = None

    async def run(self) -> None:
        await self._say("220 toolcage ESMTP")
        while (line := await self._command()) is not None:
            word = line.split(" ", 1)[0].upper()
            if word == "QUIT":
                await self._say("221 2.0.0 bye")
                break
            await self._obey(word, line)
        await self._client.end()

    async def _obey(self, word: str, line: str) -> None:
        match word:
            case "EHLO":
                self._greeted = True
                self._reset()
                await self._say("250-toolcage", f"250-SIZE {self._config.max_message}", "250 8BITMIME")
            case "HELO":
                self._greeted = True
                self._reset()
                await self._say("250 toolcage")
            case "NOOP":
                await self._say("250 2.0.0 ok")
            case "RSET":
                self._reset()
                await self._say("250 2.0.0 ok")
            case "MAIL" | "RCPT" if not self._greeted:
                await self._say("503 5.5.1 say EHLO first")
            case "MAIL":
                await self._mail(line)
            case "RCPT":
                await self._rcpt(line)
            case "DATA":
                await self._data(line)
            case _:
                await self._refuse("502 5.5.1", "egress.command", "this command does not pass the portal")

    async def _mail(self, line: str) -> None:
        address = _path(line, "MAIL FROM")
        if self._from:
            await self._say("503 5.5.1 there is a sender already")
        elif address is None:
            await self._refuse("501 5.5.4", "egress.message", "write MAIL FROM:<address>, without other options")
        elif same_mailbox(address) != same_mailbox(self._config.sender):
            await self._refuse("550 5.7.1", "egress.message", "the sender is not the mailbox's own address")
        else:
            self._from = True
            await self._say("250 2.1.0 ok")

    async def _rcpt(self, line: str) -> None:
        address = _path(line, "RCPT TO")
        known = None if address is None else self._allowed.get(same_mailbox(address))
        if not self._from:
            await self._say("503 5.5.1 say MAIL first")
        elif address is None:
            await self._refuse("501 5.5.4", "egress.message", "write RCPT TO:<address>, without options")
        elif known is None:
            await self._refuse("550 5.7.1", "egress.recipient", "this recipient is not among those of the call")
        else:
            self._to[same_mailbox(address)] = known
            await self._say("250 2.1.5 ok")

    async def _data(self, line: str) -> None:
        if line.upper() != "DATA":
            await self._refuse("501 5.5.4", "egress.command", "DATA stands alone")
        elif not self._from or not self._to:
            await self._say("503 5.5.1 say MAIL and RCPT first")
        elif self.refused is not None:
            await self._say(f"554 5.7.1 nothing is sent: {self.refused.message}")
        else:
            await self._say("354 go ahead, end with a dot alone on a line")
            await self._message(await self._text())

    async def _message(self, lines: list[bytes]) -> None:
        config, recipients = self._config, sorted(self._to.values())
        key = config.key or f"{config.call}/{uuid.uuid4()}"
        identity = message_id(key, config.sender)
        try:
            content = prepared(lines, sender=config.sender, recipients=recipients, message_id=identity)
            state = self._sent.begin(config.key or config.call, config.call)
        except Denied as denied:
            self.refused = denied
            await self._say(f"554 5.6.0 {denied.message}")
            return
        self._reset()
        match state:
            case "again":
                await self._refuse("554 5.7.1", "egress.message", "a call sends one message, and this one has sent it")
            case "already":
                self._note.detail = f"{identity} was sent before; not sent again"
                await self._say("250 2.0.0 sent before; not sent again")
            case "unknown":
                text = "whether this message was sent before is not known; it is not sent again"
                await self._refuse("554 5.7.1", "egress.message", text)
            case "send":
                await self._deliver(content, recipients, identity)

    async def _deliver(self, content: bytes, recipients: list[str], identity: str) -> None:
        key = self._config.key or self._config.call
        certain = False
        try:
            self._note.address = await deliver(
                self._config.server, content, sender=self._config.sender, recipients=recipients,
                connect_s=self._terms.connect_s, answer_s=self._terms.idle_s, resolve=self._resolve,
            )  # fmt: skip
        except Denied as denied:
            certain = True
            self.refused = denied
            code = "451 4.4.0" if denied.code in _PASSING else "554 5.4.0"
            await self._say(f"{code} {denied.message}")
        except Uncertain:
            text = "the mail server was lost after the message was handed over; whether it was sent is not known"
            await self._refuse("554 5.4.0", "egress.message", text)
        else:
            self._sent.done(key)
            self._note.detail = f"{identity} to {len(recipients)} recipients"
            await self._say("250 2.0.0 sent")
        finally:
            if certain:
                self._sent.failed(key)

    async def _text(self) -> list[bytes]:
        """The lines of a message, without their ends and dots. Raises Denied, Ended."""
        lines: list[bytes] = []
        size = 0
        while (line := await self._line(MAX_TEXT_LINE)) != b".":
            if line is None:
                raise Ended
            size += len(line) + 2
            if size > self._config.max_message:
                raise Denied("egress.message", f"the message is larger than {self._config.max_message} bytes")
            lines.append(line[1:] if line.startswith(b".") else line)
        self._alone()
        return lines

    async def _command(self) -> str | None:
        line = await self._line(MAX_COMMAND)
        if line is None:
            return None
        self._alone()
        text = line.decode("ascii", "replace")
        if not text.isascii() or not text.isprintable():
            raise Denied("egress.protocol", "a command of printable ASCII was expected")
        return text.rstrip(" ")

    def _alone(self) -> None:
        """Whoever sends on before the answer could have a second message in what we took for the first one's end."""
        if self._reader.pending:
            raise Denied("egress.protocol", "something was sent before the answer to what came before it")

    async def _line(self, limit: int) -> bytes | None:
        """The next line without its end; None where the cage has ended between two lines. Raises Denied, Ended."""
        line = await self._reader.line(limit)
        if not line:
            return None
        content = line.removesuffix(b"\r\n")
        if content == line or b"\r" in content or b"\0" in content:
            raise Denied("egress.protocol", "a line has to end in CR LF and may hold no other CR, LF or NUL")
        return content

    async def _refuse(self, code: str, reason: str, text: str) -> None:
        """Says no and remembers it: after this nothing is sent on this connection."""
        self.refused = self.refused or Denied(reason, text)
        await self._say(f"{code} {text}")

    async def _say(self, *lines: str) -> None:
        data = "".join(f"{line}\r\n" for line in lines).encode()
        self._note.count_down(len(data), self._terms)
        try:
            await self._client.write(data)
        except ConnectionError:
            raise Ended from None

    def _reset(self) -> None:
        self._from = False
        self._to = {}


def _path(line: str, word: str) -> str | None:
    """The address of `MAIL FROM:<…>` or `RCPT TO:<…>`; None for any other form."""
    found = _PATH.fullmatch(line)
    if found is None or found[1].upper() != word or found[2].count("@") != 1:
        return None
    options = found[3].split()
    if any(not _OPTION.fullmatch(item) for item in options) or (options and word != "MAIL FROM"):
        return None
    return found[2]
