"""What is fuzzed: one function for each entry of untrusted bytes, which returns when its invariants hold.

Shared by the short runs (`test_short.py`, hypothesis) and the long ones (`atheris/run.py`, coverage-guided). Only the
documented exception may leave an entry; a cleaner is idempotent and its output never holds what it promises to remove.
"""

from __future__ import annotations

import asyncio
import email
import re
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from email.utils import getaddresses
from pathlib import Path
from types import MappingProxyType

import h11

from toolcage.broker import connect, http, postgres, smtp
from toolcage.broker.connect import ConnectConfig
from toolcage.broker.dial import Upstream
from toolcage.broker.http import HttpConfig
from toolcage.broker.http_repeat import Sends
from toolcage.broker.imap_command import Unreadable, fetch, search, words
from toolcage.broker.kept_answers import Keeping, KeepTerms, KeptAnswers
from toolcage.broker.mail_server import MailServer
from toolcage.broker.pace import Pace
from toolcage.broker.postgres_login import PostgresConfig
from toolcage.broker.sent import Sent
from toolcage.broker.smtp import SmtpConfig
from toolcage.broker.smtp_message import prepared
from toolcage.broker.stream import Connection, Denied, PortalTerms
from toolcage.cage import wire
from toolcage.cage.door import Door, DoorClosed, DoorMalformed, DoorTimeout
from toolcage.cage.portals import Portal, PortalStream, Switch
from toolcage.cleaning import StreamCleaner, clean_bytes, clean_json, neutralise
from toolcage.cleaning.artifacts import artifact_name, media_type
from toolcage.cleaning.injection import suspect
from toolcage.cleaning.marks import CONTROLS
from toolcage.cleaning.personal import PERSONAL
from toolcage.cleaning.pipeline import clean_text
from toolcage.cli.scan import judge_of
from toolcage.errors import DeclarationError, PolicyError, Refused, ResourceError
from toolcage.facts.address import read as read_addresses
from toolcage.facts.html import read as read_html
from toolcage.facts.path import read_path
from toolcage.facts.read import read_facts
from toolcage.facts.url import read_url
from toolcage.line.parse import parse
from toolcage.policy.load import load_role_text
from toolcage.resources.load import read_resources
from toolcage.screens import screen_facts
from toolcage.screens.address import screen_header
from toolcage.screens.shell import screen_argument, screen_environment
from toolcage.strict_yaml import parse_document
from toolcage.tools.admission import admit
from toolcage.tools.base import ToolFailure, declaration_of
from toolcage.tools.declared_api import read_file, write_file
from toolcage.tools.endpoint_client import Answer, failure
from toolcage.tools.openapi import declare_operations
from toolcage.tools.openapi.document import parse_openapi
from toolcage.tools.search_web import shown
from toolcage.types import KINDS, OutputTerms, ToolDeclaration

_TERMS = OutputTerms(max_bytes=1 << 20, redact=("secrets", *sorted(PERSONAL)))
_OPENS = re.compile(r"<[A-Za-z/!?]")
_TOOL = ToolDeclaration(
    name="search",
    description="",
    parameters=MappingProxyType(
        {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}
    ),
)


def text_of(raw: bytes) -> str:
    """Bytes as any text a call could carry: UTF-8; after a first 0xFF what is none becomes lone surrogates."""
    return raw[1:].decode("utf-8", "surrogateescape") if raw[:1] == b"\xff" else raw.decode("utf-8", "replace")


def _check(refused: Refused, status: str) -> None:
    assert refused.refusal.status == status
    assert "\x1b" not in refused.refusal.message
    assert "\n" not in refused.refusal.code


def _printable(error: Exception) -> None:
    assert str(error).replace("\n", "").isprintable()


def parsing(raw: bytes) -> None:
    try:
        call = parse(raw)
    except Refused as refused:
        _check(refused, "malformed")
        return
    again = parse(b'{"tool":"' + call.tool.encode() + b'","arguments":' + call.canonical + b"}")
    assert again.digest == call.digest


def screening(raw: bytes) -> None:
    text = text_of(raw)
    for kind in KINDS:
        for dialect in ("sqlite", "postgres") if kind == "sql" else ("sqlite",):
            try:
                facts = read_facts(kind, text, dialect=dialect)  # type: ignore[arg-type]
                assert facts is not None
                screen_facts(facts)
            except Refused as refused:
                _check(refused, "blocked")
    for look in (screen_header, screen_argument, lambda value: screen_environment({value: value})):
        try:
            look(text)
        except Refused as refused:
            _check(refused, "blocked")


def scanning(raw: bytes) -> None:
    text = text_of(raw)
    for kind in ("python", "shell", "injection", "secrets"):
        judge_of(kind)(text)  # type: ignore[arg-type]


def paths(raw: bytes) -> None:
    """What the screen lets pass resolves beneath any root, also for those who decode it once more."""
    import os.path
    from urllib.parse import unquote

    text = text_of(raw)
    try:
        facts = read_facts("path", text)
        assert facts is not None
        screen_facts(facts)
    except Refused:
        return
    assert not any(name in ("", ".", "..") or "/" in name for name in read_path(text).names)
    for spelled in (text, unquote(text), unquote(unquote(text)), text.replace("\\", "/")):
        inside = os.path.normpath(os.path.join("/workspace", spelled))
        assert inside == "/workspace" or inside.startswith("/workspace/"), (text, inside)


def urls(raw: bytes) -> None:
    url = read_url(text_of(raw))
    if url.href:
        again = read_url(url.href)
        assert again.host is not None
        assert url.host is not None
        assert (again.host.name, again.port, again.scheme) == (url.host.name, url.port, url.scheme)


def addresses(raw: bytes) -> None:
    for address in read_addresses(text_of(raw)).addresses:
        if address.readable:
            (again,) = read_addresses(address.mailbox).addresses
            assert again.mailbox == address.mailbox


def html(raw: bytes) -> None:
    """What the screen takes for passive, a sanitiser with the same allowlist leaves in place."""
    text = text_of(raw)
    facts = read_html(text)
    if not facts.active and not facts.unreadable:
        lowered = text.lower()
        assert "<script" not in lowered
        assert "<iframe" not in lowered


def cleaning(raw: bytes) -> None:
    cleaned = clean_bytes(raw, _TERMS).text
    assert CONTROLS.search(cleaned) is None
    assert _OPENS.search(cleaned) is None
    again, _ = clean_text(cleaned, _TERMS)
    assert again == cleaned


def cleaning_modes(raw: bytes) -> None:
    for mode in ("inert", "clean", "keep", "escape"):
        cleaned, _ = clean_text(text_of(raw), OutputTerms(html=mode))  # type: ignore[arg-type]
        assert CONTROLS.search(cleaned) is None
    clean_json({text_of(raw): [text_of(raw), 1, None]}, _TERMS)
    name = artifact_name(text_of(raw))
    assert name.isprintable()
    assert ".." not in name.split("/")
    media_type(name, raw)


def cells(raw: bytes) -> None:
    """The strings of a value come out as each would alone, whatever stands beside them. A comma parts them."""
    texts = [text_of(part) for part in raw.split(b",")]
    made = clean_json((*texts, MappingProxyType(dict.fromkeys(texts, texts[0]))), _TERMS)
    alone = {text: neutralise(text, _TERMS)[0] for text in texts}
    if not made.dropped:
        assert isinstance(made.value, tuple)
        assert [*made.value[:-1]] == [alone[text] for text in texts]


def streaming(raw: bytes) -> None:
    """A stream in pieces is as inert as the whole."""
    out: list[str] = []
    cleaner = StreamCleaner(_TERMS, out.append)
    step = raw[0] % 7 + 1 if raw else 1
    for start in range(0, len(raw), step):
        cleaner.feed(raw[start : start + step])
    cleaner.close()
    whole = "".join(out)
    assert CONTROLS.search(whole) is None
    assert _OPENS.search(whole) is None


def detecting(raw: bytes) -> None:
    found = suspect(text_of(raw))
    assert found.score >= 0
    assert found.explain().isprintable()


def frames(raw: bytes) -> None:
    """Frames in pieces are the frames of the whole, or both are refused."""

    def decode(pieces: list[bytes]) -> list[tuple[int, int, bytes]] | None:
        decoder = wire.Decoder()
        try:
            found = [frame for piece in pieces for frame in decoder.feed(piece)]
            for frame in found:
                if frame.type == wire.CONTROL:
                    frame.control()
        except wire.WireError:
            return None
        assert decoder.pending <= wire.HEADER.size + wire.MAX_DATA_BYTES
        return [(frame.type, frame.stream, frame.payload) for frame in found]

    assert decode([raw]) == decode([raw[i : i + 1] for i in range(len(raw))])


def door(raw: bytes) -> None:
    """Whatever the other end sends, receiving ends with a frame or one of the door's own exceptions."""
    ours, theirs = socket.socketpair()
    opened = Door(ours)
    try:
        theirs.sendall(raw[:60_000])
        theirs.shutdown(socket.SHUT_WR)
        for _ in range(200):
            opened.receive(time.monotonic() + 5)
    except (DoorClosed, DoorMalformed):
        return
    except DoorTimeout:
        raise AssertionError("the other end closed, so nothing is waited for") from None
    finally:
        opened.close()
        theirs.close()


def yaml(raw: bytes) -> None:
    try:
        parse_document(raw, "role.yaml", PolicyError)
    except PolicyError as error:
        _printable(error)


def policies(raw: bytes) -> None:
    prefix = b"version: 1\nrole: r\ntools:\n  search:\n" if raw[:1] != b"v" else b""
    try:
        load_role_text((prefix + raw).decode("utf-8", "replace"), "role.yaml", {"search": _TOOL})
    except PolicyError as error:
        _printable(error)
    except ResourceError as error:
        raise AssertionError("a policy names no resource file") from error


def resources(raw: bytes) -> None:
    """A resources file loads or says in printable words why not."""
    try:
        read_resources(parse_document(b"version: 1\n" + raw, "resources.yaml", ResourceError), Path("/nowhere"))
    except ResourceError as error:
        _printable(error)


def openapi(raw: bytes) -> None:
    """A document becomes tools that every check of a declaration lets pass, or says in printable words why not."""
    whole = b'{"openapi":"3.0.3","components":{"schemas":{"s":{"properties":{"s":{"$ref":"#/components/schemas/s"}}}}},'
    for document in (
        raw, whole + b'"paths":{"/a":{"post":' + raw + b"}}}",
        whole + b'"paths":{"/a":{"get":{"parameters":[{"in":"query","name":"q","schema":' + raw + b"}]}}}}",
        b"openapi: 3.0.3\npaths:\n  /a:\n    get:\n      parameters:\n" + raw,
    ):  # fmt: skip
        try:
            made, _ = declare_operations(parse_openapi(document, "api"), suspect=lambda text: False)
            for tool in read_file(write_file([item.spec for item in made]), "api.json") if made else ():
                admit(declaration_of(tool))
        except DeclarationError as error:
            _printable(error)


def endpoint_answers(raw: bytes) -> None:
    """Whatever a server answers, a tool fails with a code of ours and words on one line, or has a value."""
    made = failure(400 + len(raw) % 200, {"retry-after": text_of(raw)[:20]}, raw)
    assert made.code.startswith("endpoint.")
    assert "\n" not in made.message
    answer = Answer(200, {"content-type": text_of(raw)[:60]}, raw, False)
    assert isinstance(answer.text(), str)
    try:
        found = answer.json()
    except ToolFailure:
        return
    lines = shown(found, 100).splitlines() if isinstance(found, list) and found else []
    assert sum(line.startswith("Result ") for line in lines) == (len(found) if lines else 0)
    assert sum(line.startswith("URL: ") for line in lines) == (len(found) if lines else 0)


class _Cage:
    """A cage that sends this and hangs up, and reads whatever it is told."""

    def __init__(self, raw: bytes) -> None:
        self._left = raw
        self.heard = bytearray()

    async def read(self, n: int) -> bytes:
        piece, self._left = self._left[:n], self._left[n:]
        return piece

    async def write(self, data: bytes) -> None:
        self.heard += data

    async def end(self) -> None:
        pass

    def abort(self) -> None:
        pass


async def _nowhere(host: str, port: int) -> Sequence[str]:
    raise socket.gaierror(socket.EAI_NONAME, "nowhere")


_SENDER, _RECIPIENT = "bot@example.com", "ada@example.com"
_MAIL = MailServer(upstream=Upstream(host="mail.example.com", port=25), tls="implicit")


def sending(raw: bytes) -> None:
    """Whatever a cage says on its `smtp` portal ends with a refusal or an answer, never otherwise."""
    config = SmtpConfig(server=_MAIL, sender=_SENDER, recipients=frozenset({_RECIPIENT}), max_message=4096, call="c")
    opening = b"EHLO x\r\nMAIL FROM:<bot@example.com>\r\nRCPT TO:<ada@example.com>\r\nDATA\r\n" if len(raw) % 2 else b""
    cage = _Cage(opening + raw)
    note = Connection(portal="p", kind="smtp")
    with suppress(Denied):
        asyncio.run(smtp.serve(cage, config=config, sent=Sent(), terms=PortalTerms(), note=note, resolve=_nowhere))
    assert all(re.match(rb"[2345][0-9][0-9][ -]", line) for line in bytes(cage.heard).split(b"\r\n")[:-1])


def mail_headers(raw: bytes) -> None:
    """A message that passes is from the mailbox, to its recipients and nobody else, for another reader too."""
    lines = (b"From: bot@example.com\r\nTo: " + raw).split(b"\r\n")
    if any(set(line) & set(b"\r\n\0") for line in lines):
        return  # the session has refused these
    try:
        message = prepared(lines, sender=_SENDER, recipients=[_RECIPIENT], message_id="<1@example.com>")
    except Denied:
        return
    assert message.endswith(b"\r\n.\r\n")
    assert message.count(b"\r\n.\r\n") == 1
    assert b"\n" not in message.replace(b"\r\n", b"")
    assert b"\r" not in message.replace(b"\r\n", b"")
    read = email.message_from_bytes(message)
    found = {field: read.get_all(field, []) for field in ("from", "sender", "reply-to", "to", "cc", "bcc")}
    named = {field: {address for _, address in getaddresses(values)} for field, values in found.items()}
    assert named["from"] == {_SENDER}
    assert named["sender"] | named["reply-to"] <= {_SENDER}
    assert {address.lower() for address in named["to"] | named["cc"] | named["bcc"]} <= {_RECIPIENT}


def mailbox_commands(raw: bytes) -> None:
    """What passes of a cage's IMAP is printable, of one line, and changes nothing."""
    with suppress(Unreadable):
        written = fetch(raw)
        assert re.fullmatch(r"[ -~]+", written)
        assert not re.search(r"BODY\[|RFC822(?!\.SIZE)", written.upper())
    with suppress(Unreadable):
        for part in search(words(raw)):
            assert isinstance(part, bytes) or re.fullmatch(r"[A-Za-z0-9():,*-]+", part)


def database_starts(raw: bytes) -> None:
    """Whatever a cage says first on its `postgres` portal, no server is asked unless it was a plain start."""
    cage = _Cage(raw)
    note = Connection(portal="p", kind="postgres")
    config = PostgresConfig(database="d", user="u", password=None, server=Upstream(host="db.example.com", port=1))
    with suppress(Denied):
        asyncio.run(postgres.serve(cage, config=config, terms=PortalTerms(), note=note, resolve=_nowhere))
    assert note.address == ""
    assert bytes(cage.heard).lstrip(b"N")[:1] in (b"", b"E")


def streams(raw: bytes) -> None:
    """Whatever frames of connections a cage sends, they end the cage or keep within the windows."""
    portal = Portal(name="api", kind="http", port=8101)
    opened: list[PortalStream] = []
    switch = Switch((portal,), lambda _, stream: opened.append(stream))
    kinds = (wire.OPEN, wire.DATA, wire.END, wire.CREDIT, wire.CLOSE)
    try:
        for at in range(0, len(raw) - 2, 3):
            kind, stream = kinds[raw[at] % 5], wire.FIRST_PORTAL_STREAM + raw[at + 1] % 4
            size = raw[at + 2] * (wire.PORTAL_WINDOW // 128)
            payload = {wire.OPEN: b"\0", wire.CLOSE: wire.GENTLY, wire.END: b"", wire.DATA: b"x" * size}.get(kind)
            switch.take(wire.Frame(kind, stream, wire.CREDIT_BYTES.pack(size) if payload is None else payload))
            for item in opened[raw[at] % 3 :]:
                item.take(raw[at + 2])
                item.put(b"y" * size)
                if raw[at] > 250:
                    item.close(at_once=raw[at] % 2 == 0)
            kept = sum(sum(map(len, item._inbound)) for item in opened)
            assert kept <= len(opened) * wire.PORTAL_WINDOW
            assert all(0 <= item._room <= wire.PORTAL_WINDOW for item in opened)
    except DoorMalformed:
        return
    finally:
        switch.close()


class _Web:
    """A server that answers whatever it is asked, and keeps what that was."""

    address = "203.0.113.7:443"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, list[tuple[bytes, bytes]]]] = []
        self._reading = h11.Connection(h11.SERVER)
        self._answers = bytearray()

    async def write(self, data: bytes) -> None:
        self._reading.receive_data(data)
        while (event := self._reading.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Request):
                self.asked.append((event.method.decode(), event.target.decode(), list(event.headers)))
            elif isinstance(event, h11.EndOfMessage):
                answer = h11.Response(status_code=200, headers=[("Content-Length", "0")])
                self._answers += self._reading.send(answer) or b""
                self._answers += self._reading.send(h11.EndOfMessage()) or b""
                self._reading.start_next_cycle()

    async def read(self, n: int) -> bytes:
        piece = bytes(self._answers[:n])
        del self._answers[:n]
        return piece

    async def end(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


_API = HttpConfig(
    resource="api", origin="https://api.example.com", authority="api.example.com", methods=frozenset({"GET", "POST"}),
    path_prefixes=("/v1",), key=("Authorization", "Bearer k-0123456789"), secrets=("k-0123456789",),
)  # fmt: skip


def requests(raw: bytes) -> None:
    """Whatever a cage says on its `http` portal, the server is asked for what is granted, with one host and one key."""
    web, cage = _Web(), _Cage((b"GET /v1/", b"POST /v1/x HTTP/1.1\r\nHost: x\r\n", b"")[len(raw) % 3] + raw)
    note = Connection(portal="api", kind="http")

    async def dial() -> _Web:
        return web

    terms = KeepTerms(resource="api", seconds=60, max_bytes=100_000, scope="one")
    keeping = Keeping(answers=KeptAnswers(), terms=terms)
    sends = Sends("call", "api", "Idempotency-Key")
    with suppress(Denied):
        asyncio.run(
            http.serve(
                cage, config=_API, dial=dial, pace=Pace(), terms=PortalTerms(), note=note, keeping=keeping, sends=sends
            )
        )
    for method, target, headers in web.asked:
        assert method in ("GET", "POST")
        path = target.partition("?")[0]
        assert path == "/v1" or path.startswith("/v1/")
        assert ".." not in [part.partition(";")[0] for part in path.replace("%2e", ".").split("/")]
        found = [(name, value) for name, value in headers if name in (b"host", b"authorization", b"cookie")]
        assert found == [(b"host", b"api.example.com"), (b"authorization", b"Bearer k-0123456789")]
        keys = [value for name, value in headers if name.replace(b"_", b"-") == b"idempotency-key"]
        assert len(keys) == (method == "POST")
    assert b"k-0123456789" not in cage.heard or b"k-0123456789" in raw


def tunnels(raw: bytes) -> None:
    """Whatever a cage says first on its `connect` portal, nothing is connected but what is granted."""
    asked: list[tuple[str, int]] = []

    async def dial(host: str, port: int) -> _Web:
        asked.append((host, port))
        return _Web()

    config = ConnectConfig(granted=frozenset({("api.example.com", 443)}))
    cage = _Cage((b"CONNECT api.example.com", b"CONNECT ", b"")[len(raw) % 3] + raw)
    note = Connection(portal="egress:", kind="connect")
    with suppress(Denied, h11.RemoteProtocolError):
        asyncio.run(connect.serve(cage, config=config, dial=dial, terms=PortalTerms(), note=note))
    assert set(asked) <= {("api.example.com", 443)}


TARGETS: dict[str, Callable[[bytes], None]] = {
    function.__name__: function
    for function in (
        parsing, screening, scanning, paths, urls, addresses, html, cleaning, cleaning_modes, cells, streaming,
        detecting, frames, door, yaml, policies, resources, sending, mail_headers, mailbox_commands, database_starts,
        streams, requests, tunnels,
        openapi, endpoint_answers,
    )
}  # fmt: skip
