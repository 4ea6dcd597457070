"""The host's end of a call's connections against a cage that breaks every rule of them, and one that keeps them."""

from __future__ import annotations

import select
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from toolcage.cage import wire
from toolcage.cage.door import DoorMalformed
from toolcage.cage.portals import Portal, PortalStream, Switch

FIRST = wire.FIRST_PORTAL_STREAM
PORTALS = (
    Portal(name="api", kind="http", port=8101),
    Portal(name="egress:", kind="connect", port=8102),
)


class Host:
    """A switch, and the connections that it was told of."""

    def __init__(self) -> None:
        self.connections: list[tuple[Portal, PortalStream]] = []
        self.switch = Switch(PORTALS, lambda portal, stream: self.connections.append((portal, stream)))

    def take(self, kind: int, stream: int, payload: bytes = b"") -> None:
        self.switch.take(wire.Frame(kind, stream, payload))

    def open(self, stream: int = FIRST, portal: int = 0) -> PortalStream:
        self.take(wire.OPEN, stream, bytes([portal]))
        return self.connections[-1][1]

    def sent(self) -> list[tuple[int, int, bytes]]:
        frames = wire.Decoder().feed(self.switch.outgoing())
        return [(frame.type, frame.stream, frame.payload) for frame in frames]


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.switch.close()


def credit(amount: int) -> bytes:
    return struct.pack("!I", amount)


# --- a cage that keeps the rules -----------------------------------------------------------------------------------


def test_a_connection_is_announced_with_the_portal_that_it_was_made_to(host: Host) -> None:
    host.open(FIRST, portal=1)
    host.open(FIRST + 1, portal=0)
    assert [portal.name for portal, _ in host.connections] == ["egress:", "api"]


def test_bytes_flow_both_ways_and_each_side_ends_for_itself(host: Host) -> None:
    stream = host.open()
    assert stream.take(100) is None
    host.take(wire.DATA, FIRST, b"question")
    host.take(wire.END, FIRST)
    assert (stream.take(5), stream.take(100), stream.take(100)) == (b"quest", b"ion", b"")
    assert stream.put(b"answer") == 6
    stream.end()
    assert stream.put(b"more") == 0
    assert host.sent() == [(wire.DATA, FIRST, b"answer"), (wire.END, FIRST, b"")]


def test_credit_is_given_as_data_is_taken_and_not_before(host: Host) -> None:
    stream = host.open()
    for _ in range(4):
        host.take(wire.DATA, FIRST, b"x" * (wire.PORTAL_WINDOW // 4))
    assert host.sent() == []
    taken = 0
    while (piece := stream.take(wire.PORTAL_PIECE)) is not None:
        taken += len(piece)
    given = [struct.unpack("!I", payload)[0] for kind, _, payload in host.sent() if kind == wire.CREDIT]
    assert (taken, sum(given)) == (wire.PORTAL_WINDOW, wire.PORTAL_WINDOW)
    host.take(wire.DATA, FIRST, b"x" * (wire.PORTAL_WINDOW // 4))


def test_no_more_than_a_window_is_sent_before_the_cage_gives_credit(host: Host) -> None:
    stream = host.open()
    assert stream.put(b"x" * (2 * wire.PORTAL_WINDOW)) == wire.PORTAL_WINDOW
    assert (stream.put(b"x"), stream.room) == (0, 0)
    host.take(wire.CREDIT, FIRST, credit(10))
    assert stream.put(b"x" * 20) == 10


def test_what_was_under_way_when_the_host_closed_is_dropped_and_the_stream_is_gone_with_the_cage_s_own_close(
    host: Host,
) -> None:
    stream = host.open()
    stream.close(at_once=True)
    host.take(wire.DATA, FIRST, b"late")
    host.take(wire.END, FIRST)
    assert stream.take(10) == b""
    host.take(wire.CLOSE, FIRST, wire.GENTLY)
    assert host.sent() == [(wire.CLOSE, FIRST, wire.AT_ONCE)]
    with pytest.raises(DoorMalformed):
        host.take(wire.DATA, FIRST, b"later")


def test_the_end_of_the_call_is_the_end_of_every_stream(host: Host) -> None:
    told: list[str] = []
    stream = host.open()
    stream.watch(lambda: told.append("changed"))
    other = Host()
    lost = other.open()
    lost.watch(lambda: told.append("lost"))
    other.switch.close()
    assert told == ["lost"]
    assert (lost.gone, lost.take(10), lost.put(b"x"), stream.gone) == (True, b"", 0, False)
    lost.end()
    lost.close(at_once=True)


def test_whoever_waits_for_frames_is_woken_by_what_is_to_be_sent(host: Host) -> None:
    stream = host.open()
    poller = select.poll()
    poller.register(host.switch.fileno(), select.POLLIN)
    assert poller.poll(0) == []
    thread = threading.Thread(target=stream.put, args=(b"from another thread",))
    thread.start()
    assert poller.poll(10_000)
    thread.join()
    assert host.sent() == [(wire.DATA, FIRST, b"from another thread")]
    assert poller.poll(0) == []


def test_as_many_streams_as_the_cap_may_be_open_and_a_closed_one_makes_room(host: Host) -> None:
    for number in range(wire.MAX_PORTAL_STREAMS):
        host.open(FIRST + number)
    host.connections[0][1].close(at_once=False)
    host.take(wire.CLOSE, FIRST, wire.GENTLY)
    host.open(FIRST + wire.MAX_PORTAL_STREAMS)


# --- a cage that does not ------------------------------------------------------------------------------------------


def flood(host: Host) -> None:
    for number in range(wire.MAX_PORTAL_STREAMS + 1):
        host.open(FIRST + number)


def open_and_close_for_ever(host: Host) -> None:
    for number in range(wire.MAX_PORTAL_OPENS + 1):
        stream = host.open(FIRST + number)
        stream.close(at_once=True)
        host.take(wire.CLOSE, FIRST + number, wire.AT_ONCE)


def send_without_credit(host: Host) -> None:
    host.open()
    for _ in range(5):
        host.take(wire.DATA, FIRST, b"x" * (wire.PORTAL_WINDOW // 4))


def send_without_credit_when_closed(host: Host) -> None:
    host.open().close(at_once=True)
    for _ in range(5):
        host.take(wire.DATA, FIRST, b"x" * (wire.PORTAL_WINDOW // 4))


def after(*frames: tuple[int, bytes]) -> Callable[[Host], None]:
    def act(host: Host) -> None:
        host.open()
        for kind, payload in frames:
            host.take(kind, FIRST, payload)

    return act


ATTACKS: dict[str, Callable[[Host], None]] = {
    "more streams at once than the cap": flood,
    "more streams in all than the cap": open_and_close_for_ever,
    "a portal that the call does not have": lambda host: host.take(wire.OPEN, FIRST, b"\x02"),
    "a connection to no portal": lambda host: host.take(wire.OPEN, FIRST),
    "an id twice": after((wire.OPEN, b"\x00")),
    "an id out of turn": lambda host: host.take(wire.OPEN, FIRST + 1, b"\x00"),
    "an id of the call's own streams": lambda host: host.take(wire.OPEN, wire.STDOUT, b"\x00"),
    "data for a stream that nobody opened": lambda host: host.take(wire.DATA, FIRST, b"x"),
    "credit for a stream that nobody opened": lambda host: host.take(wire.CREDIT, FIRST, credit(1)),
    "a close of a stream that nobody opened": lambda host: host.take(wire.CLOSE, FIRST, wire.GENTLY),
    "more data than there is credit for": send_without_credit,
    "more data than there is credit for, to a closed stream": send_without_credit_when_closed,
    "data behind the end": after((wire.END, b""), (wire.DATA, b"x")),
    "two ends": after((wire.END, b""), (wire.END, b"")),
    "data behind the close": after((wire.CLOSE, wire.AT_ONCE), (wire.DATA, b"x")),
    "credit behind the close": after((wire.CLOSE, wire.AT_ONCE), (wire.CREDIT, credit(1))),
    "two closes": after((wire.CLOSE, wire.AT_ONCE), (wire.CLOSE, wire.AT_ONCE)),
    "credit for more than was sent": after((wire.CREDIT, credit(1))),
    "credit for all there is": after((wire.CREDIT, credit(2**32 - 1))),
    "credit that is no number": after((wire.CREDIT, b"\x01")),
}


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_a_cage_that_breaks_the_rules_of_streams_is_malformed(host: Host, attack: str) -> None:
    with pytest.raises(DoorMalformed):
        ATTACKS[attack](host)


def test_a_frame_above_the_cap_of_its_type_is_no_frame() -> None:
    for kind in (wire.OPEN, wire.CREDIT, wire.CLOSE):
        with pytest.raises(wire.WireError):
            wire.Decoder().feed(wire.HEADER.pack(5, kind, FIRST))


def test_what_a_hostile_cage_can_make_the_host_keep_is_a_window_for_each_stream(host: Host) -> None:
    for number in range(wire.MAX_PORTAL_STREAMS):
        host.open(FIRST + number)
        for _ in range(4):
            host.take(wire.DATA, FIRST + number, b"x" * (wire.PORTAL_WINDOW // 4))
    kept = sum(sum(map(len, stream._inbound)) for _, stream in host.connections)
    assert kept == wire.MAX_PORTAL_STREAMS * wire.PORTAL_WINDOW == 4 * 1024 * 1024
