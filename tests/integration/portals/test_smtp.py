"""The `smtp` portal before a real SMTP server: one message, from one sender, to the recipients of its call."""

from __future__ import annotations

import contextlib
import smtplib
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from email.message import EmailMessage
from email.policy import SMTP
from itertools import count

import pytest

from servers.portal import TERMS, Portal, Serve
from servers.smtp import PASSWORD, USER, SmtpServer
from toolcage.broker.dial import Upstream
from toolcage.broker.mail_server import MailServer
from toolcage.broker.sent import Sent
from toolcage.broker.smtp import SmtpConfig, serve
from toolcage.broker.stream import PortalTerms
from toolcage.secret_reference import SecretRef

Open = Callable[[Serve], Portal]
SECRET = SecretRef(source="env", place="TOOLCAGE_TEST_MAIL")
NUMBERS = count()
ADA, BO, EVE = "ada@example.com", "bo@example.com", "eve@evil.example"


@pytest.fixture
def config(smtp: SmtpServer, monkeypatch: pytest.MonkeyPatch) -> SmtpConfig:
    monkeypatch.setenv(SECRET.place, PASSWORD)
    upstream = Upstream(host="127.0.0.1", port=smtp.starttls, ca=smtp.ca)
    server = MailServer(upstream=upstream, tls="starttls", user=USER, password=SECRET)
    return SmtpConfig(
        server=server, sender="bot@example.com", recipients=frozenset({ADA, BO}), max_message=200_000,
        call=f"call-{next(NUMBERS)}",
    )  # fmt: skip


def through(portal: Open, config: SmtpConfig, sent: Sent | None = None, terms: PortalTerms = TERMS) -> Portal:
    memory = sent or Sent()
    return portal(lambda client, note: serve(client, config=config, sent=memory, terms=terms, note=note))


def letter(**fields: str) -> EmailMessage:
    message = EmailMessage(policy=SMTP)
    for name, value in {"From": "bot@example.com", "To": ADA, "Subject": "Orders", **fields}.items():
        if value:
            message[name.replace("_", "-")] = value
    message.set_content("Three orders.\n.\n..\nGrüße 王芳\n")
    return message


def send(opened: Portal, message: EmailMessage, to: list[str] | None = None, sender: str = "bot@example.com") -> None:
    with smtplib.SMTP("127.0.0.1", opened.port, timeout=20) as client:
        client.send_message(message, from_addr=sender, to_addrs=to or [ADA])


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
def test_an_ordinary_client_without_a_password_sends_as_the_mailbox(
    portal: Open, config: SmtpConfig, smtp: SmtpServer, tls: str
) -> None:
    port = smtp.starttls if tls == "starttls" else smtp.implicit
    server = replace(config.server, tls=tls, upstream=replace(config.server.upstream, port=port))
    opened = through(portal, replace(config, server=server))
    send(opened, letter(To=f"Ada <{ADA}>, {BO}", Subject="Aufträge für 王芳"), [ADA, BO])
    (got,) = smtp.keeper.delivered
    assert (got.sender, got.recipients, got.tls) == ("bot@example.com", [ADA, BO], True)
    assert opened.codes() == []
    assert b"Three orders.\r\n.\r\n..\r\n" in got.content
    assert got.content.count(b"Message-ID:") == 1
    assert b"Date: " in got.content
    note = opened.notes[0]
    assert (note.target, note.address) == (f"127.0.0.1:{port}", f"127.0.0.1:{port}")
    assert PASSWORD not in repr(note)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"From": EVE}, "From is not"),
        ({"From": f"bot@example.com, {EVE}"}, "from is not"),
        ({"Sender": EVE}, "sender is not"),
        ({"Reply_To": EVE}, "reply-to is not"),
        ({"To": EVE}, "to names somebody"),
        ({"To": f"{ADA}, {EVE}"}, "to names somebody"),
        ({"Cc": EVE}, "cc names somebody"),
        ({"From": ""}, "no From"),
        ({"Disposition_Notification_To": EVE}, "does not pass"),
        ({"Return_Path": EVE}, "does not pass"),
        ({"List_Unsubscribe": "<https://evil.example>"}, "does not pass"),
        ({"X_Unknown": "fine"}, "does not pass"),
        ({"X_SMTPAPI": '{"to": ["eve@evil.example"]}'}, "does not pass"),
        ({"X_MC_BccAddress": EVE}, "does not pass"),
        ({"X_MSYS_API": '{"campaign_id": "x"}'}, "does not pass"),
        ({"Envelope_To": EVE}, "does not pass"),
        ({"To": "eve%evil.example@example.com"}, "cannot be read"),
        ({"In_Reply_To": "<1@example.com>", "References": "<1@example.com>", "Importance": "high"}, ""),
        ({"Reply_To": "bot@example.com"}, ""),
        ({"To": f'"Lovelace, Ada" <{ADA}>'}, ""),
        ({"To": f"ada@EXAMPLE.com, {BO}"}, ""),
    ],
)
def test_the_header_has_to_say_what_the_envelope_says(
    portal: Open, config: SmtpConfig, smtp: SmtpServer, fields: dict[str, str], said: str
) -> None:
    opened = through(portal, config)
    if not said:
        send(opened, letter(**fields), [ADA, BO])
        assert len(smtp.keeper.delivered) == 1
        return
    with pytest.raises(smtplib.SMTPDataError) as caught:
        send(opened, letter(**fields), [ADA, BO])
    assert said.lower() in str(caught.value).lower()
    assert opened.codes() == ["egress.message"]
    assert smtp.keeper.delivered == []


def test_a_recipient_outside_the_call_is_refused_and_nobody_gets_the_message(
    portal: Open, config: SmtpConfig, smtp: SmtpServer
) -> None:
    opened = through(portal, config)
    with pytest.raises(smtplib.SMTPRecipientsRefused):
        send(opened, letter(), [EVE])
    with pytest.raises(smtplib.SMTPDataError):
        send(opened, letter(), [ADA, EVE])
    assert opened.codes() == ["egress.recipient"] * 2
    assert smtp.keeper.delivered == []
    send(opened, letter(), [ADA])
    assert [got.recipients for got in smtp.keeper.delivered] == [[ADA]]


@pytest.mark.parametrize("sender", [EVE, "bot@example.com.evil.example", "Bot@example.com", "root"])
def test_no_other_sender_is_taken(portal: Open, config: SmtpConfig, smtp: SmtpServer, sender: str) -> None:
    opened = through(portal, config)
    with pytest.raises(smtplib.SMTPSenderRefused):
        send(opened, letter(), sender=sender)
    assert smtp.keeper.delivered == []
    assert opened.codes() == ["egress.message"]


def test_a_call_sends_one_message_on_however_many_connections(
    portal: Open, config: SmtpConfig, smtp: SmtpServer
) -> None:
    opened = through(portal, config)
    send(opened, letter())
    with pytest.raises(smtplib.SMTPDataError, match="one message"):
        send(opened, letter(Subject="second"))
    with smtplib.SMTP("127.0.0.1", opened.port, timeout=20) as client, pytest.raises(smtplib.SMTPDataError):
        client.send_message(letter(), to_addrs=[ADA])
    assert len(smtp.keeper.delivered) == 1


def test_a_call_that_is_tried_again_is_not_sent_again_and_another_call_is(
    portal: Open, config: SmtpConfig, smtp: SmtpServer
) -> None:
    sent = Sent()
    first = replace(config, call="call-a", key="digest-1")
    send(through(portal, first, sent), letter())
    again = through(portal, replace(first, call="call-b"), sent)
    send(again, letter())
    assert len(smtp.keeper.delivered) == 1
    assert "not sent again" in again.notes[0].detail
    send(through(portal, replace(first, call="call-c", key="digest-2"), sent), letter())
    identities = [line for got in smtp.keeper.delivered for line in got.content.splitlines() if b"Message-ID" in line]
    assert len(set(identities)) == 2


def test_what_the_server_certainly_refused_may_be_tried_again(
    portal: Open, config: SmtpConfig, smtp: SmtpServer
) -> None:
    sent = Sent()
    keyed = replace(config, key="digest")
    for place, reply, code in [
        (ADA, "550 5.1.1 internal-host-name has no such user", "egress.refused"),
        (ADA, "450 greylisted", "egress.later"),
        ("DATA", "554 spam", "egress.refused"),
    ]:
        smtp.keeper.refuse = {place: reply}
        opened = through(portal, replace(keyed, call=f"{place}{code}"), sent)
        with pytest.raises(smtplib.SMTPDataError) as caught:
            send(opened, letter(), [ADA, BO])
        assert "internal-host-name" not in str(caught.value)
        assert opened.codes() == [code]
        assert caught.value.smtp_code == (451 if code == "egress.later" else 554)
    smtp.keeper.refuse = {}
    send(through(portal, replace(keyed, call="last"), sent), letter())
    assert len(smtp.keeper.delivered) == 1


def test_what_was_maybe_sent_is_not_sent_again_by_the_call_that_is_tried_again(
    portal: Open, config: SmtpConfig, smtp: SmtpServer
) -> None:
    """The server takes the message and is lost before it can say so: nobody on this side knows."""
    sent = Sent()
    keyed = replace(config, key="digest")
    for call, silent in (("first", True), ("second", False), ("third", False)):
        smtp.keeper.silent = silent
        opened = through(portal, replace(keyed, call=call), sent)
        with pytest.raises(smtplib.SMTPDataError) as caught:
            send(opened, letter())
        assert caught.value.smtp_code == 554
        assert opened.codes() == ["egress.message"]
    assert len(smtp.keeper.delivered) == 1


def test_of_calls_that_are_made_at_once_with_one_key_one_sends(
    portal: Open, config: SmtpConfig, smtp: SmtpServer
) -> None:
    sent, keyed = Sent(), replace(config, key="digest")
    opened = [through(portal, replace(keyed, call=f"call-{number}"), sent) for number in range(8)]

    def try_one(used: Portal) -> None:
        with contextlib.suppress(smtplib.SMTPDataError):  # the first one is still at it
            send(used, letter())

    threads = [threading.Thread(target=try_one, args=(used,)) for used in opened]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(smtp.keeper.delivered) == 1


def test_a_wrong_password_and_an_unverified_server_send_nothing_and_tell_nothing(
    portal: Open, config: SmtpConfig, smtp: SmtpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    untrusted = replace(config.server, upstream=replace(config.server.upstream, ca=None))
    for server, secret, code in [
        (config.server, "wrong-canary", "egress.login"),
        (untrusted, PASSWORD, "egress.tls"),
        (replace(config.server, tls="implicit"), PASSWORD, "egress.tls"),
    ]:
        monkeypatch.setenv(SECRET.place, secret)
        opened = through(portal, replace(config, server=server))
        with pytest.raises(smtplib.SMTPDataError) as caught:
            send(opened, letter())
        assert opened.codes() == [code]
        for inside in ("127.0.0.1", "canary", USER + "@"):
            assert inside not in str(caught.value)
        assert "canary" not in opened.denied[0].operator
    assert smtp.keeper.delivered == []


# --- bytes of a hostile cage -----------------------------------------------------------------------------------------

START = [b"EHLO x\r\n", b"MAIL FROM:<bot@example.com>\r\n", b"RCPT TO:<ada@example.com>\r\n", b"DATA\r\n"]
HEAD = b"From: bot@example.com\r\nTo: ada@example.com\r\n\r\n"


class Raw:
    """A client that speaks bytes and reads one answer at a time."""

    def __init__(self, opened: Portal) -> None:
        self._socket = socket.create_connection(("127.0.0.1", opened.port), timeout=20)
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Raw:
        self.answer()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def say(self, data: bytes) -> bytes:
        self._socket.sendall(data)
        return self.answer()

    def answer(self) -> bytes:
        line = self._file.readline()
        while line[3:4] == b"-":
            line = self._file.readline()
        return line

    def begin(self) -> None:
        for line in START:
            assert self.say(line)[:1] in b"23"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + b"one\n.\nMAIL FROM:<eve@evil.example>\r\n.\r\n",  # bare LF around the dot
        HEAD + b"one\r\n.\nMAIL FROM:<eve@evil.example>\r\n.\r\n",
        HEAD + b"one\n.\r\nMAIL FROM:<eve@evil.example>\r\n.\r\n",
        HEAD + b"one\r.\r\nMAIL FROM:<eve@evil.example>\r\n.\r\n",
        HEAD + b"one\r\n.\rMAIL FROM:<eve@evil.example>\r\n.\r\n",
        HEAD + b"one\r\r\n.\r\n",
        HEAD + b"one\0two\r\n.\r\n",
        HEAD + b"one\r\n.\r\nMAIL FROM:<bot@example.com>\r\n",  # a second command behind the end
        HEAD + b"one\r\n.\r\n.\r\n",
        HEAD + b"x" * 1200 + b"\r\n.\r\n",
        HEAD + b"some text\r\n" * 30_000 + b".\r\n",
    ],
)
def test_one_message_cannot_become_two(portal: Open, config: SmtpConfig, smtp: SmtpServer, text: bytes) -> None:
    opened = through(portal, config)
    with Raw(opened) as raw:
        raw.begin()
        try:
            answered = raw.say(text)
        except OSError:  # ended while we still wrote
            answered = b"421"
        assert answered[:3] in (b"421", b"")
    assert len(opened.codes()) == 1
    assert smtp.keeper.delivered == []


@pytest.mark.parametrize(
    "header",
    [
        b"From: bot@example.com\r\nTo: ada@example.com\r\nTo: bo@example.com\r\n",
        b"From: bot@example.com\r\nTo: ada@example.com\r\nTo: ada@example.com\r\n",
        b"From: bot@example.com\r\nfrom: bot@example.com\r\n",
        b"From: bot@example.com\r\nSubject: one\r\nSubject: two\r\n",
        b"From: bot@example.com\r\nContent-Type: text/plain\r\nContent-Type: text/html\r\n",
        b"From: bot@example.com\r\nFrom: eve@evil.example\r\n",
        b"From : eve@evil.example\r\nFrom: bot@example.com\r\n",
        b" From: eve@evil.example\r\nFrom: bot@example.com\r\n",
        b"From: bot@example.com\r\nBcc: eve@evil.example\r\n",
        b"From: bot@example.com\r\nResent-To: eve@evil.example\r\n",
        b"From: bot@example.com\r\nTo: ada@example.com,\r\n eve@evil.example\r\n",
        b"From: bot@example.com\r\nTo: group: eve@evil.example;\r\n",
        b"From: bot@example.com\r\nTo: <@evil.example:ada@example.com>\r\n",
        b"From: bot@example.com\r\nTo: ada@example.com (eve@evil.example)\r\n",
        b'From: bot@example.com\r\nTo: "a" <eve@evil.example> <ada@example.com>\r\n',
        b"From: bot@example.com\r\nTo: ada@example.com eve@evil.example\r\n",
        b"From: bot@example.com\r\nTo: ada@example.com;eve@evil.example\r\n",
        b'From: "bot@example.com" <eve@evil.example>\r\n',
        b"From: bot@example.com\r\nTo:\r\n",
        b"From: bot@example.com\r\nTo: " + b" " * 900 + b"x\r\n",
        b"From: bot@example.com\r\nSubject: caf\xc3\xa9\r\n",
        b"From: bot@example.com\r\nno colon here\r\n",
        b"From: bot@example.com\r\n \t \r\n",
        b"From: bot@example.com\r\n" + b"Keywords: b\r\n" * 200,
        b"From: bot@example.com\r\n" + b"Keywords: " + b"b" * 900 + b"\r\n" + (b" " + b"b" * 900 + b"\r\n") * 80,
        b"Subject: nobody\r\n",
        b"",
    ],
)
def test_a_header_that_two_readers_could_read_differently_is_refused(
    portal: Open, config: SmtpConfig, smtp: SmtpServer, header: bytes
) -> None:
    opened = through(portal, config)
    with Raw(opened) as raw:
        raw.begin()
        assert raw.say(header + b"\r\ntext\r\n.\r\n")[:3] == b"554"
        assert raw.say(b"DATA\r\n")[:3] in (b"503", b"554")
        raw.say(b"QUIT\r\n")
    assert opened.codes() == ["egress.message"]
    assert smtp.keeper.delivered == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"AUTH PLAIN AGEAYg==\r\n", b"502"),
        (b"STARTTLS\r\n", b"502"),
        (b"VRFY ada\r\n", b"502"),
        (b"EXPN staff\r\n", b"502"),
        (b"BDAT 10 LAST\r\n", b"502"),
        (b"ETRN x\r\n", b"502"),
        (b"HELP\r\n", b"502"),
        (b"TURN\r\n", b"502"),
        (b"\r\n", b"502"),
        (b"GET / HTTP/1.1\r\n", b"502"),
        (b"MAIL FROM:<bot@example.com> AUTH=<>\r\n", b"501"),
        (b"MAIL FROM:<bot@example.com> SMTPUTF8\r\n", b"501"),
        (b"MAIL FROM:<>\r\n", b"501"),
        (b"MAIL FROM:bot@example.com\r\n", b"501"),
        (b"MAIL FROM:<@relay.example:bot@example.com>\r\n", b"501"),
        (b"MAIL FROM:<bot@example.com>> \r\n", b"501"),
        (b"RCPT TO:<ada@example.com>\r\n", b"503"),
        (b"DATA\r\n", b"503"),
        (b"NOOP\r\n", b"250"),
        (b"RSET\r\n", b"250"),
        (b"NOOP\n", b"421"),
        (b"NOOP\rNOOP\r\n", b"421"),
        (b"NO\0OP\r\n", b"421"),
        (b"NOOP\r\nNOOP\r\n", b"421"),
        (b"NOOP \xff\xfe\r\n", b"421"),
        (b"NOOP " + b"x" * 600 + b"\r\n", b"421"),
    ],
)
def test_only_the_few_commands_of_sending_one_message_pass(
    portal: Open, config: SmtpConfig, line: bytes, code: bytes
) -> None:
    opened = through(portal, config)
    with Raw(opened) as raw:
        raw.say(b"EHLO x\r\n")
        assert raw.say(line)[:3] == code


def test_a_client_that_says_nothing_is_let_go(portal: Open, config: SmtpConfig) -> None:
    opened = through(portal, config, terms=replace(TERMS, idle_s=0.1))
    with Raw(opened) as raw:
        assert raw.answer()[:3] == b"421"
    assert opened.codes() == ["egress.idle"]
