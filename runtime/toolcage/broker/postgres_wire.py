"""PostgreSQL's messages, version 3.0: what the portal needs to read and write, each with a bound on its length.

Source: the PostgreSQL documentation, "Frontend/Backend Protocol". Knows the frames and the few messages that the portal
itself sends or judges; rows and statements pass as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from toolcage.broker.buffered import BufferedReader
from toolcage.broker.stream import Denied

PROTOCOL: Final = 3 << 16
SSL_REQUEST: Final = 80877103
GSS_REQUEST: Final = 80877104
CANCEL_REQUEST: Final = 80877102
MAX_STARTUP: Final = 10_000
"""The server's own bound (MAX_STARTUP_PACKET_LENGTH)."""
MAX_CONTROL: Final = 64 * 1024
"""For the messages that the portal reads whole: logins, errors, parameters."""


async def read_startup(reader: BufferedReader) -> tuple[int, bytes]:
    """Code and content of a message without a type, such as the first one. Raises Denied, Ended."""
    length, code = struct.unpack("!iI", await reader.exactly(8))
    if not 8 <= length <= MAX_STARTUP:
        raise Denied("egress.protocol", "this is not a PostgreSQL connection")
    return code, await reader.exactly(length - 8)


async def read_head(reader: BufferedReader) -> tuple[bytes, int] | None:
    """Type and length of the next message's content; None at a clean end. Raises Denied, Ended."""
    kind = await reader.some(1)
    if not kind:
        return None
    (length,) = struct.unpack("!i", await reader.exactly(4))
    if length < 4:
        raise Denied("egress.protocol", "this is not a PostgreSQL connection")
    return kind, length - 4


async def read_small(reader: BufferedReader) -> tuple[bytes, bytes]:
    """Type and content of the next message, which must be there and small. Raises Denied, Ended."""
    head = await read_head(reader)
    if head is None or head[1] > MAX_CONTROL:
        raise Denied("egress.protocol", "the database server ended the login or said something unreadable")
    return head[0], await reader.exactly(head[1])


def message(kind: bytes, content: bytes = b"") -> bytes:
    """One message with its frame."""
    return kind + struct.pack("!i", len(content) + 4) + content


def head(kind: bytes, length: int) -> bytes:
    """The frame of a message whose content follows."""
    return kind + struct.pack("!i", length + 4)


def startup(parameters: Mapping[str, str]) -> bytes:
    """The first message of a connection."""
    pairs = b"".join(text(key) + text(value) for key, value in parameters.items())
    content = struct.pack("!I", PROTOCOL) + pairs + b"\0"
    return struct.pack("!i", len(content) + 4) + content


def request(code: int) -> bytes:
    """A message that is only a code."""
    return struct.pack("!iI", 8, code)


def text(value: str) -> bytes:
    """A string as the protocol writes it. Raises ValueError for one that holds NUL."""
    if "\0" in value:
        raise ValueError("a name holds a NUL")
    return value.encode() + b"\0"


def read_pairs(content: bytes) -> dict[str, str]:
    """The parameters of a startup message. Raises Denied."""
    parts = content.split(b"\0")
    if len(parts) % 2 or parts[-2:] != [b"", b""]:
        raise Denied("egress.protocol", "this is not a PostgreSQL connection")
    words = [part.decode("utf-8", "replace") for part in parts[:-2]]
    return dict(zip(words[::2], words[1::2], strict=True))


def read_pair(content: bytes) -> tuple[str, str]:
    """Name and value of a ParameterStatus."""
    name, _, rest = content.partition(b"\0")
    return name.decode("utf-8", "replace"), rest.removesuffix(b"\0").decode("utf-8", "replace")


def error(sqlstate: str, words: str) -> bytes:
    """An ErrorResponse that ends the connection."""
    fields = {"S": "FATAL", "V": "FATAL", "C": sqlstate, "M": words}
    content = b"".join(key.encode() + text(value.replace("\0", " ")) for key, value in fields.items())
    return message(b"E", content + b"\0")


def error_words(content: bytes) -> tuple[str, str]:
    """SQLSTATE and primary message of an ErrorResponse: the server's words, for the operator."""
    found = {part[:1]: part[1:].decode("utf-8", "replace") for part in content.split(b"\0") if part}
    return found.get(b"C", ""), found.get(b"M", "")[:500]
