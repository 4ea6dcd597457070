"""Both ends of a call's connections joined: real sockets at one end, the host's streams at the other."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Iterator

import pytest

from toolcage.cage import wire
from toolcage.cage.portals import Portal, PortalStream, Switch
from toolcage.warden.portals import Portals


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Joined:
    """A listener, and the host's end of it. `turn` carries frames both ways until nothing moves."""

    def __init__(self) -> None:
        self.port = free_port()
        self.streams: list[PortalStream] = []
        self.full = False
        self.most_under_way = 0
        self._up, self._down, self._from_cage = wire.Decoder(), wire.Decoder(), bytearray()
        portal = Portal(name="api", kind="http", port=self.port)
        self.switch = Switch((portal,), lambda _, stream: self.streams.append(stream))
        self.portals = Portals([self.port], self._from_cage.extend, lambda: self.full)

    def turn(self) -> None:
        while True:
            ready = bool(select.select([self.portals.fileno()], [], [], 0.01)[0]) and not self.full
            if ready:
                self.portals.turn()
            up, down = bytes(self._from_cage), self.switch.outgoing()
            self._from_cage.clear()
            self.most_under_way = max(self.most_under_way, len(up))
            for frame in self._up.feed(up):
                self.switch.take(frame)
            for frame in self._down.feed(down):
                self.portals.take(frame)
            if not (ready or up or down):
                return

    def connect(self) -> tuple[socket.socket, PortalStream]:
        program = socket.create_connection(("127.0.0.1", self.port))
        self.turn()
        return program, self.streams[-1]

    def received(self, stream: PortalStream) -> bytes:
        self.turn()
        taken = b""
        while piece := stream.take(wire.PORTAL_PIECE):
            taken += piece
            self.turn()
        return taken

    def close(self) -> None:
        self.portals.close()
        self.switch.close()


@pytest.fixture
def joined() -> Iterator[Joined]:
    made = Joined()
    yield made
    made.close()


def read_all(joined: Joined, program: socket.socket) -> bytes:
    program.settimeout(10)
    read = b""
    while True:
        joined.turn()
        piece = program.recv(65536)
        if not piece:
            return read
        read += piece


def test_what_a_program_says_arrives_and_the_answer_comes_back(joined: Joined) -> None:
    program, stream = joined.connect()
    program.sendall(b"question")
    assert joined.received(stream) == b"question"
    stream.put(b"answer")
    stream.close(at_once=False)
    assert read_all(joined, program) == b"answer"
    program.close()


def test_a_program_that_ends_its_side_still_gets_the_answer(joined: Joined) -> None:
    program, stream = joined.connect()
    program.sendall(b"question")
    program.shutdown(socket.SHUT_WR)
    assert joined.received(stream) == b"question"
    assert stream.take(1) == b""
    stream.put(b"answer")
    stream.end()
    assert read_all(joined, program) == b"answer"
    joined.turn()
    assert stream.gone
    program.close()


def test_megabytes_pass_unchanged_within_the_window(joined: Joined) -> None:
    program, stream = joined.connect()
    program.setblocking(False)
    content = os.urandom(3 * 1024 * 1024)
    sent, received, back, returned = 0, b"", 0, b""
    while len(returned) < len(content):
        with contextlib.suppress(BlockingIOError):
            sent += program.send(content[sent : sent + 65536])
        received += joined.received(stream)
        back += stream.put(received[back : back + 65536])
        joined.turn()
        with contextlib.suppress(BlockingIOError):
            returned += program.recv(1 << 20)
    assert returned == content
    assert joined.most_under_way <= wire.PORTAL_WINDOW + 4096
    program.close()


def test_a_program_that_does_not_read_holds_no_more_than_a_window_in_the_cage(joined: Joined) -> None:
    program, stream = joined.connect()
    put = 0
    while stream.room:
        put += stream.put(b"x" * wire.PORTAL_PIECE)
        joined.turn()
        assert put < 64 << 20
    (connection,) = joined.portals._connections.values()
    assert len(connection.unsent) <= wire.PORTAL_WINDOW
    program.close()


def test_no_more_than_a_window_leaves_the_cage_while_the_host_takes_nothing(joined: Joined) -> None:
    program, stream = joined.connect()
    program.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        for _ in range(64):
            program.send(b"x" * 50_001)
            joined.turn()
    joined.turn()
    assert sum(map(len, stream._inbound)) == wire.PORTAL_WINDOW
    program.close()


def test_a_broken_connection_is_told_at_once(joined: Joined) -> None:
    program, stream = joined.connect()
    stream.put(b"never read")
    joined.turn()
    program.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    program.close()
    joined.turn()
    assert stream.gone
    assert stream.take(1) == b""


def test_an_abort_by_the_host_is_an_error_for_the_program_and_a_gentle_close_is_none(joined: Joined) -> None:
    program, stream = joined.connect()
    stream.put(b"half an answ")
    joined.turn()
    stream.close(at_once=True)
    joined.turn()
    with pytest.raises(ConnectionResetError):
        read_all(joined, program)
    program.close()
    program, stream = joined.connect()
    program.sendall(b"more than anybody reads" * 1000)
    stream.put(b"whole answer")
    stream.close(at_once=False)
    assert read_all(joined, program) == b"whole answer"
    program.close()


def test_closing_ends_every_connection_and_frees_the_port(joined: Joined) -> None:
    programs = [joined.connect()[0] for _ in range(5)]
    before = len(os.listdir("/proc/self/fd"))
    joined.portals.close()
    assert len(os.listdir("/proc/self/fd")) == before - 5 - 1 - 1
    for program in programs:
        program.settimeout(10)
        with pytest.raises(ConnectionResetError):
            program.recv(1)
        program.close()
    again = Portals([joined.port], lambda encoded: None, lambda: False)
    again.close()


def test_a_port_that_is_taken_is_an_error_that_leaves_nothing_open() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        before = os.listdir("/proc/self/fd")
        with pytest.raises(OSError, match="in use"):
            Portals([free_port(), other.getsockname()[1]], lambda encoded: None, lambda: False)
        assert os.listdir("/proc/self/fd") == before


def test_more_connections_than_the_cap_wait_and_are_served_when_there_is_room(joined: Joined) -> None:
    programs = [socket.create_connection(("127.0.0.1", joined.port)) for _ in range(wire.MAX_PORTAL_STREAMS + 3)]
    joined.turn()
    assert len(joined.streams) == wire.MAX_PORTAL_STREAMS
    for stream in list(joined.streams):
        stream.close(at_once=True)
    joined.turn()
    assert len(joined.streams) == wire.MAX_PORTAL_STREAMS + 3
    for program in programs:
        program.close()


def test_a_connection_that_only_its_program_keeps_open_makes_room_for_a_new_one(joined: Joined) -> None:
    programs = [socket.create_connection(("127.0.0.1", joined.port)) for _ in range(wire.MAX_PORTAL_STREAMS)]
    joined.turn()
    for stream in joined.streams:
        stream.close(at_once=False)
    joined.turn()
    late, stream = joined.connect()
    assert len(joined.streams) == wire.MAX_PORTAL_STREAMS + 1
    assert not stream.gone
    for program in (*programs, late):
        program.close()


def test_hundreds_of_connections_in_a_row_leave_no_descriptor_and_no_stream(joined: Joined) -> None:
    def once() -> None:
        program, stream = joined.connect()
        program.sendall(b"x")
        assert joined.received(stream) == b"x"
        stream.close(at_once=False)
        assert read_all(joined, program) == b""
        program.close()
        joined.turn()

    once()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(120):
        once()
    assert len(os.listdir("/proc/self/fd")) == before
    assert (joined.switch._streams, joined.portals._by_stream, joined.portals._connections) == ({}, {}, {})


def test_a_full_door_stops_reading_from_programs(joined: Joined) -> None:
    program, stream = joined.connect()
    joined.full = True
    program.sendall(b"later")
    joined.turn()
    assert stream.take(10) is None
    joined.full = False
    assert joined.received(stream) == b"later"
    program.close()
