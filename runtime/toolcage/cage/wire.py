"""The frame codec of the door, shared word for word by the host and the warden. Standard library only.

A frame is a nine-byte header (payload length, type, stream id; network order) and its payload. CONTROL payloads are
JSON objects, DATA payloads raw bytes of one stream. Both sides treat the other's bytes as hostile: every length is
compared with a cap before anything is allocated, an unknown type or a control payload that is not a JSON object is a
`WireError`, and a decoder that has raised once stays broken.

A connection of a portal is a stream with an id from FIRST_PORTAL_STREAM on, used once in a call. The cage opens it
(OPEN); each side sends DATA within the credit that the other gives (CREDIT, from PORTAL_WINDOW on), END for the end of
its own data, and CLOSE as its last frame, after which it takes no notice of the stream. With the other's CLOSE the
stream is gone.

What it does not do: say which frames make sense when. That is the reader's business on each side.
"""

from __future__ import annotations

import json
import struct

HEADER = struct.Struct("!IBI")
CONTROL, DATA, END, PING = 1, 2, 3, 4
OPEN, CREDIT, CLOSE = 5, 6, 7
_TYPES = frozenset((CONTROL, DATA, END, PING, OPEN, CREDIT, CLOSE))
PORTAL_TYPES = frozenset((OPEN, CREDIT, CLOSE))

MAX_DATA_BYTES = 256 * 1024
MAX_CONTROL_BYTES = 64 * 1024
MAX_STREAM_ID = 1 << 16

STDOUT, STDERR, RESULT = 1, 2, 3
"""Stream ids of what a call writes; artifacts and pushed files use ids from FIRST_FREE_STREAM on."""
PAYLOAD = 4
CODE = 5
"""What a new cage compiled of our modules, told ahead of everything else where the host asked for it."""
NO_NAMESPACES = "namespaces are not available in this container"
"""What a cage says on stderr when the host cannot give it `namespace` isolation."""
FIRST_FREE_STREAM = 16

FIRST_PORTAL_STREAM = 4096
PORTAL_WINDOW = 128 * 1024
"""How many bytes of one connection may be under way in each direction before the receiver gives credit."""
PORTAL_PIECE = 32 * 1024
MAX_PORTALS = 16
MAX_PORTAL_STREAMS = 32
"""Connections that one call may have open at once, over all its portals."""
MAX_PORTAL_OPENS = 4096
"""Connections that one call may open in all."""
CREDIT_BYTES = struct.Struct("!I")
GENTLY, AT_ONCE = b"\x00", b"\x01"
"""What a CLOSE says: that data sent before it is still to be delivered, or that nothing more is."""

_CAPS = {CONTROL: MAX_CONTROL_BYTES, DATA: MAX_DATA_BYTES, END: 0, PING: 0, OPEN: 1, CREDIT: 4, CLOSE: 1}


class WireError(Exception):
    """The other side sent something that is not a frame. The channel is finished."""


class Frame:
    """One frame. `payload` is bytes; `control()` reads a CONTROL payload."""

    __slots__ = ("payload", "stream", "type")

    def __init__(self, frame_type: int, stream: int, payload: bytes) -> None:
        self.type = frame_type
        self.stream = stream
        self.payload = payload

    def control(self) -> dict[str, object]:
        """The JSON object of a CONTROL frame. Raises WireError when it is anything else."""
        if self.type != CONTROL:
            raise WireError("not a control frame")
        try:
            value = json.loads(self.payload)
        except (ValueError, RecursionError) as error:
            raise WireError("control payload is not JSON") from error
        if not isinstance(value, dict) or not isinstance(value.get("op"), str):
            raise WireError("control payload is not an object with an op")
        return value


def encode(frame_type: int, stream: int = 0, payload: bytes = b"") -> bytes:
    """One frame as bytes. Raises WireError for a payload above the cap of its type."""
    if frame_type not in _TYPES or len(payload) > _CAPS[frame_type] or not 0 <= stream <= MAX_STREAM_ID:
        raise WireError("frame cannot be encoded")
    return HEADER.pack(len(payload), frame_type, stream) + payload


def encode_control(**fields: object) -> bytes:
    """A CONTROL frame of the given fields, one of which is `op`."""
    return encode(CONTROL, 0, json.dumps(fields, ensure_ascii=True, allow_nan=False).encode())


def is_portal(frame: Frame) -> bool:
    """Whether the frame belongs to a connection of a portal rather than to the call itself."""
    return frame.type in PORTAL_TYPES or (frame.type in (DATA, END) and frame.stream >= FIRST_PORTAL_STREAM)


def encode_stream(stream: int, content: bytes) -> bytes:
    """Content of any length as DATA frames followed by END."""
    view = memoryview(content)
    parts = [
        encode(DATA, stream, bytes(view[start : start + MAX_DATA_BYTES]))
        for start in range(0, len(content), MAX_DATA_BYTES)
    ]
    return b"".join(parts) + encode(END, stream)


class Decoder:
    """Turns a byte stream, in pieces of any size, into frames; never buffers more than one frame and one piece."""

    __slots__ = ("_broken", "_buffer")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._broken = False

    def feed(self, piece: bytes) -> list[Frame]:
        """The frames completed by `piece`. Raises WireError at the first thing that is not a frame."""
        if self._broken:
            raise WireError("the channel is broken")
        self._buffer += piece
        frames: list[Frame] = []
        offset = 0
        while len(self._buffer) - offset >= HEADER.size:
            length, frame_type, stream = HEADER.unpack_from(self._buffer, offset)
            if frame_type not in _TYPES or length > _CAPS[frame_type] or stream > MAX_STREAM_ID:
                self._broken = True
                raise WireError("malformed frame header")
            end = offset + HEADER.size + length
            if len(self._buffer) < end:
                break
            frames.append(Frame(frame_type, stream, bytes(self._buffer[offset + HEADER.size : end])))
            offset = end
        if offset:
            del self._buffer[:offset]
        return frames

    @property
    def pending(self) -> int:
        """Bytes of an unfinished frame, for telling a clean end from a torn one."""
        return len(self._buffer)
