"""What an endpoint's portal sends again, with which key, how often and how long, before servers that break."""

from __future__ import annotations

import http.client
import re
import socket
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from servers.authority import Authority
from servers.http import HttpServer, plain, raw
from servers.http_portal import Open, ask, config_of, refusal, said, through
from servers.portal import TERMS, Portal
from toolcage.broker.http_repeat import MOST_KEPT, Sends
from toolcage.broker.pace import Pace

OpenOne = Callable[..., Portal]
_KEY = re.compile(rb"\r\nidempotency-key: ([^\r]+)\r\n")


@pytest.fixture
def opened(portal: Open, wire_server: HttpServer, authority: Authority) -> OpenOne:
    """A portal with idempotency keys and two retries, unless it is said otherwise."""

    def open_one(*, keys: bool = True, retries: int = 2, sends: Sends | None = None, **options: Any) -> Portal:
        used = replace(config_of(wire_server), retries=retries, **options.pop("config", {}))
        sends = sends or (Sends("call-1", "api", "Idempotency-Key") if keys else None)
        return through(portal, used, wire_server, authority, sends=sends, **options)

    return open_one


def keys_of(server: HttpServer) -> list[bytes]:
    return [found for request in server.asked for found in _KEY.findall(request)]


def first_then(server: HttpServer, *answers: Any) -> None:
    """The answers in order; the last one for ever."""
    left = list(answers)

    def answer(connection: socket.socket, request: bytes) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(connection, request)

    server.answer = answer


BREAKS = raw(b"")
BUSY = plain(b"later", "503 Service Unavailable", "Retry-After: 0")
FINE = plain(b"fine")


# --- the key -------------------------------------------------------------------------------------------------------


def test_each_request_that_may_change_something_has_a_key_of_its_own_and_others_have_none(
    opened: OpenOne, wire_server: HttpServer
) -> None:
    used = opened()
    for method, body in (("POST", b"x"), ("POST", b"x"), ("POST", b"y"), ("GET", None), ("HEAD", None)):
        wire_server.answer = FINE if method != "HEAD" else raw(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
        assert ask(used, "/v1/x", method, body)[0] == 200
    keys = keys_of(wire_server)
    assert len(keys) == len(set(keys)) == 3
    assert all(uuid.UUID(key.decode()).version == 4 for key in keys)


def test_no_two_calls_and_no_two_resources_have_a_key_in_common_and_the_same_one_has_the_same() -> None:
    def key(call: str = "a", resource: str = "api", body: bytes = b"x") -> str:
        return Sends(call, resource, "Idempotency-Key").key("POST", "/v1/x", body)[1]

    assert key() == key()
    assert len({key(), key("b"), key(resource="other"), key(body=b"y")}) == 4
    assert Sends("a", "api", "Idempotency-Key", quoted=True).key("POST", "/v1/x", b"x")[1] == f'"{key()}"'


@pytest.mark.parametrize("name", ["Idempotency-Key", "idempotency_key", "IDEMPOTENCY-KEY", "Idempotency.Key"])
def test_a_key_that_the_cage_wrote_reaches_nobody(opened: OpenOne, wire_server: HttpServer, name: str) -> None:
    for method in ("POST", "GET"):
        request = f"{method} /v1/x HTTP/1.1\r\nHost: x\r\n{name}: mine\r\nContent-Length: 0\r\n\r\n".encode()
        assert said(opened(), request).startswith(b"HTTP/1.1 200")
    assert all(b"mine" not in request for request in wire_server.asked)
    assert [len(_KEY.findall(request)) for request in wire_server.asked] == [1, 0]


def test_without_a_header_of_the_resource_the_cage_s_own_passes_like_any_and_nothing_is_sent_again(
    opened: OpenOne, wire_server: HttpServer
) -> None:
    wire_server.answer = BREAKS
    assert refusal(ask(opened(keys=False), "/v1/x", "POST", b"x", Idempotency_Key="mine")) == (502, "egress.broken")
    assert keys_of(wire_server) == [b"mine"]


# --- what is sent again --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("first", [BREAKS, BUSY], ids=["breaks", "busy"])
def test_a_request_with_a_key_is_sent_again_whole_with_the_same_key(
    opened: OpenOne, wire_server: HttpServer, first: Any, chunked: bool
) -> None:
    first_then(wire_server, first, FINE)
    body = bytes(range(256)) * 400
    used = opened()
    client = http.client.HTTPConnection("127.0.0.1", used.port, timeout=20)
    client.request("POST", "/v1/x", iter([body]) if chunked else body, encode_chunked=chunked)
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, b"fine")
    client.close()
    one, two = wire_server.asked
    assert one.partition(b"\r\n\r\n")[0] == two.partition(b"\r\n\r\n")[0]
    assert [bytes(range(256)) * 10 in request for request in (one, two)] == [True, True]
    assert len(keys_of(wire_server)) == 2
    assert wire_server.connections == 2
    assert used.codes() == []
    assert used.notes[0].target.endswith("/v1/x (sent again)")


def test_what_changes_something_is_never_sent_again_without_a_key(opened: OpenOne, wire_server: HttpServer) -> None:
    for first, told in ((BREAKS, 502), (BUSY, 503)):
        wire_server.answer = first
        wire_server.asked.clear()
        assert ask(opened(keys=False, retries=5), "/v1/x", "POST", b"x")[0] == told
        assert len(wire_server.asked) == 1


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_no_method_that_changes_something_meets_a_kept_connection(
    opened: OpenOne, wire_server: HttpServer, method: str
) -> None:
    used = opened(keys=False, config={"methods": frozenset({"GET", method})})
    client = http.client.HTTPConnection("127.0.0.1", used.port, timeout=20)
    client.request("GET", "/v1/x")
    client.getresponse().read()
    wire_server.answer = BREAKS
    client.request(method, "/v1/x")
    assert client.getresponse().status == 502
    client.close()
    assert [request.split()[0].decode() for request in wire_server.asked] == ["GET", method]
    assert wire_server.connections == 2


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_changes_nothing_is_sent_again_as_often_as_the_resource_says(
    opened: OpenOne, wire_server: HttpServer, method: str
) -> None:
    first_then(wire_server, BREAKS, BREAKS, raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
    assert ask(opened(keys=False), "/v1/x", method)[0] == 200
    assert len(wire_server.asked) == 3
    first_then(wire_server, BREAKS, FINE)
    assert ask(opened(keys=False, retries=0), "/v1/x", method)[0] == 502
    assert len(wire_server.asked) == 4


def test_an_answer_that_has_begun_is_not_asked_for_again(opened: OpenOne, wire_server: HttpServer) -> None:
    for begun in (b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", b"HTTP/1.1 100 Continue\r\n\r\n"):
        wire_server.asked.clear()
        wire_server.answer = raw(begun)
        with pytest.raises((http.client.HTTPException, ConnectionError, AssertionError)):
            assert ask(opened(), "/v1/x", "POST", b"x")[0] == 200
        assert len(wire_server.asked) == 1


@pytest.mark.parametrize("status", ["500 Error", "502 Bad Gateway", "504 Timeout", "408 Timeout", "409 Conflict"])
def test_other_failures_are_answers(opened: OpenOne, wire_server: HttpServer, status: str) -> None:
    wire_server.answer = plain(b"no", status, "Retry-After: 0")
    assert ask(opened(), "/v1/x", "POST", b"x")[0] == int(status.split()[0])
    assert len(wire_server.asked) == 1


def test_a_body_that_is_too_long_to_be_kept_is_sent_once_and_whole(opened: OpenOne, wire_server: HttpServer) -> None:
    body = b"x" * (MOST_KEPT + 200_000)
    first_then(wire_server, FINE, BUSY)
    assert ask(opened(), "/v1/x", "POST", body)[0] == 200
    assert wire_server.asked[0].partition(b"\r\n\r\n")[2] == body
    assert ask(opened(), "/v1/x", "POST", body)[0] == 503
    assert len(wire_server.asked) == len(keys_of(wire_server)) == 2


# --- bounds --------------------------------------------------------------------------------------------------------


def test_a_server_that_is_busy_for_ever_is_asked_a_bounded_number_of_times_and_its_answer_told(
    opened: OpenOne, wire_server: HttpServer
) -> None:
    wire_server.answer = BUSY
    status, body, headers = ask(opened(), "/v1/x", "POST", b"x")
    assert (status, body, headers["retry-after"]) == (503, b"later", "0")
    assert len(wire_server.asked) == 3
    assert len(set(keys_of(wire_server))) == 1


@pytest.mark.parametrize(
    "after",
    ["1e9", "999999999", "-1", "-99999999999", "soon", "", "1" * 5000, "0x10", "inf", "nan", "١",
     "Sat, 22 Jul 2051 02:00:37 GMT", "Fri, 31 Dec 9999 23:59:59 GMT",
     "Fri, 31 Dec 99999 23:59:59 GMT"],
)  # fmt: skip
def test_a_retry_after_that_is_far_or_no_time_is_not_waited_for(
    opened: OpenOne, wire_server: HttpServer, after: str
) -> None:
    encoded = f"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\nRetry-After: {after}\r\n\r\nno".encode()
    wire_server.answer = raw(encoded)
    assert ask(opened(), "/v1/x", "POST", b"x")[:2] == (503, b"no")
    assert len(wire_server.asked) == 1


def test_a_busy_server_without_a_time_is_not_asked_again(opened: OpenOne, wire_server: HttpServer) -> None:
    wire_server.answer = plain(b"no", "503 Busy")
    assert ask(opened(), "/v1/x", "POST", b"x")[0] == 503
    assert len(wire_server.asked) == 1


@pytest.mark.parametrize(("after", "asked"), [("1", 2), ("8", 1)])
def test_a_wait_fits_into_what_is_left_of_the_call_or_is_not_begun(
    opened: OpenOne, wire_server: HttpServer, after: str, asked: int
) -> None:
    first_then(wire_server, plain(b"no", "429 Too Many", f"Retry-After: {after}"), FINE)
    status = ask(opened(terms=replace(TERMS, call_s=8.0)), "/v1/x", "POST", b"x")[0]
    assert (status, len(wire_server.asked)) == (200 if asked == 2 else 429, asked)


def test_a_date_that_is_over_is_a_time_and_the_server_is_asked_again(opened: OpenOne, wire_server: HttpServer) -> None:
    over = format_datetime(datetime.now(UTC) - timedelta(days=400), usegmt=True)
    first_then(wire_server, plain(b"no", "503 Busy", f"Retry-After: {over}"), FINE)
    assert ask(opened(), "/v1/x", "POST", b"x")[0] == 200


def test_a_repetition_counts_at_the_rate_and_what_broke_is_told_as_that(
    opened: OpenOne, wire_server: HttpServer
) -> None:
    wire_server.answer = BREAKS
    assert refusal(ask(opened(config={"rate": (1, 60)}), "/v1/x", "POST", b"x")) == (502, "egress.broken")
    assert len(wire_server.asked) == 1
    wire_server.answer = BUSY
    assert refusal(ask(opened(config={"rate": (1, 60)}), "/v1/x", "POST", b"x")) == (429, "egress.rate")
    assert len(wire_server.asked) == 2


def test_other_calls_leave_the_server_alone_while_one_waits(opened: OpenOne, wire_server: HttpServer) -> None:
    held = threading.Event()

    class Told(Pace):
        def hold(self, resource: str, retry_after: str) -> None:
            super().hold(resource, retry_after)
            held.set()

    pace = Told()
    refused: list[tuple[int, str]] = []
    other = opened(pace=pace)

    def busy(connection: socket.socket, request: bytes) -> None:
        plain(b"no", "503 Busy", "Retry-After: 4")(connection, request)

    def look() -> None:
        assert held.wait(20)
        refused.append(refusal(ask(other)))

    looking = threading.Thread(target=look)
    looking.start()
    first_then(wire_server, busy, FINE)
    waiting = opened(pace=pace)
    assert ask(waiting, "/v1/x", "POST", b"x")[0] == 200
    looking.join(20)
    assert refused == [(429, "egress.rate")]
    assert len(wire_server.asked) == 2
