"""The `imap` portal: a cage reads the granted folders of one mailbox, already logged in, and changes nothing.

The cage sees PREAUTH and a small IMAP4rev1: CAPABILITY, NOOP, LIST, SELECT and EXAMINE (both open read-only), UID
SEARCH, UID FETCH, CLOSE, LOGOUT. Each command is read by `imap_command`'s grammar, written anew and asked of the server
by `imap_server`; LIST, CAPABILITY and CLOSE are answered here and tell nothing of the account. Of the server's answers
those pass that belong to the command. What the mails say is foreign text: judging it is for the line.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import Final

from toolcage.broker import imap_command as grammar
from toolcage.broker.buffered import BufferedReader, Ended
from toolcage.broker.dial import Resolve, system_resolve
from toolcage.broker.imap_command import Part, Unreadable
from toolcage.broker.imap_server import ImapServer, log_in
from toolcage.broker.mail_server import MailServer
from toolcage.broker.stream import ClientStream, Connection, Denied, PortalTerms
from toolcage.facts.mail_folder import encode_folder

MAX_COMMAND: Final = 8192
MOST_LITERALS: Final = 10
MOST_REFUSALS: Final = 20
_TAG: Final = re.compile(rb"([A-Za-z0-9]{1,32}) (.*)\r\n", re.DOTALL)
_LITERAL: Final = re.compile(rb"\{([0-9]{1,5})\}\Z")
_OPENED: Final = re.compile(
    rb"\* (?:[0-9]{1,10} (?:EXISTS|RECENT)|FLAGS \([A-Za-z0-9\\$ _-]{0,1000}\)"
    rb"|OK (\[(?:UIDVALIDITY|UIDNEXT|UNSEEN) [0-9]{1,10}\]))", re.IGNORECASE,
)  # fmt: skip
_FOUND: Final = re.compile(rb"\* SEARCH(?: [0-9]{1,10})*[ ]?", re.IGNORECASE)
_FETCHED: Final = re.compile(rb"\* [0-9]{1,10} FETCH \(", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImapConfig:
    """One mailbox for one call. `folders` are those that may be read; `max_message` bounds one answer."""

    server: MailServer
    folders: tuple[str, ...]
    max_message: int


async def serve(
    client: ClientStream,
    *,
    config: ImapConfig,
    terms: PortalTerms,
    note: Connection,
    resolve: Resolve = system_resolve,
) -> None:
    """One connection. Raises Denied for what was refused, after telling the cage."""
    note.target = config.server.place
    session = _Session(client, config, terms, note)
    try:
        server = await log_in(
            config.server, count=lambda count: note.count_down(count, terms), connect_s=terms.connect_s,
            answer_s=terms.idle_s, max_unit=config.max_message + MAX_COMMAND, resolve=resolve,
        )  # fmt: skip
        note.address = server.address
        try:
            await session.run(server)
            await server.close()
        finally:
            server.abort()
    except (Ended, ConnectionError):
        await client.end()
    except Denied as denied:
        with contextlib.suppress(ConnectionError):
            await client.write(f"* BYE {denied.message}\r\n".encode())
            await client.end()
        raise
    if session.refused is not None:
        raise session.refused


class _Session:
    """One connection's state: which folder is open, and what was refused."""

    def __init__(self, client: ClientStream, config: ImapConfig, terms: PortalTerms, note: Connection) -> None:
        self._client = client
        self._folders = {encode_folder(name): name for name in config.folders}
        self._reader = BufferedReader(client, count=lambda count: note.count_up(count, terms), idle_s=terms.idle_s)
        self._open = False
        self._refusals = 0
        self.refused: Denied | None = None

    async def run(self, server: ImapServer) -> None:
        """Until LOGOUT or the cage's end. Raises Denied, Ended."""
        await self._say(b"* PREAUTH [CAPABILITY IMAP4rev1] ready")
        while (read := await self._command()) is not None:
            tag, parts, rest = read
            if not await self._obey(server, tag, parts, rest):
                break
        await self._client.end()

    async def _obey(self, server: ImapServer, tag: bytes, parts: list[Part], rest: bytes) -> bool:
        """One command. Whether another one may follow."""
        name = parts[0].upper() if parts and isinstance(parts[0], str) else ""
        second = parts[1].upper() if len(parts) > 1 and isinstance(parts[1], str) else ""
        try:
            match (name, second):
                case ("LOGOUT", ""):
                    await self._say(b"* BYE", tag + b" OK done")
                    return False
                case ("CAPABILITY", ""):
                    await self._say(b"* CAPABILITY IMAP4rev1", tag + b" OK done")
                case ("NOOP", ""):
                    await self._ask(server, tag, ["NOOP"], None)
                case ("LIST", _):
                    await self._list(tag, parts[1:])
                case ("SELECT" | "EXAMINE", _):
                    await self._examine(server, tag, parts[1:])
                case ("CLOSE", ""):
                    self._open = False
                    await self._say(tag + b" OK done")
                case ("UID", "SEARCH"):
                    await self._ask(server, tag, ["UID", "SEARCH", *grammar.search(parts[2:])], _FOUND)
                case ("UID", "FETCH"):
                    await self._ask(server, tag, ["UID", "FETCH", grammar.fetch(rest)], _FETCHED)
                case _:
                    raise Unreadable("this command does not pass the portal; it reads with UID SEARCH and UID FETCH")
        except Unreadable as why:
            await self._refuse(tag, Denied("egress.command", str(why)))
        except Denied as denied:
            if denied.code != "egress.refused":
                raise
            await self._refuse(tag, denied)
        return True

    async def _list(self, tag: bytes, parts: list[Part]) -> None:
        """The granted folders, whatever else the account has."""
        if len(parts) != 2:
            raise Unreadable('write LIST "" "*"')
        pattern = _bytes(parts[1])
        names = [name for name in self._folders if pattern in (b"*", b"%", name)]
        await self._say(*(b'* LIST () "/" ' + (grammar.quoted(name) or b'""') for name in names), tag + b" OK done")

    async def _examine(self, server: ImapServer, tag: bytes, parts: list[Part]) -> None:
        if len(parts) != 1:
            raise Unreadable("name one folder")
        asked = _bytes(parts[0])
        name = b"INBOX" if asked.upper() == b"INBOX" else asked
        self._open = False
        if name not in self._folders:
            text = "this folder is not among the granted ones; LIST names them"
            await self._refuse(tag, Denied("egress.folder", text))
            return
        async for unit in server.ask(["EXAMINE", name]):
            if (found := _OPENED.match(unit.line)) is not None:
                await self._say(b"* OK " + found[1] if found[1] else unit.line.rstrip(b"\r\n"))
        self._open = True
        await self._say(tag + b" OK [READ-ONLY] done")

    async def _ask(self, server: ImapServer, tag: bytes, command: list[Part], passed: re.Pattern[bytes] | None) -> None:
        """Asks and passes on what belongs to the command. Raises Denied, Ended, Unreadable."""
        if passed is not None and not self._open:
            raise Unreadable("open a folder first, with SELECT")
        async for unit in server.ask(command):
            if passed is _FOUND and _FOUND.fullmatch(unit.whole.rstrip(b"\r\n")):
                await self._say(unit.whole.rstrip(b"\r\n"))
            elif passed is _FETCHED and _FETCHED.match(unit.line):
                await self._write(unit.whole)
        await self._say(tag + b" OK done")

    async def _command(self) -> tuple[bytes, list[Part], bytes] | None:
        """Tag, parts, and the text behind the second word; None at the end. Raises Denied, Ended."""
        line = await self._reader.line(MAX_COMMAND)
        if not line:
            return None
        found = _TAG.fullmatch(line)
        if found is None or b"\r" in found[2] or b"\0" in found[2]:
            raise Denied("egress.protocol", "a line with a tag and a command was expected")
        tag, text = found[1], found[2]
        parts: list[Part] = []
        rest = b"".join(text.split(b" ", 2)[2:])
        for _ in range(MOST_LITERALS):
            literal = _LITERAL.search(text)
            parts += _words(text if literal is None else text[: literal.start()])
            if literal is None:
                return tag, parts, rest
            parts.append(await self._literal(int(literal[1])))
            text = (line := await self._reader.line(MAX_COMMAND)).removesuffix(b"\r\n")
            if text == line or b"\r" in text or b"\0" in text:
                raise Denied("egress.protocol", "a command was expected to go on to its CR LF")
        raise Denied("egress.protocol", "a command has too many literals")

    async def _literal(self, size: int) -> bytes:
        if size > grammar.MAX_STRING:
            raise Denied("egress.protocol", f"a string is longer than {grammar.MAX_STRING} bytes")
        await self._say(b"+ go ahead")
        value = await self._reader.exactly(size)
        if set(value) & set(b"\r\n\0"):
            raise Denied("egress.protocol", "a string may hold no line end and no NUL")
        return value

    async def _refuse(self, tag: bytes, denied: Denied) -> None:
        self.refused = self.refused or denied
        self._refusals += 1
        await self._say(tag + b" NO " + denied.message.encode("ascii", "replace"))
        if self._refusals > MOST_REFUSALS:
            raise denied

    async def _say(self, *lines: bytes) -> None:
        await self._write(b"".join(line + b"\r\n" for line in lines))

    async def _write(self, data: bytes) -> None:
        try:
            await self._client.write(data)
        except ConnectionError:
            raise Ended from None


def _words(text: bytes) -> list[Part]:
    """The parts of a command; a UID FETCH, whose items have their own grammar, is left at its first words."""
    head = text.split(b" ", 2)
    if [item.upper() for item in head[:2]] == [b"UID", b"FETCH"]:
        return ["UID", "FETCH"]
    try:
        return grammar.words(text)
    except Unreadable as why:
        raise Denied("egress.protocol", str(why)) from None


def _bytes(part: Part) -> bytes:
    return part if isinstance(part, bytes) else part.encode()
