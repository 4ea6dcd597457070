"""What a hostile or broken mail server can do to a delivery: nothing but make it fail, and say how surely it failed."""

from __future__ import annotations

import asyncio

import pytest

from toolcage.broker.dial import Upstream, system_resolve
from toolcage.broker.mail_server import MailServer
from toolcage.broker.smtp_delivery import Uncertain, deliver
from toolcage.broker.stream import Denied
from toolcage.secret_reference import SecretRef

PASSWORD = "mail-canary-81f2"
SECRET = SecretRef(source="env", place="TOOLCAGE_TEST_MAIL")
MESSAGE = b"From: a@b.example\r\n\r\ntext\r\n.\r\n"
HELLO = b"250-x\r\n250-AUTH PLAIN LOGIN\r\n250 8BITMIME\r\n"
OK = b"250 ok\r\n"


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET.place, PASSWORD)


def outcome(*answers: bytes, tls: str = "none", message: bytes = MESSAGE) -> tuple[str, str]:
    """How a delivery ends at a server that answers line by line with these; and all that it was sent."""
    heard = bytearray()

    async def run() -> str:
        done = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                for number, answer in enumerate(answers):
                    if number:
                        heard.extend(await reader.readuntil(b"\r\n.\r\n" if number == 6 else b"\n"))
                    writer.write(answer)
                    await writer.drain()
            except (OSError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.transport.abort() if answers[-1] else writer.close()
                done.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        upstream = Upstream(host="127.0.0.1", port=server.sockets[0].getsockname()[1], tls=tls != "none")
        try:
            await deliver(
                MailServer(upstream=upstream, tls=tls, user="u", password=SECRET), message,  # type: ignore[arg-type]
                sender="a@b.example", recipients=["c@d.example"], connect_s=2, answer_s=0.5, resolve=system_resolve,
            )  # fmt: skip
        except Denied as denied:
            return denied.code if PASSWORD not in denied.operator else "leak"
        except Uncertain:
            return "uncertain"
        finally:
            server.close()
            await done.wait()
            await asyncio.sleep(0)
        return "sent"

    return asyncio.run(run()), heard.decode("latin-1")


GOOD = [b"220 x\r\n", HELLO, b"235 in\r\n", OK, OK, b"354 go\r\n", OK]


def test_a_server_that_plays_along_gets_the_message() -> None:
    assert outcome(*GOOD)[0] == "sent"


@pytest.mark.parametrize(
    ("at", "answer", "code"),
    [
        (0, b"554 no\r\n", "egress.refused"),
        (0, b"hello\r\n", "egress.protocol"),
        (0, b"220 " + b"x" * 5000 + b"\r\n", "egress.line"),
        (0, b"220-x\r\n" * 200, "egress.protocol"),
        (0, b"", "egress.unreachable"),
        (1, b"250 no logins here\r\n", "egress.login"),
        (1, b"250-x\r\n250 AUTH GSSAPI\r\n", "egress.login"),
        (2, b"535 bad\r\n", "egress.login"),
        (3, b"550 no\r\n", "egress.refused"),
        (4, b"450 later\r\n", "egress.later"),
        (5, b"250 what\r\n", "egress.refused"),
        (6, b"554 spam\r\n", "egress.refused"),
        (6, b"451 later\r\n", "egress.later"),
        (6, b"?\r\n", "uncertain"),
        (6, b"", "uncertain"),
        (6, b"250-and so on\r\n", "uncertain"),
    ],
)
def test_each_answer_that_is_not_the_awaited_one_ends_the_delivery(at: int, answer: bytes, code: str) -> None:
    assert outcome(*GOOD[:at], answer)[0] == code


@pytest.mark.parametrize(
    "answers",
    [
        [b"220 x\r\n", b"250 x\r\n", b"502 no\r\n"],
        [b"220 x\r\n", b"250-STARTTLS\r\n250 x\r\n", b"220 go\r\n" + HELLO + b"235 in\r\n" + OK * 9],
        [b"220 x\r\n250 x\r\n220 go\r\n" + OK],
        [b"554 no\r\n"],
        [b"x" * 5000],
        [b"220-x\r\n" * 500],
    ],
)
def test_where_tls_is_demanded_neither_login_nor_message_is_sent_before_it(answers: list[bytes]) -> None:
    code, heard = outcome(*answers, tls="starttls")
    assert code in ("egress.tls", "egress.protocol", "egress.timeout")
    assert [word for word in ("AUTH", "MAIL", "DATA") if word in heard] == []


def test_bytes_above_127_go_only_to_a_server_that_takes_them() -> None:
    message = "From: a@b.example\r\n\r\nGrüße\r\n.\r\n".encode()
    assert outcome(*GOOD, message=message)[0] == "sent"
    plain = b"250-x\r\n250 AUTH PLAIN\r\n"
    assert outcome(GOOD[0], plain, *GOOD[2:], message=message)[0] == "egress.message"
