"""What a hostile or broken IMAP server can do to the portal: nothing but be refused, and nothing that a cage would take
for an answer to another command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from toolcage.broker.dial import Upstream
from toolcage.broker.imap import ImapConfig, serve
from toolcage.broker.mail_server import MailServer
from toolcage.broker.stream import Connection, Denied, PortalTerms
from toolcage.secret_reference import SecretRef

PASSWORD = "mail-canary-81f2"
SECRET = SecretRef(source="env", place="TOOLCAGE_TEST_MAIL")
HELLO = b"* OK ready\r\n"
CAN = b"* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\nT1 OK done\r\n"
GO, IN = b"+ \r\n", b"T2 OK in\r\n"
OPENED = b"* 3 EXISTS\r\n* OK [UIDVALIDITY 7] x\r\nT3 OK [READ-ONLY] done\r\n"
LOGIN = [HELLO, CAN, GO, IN]


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET.place, PASSWORD)


class Cage:
    """A cage that sends its commands one after another and keeps what it hears."""

    def __init__(self, commands: Sequence[bytes]) -> None:
        self._left = list(commands)
        self.heard = bytearray()

    async def read(self, n: int) -> bytes:
        return self._left.pop(0) if self._left else b""

    async def write(self, data: bytes) -> None:
        self.heard += data

    async def end(self) -> None:
        pass

    def abort(self) -> None:
        pass


def outcome(answers: Sequence[bytes], *commands: bytes, tls: str = "none") -> tuple[str, bytes, str]:
    """Why it was refused ("" for not at all), what the cage heard, and what the server was sent."""
    heard = bytearray()
    cage = Cage([command + b"\r\n" for command in commands])

    async def run() -> str:
        done = asyncio.Event()

        async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                for number, answer in enumerate(answers):
                    if number:
                        heard.extend(await reader.readuntil(b"\n"))
                    writer.write(answer)
                    await writer.drain()
                heard.extend(await reader.read())
            except (OSError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.transport.abort()
                done.set()

        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        upstream = Upstream(host="127.0.0.1", port=listening.sockets[0].getsockname()[1])
        named = MailServer(upstream=upstream, tls=tls, user="u", password=SECRET)  # type: ignore[arg-type]
        config = ImapConfig(server=named, folders=("INBOX",), max_message=10_000)
        terms = PortalTerms(connect_s=2, idle_s=0.5, max_bytes_down=3_000_000)
        try:
            await serve(cage, config=config, terms=terms, note=Connection(portal="p", kind="imap"))
        except Denied as denied:
            return denied.code if PASSWORD not in denied.operator else "leak"
        finally:
            listening.close()
            await done.wait()
            await asyncio.sleep(0)
        return ""

    code = asyncio.run(run())
    assert PASSWORD.encode() not in cage.heard
    return code, bytes(cage.heard), heard.decode("latin-1")


OPEN, FIND, READ = b"a EXAMINE INBOX", b"b UID SEARCH ALL", b"c UID FETCH 1 (FLAGS)"


def test_a_server_that_plays_along_is_passed_on() -> None:
    code, heard, asked = outcome([*LOGIN, OPENED, b"* SEARCH 1 2\r\nT4 OK done\r\n"], OPEN, FIND)
    assert code == ""
    assert heard == (
        b"* PREAUTH [CAPABILITY IMAP4rev1] ready\r\n* 3 EXISTS\r\n* OK [UIDVALIDITY 7]\r\na OK [READ-ONLY] done\r\n"
        b"* SEARCH 1 2\r\nb OK done\r\n"
    )
    assert 'T3 EXAMINE "INBOX"\r\nT4 UID SEARCH ALL\r\n' in asked


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([b"* PREAUTH welcome\r\n"], "egress.protocol"),
        ([b"* BYE busy\r\n"], "egress.protocol"),
        ([b"hello\r\n"], "egress.protocol"),
        ([b"* OK " + b"x" * 2_000_000], "egress.line"),
        ([b""], "egress.idle"),
        ([HELLO, b"* CAPABILITY IMAP4rev1 LOGINDISABLED\r\nT1 OK done\r\n"], "egress.login"),
        ([HELLO, b"T1 NO\r\n"], "egress.refused"),
        ([HELLO, b"T9 OK done\r\n"], "egress.protocol"),
        ([HELLO, CAN, b"T2 NO no\r\n"], "egress.refused"),
        ([HELLO, CAN, GO, b"T2 NO [AUTHENTICATIONFAILED] mail-canary\r\n"], "egress.login"),
        ([HELLO, CAN, GO, b"T7 OK in\r\n"], "egress.protocol"),
        ([HELLO, b"* CAPABILITY X\r\n" * 200_000], "egress.protocol"),
    ],
)
def test_a_login_that_goes_otherwise_is_refused(answers: list[bytes], code: str) -> None:
    found, heard, _ = outcome(answers, OPEN)
    assert found == code
    assert heard.startswith(b"* BYE ")


@pytest.mark.parametrize(
    "answers",
    [
        [b"* PREAUTH welcome\r\n"],  # in already, so that nobody would ask for TLS
        [HELLO, b"T0 NO no\r\n"],
        [HELLO, b"T0 OK go\r\n" + CAN + GO + IN],  # injected answers
        [HELLO + b"T0 OK go\r\n" + CAN],
        [b"* OK " + b"x" * 5000],
    ],
)
def test_where_tls_is_demanded_nothing_is_said_before_it(answers: list[bytes]) -> None:
    code, _, asked = outcome(answers, OPEN, tls="starttls")
    assert code in ("egress.tls", "egress.protocol", "egress.timeout")
    assert [word for word in ("AUTHENTICATE", "LOGIN", "CAPABILITY") if word in asked] == []


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"* 1 FETCH (BODY[] {999999999}\r\n", "egress.message"),
        (b"* 1 FETCH (BODY[] {9999999999}\r\n", "egress.message"),
        (b"* 1 FETCH (BODY[] {5}\r\nab", "egress.idle"),
        (b"* 1 FETCH (BODY[] {5}\r\nabcde {9000}\r\n" + b"x" * 9000 + b" {9500}\r\n", "egress.message"),
        (b"* 1 FETCH (FLAGS ())\n", "egress.protocol"),
        (b"c OK done\r\n", "egress.protocol"),
        (b"+ go on\r\n", "egress.protocol"),
        (b"* 1 FETCH (FLAGS ())\rT5 OK done\r\n", "egress.protocol"),
        (b"T5 BAD no such thing\r\n", "egress.refused"),
        (b"", "egress.idle"),
    ],
)
def test_an_answer_that_cannot_be_passed_on_ends_it(answer: bytes, code: str) -> None:
    found, _, _ = outcome([*LOGIN, OPENED, b"* SEARCH 1\r\nT4 OK done\r\n", answer], OPEN, FIND, READ)
    assert found == code


@pytest.mark.parametrize(
    "stray",
    [
        b"* LIST () \"/\" Private\r\n", b"* STATUS Private (MESSAGES 1)\r\n", b"* OK [ALERT] call 555\r\n",
        b"* 1 FETCH (FLAGS (\\Seen))\r\n", b"* SEARCH 1 x\r\n", b"* SEARCH {3}\r\nabc\r\n", b"* 4 EXPUNGE\r\n",
        b"* CAPABILITY IDLE\r\n", b"* BAD strange\r\n",
    ],
)  # fmt: skip
def test_what_does_not_belong_to_the_command_stays_outside(stray: bytes) -> None:
    code, heard, _ = outcome([*LOGIN, OPENED, stray + b"* SEARCH 2\r\nT4 OK x\r\n"], OPEN, FIND)
    assert code == ""
    assert heard.endswith(b"a OK [READ-ONLY] done\r\n* SEARCH 2\r\nb OK done\r\n")


def test_a_server_that_leaves_ends_the_connection_quietly() -> None:
    code, heard, _ = outcome([*LOGIN, b"* BYE going\r\n"], OPEN)
    assert code == ""
    assert heard == b"* PREAUTH [CAPABILITY IMAP4rev1] ready\r\n"
