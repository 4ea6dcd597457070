"""An entry of resources.yaml becomes exactly one destination, with the operator's terms and nothing wider."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcage.broker.dial import Upstream
from toolcage.errors import ResourceError
from toolcage.line.upstreams import imap_config, mail_server, postgres_config, smtp_config, upstream
from toolcage.resources import Mailbox, MailServer, PostgresDatabase, SecretRef, Server

SECRET = SecretRef(source="env", place="P")


@pytest.mark.parametrize("server", [
    Server(host="h.example.com", port=5, tls=True, ca=Path("/ca"), allow_private=True),
    Server(host="::1", port=6, tls=False),
])  # fmt: skip
def test_every_term_of_a_server_arrives_and_none_is_added(server: Server) -> None:
    assert upstream(server) == Upstream(
        host=server.host, port=server.port, tls=server.tls, ca=server.ca, allow_private=server.allow_private,
        clear_to_public=False,
    )  # fmt: skip


def test_a_database_is_reached_by_its_server_or_its_socket_never_both() -> None:
    server = Server(host="h.example.com", port=5432)
    by_name = PostgresDatabase(name="d", database="d", user="u", password=SECRET, server=server)
    config = postgres_config(by_name, read_only=True, statement_s=5)
    assert (config.server, config.socket, config.read_only, config.statement_s) == (upstream(server), None, True, 5)
    by_socket = PostgresDatabase(name="d", database="d", user="u", password=None, socket=Path("/run/pg"), port=5433)
    config = postgres_config(by_socket, read_only=False, statement_s=5)
    assert (config.server, config.socket) == (None, Path("/run/pg/.s.PGSQL.5433"))


def mailbox(smtp: MailServer | None, imap: MailServer | None) -> Mailbox:
    return Mailbox(
        name="team", address="bot@example.com", user="bot", password=SECRET, smtp=smtp, imap=imap, folders=("INBOX",),
        max_message=1000,
    )  # fmt: skip


def test_a_mailbox_sends_as_itself_and_reads_its_folders() -> None:
    out = MailServer(server=Server(host="smtp.example.com", port=587), tls="starttls")
    into = MailServer(server=Server(host="imap.example.com", port=993), tls="implicit")
    both = mailbox(out, into)
    sending = smtp_config(both, recipients=["a@example.com"], call="c", key="k")
    assert (sending.sender, sending.recipients, sending.call, sending.key, sending.max_message) == (
        "bot@example.com", frozenset({"a@example.com"}), "c", "k", 1000,
    )  # fmt: skip
    assert (sending.server.tls, sending.server.upstream.host, sending.server.password) == (
        "starttls", "smtp.example.com", SECRET,
    )  # fmt: skip
    reading = imap_config(both)
    assert (reading.folders, reading.server.upstream.port, reading.server.tls) == (("INBOX",), 993, "implicit")


def test_an_end_that_the_mailbox_does_not_have_is_an_error_that_names_it() -> None:
    out = MailServer(server=Server(host="smtp.example.com", port=587), tls="starttls")
    with pytest.raises(ResourceError, match="has no `imap`"):
        imap_config(mailbox(out, None))
    with pytest.raises(ResourceError, match="has no `smtp`"):
        mail_server(mailbox(None, out), "smtp")
