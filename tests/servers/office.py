"""resources.yaml for the servers of an office: one mailbox, one calendar."""

from __future__ import annotations

from pathlib import Path

from servers.dovecot import DovecotServer
from servers.radicale import RadicaleServer
from servers.smtp import SmtpServer

MAIL_SECRET, DAV_SECRET = "OFFICE_MAIL_PASSWORD", "OFFICE_DAV_PASSWORD"


def resources_of(
    folder: Path, smtp: SmtpServer, dovecot: DovecotServer, radicale: RadicaleServer, access: str = "rw"
) -> Path:
    """The file, made in `folder`. `team` sends and reads INBOX and Office; `deaf` sends; `quiet` invites nobody."""
    made = folder / "resources.yaml"
    made.write_text(
        f"""
version: 1
mailboxes:
  team:
    address: bot@example.com
    user: bot
    password: {{env: {MAIL_SECRET}}}
    smtp: {{host: 127.0.0.1, port: {smtp.starttls}, tls: starttls, ca: "{smtp.ca}"}}
    imap: {{host: 127.0.0.1, port: {dovecot.implicit}, tls: implicit, ca: "{dovecot.ca}"}}
    folders: [INBOX, Office]
    max_message: 1MiB
  deaf:
    address: bot@example.com
    user: bot
    password: {{env: {MAIL_SECRET}}}
    smtp: {{host: 127.0.0.1, port: {smtp.implicit}, tls: implicit, ca: "{smtp.ca}"}}
calendars:
  team:
    url: {radicale.url}
    user: bot
    password: {{env: {DAV_SECRET}}}
    access: {access}
    address: bot@example.com
    ca: "{radicale.ca}"
  quiet: {{url: "{radicale.url}", user: bot, password: {{env: {DAV_SECRET}}}, access: {access}, ca: "{radicale.ca}"}}
"""
    )
    return made
