"""What a hostile or broken PostgreSQL server can do to the broker: nothing but be refused."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from toolcage.broker.dial import Upstream
from toolcage.broker.postgres_login import Login, PostgresConfig, log_in
from toolcage.broker.stream import Denied
from toolcage.secret_reference import SecretRef

PASSWORD = "pg-canary-5d1c9e"
SECRET = SecretRef(source="env", place="TOOLCAGE_TEST_PG")
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def message(kind: bytes, content: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(content) + 4) + content


def request(code: int, rest: bytes = b"") -> bytes:
    return message(b"R", struct.pack("!i", code) + rest)


SASL = request(10, b"SCRAM-SHA-256\0\0")
READY = request(0) + message(b"S", b"server_version\x0015.1\0") + message(b"Z", b"I")


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET.place, PASSWORD)


async def startup(reader: asyncio.StreamReader) -> None:
    (length,) = struct.unpack("!i", await reader.readexactly(4))
    await reader.readexactly(length - 4)


async def answer(reader: asyncio.StreamReader) -> bytes:
    _, length = struct.unpack("!ci", await reader.readexactly(5))
    return await reader.readexactly(length - 4)


async def logged_in(script: Script, *, tls: bool, connect_s: float = 5) -> Any:
    """What `log_in` gives, or why it refused; and everything that the server was sent."""
    heard = bytearray()

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await script(reader, writer)
            heard.extend(await reader.read())
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()
            done.set()

    done = asyncio.Event()
    server = await asyncio.start_server(run, "127.0.0.1", 0)
    upstream = Upstream(host="127.0.0.1", port=server.sockets[0].getsockname()[1], tls=tls)
    config = PostgresConfig(database="d", user="u", password=SECRET, server=upstream)
    try:
        return dict((await _close(log_in(config, connect_s=connect_s, count=lambda _: None))).parameters)
    except Denied as denied:
        refused = denied
    finally:
        server.close()
        await done.wait()
        await asyncio.sleep(0)
    assert [part for part in (refused.operator, refused.message, heard.decode("latin-1")) if PASSWORD in part] == []
    assert "127.0.0.1" not in refused.message
    return refused.code


async def _close(login: Awaitable[Login]) -> Login:
    made = await login
    made.stream.abort()
    return made


def outcome(*sent: bytes, tls: bool = False, connect_s: float = 5) -> Any:
    """A server that sends one piece after each message of the broker's."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number, piece in enumerate(sent):
            await (startup(reader) if number == 0 else answer(reader))
            writer.write(piece)
            await writer.drain()

    return asyncio.run(logged_in(script, tls=tls, connect_s=connect_s))


@pytest.mark.parametrize("settled", [message(b"C", b"SET\0"), message(b"E", b"SERROR\0Munknown parameter\0\0")])
def test_a_server_that_asks_for_nothing_lets_in_whatever_its_age(settled: bytes) -> None:
    assert outcome(READY, settled + message(b"Z", b"I")) == {"server_version": "15.1"}


@pytest.mark.parametrize("reply", [b"N", b"E" + b"FATAL", b"X", b"G"])
def test_without_tls_where_tls_is_demanded_no_word_is_said(reply: bytes) -> None:
    assert outcome(reply, tls=True) == "egress.tls"


def test_what_stands_behind_the_yes_to_tls_is_never_taken_for_the_server_s_word() -> None:
    assert outcome(b"S" + READY, tls=True) == "egress.tls"


def test_the_password_is_never_sent_in_the_clear_without_tls() -> None:
    assert outcome(request(3), READY) == "egress.login"


def scram(first: bytes, *rest: bytes) -> Any:
    """SCRAM in which the server repeats the client's nonce in `first` where `%s` stands."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await startup(reader)
        writer.write(SASL)
        nonce = (await answer(reader)).rpartition(b"r=")[2]
        writer.write(request(11, first.replace(b"%s", nonce)))
        for piece in rest:
            await answer(reader)
            writer.write(piece)

    return asyncio.run(logged_in(script, tls=False))


GOOD_FIRST = b"r=%sserver,s=c2FsdHNhbHRzYWx0c2FsdA==,i=4096"


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        (GOOD_FIRST, [READY]),  # skips its own proof
        (GOOD_FIRST, [request(12, b"v=bm90IHRoZSBwcm9vZg==") + READY]),
        (GOOD_FIRST, [request(12, b"e=other-error") + READY]),
        (GOOD_FIRST, [request(12, b"\xff\xfe") + READY]),
        (GOOD_FIRST, [request(10, b"SCRAM-SHA-256\0\0")]),
        (GOOD_FIRST, [request(3)]),  # a downgrade in the middle
        (b"r=another,s=c2FsdHNhbHRzYWx0c2FsdA==,i=4096", []),
        (b"r=%sserver,s=c2FsdHNhbHRzYWx0c2FsdA==,i=1", []),
        (b"r=%sserver,s=c2FsdHNhbHRzYWx0c2FsdA==,i=999999999", []),
        (b"r=%sserver,s=c2FsdHNhbHRzYWx0c2FsdA==,i=-4096", []),
        (b"", []),
        (b"\xff" * 4000, []),
    ],
)
def test_a_server_that_cannot_prove_itself_by_scram_is_refused(first: bytes, rest: list[bytes]) -> None:
    assert scram(first, *rest) == "egress.login"


def test_a_server_that_asks_for_endless_work_does_not_get_it() -> None:
    assert scram(b"r=%sserver,s=c2FsdHNhbHRzYWx0c2FsdA==,i=10000000") == "egress.login"


@pytest.mark.parametrize("code", [1, 2, 6, 7, 8, 9, 11, 12, 13, -1])
def test_a_login_of_another_kind_is_refused(code: int) -> None:
    assert outcome(request(code)) == "egress.login"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (b"", "egress.timeout"),
        (b"R", "egress.timeout"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "egress.protocol"),
        (b"R" + struct.pack("!i", 0x7FFFFFFF), "egress.protocol"),
        (b"R" + struct.pack("!i", -1), "egress.protocol"),
        (b"R" + struct.pack("!i", 5) + b"\0", "egress.login"),
        (request(0) + message(b"S", b"a\0b\0") * 300, "egress.protocol"),
        (request(0) + message(b"S", b"x" * 70_000), "egress.protocol"),
        (request(0) + message(b"D", b""), "egress.protocol"),
        (message(b"N", b"S\0") * 5, "egress.timeout"),
        (message(b"E", b"SFATAL\0C28P01\0Mpassword authentication failed\0\0"), "egress.login"),
        (message(b"E", b"\xff\xff\0\0\0"), "egress.login"),
    ],
)
def test_a_server_that_says_nothing_or_nonsense_is_refused_in_time(reply: bytes, code: str) -> None:
    assert outcome(reply, connect_s=1) == code


def test_a_server_that_reports_for_ever_is_cut_off() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await startup(reader)
        while True:
            writer.write(message(b"N", b"SNOTICE\0\0"))
            await writer.drain()

    assert asyncio.run(logged_in(script, tls=False, connect_s=1)) in ("egress.timeout", "egress.protocol")
