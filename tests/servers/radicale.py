"""A CalDAV server (Radicale) over TLS with one account and one calendar, which is emptied for each test."""

from __future__ import annotations

import base64
import http.client
import ssl
import sys
from pathlib import Path

from servers.authority import Authority
from servers.process import Process, answers, free_port

USER, PASSWORD = "bot", "dav-canary-40c7"
CALENDAR = "/bot/team/"
_CONFIG = """
[server]
hosts = 127.0.0.1:{port}
ssl = True
certificate = {chain}
key = {key}
[auth]
type = htpasswd
htpasswd_filename = {folder}/users
htpasswd_encryption = plain
delay = 0
[storage]
filesystem_folder = {folder}/collections
[logging]
level = warning
"""
_MAKE = """<?xml version="1.0"?><C:mkcalendar xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:set><D:prop>
<D:displayname>Team</D:displayname></D:prop></D:set></C:mkcalendar>"""


class RadicaleServer:
    """`url` is the calendar's."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        self.port = free_port()
        self.ca = authority.file
        self.url = f"https://127.0.0.1:{self.port}{CALENDAR}"
        certificate = authority.issue("radicale")
        folder.mkdir()
        (folder / "users").write_text(f"{USER}:{PASSWORD}\n")
        (folder / "config").write_text(
            _CONFIG.format(port=self.port, chain=certificate.chain, key=certificate.key, folder=folder)
        )
        command = ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "radicale", "-C", str(folder / "config")]
        self._process = Process(command, folder / "log", lambda: answers(self.port))
        self.empty()

    def empty(self) -> None:
        """Makes the calendar anew."""
        self.request("DELETE", CALENDAR)
        status, _ = self.request("MKCALENDAR", CALENDAR, _MAKE)
        if status != 201:
            raise RuntimeError(f"the calendar was answered {status}")

    def request(self, method: str, path: str, body: str = "", user: str = USER) -> tuple[int, str]:
        """Status and body of a request as the account, for looking from outside."""
        context = ssl.create_default_context(cafile=str(self.ca))
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=20)
        token = base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
        try:
            connection.request(method, path, body.encode(), {"Authorization": f"Basic {token}", "Depth": "1"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def stop(self) -> None:
        self._process.stop()
