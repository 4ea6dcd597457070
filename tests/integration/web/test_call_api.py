"""`call_api` through the whole line, in a real cage, against an HTTPS server: what is granted works, its neighbours do
not, and the key stays outside."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from servers.canary import let_out, spellings
from servers.https import HttpsServer, Request, Respond, Response
from servers.images import KEY, png

pytestmark = pytest.mark.docker

POLICY = """
version: 1
role: caller
tools:
  call_api:
    resources: {endpoint: [weather]}
    allow: [{}]
"""


def resource(server: HttpsServer, *lines: str) -> str:
    usual = "    methods: [GET, POST, DELETE]\n    path_prefixes: [/v1/forecast, /v1/alerts]\n"
    key = "    key: {header: X-Key, format: \"{}\", secret: {env: IMAGES_KEY}}\n"
    return f"  weather:\n    url: {server.origin}/v1\n    ca: ca.pem\n{usual}{key}{''.join(lines)}"


def echo(request: Request) -> Response:
    return Response.of(
        {"method": request.method, "path": request.path, "query": dict(request.query), "body": request.body.decode()},
        ETag='"7"', X_Secret="no", Set_Cookie="a=b",
    )  # fmt: skip


@pytest.fixture
def server(https: Callable[[Respond], HttpsServer]) -> HttpsServer:
    return https(echo)


@pytest.fixture
def ask(open_session: Callable[..., Any], server: HttpsServer) -> Callable[..., Any]:
    session = open_session(POLICY, resource(server))
    return lambda path, **more: session.call("call_api", {"endpoint": "weather", "path": path, **more})


def test_a_request_goes_beneath_the_endpoint_s_address_with_the_key(ask: Any, server: HttpsServer) -> None:
    result = ask("/forecast/Zürich city", query={"days": 3, "tags": ["a", "b"], "unit": None, "metric": True})
    assert result.status == "ok", result
    assert result.data["status"] == 200
    assert result.data["headers"] == {"etag": '"7"'}
    assert result.data["json"]["query"] == {"days": ["3"], "tags": ["a", "b"], "metric": ["true"]}
    asked = server.requests[0]
    assert asked.path == "/v1/forecast/Z%C3%BCrich%20city"
    assert asked.headers["x-key"] == KEY


def test_a_body_is_sent_as_json(ask: Any, server: HttpsServer) -> None:
    result = ask("/alerts", method="POST", body={"city": "Ulm", "above": 30})
    assert json.loads(result.data["json"]["body"]) == {"city": "Ulm", "above": 30}
    assert server.requests[0].headers["content-type"] == "application/json"
    assert ask("/forecast", body={"x": 1}).code == "endpoint.body"


def test_methods_and_paths_that_the_endpoint_does_not_grant_are_refused(ask: Any, server: HttpsServer) -> None:
    for path, method in (("/forecast", "PUT"), ("/admin", "GET"), ("/forecasts", "GET"), ("/", "GET")):
        result = ask(path, method=method)
        assert (result.status, result.code) == ("tool_error", "endpoint.refused"), (path, method, result)
        assert "egress_denied" in result.labels
    assert server.requests == []


def test_paths_that_could_be_read_in_two_ways_are_refused_and_nothing_is_asked(ask: Any, server: HttpsServer) -> None:
    for path in ("/forecast/../admin", "/forecast/..;/admin", "/forecast//x", "/forecast/./x", "/forecast/x\ty"):
        assert ask(path).code == "endpoint.path", path
    for path in ("forecast", "/forecast/%2e%2e/admin", "/forecast?x=1", "/forecast#x", "/forecast\\..\\x", "http://e.example/"):
        assert ask(path).status == "invalid", path
    assert server.requests == []


def test_another_endpoint_does_not_exist(open_session: Callable[..., Any], server: HttpsServer) -> None:
    session = open_session(POLICY, resource(server), resource(server).replace("weather:", "stocks:"))
    result = session.call("call_api", {"endpoint": "stocks", "path": "/forecast"})
    assert (result.status, result.code) == ("denied", "resource.not_granted")
    assert server.requests == []


NARROW = """
version: 1
role: caller
tools:
  call_api:
    resources: {endpoint: [weather]}
    allow:
      - path: {pattern: "^/forecast/[a-z]{1,20}$"}
        method: {const: GET}
    ask:
      - method: {const: DELETE}
    deny:
      - query: {type: object, required: [debug]}
"""


def test_a_policy_narrows_path_method_and_query(open_session: Callable[..., Any], server: HttpsServer) -> None:
    session = open_session(NARROW, resource(server))

    def status(path: str, **more: Any) -> str:
        return str(session.call("call_api", {"endpoint": "weather", "path": path, **more}).status)

    assert status("/forecast/ulm") == "ok"
    assert status("/forecast/ulm", method="POST") == "denied"
    assert status("/forecast/ulm", method="DELETE") == "approval_required"
    assert status("/forecast/Ulm") == "denied"
    assert status("/alerts") == "denied"
    assert status("/forecast/ulm", query={"debug": 1}) == "denied"
    assert len(server.requests) == 1


def test_texts_come_as_text_and_anything_else_as_a_file(ask: Any, server: HttpsServer) -> None:
    server.respond = lambda _: Response(200, "Grüße".encode("latin-1"), {"Content-Type": "text/plain; charset=latin-1"})
    assert ask("/forecast").data["text"] == "Grüße"
    server.respond = lambda _: Response(200, png(), {"Content-Type": "image/png; name=../../etc/passwd"})
    picture = ask("/forecast")
    assert (picture.data["file"], picture.data["truncated"]) == ("response.png", False)
    assert [(file.name, file.media_type, file.content) for file in picture.artifacts] == [
        ("response.png", "image/png", png())
    ]
    server.respond = lambda _: Response(200, b"{not json", {"Content-Type": "application/json"})
    assert ask("/forecast").data["text"] == "{not json"
    server.respond = lambda _: Response(204)
    assert ask("/forecast").data["text"] == ""


def test_numbers_beyond_2_53_come_as_text(ask: Any, server: HttpsServer) -> None:
    body = b'{"id": 12345678901234567890, "small": 5, "least": 9007199254740993}'
    server.respond = lambda _: Response(200, body, {"Content-Type": "application/json"})
    assert ask("/forecast").data["json"] == {"id": "12345678901234567890", "small": 5, "least": "9007199254740993"}


def test_a_long_answer_is_cut_and_said_and_is_whole_in_a_file(ask: Any, server: HttpsServer) -> None:
    rows = [{"row": number, "text": "x" * 90} for number in range(2000)]
    server.respond = lambda _: Response.of(rows)
    result = ask("/forecast")
    assert result.data["truncated"] is True
    assert result.data["file"] == "response.json"
    assert json.loads(result.artifacts[0].content) == rows
    assert len(json.dumps(result.data)) < 70_000


def test_an_endless_answer_ends_at_the_endpoint_s_own_limit(
    open_session: Callable[..., Any], server: HttpsServer
) -> None:
    def pieces() -> Iterator[bytes]:
        while not server.ending.is_set():
            yield b"x" * 65536

    server.respond = lambda _: Response(200, pieces(), {"Content-Type": "text/plain"})
    session = open_session(POLICY, resource(server, "    max_bytes: 1MiB\n"))
    result = session.call("call_api", {"endpoint": "weather", "path": "/forecast"})
    assert (result.status, result.code) == ("tool_error", "endpoint.broken"), result


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "bad_request"), (401, "unauthorized"), (404, "not_found"), (409, "bad_request"), (422, "bad_request"),
     (500, "failed"), (503, "failed")],
)  # fmt: skip
def test_a_status_that_is_no_success_is_a_failure_with_what_the_service_says(
    status: int, code: str, ask: Any, server: HttpsServer
) -> None:
    server.respond = lambda _: Response.of({"error": {"message": "no\nsuch   city"}}, status)
    result = ask("/forecast")
    assert (result.status, result.code) == ("tool_error", f"endpoint.{code}")
    assert result.error.endswith(f"({status}): no such city.")


def test_a_redirect_out_of_the_grant_is_not_followed(ask: Any, server: HttpsServer) -> None:
    for location in ("https://evil.example/", "http://169.254.169.254/latest", "/v1/admin", "//evil.example/"):
        server.respond = lambda _, to=location: Response(302, b"", {"Location": to})  # type: ignore[misc]
        assert not ask("/forecast").success
    assert {request.path for request in server.requests} == {"/v1/forecast"}


def test_the_key_never_comes_back_whatever_the_service_echoes(
    open_session: Callable[..., Any], installation: Any, server: HttpsServer
) -> None:
    session = open_session(POLICY, resource(server))
    for respond in (
        lambda request: Response.of({"headers": dict(request.headers)}),
        lambda request: Response(200, request.headers["x-key"].encode(), {"Content-Type": "text/plain", "ETag": KEY}),
        lambda request: Response(200, request.headers["x-key"].encode(), {"Content-Type": "application/octet-stream"}),
        lambda request: Response.of({"error": request.headers["x-key"]}, 400),
    ):
        server.respond = respond
        result = session.call("call_api", {"endpoint": "weather", "path": "/forecast"})
        assert server.requests[-1].headers["x-key"] == KEY
        seen = let_out(installation, result)
        assert not [spelling for spelling in spellings(KEY) if spelling in seen]
