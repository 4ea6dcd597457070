"""The `connect` portal: tunnels to the granted hosts and ports, and to nothing else."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from servers.authority import Authority
from servers.http import HttpServer, plain
from servers.portal import TERMS, Portal, Serve
from toolcage.broker.connect import ConnectConfig, serve
from toolcage.broker.dial import Upstream, open_stream
from toolcage.broker.stream import PortalTerms

Open = Callable[[Serve], Portal]


def through(
    portal: Open, *granted: tuple[str, int], to: int = 0, terms: PortalTerms = TERMS, resolved: str | None = None
) -> Portal:
    """A proxy for `granted`. The names lead to the port `to` on loopback, or to the address `resolved`, judged."""

    async def resolve(host: str, port: int) -> list[str]:
        return [resolved or "127.0.0.1"]

    async def dial(host: str, port: int):  # type: ignore[no-untyped-def]
        place = Upstream(host=host, port=to or port, tls=False, clear_to_public=True, allow_private=resolved is None)
        return await open_stream(place, connect_s=terms.connect_s, resolve=resolve)

    config = ConnectConfig(granted=frozenset(granted))
    return portal(lambda client, note: serve(client, config=config, dial=dial, terms=terms, note=note))


@contextlib.contextmanager
def tunnel(opened: Portal, target: str) -> Iterator[tuple[socket.socket, bytes]]:
    with socket.create_connection(("127.0.0.1", opened.port), timeout=20) as client:
        client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head and (piece := client.recv(1)):
            head += piece
        yield client, head


def told(opened: Portal, request: bytes) -> tuple[int, str]:
    """Status and code of a refusal."""
    with socket.create_connection(("127.0.0.1", opened.port), timeout=20) as client:
        client.sendall(request)
        read = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(65536):
                read += piece
    head, _, body = read.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["code"]


def test_a_program_speaks_its_own_tls_through_a_tunnel_to_a_granted_host(
    portal: Open, wire_server: HttpServer, authority: Authority
) -> None:
    opened = through(portal, ("localhost", 443), to=wire_server.port)
    wire_server.answer = plain(b"x" * 100_000)
    context = ssl.create_default_context(cafile=str(authority.file))
    with tunnel(opened, "localhost:443") as (client, head):
        assert head.startswith(b"HTTP/1.1 200 ")
        with context.wrap_socket(client, server_hostname="localhost") as secure:
            secure.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            read = b""
            while len(read) < 100_000:
                read += secure.recv(65536)
    assert wire_server.asked[0].startswith(b"GET /x ")
    assert opened.codes() == []
    note = opened.notes[0]
    assert (note.target, note.address) == ("CONNECT localhost:443", f"127.0.0.1:{wire_server.port}")
    assert note.bytes_down > 100_000


def test_bytes_sent_together_with_the_request_are_not_lost(portal: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        opened = through(portal, ("files.example.com", 8443), to=listener.getsockname()[1])
        with socket.create_connection(("127.0.0.1", opened.port), timeout=20) as client:
            client.sendall(b"CONNECT files.example.com:8443 HTTP/1.0\r\n\r\nearly")
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.recv(100) == b"early"
                accepted.sendall(b"late")
                accepted.shutdown(socket.SHUT_WR)
                client.shutdown(socket.SHUT_WR)
                read = b""
                while piece := client.recv(1000):
                    read += piece
        assert read.endswith(b"\r\n\r\nlate")


@pytest.mark.parametrize("target", ["a.files.example.com:443", "b.a.files.example.com:443", "A.Files.example.com:443"])
def test_a_starred_domain_grants_the_hosts_below_it(portal: Open, wire_server: HttpServer, target: str) -> None:
    opened = through(portal, ("*.files.example.com", 443), to=wire_server.port)
    with tunnel(opened, target) as (_, head):
        assert head.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "target",
    [
        "api.example.com:8443",
        "api.example.com:22",
        "api.example.com:0",
        "api.example.com:65979",
        "api.example.com:00443x",
        "api.example.com:",
        "api.example.com",
        "evil.example:443",
        "api.example.com.evil.example:443",
        "xapi.example.com:443",
        "example.com:443",
        "files.example.com:443",
        "filesXexample.com:443",
        "evilfiles.example.com:443",
        "127.0.0.1:443",
        "2130706433:443",
        "0x7f.1:443",
        "0177.0.0.1:443",
        "127.1:443",
        "[::1]:443",
        "[::ffff:127.0.0.1]:443",
        "localhost:443",
        "user@api.example.com:443",
        "api.example.com@evil.example:443",
        "evil.example#api.example.com:443",
        "api.example.com%2eevil.example:443",
        "api%2eexample.com:443",
        ":443",
        "*.files.example.com:443",
    ],
)
def test_a_tunnel_to_anywhere_else_is_refused_and_reaches_nobody(
    portal: Open, wire_server: HttpServer, target: str
) -> None:
    opened = through(portal, ("api.example.com", 443), ("*.files.example.com", 443), to=wire_server.port)
    request = f"CONNECT {target} HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n".encode()
    assert told(opened, request) == (403, "egress.host_not_granted")
    assert wire_server.connections == 0
    assert opened.codes() == ["egress.host_not_granted"]


@pytest.mark.parametrize(
    ("request_text", "answer"),
    [
        ("GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n", (403, "egress.plain_http")),
        ("POST http://api.example.com/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", (403, "egress.plain_http")),
        ("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n", (403, "egress.plain_http")),
        ("CONNECT a.example.com:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", (400, "egress.bad_request")),
        ("CONNECT api.example.com:443 HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", (400, "egress.bad_request")),
        ("CONNECT api.example.com:443 HTTP/1.1\r\n\r\n", (400, "egress.bad_request")),
    ],
)
def test_a_request_that_is_no_tunnel_is_refused_with_its_reason(
    portal: Open, wire_server: HttpServer, request_text: str, answer: tuple[int, str]
) -> None:
    opened = through(portal, ("api.example.com", 443), to=wire_server.port)
    assert told(opened, request_text.encode()) == answer
    assert wire_server.connections == 0


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00:ec2::254", "::ffff:10.0.0.1"]
)
def test_a_granted_name_at_a_private_address_is_not_reached(
    portal: Open, wire_server: HttpServer, address: str
) -> None:
    opened = through(portal, ("api.example.com", 443), to=wire_server.port, resolved=address)
    assert told(opened, b"CONNECT api.example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n") == (403, "egress.address")
    assert wire_server.connections == 0


def test_more_bytes_than_the_terms_end_the_tunnel(portal: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        terms = replace(TERMS, max_bytes_up=10_000, max_bytes_down=10_000)
        opened = through(portal, ("api.example.com", 443), to=listener.getsockname()[1], terms=terms)
        for flood_down in (True, False):
            with tunnel(opened, "api.example.com:443") as (client, _):
                accepted, _ = listener.accept()
                with accepted:
                    source, sink = (accepted, client) if flood_down else (client, accepted)
                    with contextlib.suppress(ConnectionError):
                        source.sendall(b"x" * 1_000_000)
                    sink.settimeout(20)
                    arrived = 0
                    with contextlib.suppress(ConnectionError):
                        while piece := sink.recv(65536):
                            arrived += len(piece)
                    assert arrived <= 10_000
    assert opened.codes() == ["egress.bytes_down", "egress.bytes_up"]


def test_a_silent_tunnel_is_ended(portal: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        opened = through(
            portal, ("api.example.com", 443), to=listener.getsockname()[1], terms=replace(TERMS, idle_s=0.3)
        )
        with tunnel(opened, "api.example.com:443") as (client, _):
            accepted, _ = listener.accept()
            with contextlib.suppress(ConnectionError):
                assert client.recv(1) == b""
            accepted.close()
    assert opened.codes() == ["egress.idle"]


def test_many_tunnels_at_once_keep_their_bytes_apart(portal: Open) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=32) as listener:
        opened = through(portal, ("api.example.com", 443), to=listener.getsockname()[1])

        def echo() -> None:
            for _ in range(10):
                accepted, _ = listener.accept()
                threading.Thread(target=_echo_one, args=(accepted,), daemon=True).start()

        thread = threading.Thread(target=echo, daemon=True)
        thread.start()
        got: dict[int, bytes] = {}

        def one(number: int) -> None:
            with tunnel(opened, "api.example.com:443") as (client, _):
                client.sendall(bytes([number]) * 50_000)
                client.shutdown(socket.SHUT_WR)
                read = b""
                while piece := client.recv(65536):
                    read += piece
                got[number] = read

        threads = [threading.Thread(target=one, args=(number,)) for number in range(10)]
        for item in threads:
            item.start()
        for item in (*threads, thread):
            item.join(30)
    assert got == {number: bytes([number]) * 50_000 for number in range(10)}


def _echo_one(accepted: socket.socket) -> None:
    with accepted:
        read = b""
        while piece := accepted.recv(65536):
            read += piece
        accepted.sendall(read)


# --- whom TLS in a tunnel asks for ---------------------------------------------------------------------------------


def hello(name: str | None) -> bytes:
    """What an ordinary client sends first."""
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def records(message: bytes, size: int) -> bytes:
    """The same message in records of so many bytes."""
    body = message[5:]
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(message[:3] + len(piece).to_bytes(2, "big") + piece for piece in pieces)


def with_extension(message: bytes, kind: int, content: bytes) -> bytes:
    """One more extension at the end, every length put right."""
    added = kind.to_bytes(2, "big") + len(content).to_bytes(2, "big") + content
    body = bytearray(message[9:])
    at = 34 + 1 + body[34]
    at += 2 + int.from_bytes(body[at : at + 2], "big")
    at += 1 + body[at]
    body[at : at + 2] = (int.from_bytes(body[at : at + 2], "big") + len(added)).to_bytes(2, "big")
    body += added
    handshake = b"\x01" + len(body).to_bytes(3, "big") + body
    return message[:3] + len(handshake).to_bytes(2, "big") + handshake


GRANTED = hello("api.example.com")
OTHER = b"\x00\x0f\x00\x00\x0cevil.example"


def arrived(portal: Open, *pieces: bytes) -> tuple[bytes, Portal]:
    """What a server at the granted name gets of these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        opened = through(portal, ("api.example.com", 443), to=listener.getsockname()[1])
        with tunnel(opened, "api.example.com:443") as (client, _):
            accepted, _ = listener.accept()
            with accepted:
                with contextlib.suppress(OSError):
                    for piece in pieces:
                        client.sendall(piece)
                    client.shutdown(socket.SHUT_WR)
                read = b""
                with contextlib.suppress(ConnectionError):
                    while piece := accepted.recv(65536):
                        read += piece
                return read, opened


@pytest.mark.parametrize(
    "message",
    [GRANTED, hello("API.example.com"), records(GRANTED, 7), records(GRANTED, 1), b"SSH-2.0-x\r\n", b"\x80tls of old"],
)
def test_tls_for_the_granted_host_and_what_is_no_tls_pass_whole(portal: Open, message: bytes) -> None:
    read, opened = arrived(portal, message[:3], message[3:] + b"and more")
    assert read == message + b"and more"
    assert opened.codes() == []


@pytest.mark.parametrize(
    "message",
    [
        hello("evil.example"),
        hello("api.example.com.evil.example"),
        hello(None),
        records(hello("evil.example"), 7),
        with_extension(GRANTED, 0, OTHER),
        with_extension(GRANTED, 0xFE0D, b"\x00" * 40),
        with_extension(hello(None), 0, OTHER),
        b"\x16\x03\x01\x00\x00" * 10,
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
        b"\x16\x02\x00\x00\x04\x01\x00\x00\x00",
        b"\x16\x03\x01\xff\xff\x01\x00\xff\xff" + b"\x00" * 70_000,
        b"\x16" + b"\x03\x01\x00\x28\x01\x00\x00\x24" + b"\x00" * 36,
    ],
)
def test_tls_for_another_host_at_the_granted_address_reaches_nobody(portal: Open, message: bytes) -> None:
    read, opened = arrived(portal, message)
    assert read == b""
    assert opened.codes() == ["egress.tls_name"]


def test_half_a_message_of_tls_leads_nowhere(portal: Open) -> None:
    read, _ = arrived(portal, GRANTED[:-1])
    assert read == b""
