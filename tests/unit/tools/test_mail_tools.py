"""What the bodies of the mail tools hold alone, without the schema, the screens and the broker around them."""

from __future__ import annotations

import email.message
from typing import Any

import pytest

from toolcage.tools import send_email
from toolcage.tools.base import ToolFailure, body_of
from toolcage.tools.html_text import html_text
from toolcage.tools.mail_text import addresses, date_of, header_text, parsed, read_message
from toolcage.tools.read_email import ReadEmail, search_terms
from toolcage.tools.send_email import SendEmail, compose

TO = {"to": ["ada@example.com"]}
SPLITS = ["Hi\r\nBcc: x@evil.example", "Hi\nX: y", "Hi\rX: y", "Hi\r\n X"]


@pytest.mark.parametrize("subject", [*SPLITS, "Hi\x85X", "Hi\u2028X", "Hi\0", "\ud800"])
def test_a_subject_that_could_become_two_headers_is_not_composed(subject: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        compose("bot@example.com", TO, subject, "x", None)
    assert caught.value.code == "mail.header"
    assert compose("bot@example.com", TO, "Zahlen für Mai", "x", None)["Subject"] == "Zahlen für Mai"


@pytest.mark.parametrize("value", SPLITS)
def test_the_library_alone_refuses_the_same(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setattr(send_email, "_one_line", lambda text: text)
    for arguments in (("bot@example.com", TO, value), ("bot@example.com", {"to": [value]}, "x"), (value, TO, "x")):
        with pytest.raises(ToolFailure) as caught:
            compose(*arguments, "x", None)
        assert caught.value.code == "mail.header"


def test_without_a_portal_or_recipients_nothing_is_tried() -> None:
    for tool, arguments in ((SendEmail(), {"to": ["a@b.c"], "subject": "x", "body": "x"}), (ReadEmail(), {})):
        with pytest.raises(ToolFailure) as caught:
            body_of(tool)(**arguments)
        assert caught.value.code == "tool.no_portal"
    tool = SendEmail()
    tool.context = {"portals": {"team.smtp": {"kind": "smtp", "host": "127.0.0.1", "port": 1}}, "addresses": {}}
    with pytest.raises(ToolFailure) as caught:
        body_of(tool)(to=["ada@example.com"], subject="x", body="x")
    assert caught.value.code == "mail.no_recipients"  # the host's reading counts, not the argument


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        (None, [("ALL", None)]),
        ("from:ada@example.com invoice", [("FROM", "ada@example.com"), ("TEXT", "invoice")]),
        ('subject:"annual report" is:unread', [("SUBJECT", "annual report"), ("UNSEEN", None)]),
        ("since:2026-05-01 before:2026-06-01", [("SINCE 1-May-2026", None), ("BEFORE 1-Jun-2026", None)]),
        ("it's re: 10:30", [("TEXT", "it’s"), ("TEXT", "re:"), ("TEXT", "10:30")]),
    ],
)
def test_a_query_is_read_into_search_keys(query: Any, terms: Any) -> None:
    assert search_terms(query) == terms


@pytest.mark.parametrize("query", ["since:soon", '"open', "is:odd", "\x07", "ä ö", " ".join("abcdefghijk")])
def test_a_query_that_cannot_be_asked_is_refused(query: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        search_terms(query)
    assert caught.value.code == "mail.query"


def test_html_becomes_the_text_that_a_person_sees() -> None:
    source = """<html><head><title>T</title><style>p{}</style></head><body><!-- note --><p>One<p>Two &amp; 3
    <div hidden>unseen <b>more</b></div><span style="font-size:0px">unseen</span><img alt="logo" src="x">
    <table><tr><td>a</td><td>b</td></tr></table><a href="javascript:x()">go</a></body>"""
    text = html_text(source)
    assert "unseen" not in text
    assert "note" not in text
    assert [line.strip() for line in text.splitlines() if line.strip()][:2] == ["One", "Two & 3"]
    assert "[image: logo]" in text
    assert "go <javascript:x()>" in text
    assert html_text("<p style='display:none'>unseen<p>seen") == "seen"
    assert html_text("<div>" * 100_000 + "deep").endswith("deep")


def test_headers_are_one_line_of_decoded_text() -> None:
    message = parsed(b"From: =?utf-8?q?B=C3=B6?= <bo@example.com>\r\nSubject: =?utf-8?b?5rWL?=\r\n =?x?q?y?=\r\n\r\n")
    assert addresses(message, "From") == [("Bö", "bo@example.com")]
    assert "\n" not in header_text(message, "Subject")
    assert header_text(message, "Subject").startswith("测")
    assert date_of(parsed(b"Date: Mon, 4 May 2026 10:00:00 +0200\r\n\r\n")) == "2026-05-04T08:00:00+00:00"
    for date in (b"yesterday", b"Mon, 99 May 99999 10:00:00", b"=?utf-8?q?x?="):
        assert date_of(parsed(b"Date: " + date + b"\r\n\r\n")) is None


def test_a_forwarded_message_is_an_attachment() -> None:
    inner, outer = email.message.EmailMessage(), email.message.EmailMessage()
    inner.set_content("inner words")
    outer.set_content("outer words")
    outer.add_attachment(inner)
    reading = read_message(parsed(outer.as_bytes()))
    assert reading.text.strip() == "outer words"
    assert [item.type for item in reading.attachments] == ["message/rfc822"]
    assert b"inner words" in reading.attachments[0].content
