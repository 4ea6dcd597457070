"""What a portal's handler works with: the cage's end of one connection, its terms, and the note that the audit keeps.

A handler is `async def serve(client, *, ..., terms, note) -> None`. It reads hostile bytes from `client`, connects to
what its own configuration names and to nothing else, fills in `note` as it learns, and returns when the connection is
over. It raises `Denied` for whatever the grant or the floor refuses; the caller, who also bounds the whole by
`terms.total_s` and by the call's deadline, writes the record. Cancellation ends it; it must let go of every descriptor
then. Nothing here opens a connection.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

MIB: Final = 1024 * 1024
TARGET_CHARS: Final = 2000

Verdict: TypeAlias = Literal["open", "closed", "denied", "failed", "limit", "cancelled"]


class ClientStream(Protocol):
    """The cage's end of one connection, as the handler sees it. One reader and one writer at a time."""

    async def read(self, n: int) -> bytes:
        """At least one byte and at most `n`; b"" once the cage has ended its side or is gone."""
        ...

    async def write(self, data: bytes) -> None:
        """Hands `data` to the cage; waits while the cage does not read. Raises ConnectionError when it is gone."""
        ...

    async def end(self) -> None:
        """Says that nothing more will be written (half close). A second call does nothing."""
        ...

    def abort(self) -> None:
        """Ends the connection both ways at once. Never waits, never raises, may be called again."""
        ...


class Denied(Exception):
    """The connection, or what was asked for on it, is refused.

    `message` is for the tool and the model (no secret, no rule text), `operator` for the audit log.
    """

    def __init__(self, code: str, message: str, operator: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.operator = operator or message


@dataclass(frozen=True, slots=True, kw_only=True)
class PortalTerms:
    """The bounds of one portal. Bytes are per connection and direction (`up` leaves the cage); times in seconds.

    `max_connections` bounds those that are open at once. `connect_s` covers name, connection and TLS together, `idle_s`
    a wait without a byte either way, `total_s` the whole connection. `call_s` is how long the call may run.
    """

    max_connections: int = 16
    max_bytes_up: int = 16 * MIB
    max_bytes_down: int = 64 * MIB
    connect_s: float = 10.0
    idle_s: float = 30.0
    total_s: float = 120.0
    call_s: float = 120.0


@dataclass(slots=True, kw_only=True)
class Connection:
    """What is known of one connection, filled in by its handler: where to, how much, how it ended, for the audit.

    `target` is what was asked for (`host:port`, for `http` method and URL of each request), `address` the pinned
    address with its port. `cached` counts requests that were answered from memory. `reason` is a code (`egress.…`),
    `detail` the operator's text. `call_began` is monotonic. Nothing here holds a secret.
    """

    portal: str
    kind: str
    target: str = ""
    address: str = ""
    bytes_up: int = 0
    bytes_down: int = 0
    cached: int = 0
    verdict: Verdict = "open"
    reason: str = ""
    message: str = ""
    detail: str = ""
    call_began: float = field(default_factory=time.monotonic)

    @property
    def is_full(self) -> bool:
        """Whether nothing more that is asked for could be noted: then nothing more may be asked."""
        return len(self.target) >= TARGET_CHARS

    def add_target(self, target: str) -> None:
        """One more thing that was asked for on this connection."""
        self.target = f"{self.target}; {target}" if self.target else target

    def mark_target(self, mark: str) -> None:
        """Says of the last thing that was asked for how it went."""
        self.target = f"{self.target} ({mark})"

    def count_up(self, count: int, terms: PortalTerms) -> None:
        """Counts bytes that leave the cage. Raises Denied (`egress.bytes_up`) above the terms."""
        self.bytes_up += count
        if self.bytes_up > terms.max_bytes_up:
            raise Denied("egress.bytes_up", f"more than {terms.max_bytes_up} bytes were sent on one connection")

    def count_down(self, count: int, terms: PortalTerms) -> None:
        """Counts bytes that come back. Raises Denied (`egress.bytes_down`) above the terms."""
        self.bytes_down += count
        if self.bytes_down > terms.max_bytes_down:
            raise Denied("egress.bytes_down", f"more than {terms.max_bytes_down} bytes came back on one connection")
