"""The host's end of the door, against the other end of a real socket that misbehaves in every way it can."""

import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcage.cage import wire
from toolcage.cage.door import LAST_WORDS_BYTES, Door, DoorClosed, DoorMalformed, DoorTimeout


@pytest.fixture
def ends() -> Iterator[tuple[Door, socket.socket]]:
    ours, theirs = socket.socketpair()
    door = Door(ours)
    yield door, theirs
    door.close()
    theirs.close()


def muxed(payload: bytes, channel: int = 1) -> bytes:
    return struct.pack("!BxxxI", channel, len(payload)) + payload


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def test_frames_split_over_the_engine_s_chunks_arrive_whole(ends: tuple[Door, socket.socket]) -> None:
    door, theirs = ends
    encoded = wire.encode(wire.DATA, 1, b"hello") + wire.encode(wire.PING)
    for byte in encoded:
        theirs.sendall(muxed(bytes([byte])))
    assert door.receive(soon()).payload == b"hello"
    assert door.receive(soon()).type == wire.PING


def test_stderr_is_kept_as_last_words_up_to_a_cap_and_never_read_as_frames(ends: tuple[Door, socket.socket]) -> None:
    door, theirs = ends
    theirs.sendall(muxed(wire.encode(wire.PING), channel=2))
    for _ in range(4):
        theirs.sendall(muxed(b"x" * 8000, channel=2))
    theirs.sendall(muxed(wire.encode(wire.DATA, 1, b"real")))
    assert door.receive(soon()).payload == b"real"
    assert len(door.last_words) == LAST_WORDS_BYTES


def test_silence_ends_at_the_deadline(ends: tuple[Door, socket.socket]) -> None:
    with pytest.raises(DoorTimeout):
        ends[0].receive(soon(0.01))


def test_a_reader_that_stalls_holds_a_writer_no_longer_than_its_deadline(ends: tuple[Door, socket.socket]) -> None:
    with pytest.raises(DoorTimeout):
        ends[0].send(b"x" * (64 << 20), soon(0.05))


def test_the_other_end_closing_is_closed_for_reading_and_writing(ends: tuple[Door, socket.socket]) -> None:
    door, theirs = ends
    theirs.close()
    with pytest.raises(DoorClosed):
        door.receive(soon())
    with pytest.raises(DoorClosed):
        door.send(b"x" * (1 << 20), soon())


def test_shutting_the_door_wakes_a_waiting_reader(ends: tuple[Door, socket.socket]) -> None:
    door, _ = ends
    seen: list[type[Exception]] = []

    def read() -> None:
        try:
            door.receive(soon(30))
        except DoorClosed as error:
            seen.append(type(error))

    reader = threading.Thread(target=read)
    reader.start()
    door.shut()
    reader.join(10)
    assert seen == [DoorClosed]


@pytest.mark.parametrize(
    "sent",
    [
        muxed(b"", channel=0),
        muxed(b"", channel=3),
        b"\xff" * 8,
        muxed(wire.HEADER.pack(0, 77, 0)),
        muxed(wire.HEADER.pack(2**32 - 1, wire.DATA, 1)),
        muxed(wire.HEADER.pack(0, wire.DATA, 2**32 - 1)),
    ],
)
def test_what_is_not_the_protocol_ends_the_door(ends: tuple[Door, socket.socket], sent: bytes) -> None:
    door, theirs = ends
    theirs.sendall(sent)
    with pytest.raises(DoorMalformed):
        door.receive(soon())


@given(st.binary(max_size=400))
def test_hostile_bytes_end_in_frames_or_in_one_of_three_errors(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    door = Door(ours)
    theirs.sendall(sent)
    theirs.shutdown(socket.SHUT_WR)
    try:
        while True:
            assert len(door.receive(soon()).payload) <= wire.MAX_DATA_BYTES
    except (DoorClosed, DoorMalformed):
        pass
    finally:
        door.close()
        theirs.close()
