"""The ways out that one call has, at their inner end: loopback listeners whose connections travel through the door.

Made before the program of the call starts and closed before its report is sent, so no connection outlives its call and
nobody else can have taken the ports. The bytes of a connection become frames of one stream, within the credit that the
host gives; what comes back is written as fast as the program reads it, and only then is new credit given. It knows no
destination and no secret: a listener is a number, and where that leads is the host's business.

It owns an epoll descriptor which the surrounding loop watches; `turn` then does what is due and never blocks, except
where `send` does. It trusts the frames of the host. Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
from collections.abc import Callable

from toolcage.cage import wire

LOOPBACK = "127.0.0.1"
BACKLOG = 128
_CLOSE_HARD = struct.pack("ii", 1, 0)


class _Connection:
    """One accepted connection. `credit` is what may still be sent to the host, `owed` what it is to get back."""

    __slots__ = ("credit", "end_asked", "got_close", "owed", "read_over", "sent_close", "socket", "stream", "unsent",
                 "watched", "write_over")  # fmt: skip

    def __init__(self, stream: int, accepted: socket.socket) -> None:
        self.stream = stream
        self.socket = accepted
        self.credit = wire.PORTAL_WINDOW
        self.owed = 0
        self.unsent = bytearray()
        self.read_over = self.write_over = self.end_asked = False
        self.got_close = self.sent_close = False
        self.watched = 0

    @property
    def lingers(self) -> bool:
        """Everything is delivered and said; only the program's own end of it is awaited."""
        return self.got_close and self.write_over


class Portals:
    """Listeners on `ports`, numbered in that order. `send` takes encoded frames; `full` says to produce no more."""

    def __init__(self, ports: list[int], send: Callable[[bytes], None], full: Callable[[], bool]) -> None:
        """Raises OSError where a port is taken; nothing is left open then."""
        self._send = send
        self._full = full
        self._epoll = select.epoll()
        self._listeners: dict[int, tuple[int, socket.socket]] = {}
        self._connections: dict[int, _Connection] = {}
        self._by_stream: dict[int, _Connection] = {}
        self._opened = 0
        try:
            for number, port in enumerate(ports):
                self._listen(number, port)
        except OSError:
            self.close()
            raise

    def fileno(self) -> int:
        return self._epoll.fileno()

    def _listen(self, number: int, port: int) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        self._listeners[listener.fileno()] = (number, listener)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen(BACKLOG)
        self._epoll.register(listener.fileno(), select.EPOLLIN)

    def turn(self) -> None:
        """Whatever is ready now."""
        if self._full():
            return
        for descriptor, events in self._epoll.poll(0):
            if descriptor in self._listeners:
                self._accept(*self._listeners[descriptor])
            elif (connection := self._connections.get(descriptor)) is not None:
                if events & select.EPOLLOUT:
                    self._write(connection)
                if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR) and not connection.sent_close:
                    self._read(connection)

    def take(self, frame: wire.Frame) -> None:
        """A frame of the host. One of a stream that is gone is dropped: it was under way."""
        connection = self._by_stream.get(frame.stream)
        if connection is None or (connection.sent_close and frame.type != wire.CLOSE):
            return
        if frame.type == wire.DATA:
            connection.unsent += frame.payload
            self._write(connection)
        elif frame.type == wire.END:
            connection.end_asked = True
            self._write(connection)
        elif frame.type == wire.CREDIT:
            connection.credit += wire.CREDIT_BYTES.unpack(frame.payload)[0]
            self._watch(connection)
        elif frame.type == wire.CLOSE:
            connection.got_close = connection.end_asked = True
            if frame.payload == wire.AT_ONCE or connection.sent_close:
                self._drop(connection, hard=frame.payload == wire.AT_ONCE)
            else:
                self._write(connection)

    def close(self) -> None:
        """Every listener and connection, at once. What the program still had to read of them is gone with it."""
        for connection in list(self._connections.values()):
            self._drop(connection, hard=True)
        for _, listener in self._listeners.values():
            listener.close()
        self._listeners.clear()
        self._by_stream.clear()
        self._epoll.close()

    # inside

    def _accept(self, number: int, listener: socket.socket) -> None:
        if len(self._by_stream) >= wire.MAX_PORTAL_STREAMS and not self._make_room():
            self._pause(True)
            return
        try:
            accepted, _ = listener.accept()
        except OSError:
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._opened >= wire.MAX_PORTAL_OPENS:
            _close_hard(accepted)
            return
        connection = _Connection(wire.FIRST_PORTAL_STREAM + self._opened, accepted)
        self._opened += 1
        self._connections[accepted.fileno()] = self._by_stream[connection.stream] = connection
        self._send(wire.encode(wire.OPEN, connection.stream, bytes([number])))
        self._watch(connection)

    def _make_room(self) -> bool:
        """Gives up a connection that is over but for the program's own end of it."""
        for connection in self._connections.values():
            if connection.lingers:
                self._drop(connection, hard=False)
                return True
        return False

    def _pause(self, paused: bool) -> None:
        """At the cap, connections wait in the kernel's queue."""
        for descriptor in self._listeners:
            self._epoll.modify(descriptor, 0 if paused else select.EPOLLIN)

    def _read(self, connection: _Connection) -> None:
        size = wire.PORTAL_PIECE if connection.got_close else min(connection.credit, wire.PORTAL_PIECE)
        if size == 0 or connection.read_over:
            self._watch(connection)
            return
        try:
            piece = connection.socket.recv(size)
        except BlockingIOError:
            return
        except OSError:
            self._finish(connection, wire.AT_ONCE)
            return
        if not piece:
            connection.read_over = True
            if not connection.got_close:
                self._send(wire.encode(wire.END, connection.stream))
            self._settle(connection)
        elif not connection.got_close:
            connection.credit -= len(piece)
            self._send(wire.encode(wire.DATA, connection.stream, piece))
        self._watch(connection)

    def _write(self, connection: _Connection) -> None:
        if connection.sent_close:
            return
        try:
            while connection.unsent:
                written = connection.socket.send(connection.unsent[: wire.PORTAL_PIECE])
                del connection.unsent[:written]
                connection.owed += written
        except BlockingIOError:
            pass
        except OSError:
            self._finish(connection, wire.AT_ONCE)
            return
        self._give_credit(connection)
        if connection.end_asked and not connection.unsent and not connection.write_over:
            connection.write_over = True
            try:
                connection.socket.shutdown(socket.SHUT_WR)
            except OSError as error:
                if error.errno != errno.ENOTCONN:
                    raise
        self._settle(connection)
        self._watch(connection)

    def _give_credit(self, connection: _Connection) -> None:
        if connection.owed >= wire.PORTAL_WINDOW // 2 and not connection.got_close:
            self._send(wire.encode(wire.CREDIT, connection.stream, wire.CREDIT_BYTES.pack(connection.owed)))
            connection.owed = 0

    def _settle(self, connection: _Connection) -> None:
        """Both directions are over: nothing is left to say."""
        if connection.read_over and connection.write_over:
            self._finish(connection, wire.GENTLY)

    def _finish(self, connection: _Connection, how: bytes) -> None:
        """Our last frame of the stream; it stays known until the host's own."""
        if connection.sent_close:
            return
        connection.sent_close = True
        self._send(wire.encode(wire.CLOSE, connection.stream, how))
        self._let_go(connection, hard=how == wire.AT_ONCE)
        if connection.got_close:
            self._forget(connection)

    def _drop(self, connection: _Connection, *, hard: bool) -> None:
        self._finish(connection, wire.AT_ONCE if hard else wire.GENTLY)
        self._let_go(connection, hard=hard)
        self._forget(connection)

    def _let_go(self, connection: _Connection, *, hard: bool) -> None:
        if self._connections.pop(connection.socket.fileno(), None) is None:
            return
        if connection.watched:
            self._epoll.unregister(connection.socket.fileno())
            connection.watched = 0
        connection.unsent.clear()
        if hard:
            _close_hard(connection.socket)
        else:
            connection.socket.close()

    def _forget(self, connection: _Connection) -> None:
        if self._by_stream.pop(connection.stream, None) is not None:
            self._pause(False)

    def _watch(self, connection: _Connection) -> None:
        """Watches for what can be used: no data without credit, no room without anything to write."""
        descriptor = connection.socket.fileno()
        if connection.sent_close or descriptor not in self._connections:
            return
        may_read = not connection.read_over and (connection.credit > 0 or connection.got_close)
        wanted = (select.EPOLLIN if may_read else 0) | (select.EPOLLOUT if connection.unsent else 0)
        if wanted == connection.watched:
            return
        if not connection.watched:
            self._epoll.register(descriptor, wanted)
        elif wanted:
            self._epoll.modify(descriptor, wanted)
        else:  # an idle registration would still report the other side's end, over and over
            self._epoll.unregister(descriptor)
        connection.watched = wanted


def _close_hard(accepted: socket.socket) -> None:
    """The program sees an error rather than a clean end."""
    with contextlib.suppress(OSError):  # it is gone already
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_HARD)
    accepted.close()
