"""The `imap` portal before a real Dovecot: a client that is in already reads granted folders and changes nothing."""

from __future__ import annotations

import imaplib
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from servers.dovecot import PASSWORD, USER, DovecotServer
from servers.portal import TERMS, Portal, Serve
from toolcage.broker.dial import Upstream
from toolcage.broker.imap import ImapConfig, serve
from toolcage.broker.mail_server import MailServer
from toolcage.broker.stream import PortalTerms
from toolcage.secret_reference import SecretRef

Open = Callable[[Serve], Portal]
SECRET = SecretRef(source="env", place="TOOLCAGE_TEST_MAIL")


@pytest.fixture
def config(dovecot: DovecotServer, monkeypatch: pytest.MonkeyPatch) -> ImapConfig:
    monkeypatch.setenv(SECRET.place, PASSWORD)
    upstream = Upstream(host="127.0.0.1", port=dovecot.starttls, ca=dovecot.ca)
    server = MailServer(upstream=upstream, tls="starttls", user=USER, password=SECRET)
    return ImapConfig(server=server, folders=("INBOX", "Reports", "Отчёты"), max_message=1_000_000)


def through(portal: Open, config: ImapConfig, terms: PortalTerms = TERMS) -> Portal:
    return portal(lambda client, note: serve(client, config=config, terms=terms, note=note))


@contextmanager
def client(opened: Portal) -> Iterator[imaplib.IMAP4]:
    made = imaplib.IMAP4("127.0.0.1", opened.port, timeout=20)
    try:
        yield made
    finally:
        with suppress(OSError):  # after a logout there is nothing to shut down
            made.shutdown()


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
def test_an_ordinary_client_reads_without_logging_in(
    portal: Open, config: ImapConfig, dovecot: DovecotServer, tls: str
) -> None:
    port = dovecot.starttls if tls == "starttls" else dovecot.implicit
    server = replace(config.server, tls=tls, upstream=replace(config.server.upstream, port=port))
    opened = through(portal, replace(config, server=server))
    before = dovecot.flags()
    with client(opened) as imap:
        assert imap.state == "AUTH"
        status, counted = imap.select("INBOX", readonly=True)
        assert (status, counted) == ("OK", [b"3"])
        assert imap.uid("SEARCH", "ALL") == ("OK", [b"1 2 3"])
        assert imap.uid("SEARCH", "FROM", '"ada"', "SINCE", "1-May-2020") == ("OK", [b"1"])
        status, found = imap.uid("FETCH", "1", "(UID FLAGS RFC822.SIZE ENVELOPE BODY.PEEK[])")
        assert status == "OK"
        assert b"Three orders shipped." in found[0][1]
        assert imap.uid("FETCH", "1:*", "(BODY.PEEK[HEADER.FIELDS (SUBJECT FROM)])")[0] == "OK"
        assert imap.uid("FETCH", "2", "BODY.PEEK[TEXT]<0.4>")[0] == "OK"
        imap.close()
        imap.logout()
    assert opened.codes() == []
    assert [name.partition(":2,")[2] for name in dovecot.flags()] == [name.partition(":2,")[2] for name in before]
    note = opened.notes[0]
    assert (note.target, note.address, note.bytes_up > 0, note.bytes_down > 0) == (
        f"127.0.0.1:{port}", f"127.0.0.1:{port}", True, True,
    )  # fmt: skip


def test_select_opens_read_only_too(portal: Open, config: ImapConfig) -> None:
    with client(through(portal, config)) as imap:
        with pytest.raises(imaplib.IMAP4.readonly):
            imap.select("INBOX")
        assert imap.untagged_responses.get("READ-ONLY") is not None


def test_text_of_any_script_can_be_searched_for(portal: Open, config: ImapConfig) -> None:
    with client(through(portal, config)) as imap:
        imap.select("INBOX", readonly=True)
        imap.literal = "测试".encode()
        assert imap.uid("SEARCH", "CHARSET", "UTF-8", "BODY") == ("OK", [b"2"])
        imap.literal = b"ada"
        assert imap.uid("SEARCH", "NOT", "FROM") == ("OK", [b"2 3"])
        assert imap.uid("SEARCH", 'OR (FROM "ada" SUBJECT "May") UID 3:3') == ("OK", [b"1 3"])


def test_only_the_granted_folders_are_there(portal: Open, config: ImapConfig) -> None:
    opened = through(portal, config)
    with client(opened) as imap:
        names = [line.rsplit(b" ", 1)[1] for line in imap.list()[1] if isinstance(line, bytes)]
        assert names == [b'"INBOX"', b'"Reports"', b'"&BB4EQgRHBFEEQgRL-"']
        assert imap.select('"&BB4EQgRHBFEEQgRL-"', readonly=True) == ("OK", [b"1"])
        assert imap.select("inbox", readonly=True)[0] == "OK"
        for name in ("Private", '"Private"', "INBOX/../Private", "Inbox2", '""', "reports", "Отчёты".encode()):
            try:
                status, said = imap.select(name, readonly=True)  # type: ignore[arg-type]
            except imaplib.IMAP4.error as error:
                status, said = "NO", [str(error).encode()]
            assert status == "NO"
            assert b"canary" not in b"".join(item for item in said if item)
            if imap.state == "LOGOUT":
                break
    assert opened.codes()[0] in ("egress.folder", "egress.protocol")


def test_a_mail_that_looks_like_answers_stays_a_mail(portal: Open, config: ImapConfig) -> None:
    with client(through(portal, config)) as imap:
        imap.select("INBOX", readonly=True)
        status, found = imap.uid("FETCH", "3", "(BODY.PEEK[])")
        assert status == "OK"
        assert b"T9 OK done" in found[0][1]
        assert imap.uid("SEARCH", "ALL") == ("OK", [b"1 2 3"])


def test_a_mail_above_the_bound_is_refused_and_a_part_of_it_comes(portal: Open, config: ImapConfig) -> None:
    opened = through(portal, replace(config, max_message=50_000))
    with client(opened) as imap:
        imap.select("Reports", readonly=True)
        status, found = imap.uid("FETCH", "1", "(BODY.PEEK[]<0.1000>)")
        assert (status, len(found[0][1])) == ("OK", 1000)
        with pytest.raises(imaplib.IMAP4.abort):
            imap.uid("FETCH", "1", "(BODY.PEEK[])")
    assert opened.codes() == ["egress.message"]


def test_what_cannot_log_in_or_prove_itself_says_no_more(
    portal: Open, config: ImapConfig, dovecot: DovecotServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    untrusted = replace(config.server, upstream=replace(config.server.upstream, ca=None))
    clear = replace(config.server, tls="implicit")
    for server, secret, code in [
        (config.server, "wrong-canary", "egress.login"), (untrusted, PASSWORD, "egress.tls"),
        (clear, PASSWORD, "egress.tls"),
    ]:
        monkeypatch.setenv(SECRET.place, secret)
        opened = through(portal, replace(config, server=server))
        with pytest.raises(imaplib.IMAP4.error) as caught:
            imaplib.IMAP4("127.0.0.1", opened.port, timeout=20)
        assert opened.codes() == [code]
        assert "canary" not in str(caught.value) + opened.denied[0].operator
    assert "mail-canary" not in dovecot.log()


class Raw:
    """A client that speaks bytes and reads up to a tagged answer."""

    def __init__(self, opened: Portal) -> None:
        self._socket = socket.create_connection(("127.0.0.1", opened.port), timeout=20)
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Raw:
        assert self._file.readline().startswith(b"* PREAUTH")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def say(self, data: bytes) -> bytes:
        self._socket.sendall(data)
        seen = b""
        while line := self._file.readline():
            seen += line
            if line.startswith((b"a ", b"+ ", b"* BYE")):
                break
        return seen


@pytest.mark.parametrize(
    "command",
    [
        b"LOGIN bot x", b"AUTHENTICATE PLAIN", b"STARTTLS", b"CREATE x", b"DELETE Reports", b"RENAME INBOX y",
        b"SUBSCRIBE x", b'LSUB "" *', b"STATUS Private (MESSAGES)", b"APPEND INBOX", b"EXPUNGE", b"CHECK", b"IDLE",
        b"STORE 1 +FLAGS (\\Deleted)", b"UID STORE 1 +FLAGS (\\Seen)", b"COPY 1 Reports", b"UID COPY 1 Reports",
        b"UID MOVE 1 Reports", b"UID EXPUNGE 1", b"SEARCH ALL", b"FETCH 1 (FLAGS)", b"GETQUOTA x", b"GETACL INBOX",
        b"SETACL INBOX x lrs", b"NAMESPACE", b"ID NIL", b"ENABLE CONDSTORE", b"COMPRESS DEFLATE", b"UNSELECT",
        b"UID", b"UID FETCH", b"UID SEARCH", b"UID FETCH 1", b"UID FETCH 1 (BODY[])", b"UID FETCH 1 RFC822",
        b"UID FETCH 1 (RFC822.TEXT)", b"UID FETCH 1 ALL", b"UID FETCH 1 (BODY)", b"UID FETCH 1 (X-GM-MSGID)",
        b"UID FETCH 1 (FLAGS) (CHANGEDSINCE 1)", b"UID FETCH 1,,2 (FLAGS)", b"UID FETCH $ (FLAGS)",
        b"UID FETCH 1 (BODY.PEEK[HEADER.FIELDS (A\tB)])", b"UID FETCH 1 (BODY.PEEK[]<0.0>)",
        b"UID FETCH 1 (BINARY.PEEK[1])", b"UID SEARCH RETURN (ALL) ALL", b"UID SEARCH X-GM-RAW x",
        b"UID SEARCH INTHREAD REFS ALL", b"UID SEARCH CHARSET KOI8-R ALL", b"UID SEARCH (ALL", b"UID SEARCH ALL)",
        b"UID SEARCH OR ALL", b"UID SEARCH " + b"NOT " * 60 + b"ALL", b"UID SEARCH SINCE tomorrow",
        b"UID SEARCH MODSEQ 1", b"SELECT Private", b"SELECT INBOX (CONDSTORE)", b"EXAMINE", b"NOOP x",
    ],
)  # fmt: skip
def test_every_command_besides_reading_is_refused_and_the_next_one_still_works(
    portal: Open, config: ImapConfig, dovecot: DovecotServer, command: bytes
) -> None:
    opened = through(portal, config)
    with Raw(opened) as raw:
        raw.say(b"a SELECT INBOX\r\n")
        answered = raw.say(b"a " + command + b"\r\n")
        assert answered.startswith((b"a NO", b"a BAD", b"* BYE")), answered
        if not answered.startswith(b"* BYE"):
            raw.say(b"a SELECT INBOX\r\n")
            assert b"* SEARCH 1 2 3" in raw.say(b"a UID SEARCH ALL\r\n")
            raw.say(b"a LOGOUT\r\n")
    assert opened.codes()[0] in ("egress.command", "egress.folder", "egress.protocol")


@pytest.mark.parametrize(
    "data",
    [
        b"NOOP\r\n",  # no tag
        b"a NOOP\n",
        b"a NOOP\rb STORE 1 +FLAGS (\\Seen)\r\n",
        b"a UID SEARCH SUBJECT \"x\rb DELETE INBOX\r\n",
        b"a NO\0OP\r\n",
        b"+ UID SEARCH ALL\r\n",
        b"a UID SEARCH SUBJECT {3+}\r\nabc\r\n",
        b"a UID SEARCH SUBJECT {99999}\r\n",
        b"a UID SEARCH SUBJECT {99999999999}\r\n",
        b"a UID SEARCH SUBJECT \xff\xfe\r\n",
        b"a UID SEARCH SUBJECT \"" + b"x" * 2000 + b"\"\r\n",
        b"a " + b"x" * 20_000,
        b"a UID SEARCH " + b"ALL " * 1000 + b"\r\n",
    ],
)  # fmt: skip
def test_bytes_that_are_no_plain_command_end_the_connection(portal: Open, config: ImapConfig, data: bytes) -> None:
    opened = through(portal, config)
    with Raw(opened) as raw:
        raw.say(b"a SELECT INBOX\r\n")
        assert raw.say(data).startswith(b"* BYE")
    assert opened.codes()[0] in ("egress.protocol", "egress.line")


@pytest.mark.parametrize("inside", [b"x\r\n", b"x\0y", b"\nabc"])
def test_a_literal_cannot_carry_a_second_command(portal: Open, config: ImapConfig, inside: bytes) -> None:
    opened = through(portal, config)
    with Raw(opened) as raw:
        raw.say(b"a SELECT INBOX\r\n")
        assert raw.say(b"a UID SEARCH SUBJECT {%d}\r\n" % len(inside)).startswith(b"+")
        assert raw.say(inside + b"\r\n").startswith(b"* BYE")
    assert opened.codes() == ["egress.protocol"]


def test_endless_refusals_and_silence_end_the_connection(portal: Open, config: ImapConfig) -> None:
    opened = through(portal, config)
    with Raw(opened) as raw:
        answers = [raw.say(b"a EXPUNGE\r\n") for _ in range(22)]
    assert any(answer.startswith((b"* BYE", b"")) and not answer.startswith(b"a") for answer in answers)
    assert opened.codes() == ["egress.command"]
    quiet = through(portal, config, replace(TERMS, idle_s=0.3))
    with Raw(quiet) as raw:
        assert raw.say(b"").startswith(b"* BYE")
    assert quiet.codes() == ["egress.idle"]
