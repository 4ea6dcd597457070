"""Answers that are kept and requests that are sent again, through the whole line: who gets which."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from servers.http import HttpServer, plain, raw
from servers.https import HttpsServer, Request, Respond, Response
from servers.images import KEY

pytestmark = pytest.mark.docker

POLICY = """
version: 1
role: caller
tools:
  call_api:
    resources: {endpoint: [weather]}
    allow: [{}]
"""
CACHE = "    cache: {seconds: 300}\n"
SHARED = "    cache: {seconds: 300, share: role}\n"
KEYS = "    idempotency: {}\n"


def resource(origin: str, *lines: str) -> str:
    usual = "    methods: [GET, POST]\n    allow_private: true\n"
    key = "    key: {header: X-Key, format: \"{}\", secret: {env: IMAGES_KEY}}\n"
    return f"  weather:\n    url: {origin}/v1\n    ca: ca.pem\n{usual}{key}{''.join(lines)}"


@pytest.fixture
def server(https: Callable[[Respond], HttpsServer]) -> HttpsServer:
    counted: Iterator[int] = iter(range(1000))

    def count(request: Request) -> Response:
        return Response.of({"number": next(counted), "private": request.headers["x-key"][-4:]})

    return https(count)


@pytest.fixture
def connections(installation: Any) -> Callable[[], list[Mapping[str, Any]]]:
    def of_log() -> list[Mapping[str, Any]]:
        found = [item for item in installation.records() if item["type"] == "connection"]
        return [json.loads(str(item["detail"])) for item in found]

    return of_log


def number(session: Any, path: str = "/forecast", **more: Any) -> int:
    result = session.call("call_api", {"endpoint": "weather", "path": path, **more})
    assert result.status == "ok", result
    return int(result.data["json"]["number"])


def test_a_session_gets_an_answer_again_and_the_record_says_so(
    open_session: Callable[..., Any], server: HttpsServer, connections: Callable[[], list[Mapping[str, Any]]]
) -> None:
    session = open_session(POLICY, resource(server.origin, CACHE))
    assert [number(session), number(session), number(session, "/other"), number(session)] == [0, 0, 1, 0]
    assert len(server.requests) == 2
    assert [item.get("cached") for item in connections()] == [None, 1, None, 1]
    assert [item["target"].endswith("/v1/forecast (cached)") for item in connections()] == [False, True, False, True]
    assert [bool(item.get("address")) for item in connections()] == [True, False, True, False]
    assert number(session, method="POST", body={}) == 2
    assert number(session) == 3


def test_without_the_resource_saying_so_nothing_is_kept(open_session: Callable[..., Any], server: HttpsServer) -> None:
    session = open_session(POLICY, resource(server.origin))
    assert [number(session), number(session)] == [0, 1]


@pytest.mark.parametrize(("lines", "seen"), [(CACHE, [0, 1, 0]), (SHARED, [0, 0, 0])], ids=["session", "role"])
def test_another_session_gets_it_only_where_the_role_s_sessions_share(
    open_session: Callable[..., Any], installation: Any, server: HttpsServer, lines: str, seen: list[int]
) -> None:
    first = open_session(POLICY, resource(server.origin, lines))
    second = installation._opened[-1].session()
    assert [number(first), number(second), number(first)] == seen


def test_another_role_or_another_policy_never_gets_what_one_kept(
    open_session: Callable[..., Any], installation: Any, server: HttpsServer
) -> None:
    folder = installation.folder / "policies"
    folder.mkdir()
    for role in ("one", "two"):
        (folder / f"{role}.yaml").write_text(POLICY.replace("caller", role))
    open_session(POLICY, resource(server.origin, SHARED))
    runtime = installation.from_folder(folder, resources=installation.folder / "resources.yaml")
    first, second = runtime.session(role="one"), runtime.session(role="two")
    assert [number(first), number(second), number(runtime.session(role="one"))] == [0, 1, 0]
    narrower = POLICY.replace("caller", "one").replace("[{}]", "[{path: {pattern: \"^/fore.*$\"}}]")
    (folder / "one.yaml").write_text(narrower)
    runtime.reload()
    assert [number(first), number(second)] == [2, 1]


def test_another_key_gets_its_own_answer(
    open_session: Callable[..., Any], server: HttpsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(POLICY, resource(server.origin, SHARED))
    assert [number(session), number(session)] == [0, 0]
    monkeypatch.setenv("IMAGES_KEY", "sk-canary-another-key-0123456789")
    assert number(session) == 1
    monkeypatch.setenv("IMAGES_KEY", KEY)
    assert number(session) == 0


# --- sent again ----------------------------------------------------------------------------------------------------


def breaks_once(server: HttpServer) -> None:
    def first(connection: Any, request: bytes) -> None:
        server.answer = plain(b'{"number": 7}', "200 OK", "Content-Type: application/json")
        raw(b"")(connection, request)

    server.answer = first


def keys_of(server: HttpServer) -> list[str]:
    lines = [line for request in server.asked for line in request.decode().split("\r\n")]
    return [line.partition(": ")[2] for line in lines if line.startswith("idempotency-key: ")]


def test_a_call_s_request_is_sent_again_with_its_key_and_another_call_has_another(
    open_session: Callable[..., Any], wire_server: HttpServer, connections: Callable[[], list[Mapping[str, Any]]]
) -> None:
    session = open_session(POLICY, resource(f"https://localhost:{wire_server.port}", KEYS))
    for _ in range(2):
        breaks_once(wire_server)
        assert number(session, "/orders", method="POST", body={"amount": 5}) == 7
    one, again, two, two_again = keys_of(wire_server)
    assert (one == again, two == two_again, one != two) == (True, True, True)
    assert uuid.UUID(one).version == 4
    assert [item["target"].endswith("/v1/orders (sent again)") for item in connections()] == [True, True]


def test_without_a_key_it_is_sent_once_and_the_model_is_told_that_it_broke(
    open_session: Callable[..., Any], wire_server: HttpServer
) -> None:
    session = open_session(POLICY, resource(f"https://localhost:{wire_server.port}", "    retries: 5\n"))
    breaks_once(wire_server)
    result = session.call("call_api", {"endpoint": "weather", "path": "/orders", "method": "POST", "body": {}})
    assert (result.status, result.code) == ("tool_error", "endpoint.failed")
    assert "egress.broken" in (result.hint or "")
    assert len(wire_server.asked) == 1
    breaks_once(wire_server)
    assert number(session, "/orders") == 7


def test_a_wait_that_its_call_has_no_time_for_is_not_begun_and_no_other_call_asks_before(
    open_session: Callable[..., Any], wire_server: HttpServer, connections: Callable[[], list[Mapping[str, Any]]]
) -> None:
    wire_server.answer = plain(b"no", "503 Busy", "Retry-After: 60")
    policy = POLICY.replace("allow: [{}]", "allow: [{}]\n    sandbox: {wall: 20s}")
    session = open_session(policy, resource(f"https://localhost:{wire_server.port}", KEYS))
    arguments = {"endpoint": "weather", "path": "/orders", "method": "POST", "body": {}}
    first, second = (session.call("call_api", arguments) for _ in range(2))
    assert (first.code, second.code) == ("endpoint.failed", "endpoint.rate_limited")
    assert [item["reason"] for item in connections() if item["verdict"] in ("denied", "limit")] == ["egress.rate"]
    assert len(wire_server.asked) == 1


def test_a_short_wait_is_waited_for_within_the_call(
    open_session: Callable[..., Any], wire_server: HttpServer
) -> None:
    def busy(connection: Any, request: bytes) -> None:
        wire_server.answer = plain(b'{"number": 7}', "200 OK", "Content-Type: application/json")
        plain(b"no", "429 Too Many", "Retry-After: 1")(connection, request)

    wire_server.answer = busy
    session = open_session(POLICY, resource(f"https://localhost:{wire_server.port}", KEYS))
    assert number(session, "/orders", method="POST", body={}) == 7
    assert len(wire_server.asked) == 2
