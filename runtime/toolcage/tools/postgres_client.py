"""Speaks PostgreSQL's protocol 3 to a portal: the extended query protocol, with values bound and answers as text.

A client of a hundred lines instead of a driver, for three reasons: the statement goes to the server as it was judged,
no driver rewrites its placeholders; rows are fetched in batches and one too large is never held; values come as the
server writes them, so that none loses a digit on the way. The server refuses a second statement in one `prepare`.

Login, TLS and credentials are the broker's, on the other side. Nothing that comes back is trusted. Standard library
only; sent into the cage beside the tools that use it. Source: PostgreSQL's documentation, "Message Formats".
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PROTOCOL = 196608
MAX_MESSAGE_BYTES = 2 * 1024 * 1024
MAX_COLUMNS = 1664

Value = bytes | None


class Lost(Exception):
    """The connection ended, or what came is no PostgreSQL."""


class Late(Exception):
    """The deadline has passed."""


class TooLarge(Exception):
    """One row or message is larger than what is held."""


class ServerError(Exception):
    """The server's own error. `position` is where in the statement, 0 where the server names no place."""

    def __init__(self, sqlstate: str, message: str, position: int) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.position = position


@dataclass(frozen=True)
class Column:
    """One column of an answer."""

    name: str
    oid: int


@dataclass(frozen=True)
class Prepared:
    """A statement that the server has read. `columns` is empty where it returns no rows."""

    parameters: int
    columns: tuple[Column, ...]


class Client:
    """One connection. `deadline` is of `time.monotonic`. Every method raises Lost, Late, TooLarge or ServerError."""

    def __init__(self, host: str, port: int, deadline: float) -> None:
        self._deadline = deadline
        self.tag = ""
        self.closed = False
        try:
            self._socket = socket.create_connection((host, port), timeout=self._left())
        except TimeoutError:
            raise Late from None
        except OSError as error:
            raise Lost(str(error)) from None
        self._file = self._socket.makefile("rb")
        try:
            body = struct.pack("!i", PROTOCOL) + b"user\0cage\0\0"
            self._send(struct.pack("!i", len(body) + 4) + body)
            self._until_ready()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the session; what was not committed is undone. Safe to repeat."""
        if self.closed:
            return
        self.closed = True
        try:
            self._socket.settimeout(1.0)
            self._socket.sendall(_message(b"X"))
        except OSError:
            pass
        finally:
            self._file.close()
            self._socket.close()

    def run(self, fixed: str) -> None:
        """Statements of our own; `tag` is what the last one did. Never give it a word of the caller's."""
        self._send(_message(b"Q", fixed.encode() + b"\0"))
        for kind, body in self._messages():
            if kind == b"C":
                self.tag = _tag(body)

    def prepare(self, sql: str, oids: Sequence[int]) -> Prepared:
        """Lets the server read one statement. `oids`: the types of its values, 0 where the server shall find it."""
        text = b"\0" + sql.encode() + b"\0" + struct.pack(f"!h{len(oids)}I", len(oids), *oids)
        self._send(_message(b"P", text) + _message(b"D", b"S\0") + _message(b"S"))
        parameters = 0
        columns: tuple[Column, ...] = ()
        for kind, body in self._messages():
            if kind == b"t":
                (parameters,) = struct.unpack_from("!h", body)
            elif kind == b"T":
                columns = _columns(body)
        return Prepared(parameters, columns)

    def rows(self, values: Sequence[Value], batch: int = 0) -> Iterator[list[Value]]:
        """The rows of the prepared statement, `batch` at a time; 0 = all at once. Stop early, then `close`. `tag` is
        what the server says that it did, once it is over."""
        bound = b"".join(struct.pack("!i", -1) if item is None else struct.pack("!i", len(item)) + item
                         for item in values)  # fmt: skip
        bind = b"\0\0" + struct.pack("!hh", 0, len(values)) + bound + struct.pack("!h", 0)
        execute = _message(b"E", b"\0" + struct.pack("!i", batch)) + _message(b"S")
        self._send(_message(b"B", bind) + execute)
        more = True
        while more:
            more = False
            for kind, body in self._messages():
                if kind == b"D":
                    yield _cells(body)
                elif kind == b"s":
                    more = True
                elif kind == b"C":
                    self.tag = _tag(body)
            if more:
                self._send(execute)

    def ask(self, fixed: str, *values: Value) -> list[list[str | None]]:
        """All rows of a statement of our own, as text."""
        self.prepare(fixed, [0] * len(values))
        return [[None if cell is None else cell.decode("utf-8", "replace") for cell in row]
                for row in self.rows(values)]  # fmt: skip

    def _until_ready(self) -> None:
        for _ in self._messages():
            pass

    def _messages(self) -> Iterator[tuple[bytes, bytes]]:
        """Everything until the server is ready again, then its error if there was one."""
        error: ServerError | None = None
        while True:
            try:
                kind, body = self._read()
            except Lost:
                if error is not None:  # its last words
                    raise error from None
                raise
            if kind == b"Z":
                break
            if kind == b"E":
                error = error or _error(body)
            elif error is None:
                yield kind, body
        if error is not None:
            raise error

    def _read(self) -> tuple[bytes, bytes]:
        head = self._exactly(5)
        length = int.from_bytes(head[1:], "big") - 4
        if length < 0:
            raise Lost("a message without a length")
        if length > MAX_MESSAGE_BYTES:
            raise TooLarge
        return head[:1], self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        try:
            self._socket.settimeout(self._left())
            content = self._file.read(count)
        except TimeoutError:
            raise Late from None
        except OSError as error:
            raise Lost(str(error)) from None
        if len(content) < count:
            raise Lost("the connection ended")
        return content

    def _send(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(data)
        except TimeoutError:
            raise Late from None
        except OSError as error:
            raise Lost(str(error)) from None

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise Late
        return left


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _tag(body: bytes) -> str:
    return body.rstrip(b"\0").decode("utf-8", "replace")


def _columns(body: bytes) -> tuple[Column, ...]:
    (count,) = struct.unpack_from("!h", body)
    found, at = [], 2
    for _ in range(min(max(0, count), MAX_COLUMNS)):
        end = body.index(b"\0", at)
        (oid,) = struct.unpack_from("!I", body, end + 7)
        found.append(Column(body[at:end].decode("utf-8", "replace"), oid))
        at = end + 19
    return tuple(found)


def _cells(body: bytes) -> list[Value]:
    (count,) = struct.unpack_from("!h", body)
    cells: list[Value] = []
    at = 2
    for _ in range(max(0, count)):
        (length,) = struct.unpack_from("!i", body, at)
        at += 4
        cells.append(None if length < 0 else body[at : at + length])
        at += max(0, length)
    return cells


def _error(body: bytes) -> ServerError:
    fields = {part[:1]: part[1:].decode("utf-8", "replace") for part in body.split(b"\0") if part}
    place = fields.get(b"P", "")
    return ServerError(fields.get(b"C", "XX000"), fields.get(b"M", ""), int(place) if place.isdecimal() else 0)
