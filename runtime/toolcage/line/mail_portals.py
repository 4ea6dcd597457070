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
from toolcage.broker.dial import Resolve, Upstream
from toolcage.broker.mail_server import MailServer
from toolcage.broker.sent import Sent
from toolcage.broker.stream import ClientStream, Connection, PortalTerms
from toolcage.errors import ResourceError
from toolcage.facts.address import AddressFacts
from toolcage.resources import Mailbox
from toolcage.resources import MailServer as NamedServer
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
    if mailbox.smtp is None:
        raise ResourceError(f"the mailbox `{mailbox.name}` has no `smtp`; write it in resources.yaml")
    config = smtp.SmtpConfig(
        server=_server(mailbox, mailbox.smtp),
        sender=mailbox.address,
        recipients=frozenset(item for found in addresses_of(authorized).values() for item in found),
        max_message=mailbox.max_message,
        call=authorized.valid.call.call_id,
        key=key,
    )
    sent = outbox.of(mailbox.name)

    async def serve(client: ClientStream, note: Connection) -> None:
        await smtp.serve(client, config=config, sent=sent, terms=terms, note=note, resolve=resolve)

    return serve


def reading(mailbox: Mailbox, resolve: Resolve, terms: PortalTerms) -> Serve:
    """What serves the `imap` portal of this call. Raises ResourceError where the mailbox cannot be read."""
    if mailbox.imap is None:
        raise ResourceError(f"the mailbox `{mailbox.name}` has no `imap`; write it in resources.yaml")
    server = _server(mailbox, mailbox.imap)
    config = imap.ImapConfig(server=server, folders=mailbox.folders, max_message=mailbox.max_message)

    async def serve(client: ClientStream, note: Connection) -> None:
        await imap.serve(client, config=config, terms=terms, note=note, resolve=resolve)

    return serve


def _server(mailbox: Mailbox, named: NamedServer) -> MailServer:
    where = named.server
    upstream = Upstream(host=where.host, port=where.port, tls=where.tls, ca=where.ca, allow_private=where.allow_private)
    return MailServer(upstream=upstream, tls=named.tls, user=mailbox.user, password=mailbox.password)
