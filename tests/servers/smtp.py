"""An SMTP server (aiosmtpd) that demands TLS and a login, keeps what it gets, and can be told to refuse."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from servers.authority import Authority
from servers.process import free_port

USER, PASSWORD = "bot", "mail-canary-81f2"


@dataclass
class Delivered:
    """One message as it came."""

    sender: str
    recipients: list[str]
    content: bytes
    tls: bool


@dataclass
class _Keeper:
    delivered: list[Delivered] = field(default_factory=list)
    refuse: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    """Whether a message that was taken is answered by the end of the connection."""

    async def handle_RCPT(  # noqa: N802 - the name that aiosmtpd calls
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if not session.authenticated:
            return "530 log in first"
        if address in self.refuse:
            return self.refuse[address]
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if "DATA" in self.refuse:
            return self.refuse["DATA"]
        content = envelope.content
        assert isinstance(content, bytes)
        assert envelope.mail_from is not None
        self.delivered.append(
            Delivered(
                envelope.mail_from,
                list(envelope.rcpt_tos),
                content,
                server.transport.get_extra_info("ssl_object") is not None,
            )
        )
        if self.silent:
            server.transport.abort()
        return "250 taken"


class SmtpServer:
    """Two ports: `starttls` and `implicit`."""

    def __init__(self, authority: Authority) -> None:
        self.keeper = _Keeper()
        self.ca = authority.file
        certificate = authority.issue("smtp")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.chain, certificate.key)
        common: dict[str, Any] = {
            "hostname": "127.0.0.1", "authenticator": _authenticate, "data_size_limit": 2**22,
        }  # fmt: skip
        self._controllers = [
            Controller(
                self.keeper, port=free_port(), tls_context=context, require_starttls=True, auth_required=True, **common
            ),
            Controller(self.keeper, port=free_port(), ssl_context=context, auth_require_tls=False, **common),
        ]
        for controller in self._controllers:
            controller.start()
        self.starttls, self.implicit = (controller.port for controller in self._controllers)

    def stop(self) -> None:
        for controller in self._controllers:
            controller.stop()


def _authenticate(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
    right = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)
