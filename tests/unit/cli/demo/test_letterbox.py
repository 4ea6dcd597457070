"""The demo's mail server: what a message becomes, and what is none."""

from __future__ import annotations

import smtplib
import socket
from collections.abc import Iterator
from email.message import EmailMessage

import pytest

from toolcage.cli.demo.letterbox import Letterbox


@pytest.fixture
def letterbox() -> Iterator[Letterbox]:
    with Letterbox() as opened:
        yield opened


def test_a_message_is_kept_with_the_recipients_of_its_envelope_and_its_lines_as_they_were(letterbox: Letterbox) -> None:
    message = EmailMessage()
    message["Subject"] = "Hello"
    message.set_content(".one dot\n..two\nlast\n")
    with smtplib.SMTP("127.0.0.1", letterbox.port, timeout=10) as client:
        client.send_message(message, "bot@example.com", ["ann@example.com", "bo@example.com"])
    (letter,) = letterbox.letters
    assert letter.recipients == ("ann@example.com", "bo@example.com")
    assert letter.message["Subject"] == "Hello"
    assert letter.text.splitlines() == [".one dot", "..two", "last"]


def test_a_message_that_is_cut_off_is_none(letterbox: Letterbox) -> None:
    with socket.create_connection(("127.0.0.1", letterbox.port), timeout=10) as line:
        line.sendall(b"EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\nSubject: x\r\n\r\nhalf")
        line.shutdown(socket.SHUT_WR)
        while line.recv(4096):  # until the server has seen the end and hung up
            pass
    assert letterbox.letters == ()


def test_nobody_listens_behind_its_end() -> None:
    with Letterbox() as letterbox:
        port = letterbox.port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)
