"""Each connection is bounded by its portal's terms and by its call, whatever its handler does, and is told of once."""

from __future__ import annotations

import asyncio
import logging
import select
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from toolcage.broker.broker import RECORDS, Broker, Passage, Record, Way
from toolcage.broker.stream import ClientStream, Connection, Denied, PortalTerms
from toolcage.cage import wire
from toolcage.cage.portals import Portal, Switch

Serve = Callable[[ClientStream, Connection], Awaitable[None]]
FIRST = wire.FIRST_PORTAL_STREAM


class Call:
    """A call with one portal: what its cage sends goes in, what was told of its connections comes out."""

    def __init__(self, broker: Broker, serve: Serve, terms: PortalTerms) -> None:
        self.records: list[Record] = []
        self.told = threading.Condition()
        way = Way(kind="http", terms=terms, serve=serve)
        self.passage: Passage = broker.passage({"api": way}, self._record)
        portal = Portal(name="api", kind="http", port=8101)
        self.switch = Switch((portal,), lambda portal, stream: self.passage.connect(portal.name, stream))
        self._opened = 0

    def _record(self, record: Record) -> None:
        with self.told:
            self.records.append(record)
            self.told.notify_all()

    def connect(self, *pieces: bytes) -> int:
        stream = FIRST + self._opened
        self._opened += 1
        self.switch.take(wire.Frame(wire.OPEN, stream, b"\0"))
        for piece in pieces:
            self.switch.take(wire.Frame(wire.DATA, stream, piece))
        return stream

    def hang_up(self, stream: int) -> None:
        self.switch.take(wire.Frame(wire.CLOSE, stream, wire.AT_ONCE))

    def await_close(self, stream: int) -> None:
        """Takes frames until the host closed the stream, and closes it as a cage does."""
        while select.select([self.switch], [], [], 20)[0]:
            frames = wire.Decoder().feed(self.switch.outgoing())
            if any((frame.type, frame.stream) == (wire.CLOSE, stream) for frame in frames):
                self.switch.take(wire.Frame(wire.CLOSE, stream, wire.GENTLY))
                return
        raise AssertionError("the stream was not closed")

    def verdicts(self, count: int) -> list[tuple[str, str]]:
        """Verdict and reason of the first `count` connections, once they are over."""
        with self.told:
            assert self.told.wait_for(lambda: len(self.records) >= count, 20)
        return [(item.connection.verdict, item.connection.reason) for item in self.records]


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    yield made
    made.close()
    assert "toolcage-broker" not in {thread.name for thread in threading.enumerate()}


@pytest.fixture
def call(broker: Broker) -> Iterator[Callable[..., Call]]:
    made: list[Call] = []

    def begin(serve: Serve, **terms: float) -> Call:
        made.append(Call(broker, serve, PortalTerms(**terms)))  # type: ignore[arg-type]
        return made[-1]

    yield begin
    for item in made:
        item.switch.close()
        item.passage.end()


async def echo(client: ClientStream, note: Connection) -> None:
    await client.write(await client.read(100))


async def hang(client: ClientStream, note: Connection) -> None:
    await asyncio.Event().wait()


async def wait_for_client(client: ClientStream, note: Connection) -> None:
    while await client.read(100):
        pass


def test_a_handler_s_answer_reaches_the_cage_and_the_connection_is_told_of(call: Callable[..., Call]) -> None:
    made = call(echo)
    stream = made.connect(b"hello")
    assert made.verdicts(1) == [("closed", "")]
    frames = wire.Decoder().feed(made.switch.outgoing())
    assert [(frame.type, frame.stream) for frame in frames] == [
        (wire.DATA, stream), (wire.END, stream), (wire.CLOSE, stream),
    ]  # fmt: skip
    assert (frames[0].payload, frames[2].payload) == (b"hello", wire.GENTLY)


def test_a_connection_is_open_no_longer_than_its_terms(call: Callable[..., Call]) -> None:
    made = call(hang, total_s=0.1)
    made.connect()
    assert made.verdicts(1) == [("limit", "egress.time")]
    assert made.passage.end()[0].reason == "egress.time"


def test_no_more_connections_are_open_at_once_than_the_terms(call: Callable[..., Call]) -> None:
    made = call(wait_for_client, max_connections=2)
    streams = [made.connect() for _ in range(3)]
    assert made.verdicts(1) == [("limit", "egress.connections")]
    made.hang_up(streams[0])
    made.verdicts(2)
    made.connect()
    assert [item.reason for item in made.passage.end()] == ["egress.connections"]


def test_a_cage_that_takes_its_end_away_ends_the_handler(call: Callable[..., Call]) -> None:
    made = call(hang)
    made.hang_up(made.connect())
    assert made.verdicts(1) == [("cancelled", "egress.cancelled")]


def test_the_end_of_the_call_ends_every_handler_and_waits_for_it(call: Callable[..., Call]) -> None:
    left: list[str] = []

    async def hold(client: ClientStream, note: Connection) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            left.append("let go")

    made = call(hold)
    for _ in range(3):
        made.connect()
    made.switch.close()
    assert made.passage.end() == ()
    assert left == ["let go"] * 3
    assert made.verdicts(3) == [("cancelled", "egress.cancelled")] * 3


@pytest.mark.parametrize(
    ("raised", "verdict", "reason"),
    [
        (Denied("egress.path_not_granted", "no", "why"), "denied", "egress.path_not_granted"),
        (Denied("egress.bytes_down", "too much"), "limit", "egress.bytes_down"),
        (ConnectionResetError("gone"), "failed", "egress.broken"),
        (ZeroDivisionError("a fault of the handler"), "failed", "egress.internal"),
    ],
    ids=str,
)
def test_whatever_a_handler_raises_ends_its_connection_alone(
    call: Callable[..., Call], raised: Exception, verdict: str, reason: str
) -> None:
    async def serve(client: ClientStream, note: Connection) -> None:
        if await client.read(10) == b"bad":
            raise raised
        await echo(client, note)

    made = call(serve)
    good = made.connect()
    made.connect(b"bad")
    assert made.verdicts(1) == [(verdict, reason)]
    made.switch.take(wire.Frame(wire.DATA, good, b"good"))
    made.switch.take(wire.Frame(wire.DATA, good, b"more"))
    assert made.verdicts(2)[1] == ("closed", "")
    assert [item.reason for item in made.passage.end()] == [reason]


def test_many_connections_are_told_of_one_by_one_up_to_a_number_and_then_as_a_sum(call: Callable[..., Call]) -> None:
    async def count(client: ClientStream, note: Connection) -> None:
        note.count_up(len(await client.read(10)), PortalTerms())

    made = call(count)
    for _ in range(RECORDS + 10):
        made.await_close(made.connect(b"12345"))
    made.passage.end()
    assert len(made.records) == RECORDS + 1
    last = made.records[-1]
    assert (last.count, last.connection.bytes_up, last.connection.verdict) == (10, 50, "closed")


def test_a_closed_broker_serves_no_call_and_a_call_that_outlives_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker()
    made = Call(broker, hang, PortalTerms())
    made.connect()
    broker.close()
    with caplog.at_level(logging.WARNING):
        made.passage.end()
    made.switch.close()
    assert made.verdicts(1) == [("cancelled", "egress.cancelled")]
    with pytest.raises(RuntimeError):
        broker.passage({}, lambda record: None)
    Broker().close()
