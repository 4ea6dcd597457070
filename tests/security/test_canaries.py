"""A canary in every kind of secret, a call of every kind of tool, and a look at all that left the host for it.

Real servers that demand the secrets, real cages. An endpoint that sends its key back in many spellings, calls that fail
before, during and after a login, a doctor that is asked about all of it. Then results, their renderings, the audit log,
the program's own log and output, every file and every container are searched for each secret as it is, in base64 at the
three alignments, in hexadecimal and URL-encoded.
"""

from __future__ import annotations

import base64
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from servers import dovecot as imap_server
from servers import postgres as postgres_server
from servers import radicale as dav_server
from servers.asker import AskAndLook
from servers.authority import Authority
from servers.https import HttpsServer, Request, Respond, Response
from servers.images import png
from servers.postgres import PostgresServer
from servers.talker import LookForSecrets
from toolcage import ToolResult

pytestmark = pytest.mark.docker

KEY = "api/key+canary-0a=7&<9e>"
SECRETS = (KEY, imap_server.PASSWORD, dav_server.PASSWORD, postgres_server.PASSWORD)
POLICY = """
version: 1
role: everything
tools:
  call_api: {resources: {endpoint: [mirror, dead]}, allow: [{}]}
  search_web: {resources: {endpoint: [mirror]}, allow: [{}]}
  generate_image: {resources: {endpoint: [mirror]}, allow: [{}]}
  send_email: {resources: {mailbox: [team]}, allow: [{to: {}}]}
  read_email: {resources: {mailbox: [team]}, allow: [{}]}
  list_events: {resources: {calendar: [team]}, allow: [{}]}
  create_event: {resources: {calendar: [team]}, allow: [{}]}
  update_event: {resources: {calendar: [team]}, allow: [{}]}
  delete_event: {resources: {calendar: [team]}, allow: [{}]}
  query_database: {resources: {database: [sales]}, allow: [{}]}
  describe_database: {resources: {database: [sales]}, allow: [{}]}
  look_for_secrets: {resources: {mailbox: [team], calendar: [team]}, allow: [{}]}
  ask_and_look: {resources: {endpoint: [mirror]}, allow: [{}]}
"""
RESOURCES = """
endpoints:
  mirror:
    url: {origin}/v1
    ca: ca.pem
    methods: [GET, POST]
    key: {{header: X-Key, format: "Key {{}}", secret: {{env: CANARY_KEY}}}}
  dead:
    url: https://127.0.0.1:1/
    ca: ca.pem
    key: {{secret: {{env: CANARY_KEY}}}}
databases:
  sales:
    kind: postgresql
    host: 127.0.0.1
    port: {port}
    ca: "{database_ca}"
    database: shop
    user: reader
    password: {{env: CANARY_DATABASE}}
"""
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("call_api", {"endpoint": "mirror", "path": "/json"}),
    ("call_api", {"endpoint": "mirror", "path": "/text"}),
    ("call_api", {"endpoint": "mirror", "path": "/wide"}),
    ("call_api", {"endpoint": "mirror", "path": "/bytes"}),
    ("call_api", {"endpoint": "mirror", "path": "/error", "method": "POST", "body": {"a": 1}}),
    ("call_api", {"endpoint": "mirror", "path": "/redirect"}),
    ("call_api", {"endpoint": "dead", "path": "/x"}),
    ("search_web", {"term": "orders"}),
    ("generate_image", {"prompt": "a cat"}),
    ("send_email", {"to": ["ada@example.com"], "subject": "s", "body": "b"}),
    ("read_email", {}),
    ("create_event", {"title": "t", "start": "2026-05-04T10:00", "end": "2026-05-04T11:00"}),
    ("list_events", {"start": "2026-05-01", "end": "2026-06-01"}),
    ("update_event", {"id": "none.ics", "changes": {"title": "t"}}),
    ("delete_event", {"id": "none.ics"}),
    ("query_database", {"database": "sales", "sql": "SELECT id FROM orders"}),
    ("describe_database", {"database": "sales"}),
    ("look_for_secrets", {}),
    ("ask_and_look", {}),
)


def aligned(secret: str) -> Iterator[bytes]:
    """What of a secret's base64 is the same whatever stands around it, at the three places it can begin at."""
    raw = secret.encode()
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + raw)
        yield encoded[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]


def spellings(secret: str) -> list[bytes]:
    raw = secret.encode()
    found = [raw, raw.hex().encode(), raw.hex().upper().encode(), quote(secret, safe="").encode()]
    found += [quote(secret, safe="").lower().encode(), "".join(f"%{byte:02x}" for byte in raw).encode()]
    found += [json.dumps(secret)[1:-1].encode(), secret.encode("utf-16-le"), raw[::-1]]
    for core in aligned(secret):
        found += [core, core.replace(b"+", b"-").replace(b"/", b"_"), quote(core.decode(), safe="").encode()]
    return found


def mirror(request: Request) -> Response:
    """Tells its key in every way it can think of."""
    key = request.headers["x-key"].removeprefix("Key ")
    forms = [item for item in spellings(key) if item != key[::-1].encode()]  # no mask is held to that one
    written = [item.decode("latin-1") for item in forms]
    end = request.path.rpartition("/")[2]
    if end == "text":
        return Response(200, "\n".join(written).encode("latin-1"), {"Content-Type": "text/plain"})
    if end == "wide":
        return Response(200, key.encode("utf-16"), {"Content-Type": "text/plain; charset=utf-16"})
    if end == "bytes":
        return Response(200, png() + b"\n".join(forms), {"Content-Type": "application/octet-stream"})
    if end == "error":
        return Response.of({"error": f"bad key {key}", "message": written}, 401, X_Echo=key)
    if end == "redirect":
        return Response(302, b"", {"Location": f"/v1/login?key={quote(key)}"})
    return Response.of({"headers": dict(request.headers), "all": written}, ETag=f'"{key}"')


@pytest.fixture
def secrets_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("CANARY_KEY", KEY), ("CANARY_DATABASE", postgres_server.PASSWORD)):
        monkeypatch.setenv(name, value)


@pytest.fixture
def resources(
    installation: Any, office: Path, postgres: PostgresServer, authority: Authority,
    https: Callable[[Respond], HttpsServer], secrets_set: None,
) -> Path:  # fmt: skip
    shutil.copy(authority.file, installation.folder / "ca.pem")
    text = RESOURCES.format(origin=https(mirror).origin, port=postgres.port, database_ca=postgres.ca)
    office.write_text(office.read_text() + text)
    return office


def written(result: ToolResult) -> bytes:
    """A result in every form that somebody could print or send on."""
    parts = [repr(result), str(result), str(result.raw), repr(result.raw), json.dumps(result.to_dict())]
    texts = [part.encode("utf-8", "replace") for part in (*parts, result.to_text())]
    return b"\n".join([*texts, *(item.content for item in result.artifacts)])


def test_no_secret_leaves_the_host_with_any_call_of_any_tool(
    installation: Any, resources: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    heard: list[bytes] = []
    session = installation.session(POLICY, resources=resources, tools=[LookForSecrets(), AskAndLook()])
    ended: dict[str, list[str]] = {}
    for tool, arguments in CALLS:
        result = session.call(tool, arguments)
        ended.setdefault(tool, []).append(result.status)
        heard.append(written(result))
    assert {tool for tool, how in ended.items() if "ok" in how} >= {
        "call_api", "send_email", "read_email", "create_event", "list_events", "look_for_secrets", "ask_and_look",
    }, ended  # fmt: skip
    heard += [json.dumps(container.attrs).encode() for container in installation.containers()]
    heard.append(installation.command("doctor", "--resources", str(resources)).stdout.encode())
    for name in ("OFFICE_MAIL_PASSWORD", "OFFICE_DAV_PASSWORD", "CANARY_KEY", "CANARY_DATABASE"):
        monkeypatch.setenv(name, f"wrong {SECRETS[0]}"[:12])
    for tool, arguments in CALLS:
        heard.append(written(session.call(tool, arguments)))
    heard += [repr(installation.records()).encode(), caplog.text.encode()]
    heard += [text.encode() for text in capfd.readouterr()]
    heard += [path.read_bytes() for path in installation.folder.rglob("*") if path.is_file()]
    everything = b"\n".join(heard)
    assert b"list_events" in everything
    for secret in SECRETS:
        assert [form for form in spellings(secret) if form in everything] == []
