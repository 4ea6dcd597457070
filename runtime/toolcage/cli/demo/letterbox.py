"""A mail server on loopback for the demo, as small as it can be: it takes every message and keeps it.

What came in is the receiver's own account of what the agent sent, so no row about a mail rests on a result's word. It
knows HELO, MAIL, RCPT, DATA, RSET, NOOP and QUIT, no TLS and no login, and listens on 127.0.0.1 alone, for a broker
that speaks one command at a time. Not a mail server for anything else.
"""

from __future__ import annotations

import email
import email.policy
import socketserver
import threading
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Final, Self

_LONGEST_LINE: Final = 4096
_MOST_LINES: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One message as it came: to whom the envelope says, and the message."""

    recipients: tuple[str, ...]
    message: EmailMessage

    @property
    def text(self) -> str:
        """The body as plain text."""
        body = self.message.get_body(("plain",))
        return "" if body is None else str(body.get_content())


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        self.letters: list[Letter] = []
        super().__init__(("127.0.0.1", 0), _Conversation)


class _Conversation(socketserver.StreamRequestHandler):
    timeout = 60
    server: _Server

    def handle(self) -> None:
        recipients: list[str] = []
        self._say("220 demo")
        while line := self.rfile.readline(_LONGEST_LINE):
            verb, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
            match verb.upper():
                case "EHLO" | "HELO" | "NOOP":
                    self._say("250 demo")
                case "MAIL" | "RSET":
                    recipients = []
                    self._say("250 ok")
                case "RCPT":
                    recipients.append(rest.partition("<")[2].partition(">")[0])
                    self._say("250 ok")
                case "DATA":
                    if not self._take(tuple(recipients)):
                        return
                case "QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("502 not known")

    def _take(self, recipients: tuple[str, ...]) -> bool:
        """Whether a whole message came."""
        self._say("354 go on")
        lines: list[bytes] = []
        while (line := self.rfile.readline(_LONGEST_LINE)) not in (b".\r\n", b"") and len(lines) < _MOST_LINES:
            lines.append(line.removeprefix(b"."))
        if line != b".\r\n":  # cut off on the way
            return False
        message = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.server.letters.append(Letter(recipients=recipients, message=message))
        self._say("250 taken")
        return True

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class Letterbox:
    """Listens from the start. Use it with `with`, or call `close`."""

    def __init__(self) -> None:
        self._server = _Server()
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="demo-letterbox", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return int(self._server.server_address[1])

    @property
    def letters(self) -> tuple[Letter, ...]:
        """What has come in so far."""
        return tuple(self._server.letters)

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
