"""When a request is sent once more, and the key by which a server sees that it is the same one.

A request without side effects may be repeated. One that changes something may be repeated only where the resource has
an idempotency header: the broker sets a key there, over whatever the cage wrote, that belongs to one request of one
approved call and is the same for each time it is sent. Repeated is what broke before a byte of an answer came, and what
was answered 429 or 503 with a Retry-After that ends within the call's time; so many times as the resource allows. The
answer of the last time is the answer.
"""

from __future__ import annotations

import hashlib
import itertools
import time
import uuid
from typing import Final

from toolcage.broker.pace import retry_after_s
from toolcage.broker.stream import Connection, PortalTerms

SAFE: Final = frozenset(("GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT"))
SLOW_DOWN: Final = frozenset((429, 503))
MOST_KEPT: Final = 1024 * 1024
"""A body up to so many bytes is kept to be sent again; a longer one is sent once."""
LEAST_S: Final = 0.2
SPARE_S: Final = 1.0
"""So much of the call's time must be left when a wait is over."""


class Sends:
    """The requests of one call to one resource that may change something, in the order in which they came. `header`
    carries the key; `quoted` as the IETF draft writes it, else bare as most servers read it."""

    def __init__(self, call: str, resource: str, header: str, *, quoted: bool = False) -> None:
        self.header = header
        self._quoted = quoted
        self._origin = f"{call}\0{resource}"
        self._numbers = itertools.count(1)

    def key(self, method: str, target: str, body: bytes) -> tuple[str, str]:
        """The header and its value for a new request, in the form of a random UUID, which some servers insist on.
        `body` is what is known of it before it is sent."""
        parts = (self._origin, str(next(self._numbers)), method, target, hashlib.sha256(body).hexdigest())
        digest = hashlib.sha256("\0".join(parts).encode()).digest()
        key = str(uuid.UUID(bytes=digest[:16], version=4))
        return self.header.lower(), f'"{key}"' if self._quoted else key


def left_s(terms: PortalTerms, note: Connection) -> float:
    """How much of the call's time is left."""
    return terms.call_s - (time.monotonic() - note.call_began)


def wait_s(attempt: int, left: float, retry_after: str | None = None) -> float | None:
    """How long to wait before the request is sent once more; None where the call has no time for it, or where the
    server's Retry-After says nothing. `attempt` counts those that were made."""
    asked = 0.0 if retry_after is None else retry_after_s(retry_after)
    if asked is None:
        return None
    wait = max(asked, LEAST_S * 2 ** (attempt - 1))
    return wait if wait + SPARE_S <= left else None
