"""Whatever a call reaches stands in a record that names it, and what could not be recorded is not reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from toolcage.broker.broker import RECORDS, SUMS, Broker, Passage, Record, Way
from toolcage.broker.stream import TARGET_CHARS, ClientStream, Connection, PortalTerms


class Over:
    """A cage's end that sends one line and has ended."""

    def __init__(self, line: bytes) -> None:
        self._line = line
        self.gone = False

    def watch(self, on_event: Callable[[], None]) -> None: ...

    def take(self, most: int) -> bytes | None:
        taken, self._line = self._line[:most], self._line[most:]
        return taken

    def put(self, data: bytes) -> int:
        return len(data)

    def end(self) -> None: ...

    def close(self, *, at_once: bool) -> None: ...


async def reach(client: ClientStream, note: Connection) -> None:
    note.target = (await client.read(1000)).decode()
    note.address = "192.0.2.1:443"


@pytest.fixture
def passage() -> Iterator[tuple[Passage, list[Record]]]:
    broker, told = Broker(), list[Record]()
    way = Way(kind="http", terms=PortalTerms(max_connections=100_000), serve=reach)
    yield broker.passage({"api": way}, told.append), told
    broker.close()


def test_of_very_many_connections_every_place_that_was_reached_is_named(
    passage: tuple[Passage, list[Record]],
) -> None:
    opened, told = passage
    for _ in range(3 * RECORDS):
        opened.connect("api", Over(b"GET /harmless"))
    opened.connect("api", Over(b"POST /stolen"))
    opened.end()
    assert sum(item.count for item in told) == 3 * RECORDS + 1
    assert [item.count for item in told if item.connection.target == "POST /stolen"] == [1]


def test_a_call_that_reaches_more_places_than_can_be_recorded_reaches_no_more(
    passage: tuple[Passage, list[Record]],
) -> None:
    opened, told = passage
    count = RECORDS + SUMS + 500
    for number in range(count):
        opened.connect("api", Over(b"GET /%d" % number))
    denied = opened.end()
    reached = [item for item in told if item.connection.address]
    assert {item.connection.target for item in reached if item.count > 1} == set()
    assert sum(item.count for item in told) == count
    assert {note.reason for note in denied} == {"egress.connections"}
    assert len(reached) <= RECORDS + SUMS


def test_a_note_that_is_full_says_so() -> None:
    note = Connection(portal="api", kind="http")
    while not note.is_full:
        note.add_target("GET https://api.example.com/" + "x" * 200)
    assert TARGET_CHARS <= len(note.target) < TARGET_CHARS + 300
