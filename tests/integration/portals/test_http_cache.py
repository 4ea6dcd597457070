"""Answers that an endpoint's portal gives again: to whom, for how long, and what never goes in."""

from __future__ import annotations

import contextlib
import http.client
import socket
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest

from servers.authority import Authority
from servers.http import HttpServer, plain, raw
from servers.http_portal import KEY, Open, ask, config_of, refusal, said, through
from servers.portal import TERMS, Portal
from toolcage.broker.http import HttpConfig
from toolcage.broker.http_freshness import Freshness
from toolcage.broker.kept_answers import Keeping, KeepTerms, KeptAnswers, Place
from toolcage.broker.pace import Pace

OpenKeeping = Callable[..., Portal]


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def config(wire_server: HttpServer) -> HttpConfig:
    return config_of(wire_server)


@pytest.fixture
def opened(
    portal: Open, config: HttpConfig, wire_server: HttpServer, authority: Authority, clock: Clock
) -> OpenKeeping:
    """Portals that share one memory."""
    answers = KeptAnswers(clock)

    def open_one(
        scope: str = "a", *, resource: str = "api", seconds: int = 60, max_bytes: int = 100_000, **options: Any
    ) -> Portal:
        terms = KeepTerms(resource=resource, seconds=seconds, max_bytes=max_bytes, scope=scope)
        used = replace(config, **options.pop("config", {}))
        return through(portal, used, wire_server, authority, keeping=Keeping(answers=answers, terms=terms), **options)

    return open_one


def asked(server: HttpServer) -> int:
    return len(server.asked)


# --- what is kept --------------------------------------------------------------------------------------------------


def test_the_same_question_is_asked_once_and_the_record_says_that_the_second_answer_was_kept(
    opened: OpenKeeping, wire_server: HttpServer, clock: Clock
) -> None:
    wire_server.answer = plain(b'{"n": 1}', "200 OK", "Content-Type: application/json", 'ETag: "7"')
    first, second = opened(), opened()
    assert ask(first, "/v1/x?a=1")[1] == b'{"n": 1}'
    clock.now += 5
    status, body, headers = ask(second, "/v1/x?a=1")
    assert (status, body, headers["content-type"], headers["etag"]) == (200, b'{"n": 1}', "application/json", '"7"')
    assert headers["age"] == "5"
    assert asked(wire_server) == 1
    assert (first.codes(), second.codes()) == ([], [])
    note = second.notes[0]
    assert note.target == f"GET https://localhost:{wire_server.port}/v1/x (cached)"
    assert (note.cached, note.address, first.notes[0].cached) == (1, "", 0)
    assert note.bytes_down > len(body)


def test_another_path_or_query_is_another_question(opened: OpenKeeping, wire_server: HttpServer) -> None:
    for path in ("/v1/x", "/v1/x?a=1", "/v1/x?a=2", "/v1/y", "/v1/X"):
        ask(opened(), path)
    assert asked(wire_server) == 5


def test_questions_on_one_connection_are_answered_from_both_places(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    used = opened()
    client = http.client.HTTPConnection("127.0.0.1", used.port, timeout=20)
    for path in ("/v1/x", "/v1/x", "/v1/y", "/v1/x"):
        client.request("GET", path)
        assert client.getresponse().read() == b"fine"
    client.close()
    assert [request.split()[1] for request in wire_server.asked] == [b"/v1/x", b"/v1/y"]
    assert used.codes() == []
    assert used.notes[0].cached == 2


def test_an_answer_in_pieces_is_given_again_whole_with_its_length(opened: OpenKeeping, wire_server: HttpServer) -> None:
    chunks = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    wire_server.answer = raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunks)
    assert ask(opened())[1] == b"hello world"
    status, body, headers = ask(opened())
    assert (status, body, headers["content-length"]) == (200, b"hello world", "11")
    assert said(opened(), b"GET /v1/x HTTP/1.0\r\nAccept-Encoding: identity\r\n\r\n").endswith(b"\r\n\r\nhello world")


def test_what_is_kept_ends_with_its_time_by_the_operator_and_by_the_server(
    opened: OpenKeeping, wire_server: HttpServer, clock: Clock
) -> None:
    ask(opened(seconds=30))
    clock.now += 29
    ask(opened(seconds=30))
    assert asked(wire_server) == 1
    clock.now += 1
    ask(opened(seconds=30))
    assert asked(wire_server) == 2
    wire_server.answer = plain(b"short", "200 OK", "Cache-Control: max-age=10")
    ask(opened(), "/v1/short")
    clock.now += 9
    ask(opened(), "/v1/short")
    assert asked(wire_server) == 3
    clock.now += 1
    ask(opened(), "/v1/short")
    assert asked(wire_server) == 4


def test_a_kept_answer_is_given_while_the_server_wants_to_be_left_alone_and_does_not_count_at_the_rate(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    pace = Pace()
    limited = {"pace": pace, "config": {"rate": (1, 60)}}
    assert [ask(opened(**limited))[0] for _ in range(4)] == [200] * 4
    pace.hold("endpoint api", "60")
    assert ask(opened(**limited))[0] == 200
    assert refusal(ask(opened(**limited), "/v1/y")) == (429, "egress.rate")
    assert asked(wire_server) == 1


# --- what is not ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        ("Cache-Control: no-store",),
        ("Cache-Control: private",),
        ("Cache-Control: public, Private=\"x-user\"",),
        ("Cache-Control: no-cache",),
        ("Cache-Control: max-age=0",),
        ("Cache-Control: max-age=60, max-age=0",),
        ("Cache-Control: max-age=60", "Cache-Control: no-store"),
        ("Cache-Control: max-age=1e9",),
        ("Cache-Control: max-age=-1",),
        ("Cache-Control: s-maxage=0, max-age=60",),
        ("Cache-Control: max-age=60, \"",),
        ("Cache-Control: max-age=60", "Age: 60"),
        ("Cache-Control: max-age=60", "Age: young"),
        ("Cache-Control: max-age=60", f"Date: {formatdate(0, usegmt=True)}"),
        ("Expires: 0",),
        (f"Expires: {formatdate(0, usegmt=True)}",),
        ("Pragma: no-cache",),
        ("Vary: *",),
        ("Vary: Accept, *",),
        ("Set-Cookie: session=1",),
    ],
)  # fmt: skip
def test_an_answer_that_its_server_does_not_want_kept_is_asked_for_anew(
    opened: OpenKeeping, wire_server: HttpServer, headers: tuple[str, ...]
) -> None:
    for body in (b"first", b"second"):
        wire_server.answer = plain(body, "200 OK", *headers)
        assert ask(opened())[1] == body
    assert asked(wire_server) == 2


@pytest.mark.parametrize(
    "headers",
    [(), ("Cache-Control: public",), ("Cache-Control: max-age=60",), ("Cache-Control: max-age=0, s-maxage=60",),
     ("Cache-Control: max-age=60", "Age: 59"), (f"Expires: {formatdate(4e9, usegmt=True)}",),
     (f"Date: {formatdate(usegmt=True)}", 'Cache-Control: max-age="86400", must-revalidate, x="no-store"')],
)  # fmt: skip
def test_an_answer_that_may_be_kept_is(opened: OpenKeeping, wire_server: HttpServer, headers: tuple[str, ...]) -> None:
    for body in (b"first", b"second"):
        wire_server.answer = plain(body, "200 OK", *headers)
        assert ask(opened())[1] == b"first"
    assert asked(wire_server) == 1


@pytest.mark.parametrize("status", ["201 Created", "203 Partly Mine", "206 Partial", "301 Moved", "404 Not Found",
                                    "410 Gone", "500 Error"])  # fmt: skip
def test_nothing_but_a_200_is_kept(opened: OpenKeeping, wire_server: HttpServer, status: str) -> None:
    wire_server.answer = plain(b"x", status, "Cache-Control: max-age=60", "Location: /v1/y")
    for _ in range(2):
        assert ask(opened())[0] == int(status.split()[0])
    assert asked(wire_server) == 2


def test_a_head_request_is_neither_answered_from_what_is_kept_nor_kept(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    ask(opened())
    wire_server.answer = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    assert ask(opened(), method="HEAD")[1] == b""
    assert ask(opened(), "/v1/y", method="HEAD")[1] == b""
    wire_server.answer = plain(b"fresh")
    assert ask(opened(), "/v1/y")[1] == b"fresh"
    assert asked(wire_server) == 4


@pytest.mark.parametrize(
    "header",
    ["Authorization: Bearer mine", "Cookie: a=b", "Cache-Control: no-cache", "Pragma: no-cache", "Range: bytes=0-1",
     "If-None-Match: \"7\"", "If_Modified_Since: x", "authorization: Bearer mine"],
)  # fmt: skip
def test_a_request_with_credentials_or_conditions_of_its_own_is_asked_anew_and_not_kept(
    opened: OpenKeeping, wire_server: HttpServer, header: str
) -> None:
    request = f"GET /v1/x HTTP/1.1\r\nHost: x\r\n{header}\r\nConnection: close\r\n\r\n".encode()
    plain_request = b"GET /v1/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    for number, sent in enumerate((request, request, plain_request, request)):
        wire_server.answer = plain(b"answer %d" % number)
        assert said(opened(), sent).endswith(b"answer %d" % number)
    assert asked(wire_server) == 4
    assert said(opened(), plain_request).endswith(b"answer 2")


@pytest.mark.parametrize(
    "answer",
    [raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"half"),
     raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"4\r\nhalf\r\n"),
     raw(b"HTTP/1.1 200 OK\r\n\r\n", b"maybe half")],
    ids=["short of its length", "without a last chunk", "of no stated length"],
)  # fmt: skip
def test_an_answer_that_may_have_been_cut_off_is_not_kept(
    opened: OpenKeeping, wire_server: HttpServer, answer: Any
) -> None:
    wire_server.answer = answer
    with contextlib.suppress(http.client.HTTPException, OSError):
        ask(opened())
    wire_server.answer = plain(b"whole")
    assert ask(opened())[1] == b"whole"


def test_an_answer_that_the_client_did_not_take_to_its_end_is_not_kept(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    wire_server.answer = plain(b"x" * 5_000_000)
    used = opened(max_bytes=6_000_000)
    with socket.create_connection(("127.0.0.1", used.port), timeout=20) as client:
        client.sendall(b"GET /v1/x HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n\r\n")
        client.recv(10)
    used.codes()
    wire_server.answer = plain(b"whole")
    assert ask(opened(max_bytes=6_000_000))[1] == b"whole"


# --- bounds --------------------------------------------------------------------------------------------------------


def test_what_is_kept_is_bounded_in_bytes_and_the_oldest_goes_first(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    wire_server.answer = plain(b"x" * 20_000)
    for number in range(6):
        ask(opened(), f"/v1/{number}")
    wire_server.asked.clear()
    for number in (5, 4, 3, 2):
        ask(opened(), f"/v1/{number}")
    assert asked(wire_server) == 0
    ask(opened(), "/v1/0")
    assert asked(wire_server) == 1


def test_an_answer_larger_than_all_that_may_be_kept_passes_and_displaces_nothing(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    ask(opened(), "/v1/small")
    wire_server.answer = plain(b"x" * 200_000)
    for _ in range(2):
        assert len(ask(opened(), "/v1/large")[1]) == 200_000
    assert asked(wire_server) == 3
    assert ask(opened(), "/v1/small")[1] == b"fine"
    assert asked(wire_server) == 3


def test_a_kept_answer_counts_against_the_terms_of_its_connection_and_its_answer(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    wire_server.answer = plain(b"x" * 50_000)
    assert len(ask(opened())[1]) == 50_000
    for narrow in ({"terms": replace(TERMS, max_bytes_down=10_000)}, {"config": {"max_answer": 10_000}}):
        used = opened(**narrow)
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            ask(used)
        assert used.codes() == ["egress.bytes_down"]
    assert asked(wire_server) == 1


# --- attacks -------------------------------------------------------------------------------------------------------


def test_another_scope_or_resource_gets_nothing_of_what_is_kept(opened: OpenKeeping, wire_server: HttpServer) -> None:
    wire_server.answer = plain(b"of a")
    assert ask(opened("a"))[1] == b"of a"
    wire_server.answer = plain(b"of others")
    for used in (opened("b"), opened("a", resource="other")):
        assert ask(used)[1] == b"of others"
    assert ask(opened("a"))[1] == b"of a"
    assert asked(wire_server) == 3


def test_another_key_gets_nothing_of_what_was_answered_to_the_first(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    wire_server.answer = lambda connection, request: plain(
        b"new" if b"other-key" in request else b"old"
    )(connection, b"")  # fmt: skip
    assert ask(opened())[1] == b"old"
    changed = {"key": ("Authorization", "Bearer other-key-0123"), "secrets": ("other-key-0123",)}
    assert ask(opened(config=changed))[1] == b"new"
    assert ask(opened())[1] == b"old"
    assert asked(wire_server) == 2


@pytest.mark.parametrize("header", ["x-debug: <script>", "accept-language: de", "user-agent: other"])
def test_a_header_that_could_change_the_answer_changes_it_for_nobody_else(
    opened: OpenKeeping, wire_server: HttpServer, header: str
) -> None:
    """Whether the server says `Vary` or forgets to: what it is sent is the place of its answer."""

    def reflects(connection: socket.socket, request: bytes) -> None:
        plain(b"poisoned" if header.encode() in request else b"clean")(connection, b"")

    wire_server.answer = reflects
    sent = b"GET /v1/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%b\r\n"
    assert said(opened(), sent % (header.encode() + b"\r\n")).endswith(b"poisoned")
    assert said(opened(), sent % b"").endswith(b"clean")
    assert said(opened(), sent % (header.encode() + b"\r\n")).endswith(b"poisoned")
    assert asked(wire_server) == 2


def test_headers_that_the_portal_drops_poison_nothing_and_part_nothing(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    sent = b"GET /v1/x HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n%b\r\n"
    said(opened(), sent % (b"evil.example", b"X-Forwarded-Host: evil.example\r\nX-Original-URL: /admin\r\n"))
    assert b"evil" not in wire_server.asked[0]
    assert said(opened(), sent % (b"x", b"")).endswith(b"fine")
    assert asked(wire_server) == 1


def test_the_answer_to_a_request_within_a_body_is_not_kept_as_the_answer_to_the_next_one(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    """A server that ignores the body of a GET answers what stands in it, one answer too early."""

    def ignores_bodies(connection: socket.socket, request: bytes) -> None:
        _, _, body = request.partition(b"\r\n\r\n")
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst")
        if body:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\npoisoned")

    wire_server.answer = ignores_bodies
    smuggled = b"GET /v1/evil HTTP/1.1\r\nHost: x\r\n\r\n"
    client = http.client.HTTPConnection("127.0.0.1", opened().port, timeout=20)
    client.request("GET", "/v1/a", smuggled)
    assert client.getresponse().read() == b"first"
    client.request("GET", "/v1/x")
    assert client.getresponse().read() == b"first"
    client.close()
    wire_server.answer = plain(b"true")
    assert ask(opened(), "/v1/x")[1] == b"first"
    assert ask(opened(), "/v1/a")[1] == b"true"


SURPLUS = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\npoisoned"


@pytest.mark.parametrize(
    ("method", "first"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(SURPLUS)),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: %d\r\n\r\n" % len(SURPLUS)),
        ("GET", b"HTTP/1.1 204 No Content\r\nContent-Length: %d\r\n\r\n" % len(SURPLUS)),
        ("GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
    ],
)
@pytest.mark.parametrize("keeps", [True, False])
def test_what_a_server_says_beyond_an_answer_is_neither_the_next_answer_nor_kept_as_one(
    opened: OpenKeeping, wire_server: HttpServer, method: str, first: bytes, keeps: bool
) -> None:
    """Servers that miscount, or that send a body where none may be: whoever chooses it would choose what others get."""

    def miscounts(connection: socket.socket, request: bytes) -> None:
        connection.sendall(
            first + SURPLUS if b"/v1/odd" in request else b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue"
        )

    wire_server.answer = miscounts
    client = http.client.HTTPConnection("127.0.0.1", opened().port, timeout=20)
    client.request(method, "/v1/odd")
    client.getresponse().read()
    client.request("GET", "/v1/x", headers={} if keeps else {"Cache-Control": "no-cache"})
    assert client.getresponse().read() == b"true"
    client.close()
    assert ask(opened(), "/v1/x")[1] == b"true"


def test_an_answer_that_is_kept_came_over_a_connection_of_its_own_and_others_share_one(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    def connections(**headers: str) -> int:
        before = wire_server.connections
        client = http.client.HTTPConnection("127.0.0.1", opened().port, timeout=20)
        for path in ("/v1/a", "/v1/b", "/v1/c"):
            client.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            assert client.getresponse().read() == b"fine"
        client.close()
        return wire_server.connections - before

    assert connections(Cache_Control="no-cache") == 1
    assert connections() == 3


def test_an_answer_in_pieces_that_also_says_a_length_is_given_and_kept_to_its_last_piece(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    wire_server.answer = raw(head + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")
    assert [ask(opened())[1] for _ in range(2)] == [b"hello world"] * 2
    assert asked(wire_server) == 1


def test_what_the_server_echoes_of_the_key_is_kept_masked_and_given_masked(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    wire_server.answer = plain(b"key " + KEY.encode(), "200 OK", f"X-Echo: {KEY}")
    for _ in range(2):
        status, body, headers = ask(opened())
        assert (status, len(body)) == (200, len(KEY) + 4)
        assert KEY not in repr(headers) + body.decode()
    assert asked(wire_server) == 1


def test_what_is_no_longer_granted_is_not_given_from_what_is_kept(opened: OpenKeeping, wire_server: HttpServer) -> None:
    assert ask(opened())[0] == 200
    assert refusal(ask(opened(config={"path_prefixes": ("/v2",)}))) == (403, "egress.path_not_granted")
    assert refusal(ask(opened(config={"methods": frozenset({"POST"})}))) == (403, "egress.method_not_granted")


def test_something_that_is_sent_ends_what_was_kept_and_what_was_on_its_way(
    opened: OpenKeeping, wire_server: HttpServer
) -> None:
    wire_server.answer = plain(b"before")
    assert ask(opened())[1] == b"before"
    assert ask(opened("b"), "/v1/other")[1] == b"before"
    wire_server.answer = plain(b"after")
    assert ask(opened(), "/v1/change", "POST", b"x")[0] == 200
    assert ask(opened())[1] == b"after"
    assert ask(opened("b"), "/v1/other")[1] == b"after"

    def changed_meanwhile(connection: socket.socket, _: bytes) -> None:
        wire_server.answer = plain(b"new")
        ask(opened(), "/v1/change", "POST", b"x")
        plain(b"old")(connection, b"")

    wire_server.answer = changed_meanwhile
    assert ask(opened(), "/v1/slow")[1] == b"old"
    assert ask(opened(), "/v1/slow")[1] == b"new"


@pytest.mark.parametrize("soon", [False, True])
def test_what_a_session_kept_ends_with_it(clock: Clock, soon: bool) -> None:
    answers = KeptAnswers(clock)

    def place(session: str | None) -> Place:
        terms = KeepTerms(resource="api", seconds=60, max_bytes=100_000, scope=session, session=session)
        return Keeping(answers=answers, terms=terms).place(b"x")

    for session in ("one", "two", None):
        place(session).keep([], b"body", Freshness(age_s=0, left_s=60))
    (answers.end_session_soon if soon else answers.end_session)("one")
    assert [place(session).find() is not None for session in ("one", "two", None)] == [False, True, True]


def test_sessions_that_end_where_nothing_is_kept_are_not_remembered(clock: Clock) -> None:
    answers = KeptAnswers(clock)
    tracemalloc.start()
    try:
        for number in range(10_000):
            answers.end_session_soon(f"session-{number}-of-many")
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 100_000
