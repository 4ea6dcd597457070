"""From what resources.yaml names to what the broker's handlers are configured with. Pure; reads no secret.

Resources and broker do not know each other: this is the one place where an entry of the operator's file becomes a
destination. Whoever opens a portal and whoever checks a resource (`doctor`) goes through here, so that what was checked
is what is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from toolcage.broker.dial import Upstream
from toolcage.broker.imap import ImapConfig
from toolcage.broker.mail_server import MailServer
from toolcage.broker.postgres_login import PostgresConfig
from toolcage.broker.smtp import SmtpConfig
from toolcage.errors import ResourceError
from toolcage.resources import Mailbox, PostgresDatabase, Server


def upstream(server: Server) -> Upstream:
    """Where the server is."""
    return Upstream(
        host=server.host, port=server.port, tls=server.tls, ca=server.ca, allow_private=server.allow_private
    )


def postgres_config(database: PostgresDatabase, *, read_only: bool, statement_s: float) -> PostgresConfig:
    """One session's terms at the database."""
    socket = None if database.socket is None else database.socket / f".s.PGSQL.{database.port}"
    return PostgresConfig(
        database=database.database,
        user=database.user,
        password=database.password,
        server=None if database.server is None else upstream(database.server),
        socket=socket,
        read_only=read_only,
        statement_s=statement_s,
    )


def mail_server(mailbox: Mailbox, end: Literal["smtp", "imap"]) -> MailServer:
    """One end of the mailbox. Raises ResourceError where it has none."""
    found = mailbox.smtp if end == "smtp" else mailbox.imap
    if found is None:
        raise ResourceError(f"the mailbox `{mailbox.name}` has no `{end}` in resources.yaml; write it there")
    return MailServer(
        upstream=upstream(found.server), tls=found.tls, user=mailbox.user, password=mailbox.password
    )


def smtp_config(mailbox: Mailbox, *, recipients: Iterable[str], call: str, key: str | None) -> SmtpConfig:
    """One call's one message. `recipients` are those of the approved call. Raises ResourceError."""
    return SmtpConfig(
        server=mail_server(mailbox, "smtp"),
        sender=mailbox.address,
        recipients=frozenset(recipients),
        max_message=mailbox.max_message,
        call=call,
        key=key,
    )


def imap_config(mailbox: Mailbox) -> ImapConfig:
    """The mailbox's folders, to be read. Raises ResourceError."""
    server = mail_server(mailbox, "imap")
    return ImapConfig(server=server, folders=mailbox.folders, max_message=mailbox.max_message)
