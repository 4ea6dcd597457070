"""Portals through the whole line: a policy, a cage in each isolation mode, a real HTTPS server, the audit log."""

from __future__ import annotations

import json
import os
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from conftest import Installation
from servers.authority import Authority
from servers.http import HttpServer, plain
from toolcage import CancelToken, Runtime, Session, ToolResult

KEY = "sk-canary-0123456789abcdef"
ISOLATIONS = ("container", "namespace", "session")
ONLY_A_SESSION_KEEPS_ANYTHING = pytest.mark.parametrize("world", ["session"], indirect=True)
RESOURCES = """
version: 1
endpoints:
  api:
    url: https://localhost:%d/v1
    methods: [GET, POST]
    allow_private: true
    ca: %s
    key: {secret: {env: TOOLCAGE_TEST_KEY}}
"""
POLICY = """
version: 1
role: asker
tools:
  run_with_endpoint:
    resources: {endpoint: [api]}
    allow: [{}]
  run_without:
    allow: [{}]
"""
TOOL = '''
import http.client
import json
import os
import socket
import threading
import time
import urllib.error
import urllib.request

from toolcage import Tool


class RunWithEndpoint(Tool):
    name = "run_with_endpoint"
    description = "Runs a program that has one endpoint. For tests. Not for anything else. Input: code. Output: data."
    parameters = {"code": {"type": "string"}}
    resources = {"endpoint": "endpoint"}
    isolation = "%(isolation)s"
    wall_s = 60.0

    def execute(self, code):
        names = {"context": self.context, "portal": next(iter(self.context["portals"].values()), None)}
        names.update(globals())
        exec(code, names)
        return names.get("result")


class RunWithout(RunWithEndpoint):
    name = "run_without"
    resources = {}
'''
GET = """
def get(path, method="GET", body=None, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
"""


class World:
    """One runtime with the tool in one isolation mode."""

    def __init__(
        self, installation: Installation, isolation: str, server: HttpServer, authority: Authority
    ) -> None:
        folder = installation.folder
        tool = folder / f"portal_tool_{isolation}.py"
        tool.write_text(TOOL % {"isolation": isolation})
        sys.path.insert(0, str(folder))
        try:
            module = __import__(tool.stem)
        finally:
            sys.path.remove(str(folder))
        resources = folder / "resources.yaml"
        resources.write_text(RESOURCES % (server.port, authority.file))
        tools = [module.RunWithEndpoint(), module.RunWithout()]
        self.runtime: Runtime = installation.runtime(POLICY, resources=resources, tools=tools)
        self.session: Session = self.runtime.session()
        self.installation = installation

    def run(self, code: str, tool: str = "run_with_endpoint", **options: Any) -> ToolResult:
        text = "port = portal['port'] if portal else 8101\n" + GET + textwrap.dedent(code)
        return self.session.call(tool, {"code": text}, **options)

    def connections(self) -> list[Mapping[str, Any]]:
        found = [item for item in self.installation.records() if item["type"] == "connection"]
        return [json.loads(str(item["detail"])) for item in found]


@pytest.fixture(params=ISOLATIONS)
def world(
    request: pytest.FixtureRequest, installation: Installation, wire_server: HttpServer, authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> World:  # fmt: skip
    monkeypatch.setenv("TOOLCAGE_TEST_KEY", KEY)
    return World(installation, request.param, wire_server, authority)


OVER = ("closed", "cancelled")
"""A call may be over a moment before the broker has seen the end of a connection that its program closed."""


def data_of(result: ToolResult) -> Any:
    assert result.success, (result.code, result.error, result.hint, result.stderr)
    return result.data


def test_a_tool_asks_its_endpoint_and_the_key_never_enters_the_cage(world: World, wire_server: HttpServer) -> None:
    wire_server.answer = lambda connection, request: plain(request)(connection, b"")
    seen = data_of(world.run("""
        status, echoed = get("/v1/x?q=1")
        places = [open(f"/proc/self/{name}", "rb").read().decode("latin-1") for name in ("environ", "cmdline")]
        result = {"status": status, "echoed": echoed, "context": repr(context), "places": places}
    """))  # fmt: skip
    assert seen["status"] == 200
    assert KEY not in json.dumps(seen)
    assert KEY.encode() in wire_server.asked[0]
    (record,) = world.connections()
    assert (record["portal"], record["kind"], record["count"]) == ("api", "http", 1)
    assert record["verdict"] in OVER
    assert record["target"] == f"GET https://localhost:{wire_server.port}/v1/x"
    assert record["address"] == f"127.0.0.1:{wire_server.port}"
    assert record["bytes_up"] > 0
    assert record["bytes_down"] > 0
    assert KEY not in json.dumps(world.installation.records(), default=str)


def test_a_refusal_is_told_to_the_tool_the_model_and_the_operator(world: World, wire_server: HttpServer) -> None:
    told = world.run("""
        status, body = get("/admin")
        raise SystemExit(f"{status} {body}")
    """)
    assert told.status == "tool_error"
    assert "egress_denied" in told.labels
    assert told.hint is not None
    assert "egress.path_not_granted" in told.hint
    (record,) = world.connections()
    assert (record["verdict"], record["reason"]) == ("denied", "egress.path_not_granted")
    assert wire_server.asked == []
    granted = world.run("result = get('/v1/x')")
    assert (granted.success, "egress_denied" in granted.labels) == (True, False)


def test_a_call_without_the_grant_has_no_portal_not_even_the_one_of_the_call_before(
    world: World, wire_server: HttpServer
) -> None:
    assert data_of(world.run("result = get('/v1/x')")) == [200, "fine"]
    found = data_of(world.run("""
        def open_port(number):
            try:
                probe = socket.socket()
            except OSError:  # a call without a portal makes no such socket
                return False
            with probe:
                return probe.connect_ex(("127.0.0.1", number)) == 0
        result = {"portals": dict(context["portals"]), "open": [n for n in range(8090, 8130) if open_port(n)]}
    """, tool="run_without"))  # fmt: skip
    assert found == {"portals": {}, "open": []}
    assert len(wire_server.asked) == 1


@ONLY_A_SESSION_KEEPS_ANYTHING
def test_a_connection_does_not_outlive_its_call(world: World, wire_server: HttpServer) -> None:
    first = data_of(world.run("""
        import builtins
        builtins.kept = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        kept.request("GET", "/v1/one")
        result = kept.getresponse().read().decode()
    """))  # fmt: skip
    second = data_of(world.run("""
        sock, kept.sock = kept.sock, None
        try:
            sock.sendall(b"GET /v1/two HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            result = sock.recv(1000).decode()
        except OSError as error:
            result = type(error).__name__
    """))  # fmt: skip
    assert first == "fine"
    assert second in ("", "ConnectionResetError", "BrokenPipeError")
    assert [request.split()[1] for request in wire_server.asked] == [b"/v1/one"]


TAKE_THE_PORT = """
import ctypes, signal, struct
if %s:  # a timer that continues this process whenever the warden has stopped it
    signal.signal(signal.SIGCONT, lambda *_: None)  # the kernel parks a timer whose signal is ignored
    libc = ctypes.CDLL(None, use_errno=True)
    event = ctypes.create_string_buffer(struct.pack("Pii", 0, 18, 0), 64)  # SIGCONT, by signal
    timer = ctypes.c_void_p()
    assert libc.timer_create(1, event, ctypes.byref(timer)) == 0
    assert libc.timer_settime(timer, 0, struct.pack("4l", 0, 20_000_000, 0, 20_000_000), None) == 0

def take():
    while True:
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind(("127.0.0.1", 8101))
            held.listen()
            while True:
                held.accept()[0].sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\nforged")
        except OSError:
            held.close()
            time.sleep(0.001)

threading.Thread(target=take, daemon=True).start()
result = get("/v1/x")
"""


@ONLY_A_SESSION_KEEPS_ANYTHING
@pytest.mark.parametrize("wake", [False, True], ids=["stopped between calls", "woken between calls"])
def test_a_program_that_takes_the_port_between_calls_forges_no_answer(
    world: World, wire_server: HttpServer, wake: bool
) -> None:
    assert data_of(world.run(TAKE_THE_PORT % wake)) == [200, "fine"]
    time.sleep(0.3)
    second = world.run("result = get('/v1/x')")
    assert (second.data, second.code) in (([200, "fine"], None), (None, "portal.taken"))
    if second.code == "portal.taken":
        assert second.retryable
        assert data_of(world.run("result = get('/v1/x')")) == [200, "fine"]


def test_two_hundred_connections_in_a_row_leave_nothing_behind(world: World, wire_server: HttpServer) -> None:
    def counted() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    ask_many = "result = sum(get('/v1/x')[0] == 200 for _ in range(%d))"
    assert data_of(world.run(ask_many % 3)) == 3
    before = counted()
    total = data_of(world.run(ask_many % 220))
    end = time.monotonic() + 20
    while counted() > before and time.monotonic() < end:
        time.sleep(0.05)
    assert total == 220
    assert counted()[0] <= before[0]
    assert counted()[1] <= before[1]
    passed = [record for record in world.connections() if record["verdict"] in OVER]
    assert sum(record["count"] for record in passed) == 223
    assert len(passed) < 100


def test_a_program_that_opens_all_it_can_is_held_to_the_cap_and_the_next_call_works(
    world: World, wire_server: HttpServer
) -> None:
    result = world.run("""
        held = []
        for _ in range(300):
            probe = socket.socket()
            probe.settimeout(0.05)
            try:
                probe.connect(("127.0.0.1", port))
                probe.sendall(b"GET /v1/x HTTP/1.1\\r\\n")
                held.append(probe)
            except OSError:
                break
        result = len(held) > 0
    """)
    assert result.status in ("ok", "tool_error")
    assert wire_server.connections <= 32
    assert data_of(world.run("result = get('/v1/x')")) == [200, "fine"]


def test_cancelling_a_call_ends_its_connections(
    world: World, wire_server: HttpServer, eventually: Callable[..., bool]
) -> None:
    arrived, gone = threading.Event(), threading.Event()

    def hang(connection: Any, _: bytes) -> None:
        arrived.set()
        connection.settimeout(30)
        try:
            if connection.recv(1) == b"":
                gone.set()
        except OSError:
            gone.set()
        raise EOFError

    wire_server.answer = hang
    token = CancelToken()
    threading.Thread(target=lambda: (arrived.wait(30), token.cancel()), daemon=True).start()
    result = world.run("get('/v1/x')", cancel=token)
    assert result.status == "cancelled"
    assert gone.wait(20)
    wire_server.answer = plain(b"fine")
    assert eventually(lambda: [record["verdict"] for record in world.connections()] == ["cancelled"])
    assert data_of(world.run("result = get('/v1/x')")) == [200, "fine"]


def test_large_bodies_pass_both_ways_unchanged(world: World, wire_server: HttpServer) -> None:
    def mirror(connection: Any, request: bytes) -> None:
        plain(request.partition(b"\r\n\r\n")[2])(connection, b"")

    wire_server.answer = mirror
    assert data_of(world.run("""
        import hashlib
        content = os.urandom(3_000_000)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/x", content, timeout=30) as answer:
            result = hashlib.sha256(answer.read()).digest() == hashlib.sha256(content).digest()
    """)) is True  # fmt: skip


def test_a_resource_s_secret_is_in_nothing_that_leaves_the_line(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "violet harbour lamp"  # no shape of a key: only whoever knows the value can find it
    monkeypatch.setenv("TOOLCAGE_TEST_KEY", secret)
    seen: list[str] = []
    shows = f"""
        import base64, sys
        value = {secret!r}
        print("out", value, base64.b64encode(value.encode()).decode(), flush=True)
        print("err", value, file=sys.stderr, flush=True)
        open(f"/workspace/{{value}}.txt", "w").write("content")
        result = {{"value": value, value: [1]}}
    """
    options = {"on_output": lambda name, text: seen.append(text)}
    shown = world.run(shows, **options)
    everything = json.dumps(data_of(shown)) + shown.stdout + shown.stderr + "".join(seen)
    everything += " ".join(item.name for item in shown.artifacts)
    assert "out" in shown.stdout
    assert "err" in "".join(seen)
    assert shown.artifacts
    assert secret not in everything
    assert "dmlvbGV0" not in everything
    assert "secret_redacted" in shown.labels
    failed = world.run(f"raise ValueError('refused: ' + {secret!r})")
    assert not failed.success
    assert secret not in json.dumps([failed.error, failed.hint, failed.stdout, failed.stderr])
    # A call that does not use the resource has nothing to do with its secret.
    assert data_of(world.run(f"result = {secret!r}", tool="run_without")) == secret


def test_without_the_key_nothing_runs(world: World, monkeypatch: pytest.MonkeyPatch, wire_server: HttpServer) -> None:
    monkeypatch.delenv("TOOLCAGE_TEST_KEY")
    refused = world.run("result = 1")
    assert (refused.status, refused.code) == ("unavailable", "resource.unusable")
    assert wire_server.connections == 0
