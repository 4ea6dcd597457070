"""The portals of a mailbox: sending to the call's own recipients, reading the granted folders.

Recipients are what the host read from the call's arguments of kind `address`, which the policy judged and a person
maybe approved; the cage cannot add one. `Outbox` remembers, for each mailbox and as long as the runtime lives, which
calls have sent their message. Which of the two a call gets is the word of its tool's declared effects.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from toolcage.broker import imap, smtp
from toolcage.broker.broker import Serve
from toolcage.broker.dial import Resolve
from toolcage.broker.sent import Sent
from toolcage.broker.stream import ClientStream, Connection, PortalTerms
from toolcage.facts.address import AddressFacts
from toolcage.line.upstreams import imap_config, smtp_config
from toolcage.resources import Mailbox
from toolcage.types import AuthorizedCall

Addresses: TypeAlias = Mapping[str, tuple[str, ...]]


class Outbox:
    """What each mailbox has sent. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: dict[str, Sent] = {}

    def of(self, mailbox: str) -> Sent:
        """The memory of one mailbox."""
        with self._lock:
            return self._sent.setdefault(mailbox, Sent())


def addresses_of(authorized: AuthorizedCall) -> Addresses:
    """argument → the addresses in it, each in its one form, as they were read when the call was validated."""
    return MappingProxyType(
        {
            name: tuple(dict.fromkeys(address.mailbox for address in facts.addresses if address.readable))
            for name, facts in authorized.valid.facts.items()
            if isinstance(facts, AddressFacts)
        }
    )


def sending(mailbox: Mailbox, authorized: AuthorizedCall, outbox: Outbox, key: str, resolve: Resolve,
            terms: PortalTerms) -> Serve:  # fmt: skip
    """What serves the `smtp` portal of this call. Raises ResourceError where the mailbox cannot send."""
    recipients = {item for found in addresses_of(authorized).values() for item in found}
    config = smtp_config(mailbox, recipients=recipients, call=authorized.valid.call.call_id, key=key)
    sent = outbox.of(mailbox.name)

    async def serve(client: ClientStream, note: Connection) -> None:
        await smtp.serve(client, config=config, sent=sent, terms=terms, note=note, resolve=resolve)

    return serve


def reading(mailbox: Mailbox, resolve: Resolve, terms: PortalTerms) -> Serve:
    """What serves the `imap` portal of this call. Raises ResourceError where the mailbox cannot be read."""
    config = imap_config(mailbox)

    async def serve(client: ClientStream, note: Connection) -> None:
        await imap.serve(client, config=config, terms=terms, note=note, resolve=resolve)

    return serve
