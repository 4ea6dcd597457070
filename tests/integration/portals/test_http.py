"""The `http` portal between real clients and a real HTTPS server, both of which may be hostile."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from servers.authority import Authority
from servers.http import HttpServer, plain, raw
from servers.http_portal import KEY, ask, config_of, refusal, said, through
from servers.portal import TERMS, Portal, Serve
from toolcage.broker.http import HttpConfig

Open = Callable[[Serve], Portal]


@pytest.fixture
def config(wire_server: HttpServer) -> HttpConfig:
    return config_of(wire_server)


@pytest.fixture
def opened(portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority) -> Portal:
    return through(portal, config, wire_server, authority)


# --- what is granted works -----------------------------------------------------------------------------------------


def test_a_request_reaches_its_server_with_the_key_and_the_answer_comes_back(
    opened: Portal, wire_server: HttpServer
) -> None:
    wire_server.answer = plain(b'{"temperature": 21}', "200 OK", "Content-Type: application/json")
    status, body, headers = ask(opened, "/v1/x?q=a%20b", Accept="application/json")
    assert (status, body, headers["content-type"]) == (200, b'{"temperature": 21}', "application/json")
    (request,) = wire_server.asked
    assert request.startswith(b"GET /v1/x?q=a%20b HTTP/1.1\r\n")
    assert f"authorization: Bearer {KEY}".encode() in request
    assert opened.codes() == []
    note = opened.notes[0]
    assert note.target == f"GET https://localhost:{wire_server.port}/v1/x"
    assert note.address == f"127.0.0.1:{wire_server.port}"
    assert note.bytes_up > 50
    assert note.bytes_down > len(body)
    assert KEY not in repr(note)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_arrives_whole(opened: Portal, wire_server: HttpServer, chunked: bool) -> None:
    content = bytes(range(256)) * 500
    client = http.client.HTTPConnection("127.0.0.1", opened.port, timeout=20)
    if chunked:
        client.request("POST", "/v1/x", iter([content[:70000], content[70000:]]), encode_chunked=True)
    else:
        client.request("POST", "/v1/x", content)
    assert client.getresponse().read() == b"fine"
    client.close()
    _, _, body = wire_server.asked[0].partition(b"\r\n\r\n")
    assert (b"".join(_chunks(body)) if chunked else body) == content


def _chunks(body: bytes) -> Sequence[bytes]:
    found = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        found.append(body[:length])
        body = body[length + 2 :]
    return found


def test_requests_on_one_connection_are_served_one_after_the_other_over_one_to_the_server(
    opened: Portal, wire_server: HttpServer
) -> None:
    client = http.client.HTTPConnection("127.0.0.1", opened.port, timeout=20)
    for number in range(5):
        wire_server.answer = plain(f"answer {number}".encode())
        client.request("GET", f"/v1/{number}")
        assert client.getresponse().read() == f"answer {number}".encode()
    client.close()
    assert wire_server.connections == 1
    assert opened.codes() == []
    assert opened.notes[0].target.count("GET ") == 5


def test_a_kept_connection_that_the_server_gave_up_is_made_anew(opened: Portal, wire_server: HttpServer) -> None:
    client = http.client.HTTPConnection("127.0.0.1", opened.port, timeout=20)
    wire_server.answer = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nonce")
    for _ in range(3):
        client.request("GET", "/v1/x")
        assert client.getresponse().read() == b"once"
    client.close()
    assert wire_server.connections == 3


def test_what_must_not_be_asked_twice_never_meets_a_kept_connection(opened: Portal, wire_server: HttpServer) -> None:
    client = http.client.HTTPConnection("127.0.0.1", opened.port, timeout=20)
    for method, connections in (("GET", 1), ("GET", 1), ("POST", 2), ("POST", 3), ("GET", 3)):
        client.request(method, "/v1/x")
        assert client.getresponse().read() == b"fine"
        assert wire_server.connections == connections
    wire_server.answer = raw(b"")
    client.request("POST", "/v1/charge")
    assert client.getresponse().status == 502
    client.close()
    assert sum(request.startswith(b"POST /v1/charge ") for request in wire_server.asked) == 1


def test_every_request_of_a_connection_stands_in_its_record(opened: Portal, wire_server: HttpServer) -> None:
    asked = 0
    client = http.client.HTTPConnection("127.0.0.1", opened.port, timeout=20)
    for _ in range(200):
        client.request("GET", "/v1/harmless")
        asked += 1
        answer = client.getresponse()
        if answer.getheader("connection") == "close":
            answer.read()
            break
        answer.read()
    client.sock = None
    client.close()
    assert 1 < asked < 200
    behind = said(opened, b"GET /v1/harmless HTTP/1.1\r\nHost: x\r\n\r\n" * 199 + b"POST /v1/stolen HTTP/1.0\r\n\r\n")
    assert behind.count(b"HTTP/1.1 200") == asked
    assert opened.codes() == []
    assert [note.target.count("GET ") for note in opened.notes] == [asked, asked]
    assert not any(b"stolen" in request for request in wire_server.asked)


def test_two_long_paths_do_not_look_alike_in_the_record(opened: Portal) -> None:
    for end in ("a", "b"):
        ask(opened, f"/v1/{'x' * 1000}{end}")
    assert opened.codes() == []
    targets = [note.target for note in opened.notes]
    assert targets[0] != targets[1]
    assert all(len(target) < 500 for target in targets)


def test_a_head_request_and_answers_without_a_body_work(opened: Portal, wire_server: HttpServer) -> None:
    wire_server.answer = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n")
    status, body, headers = ask(opened, method="HEAD")
    assert (status, body, headers["content-length"]) == (200, b"", "12345")
    wire_server.answer = raw(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert ask(opened)[:2] == (204, b"")


def test_a_client_that_waits_for_100_continue_gets_it_from_the_portal(opened: Portal, wire_server: HttpServer) -> None:
    with socket.create_connection(("127.0.0.1", opened.port), timeout=20) as client:
        client.sendall(b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 100")
        client.sendall(b"body")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
    assert b"expect" not in wire_server.asked[0].lower()


def test_an_answer_of_unknown_length_arrives_whole_and_an_old_client_gets_it_too(
    opened: Portal, wire_server: HttpServer
) -> None:
    wire_server.answer = raw(b"HTTP/1.1 200 OK\r\n\r\n", b"a" * 1000, b"b" * 1000)
    assert ask(opened)[1] == b"a" * 1000 + b"b" * 1000
    assert said(opened, b"GET /v1/x HTTP/1.0\r\n\r\n").endswith(b"\r\n\r\n" + b"a" * 1000 + b"b" * 1000)


# --- what is not granted -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("DELETE", "/v1/x", (403, "egress.method_not_granted")),
        ("OPTIONS", "/v1/x", (403, "egress.method_not_granted")),
        ("GET", "/v2/x", (403, "egress.path_not_granted")),
        ("GET", "/v1x", (403, "egress.path_not_granted")),
        ("GET", "/v1/../v2/x", (400, "egress.bad_path")),
        ("GET", "/v1/%2e%2e/v2/x", (400, "egress.bad_path")),
        ("GET", "/v1/..%2fv2/x", (400, "egress.bad_path")),
        ("GET", "/v1/%252e%252e/v2", (400, "egress.bad_path")),
        ("GET", "http://169.254.169.254/v1/x", (400, "egress.bad_path")),
        ("GET", "//evil.example/v1/x", (400, "egress.bad_path")),
        ("CONNECT", "evil.example:443", (400, "egress.bad_path")),
    ],
)
def test_what_the_endpoint_does_not_grant_is_refused_with_its_code_and_reaches_nobody(
    opened: Portal, wire_server: HttpServer, method: str, path: str, told: tuple[int, str]
) -> None:
    answer = said(opened, f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert (int(head.split()[1]), json.loads(body)["error"]["code"]) == told
    assert (opened.codes(), wire_server.asked, wire_server.connections) == ([told[1]], [], 0)


def test_a_second_request_behind_the_first_is_judged_like_the_first(opened: Portal, wire_server: HttpServer) -> None:
    granted = b"GET /v1/a HTTP/1.1\r\nHost: x\r\n\r\n"
    smuggled = b"GET /admin HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = said(opened, granted + smuggled + granted)
    assert answer.count(b"HTTP/1.1 200") == 1
    assert b"egress.path_not_granted" in answer
    assert [request.split()[1] for request in wire_server.asked] == [b"/v1/a"]


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Content-Length: 0\r\nContent-Length: 33\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\n\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n",
        b"X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n",
        b"X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n2\r\nabGET /admin HTTP/1.1\r\nHost: x\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n-1\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n1\na\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_a_message_that_two_servers_would_cut_differently_smuggles_nothing(
    opened: Portal, wire_server: HttpServer, body: bytes
) -> None:
    answer = said(opened, b"POST /v1/x HTTP/1.1\r\nHost: x\r\n" + body)
    assert b"HTTP/1.1 400" in answer
    assert all(b"/admin HTTP" not in request for request in wire_server.asked)
    assert all(request.startswith(b"POST /v1/x HTTP/1.1\r\n") for request in wire_server.asked)


def test_chunk_extensions_and_trailers_stay_on_the_cage_s_side(opened: Portal, wire_server: HttpServer) -> None:
    body = b"2;a=b;c\r\nok\r\n0\r\nX-Trailer: Authorization\r\nHost: evil.example\r\n\r\n"
    answer = said(opened, b"POST /v1/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
    assert answer.startswith(b"HTTP/1.1 200")
    assert wire_server.asked[0].endswith(b"\r\n\r\n2\r\nok\r\n0\r\n\r\n")


def test_the_client_s_host_credentials_and_disguises_reach_nobody(opened: Portal, wire_server: HttpServer) -> None:
    headers = {
        "Host": "evil.example", "Authorization": "Bearer stolen", "Cookie": "session=stolen", "X-Api-Key": "stolen",
        "Proxy-Authorization": "stolen", "X-HTTP-Method-Override": "DELETE", "X-Original-URL": "/admin",
        "X-Rewrite-URL": "/admin", "X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1",
        "Connection": "close, X-Hop", "X-Hop": "stolen", "Upgrade": "websocket", "TE": "trailers",
        "Accept-Encoding": "gzip", "X-Harmless": "kept", "X_HTTP_Method_Override": "DELETE", "X.Original.Url": "/admin",
        "X_Api_Key": "stolen", "X_Forwarded_For": "127.0.0.1", "X-Original-Method": "override", "Remote_User": "stolen",
        "Proxy": "http://evil.example", "Transfer_Encoding": "stolen", "X-Forwarded-User": "stolen",
    }  # fmt: skip
    with socket.create_connection(("127.0.0.1", opened.port), timeout=20) as client:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        client.sendall(f"GET /v1/x HTTP/1.1\r\n{lines}\r\n".encode())
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
    request = wire_server.asked[0].decode().lower()
    for word in ("evil.example", "stolen", "override", "/admin", "forwarded", "upgrade", "gzip", "x-hop", "trailers"):
        assert word not in request
    assert f"host: localhost:{wire_server.port}\r\n" in request
    assert "x-harmless: kept" in request
    assert request.count("authorization:") == 1


def test_a_key_in_a_header_of_its_own_replaces_what_the_client_sent(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority
) -> None:
    opened = through(portal, replace(config, key=("X-Weather-Key", KEY)), wire_server, authority)
    ask(opened, X_Weather_Key="mine", Authorization="Bearer mine")
    said(opened, b"GET /v1/x HTTP/1.0\r\nX_Weather_Key: mine\r\n\r\n")
    for request in wire_server.asked:
        assert request.lower().count(b"x-weather-key:") == 1
        assert KEY.encode() in request
        assert b"mine" not in request


# --- redirects -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("location", "inside"),
    [
        ("/v1/other?a=b", "/v1/other?a=b"),
        ("other", "/v1/other"),
        ("https://localhost:PORT/v1/other#part", "/v1/other"),
    ],
)
def test_a_redirect_within_the_grant_is_passed_back_as_a_path_and_not_followed(
    opened: Portal, wire_server: HttpServer, location: str, inside: str
) -> None:
    wire_server.answer = plain(b"", "302 Found", f"Location: {location.replace('PORT', str(wire_server.port))}")
    status, _, headers = ask(opened)
    assert (status, headers["location"]) == (302, inside)
    assert len(wire_server.asked) == 1


@pytest.mark.parametrize(
    "location",
    [
        "https://evil.example/v1/x",
        "http://169.254.169.254/latest/meta-data/",
        "http://localhost:PORT/v1/x",
        "https://localhost:1/v1/x",
        "https://user@localhost:PORT/v1/x",
        "//evil.example/v1/x",
        "\\\\evil.example\\v1",
        "/admin",
        "/v1/%2e%2e/admin",
        "https://0x7f000001:PORT/v1/x",
        "https://[::ffff:127.0.0.1]:PORT/v1/x",
        "javascript:alert(1)",
        "file:///etc/passwd",
    ],
)
def test_a_redirect_to_anywhere_else_is_refused(opened: Portal, wire_server: HttpServer, location: str) -> None:
    there = location.replace("PORT", str(wire_server.port))
    wire_server.answer = plain(b"go there", "307 Temporary Redirect", f"Location: {there}")
    status, code = refusal(ask(opened))
    assert (status, code in ("egress.redirect", "egress.bad_path", "egress.path_not_granted")) in (
        (502, True), (400, True), (403, True),
    )  # fmt: skip
    assert len(wire_server.asked) == 1


# --- the secret ----------------------------------------------------------------------------------------------------


def test_a_server_that_echoes_the_key_does_not_tell_it(opened: Portal, wire_server: HttpServer) -> None:
    encoded = base64.b64encode(f"user:{KEY}".encode())
    echoed = b"You sent " + KEY.encode() + b" and " + encoded + b" and " + KEY.encode().hex().encode()
    length = str(len(echoed)).encode()
    for cut in range(0, len(echoed), 7):
        head = b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\nX-Echo: Bearer " + KEY.encode() + b"\r\n\r\n"
        wire_server.answer = raw(head, echoed[:cut], echoed[cut:])
        status, body, headers = ask(opened)
        assert (status, len(body)) == (200, len(echoed))
        together = repr(headers).encode() + body
        for form in (KEY.encode(), encoded[8:-4], KEY.encode().hex().encode()):
            assert form not in together
    assert "masked" in opened.notes[0].detail


def test_a_compressed_answer_where_none_was_asked_for_is_refused(opened: Portal, wire_server: HttpServer) -> None:
    wire_server.answer = plain(b"\x1f\x8b", "200 OK", "Content-Encoding: gzip")
    assert refusal(ask(opened)) == (502, "egress.encoded")


def test_cookies_and_orders_to_browsers_do_not_come_down(opened: Portal, wire_server: HttpServer) -> None:
    wire_server.answer = plain(b"x", "200 OK", "Set-Cookie: a=b", "Alt-Svc: h3", "Keep-Alive: 5", "X-Kept: yes")
    headers = ask(opened)[2]
    assert headers.keys() & {"set-cookie", "alt-svc", "keep-alive"} == set()
    assert headers["x-kept"] == "yes"


# --- who answers ---------------------------------------------------------------------------------------------------


def test_a_name_that_first_is_public_and_then_private_is_connected_as_it_was_judged(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority
) -> None:
    """Rebinding: each connection resolves once; the private answer is refused, and no second look is taken."""
    answers = [["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"]]
    looked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        looked.append(host)
        return answers[1] if len(looked) > 1 else answers[0]

    opened = through(
        portal, config, wire_server, authority, resolve=resolve, host="api.example.com",
        terms=replace(TERMS, connect_s=0.3),
    )  # fmt: skip
    first, second = refusal(ask(opened)), refusal(ask(opened))
    assert first[1] in ("egress.timeout", "egress.unreachable")
    assert second == (403, "egress.address")
    assert (len(looked), wire_server.connections) == (2, 0)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "0.0.0.0"]
)
def test_a_name_at_a_private_address_is_not_connected(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority, address: str
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["93.184.216.34", address]

    opened = through(portal, config, wire_server, authority, resolve=resolve, host="api.example.com")
    assert refusal(ask(opened)) == (403, "egress.address")
    assert wire_server.connections == 0


def test_a_server_with_a_certificate_for_another_name_gets_no_request_and_no_key(
    portal: Open, config: HttpConfig, authority: Authority
) -> None:
    other = HttpServer(authority, "other.example")
    try:
        opened = through(portal, config, other, authority)
        assert refusal(ask(opened)) == (502, "egress.tls")
        assert other.asked == []
    finally:
        other.stop()


# --- bounds --------------------------------------------------------------------------------------------------------


def test_a_resource_is_asked_no_faster_than_its_rate(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority
) -> None:
    opened = through(portal, replace(config, rate=(2, 60)), wire_server, authority)
    assert [ask(opened)[0] for _ in range(3)] == [200, 200, 429]
    assert int(ask(opened)[2]["retry-after"]) >= 1
    assert len(wire_server.asked) == 2


def test_a_server_that_asked_to_be_left_alone_is_left_alone(opened: Portal, wire_server: HttpServer) -> None:
    wire_server.answer = plain(b"slow down", "429 Too Many Requests", "Retry-After: 30")
    status, body, _ = ask(opened)
    assert (status, body) == (429, b"slow down")
    assert refusal(ask(opened)) == (429, "egress.rate")
    assert len(wire_server.asked) == 1


def test_more_bytes_than_the_terms_are_cut_off_and_the_client_can_tell(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority
) -> None:
    opened = through(portal, config, wire_server, authority, terms=replace(TERMS, max_bytes_down=100_000))
    wire_server.answer = plain(b"x" * 1_000_000)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        ask(opened)
    assert opened.codes() == ["egress.bytes_down"]


def test_each_answer_has_its_own_bound_on_one_connection(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority
) -> None:
    opened = through(portal, replace(config, max_answer=10_000), wire_server, authority)
    client = http.client.HTTPConnection("127.0.0.1", opened.port, timeout=20)
    wire_server.answer = plain(b"x" * 9_000)
    for _ in range(5):
        client.request("GET", "/v1/x")
        assert len(client.getresponse().read()) == 9_000
    wire_server.answer = plain(b"x" * 11_000)
    client.request("GET", "/v1/x")
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        client.getresponse().read()
    client.close()
    assert opened.codes() == ["egress.bytes_down"]


def test_an_answer_that_never_ends_is_cut_off_too(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority
) -> None:
    opened = through(portal, config, wire_server, authority, terms=replace(TERMS, max_bytes_down=100_000))

    def endless(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            connection.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")

    wire_server.answer = endless
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        ask(opened)
    assert opened.codes() == ["egress.bytes_down"]


@pytest.mark.parametrize(
    "piece",
    [
        b"HTTP/1.1 103 Early Hints\r\nLink: " + b"x" * 4000 + b"\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"1;" + b"x" * 4000 + b"\r\nz\r\n",
    ],
)
def test_what_frames_an_answer_has_an_end_too(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority, piece: bytes
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" if piece.startswith(b"1;") else b""

    def flood(connection: socket.socket, _: bytes) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece * 10)

    wire_server.answer = flood
    opened = through(portal, replace(config, max_answer=100_000), wire_server, authority)
    with contextlib.suppress(http.client.HTTPException, OSError):
        ask(opened)
    assert opened.codes() in (["egress.bytes_down"], ["egress.broken"])
    assert opened.notes[0].bytes_down < 100_000


def test_a_body_larger_than_the_terms_is_refused(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority
) -> None:
    opened = through(portal, config, wire_server, authority, terms=replace(TERMS, max_bytes_up=10_000))
    answer = said(opened, b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000)
    assert opened.codes() == ["egress.bytes_up"]
    assert answer == b"" or b" 413 " in answer


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /v1/x HTTP/1.1\r\nHo", b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab"],
    ids=["nothing", "half a head", "half a body"],
)
def test_a_client_that_stops_in_the_middle_is_let_go(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority, sent: bytes
) -> None:
    opened = through(portal, config, wire_server, authority, terms=replace(TERMS, idle_s=1.0))
    with socket.create_connection(("127.0.0.1", opened.port), timeout=20) as client:
        client.sendall(sent)
        read = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(65536):
                read += piece
    assert (b" 504 " in read) == bool(sent)


def test_a_head_that_comes_byte_by_byte_is_no_way_to_stay(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority
) -> None:
    opened = through(portal, config, wire_server, authority, terms=replace(TERMS, idle_s=0.5))
    ended = threading.Event()
    with socket.create_connection(("127.0.0.1", opened.port), timeout=20) as client:

        def drip() -> None:
            with contextlib.suppress(OSError):
                client.sendall(b"GET /v1/x HTTP/1.1\r\nHost: x\r\n")
                while not ended.wait(0.05):
                    client.sendall(b"X")

        thread = threading.Thread(target=drip)
        thread.start()
        with contextlib.suppress(ConnectionResetError):
            while client.recv(65536):
                pass
        ended.set()
        thread.join()
    assert opened.codes() == ["egress.idle"]
    assert wire_server.connections == 0


def test_a_server_that_never_answers_is_given_up_and_the_client_is_told(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority
) -> None:
    opened = through(portal, config, wire_server, authority, terms=replace(TERMS, idle_s=0.3))
    wire_server.answer = lambda connection, _: None
    assert refusal(ask(opened)) == (504, "egress.idle")


@pytest.mark.parametrize(
    "answer",
    [
        raw(b"SSH-2.0-OpenSSH\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
        raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n"),
        raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"),
        raw(b""),
    ],
    ids=["no HTTP", "two lengths", "endless head", "another protocol", "nothing"],
)
def test_a_server_that_speaks_no_http_is_a_refusal(opened: Portal, wire_server: HttpServer, answer: object) -> None:
    wire_server.answer = answer  # type: ignore[assignment]
    assert refusal(ask(opened)) == (502, "egress.broken")


def test_an_answer_that_breaks_off_is_an_error_for_the_client(opened: Portal, wire_server: HttpServer) -> None:
    wire_server.answer = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"x" * 10)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        ask(opened)
    assert opened.codes() == ["egress.broken"]
