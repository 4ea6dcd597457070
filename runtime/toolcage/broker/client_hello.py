"""Which host a TLS client asks for: the name in its first message (RFC 8446, 4.1.2; RFC 6066, 3), read strictly.

Many names live at one address, and there the name in this message, not the one that was resolved, says whom a client
reaches: a tunnel to a granted host at such an address would lead to every other customer of it. So the two must be one
name. A message without a name, with two, or with its real name encrypted (ECH, also where it is only pretended) is
refused, and so is one that is longer than any client's. What does not begin as TLS is not judged. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolcage.broker.stream import Denied

MAX_HELLO: Final = 16 * 1024
_HANDSHAKE: Final = 22
_CLIENT_HELLO: Final = 1
_SERVER_NAME: Final = 0
_ENCRYPTED: Final = (0xFE0D, 0xFFCE)


class NeedsMore(Exception):
    """The message has begun and is not whole yet."""


def check_hello(data: bytes, host: str) -> None:
    """Returns nothing where `data`, the first that a client sent, asks for `host` or is no TLS.

    Raises NeedsMore; Denied (`egress.tls_name`).
    """
    if not data:
        raise NeedsMore
    if data[0] != _HANDSHAKE:
        return
    try:
        names = _names(_message(data))
    except NeedsMore:
        if len(data) > MAX_HELLO:
            raise _refused("its first message is too long") from None
        raise
    except IndexError:
        raise _refused("its first message cannot be read") from None
    if names != [host]:
        raise _refused(f"it asks for {', '.join(names)[:300] or 'no host'}")


def _message(data: bytes) -> bytes:
    """The body of the ClientHello, out of however many records it was cut into."""
    message, at = bytearray(), 0
    while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4], "big"):
        if len(data) < at + 5:
            raise NeedsMore
        size = int.from_bytes(data[at + 3 : at + 5], "big")
        if data[at] != _HANDSHAKE or data[at + 1] != 3 or not size:
            raise IndexError
        message += data[at + 5 : at + 5 + size]
        if message[:1] and message[0] != _CLIENT_HELLO:
            raise IndexError
        if len(data) < at + 5 + size:
            raise NeedsMore
        at += 5 + size
    return bytes(message[4 : 4 + int.from_bytes(message[1:4], "big")])


class _Fields:
    """Cuts fields of announced lengths. Raises IndexError where one is longer than what is there."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise IndexError
        self._at += count
        return found

    def sized(self, width: int) -> bytes:
        return self.take(int.from_bytes(self.take(width), "big"))


def _names(body: bytes) -> list[str]:
    """The names that are asked for, in lower case. Raises IndexError, Denied."""
    fields = _Fields(body)
    fields.take(2 + 32)
    for width in (1, 2, 1):  # session, ciphers, compression
        fields.sized(width)
    if not fields:
        return []
    extensions = _Fields(fields.sized(2))
    if fields:
        raise IndexError
    found: list[str] = []
    while extensions:
        kind = int.from_bytes(extensions.take(2), "big")
        content = extensions.sized(2)
        if kind in _ENCRYPTED:
            raise _refused("it encrypts whom it asks for")
        if kind == _SERVER_NAME:
            found += _listed(content)
    return found


def _listed(content: bytes) -> Iterator[str]:
    outer = _Fields(content)
    names = _Fields(outer.sized(2))
    if outer:
        raise IndexError
    while names:
        if names.take(1) != b"\0":
            raise IndexError
        yield names.sized(2).decode("ascii", "backslashreplace").lower()


def _refused(why: str) -> Denied:
    text = "TLS through this tunnel must name the host that the tunnel leads to"
    return Denied("egress.tls_name", text, f"{text}: {why}")
