"""A tool in a cage works with an endpoint and never has its key: not in its environment, files, context or memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from servers.asker import AskAndLook
from servers.https import HttpsServer, Respond, Response
from servers.images import KEY

pytestmark = pytest.mark.docker

POLICY = """
version: 1
role: hostile
tools:
  ask_and_look:
    resources: {endpoint: [secret]}
    allow: [{}]
"""


@pytest.mark.parametrize("isolation", ["namespace", "container"])
def test_no_key_is_in_a_cage_while_its_tool_is_served_with_it(
    isolation: str, open_session: Callable[..., Any], https: Callable[[Respond], HttpsServer]
) -> None:
    server = https(lambda request: Response.of(dict(request.headers)))
    key = "    key: {header: X-Key, format: \"{}\", secret: {env: IMAGES_KEY}}\n"
    resource = f"  secret:\n    url: {server.origin}/v1\n    ca: ca.pem\n{key}"
    policy = POLICY + f"    sandbox: {{isolation: {isolation}}}\n"
    result = open_session(policy, resource, tools=[AskAndLook()]).call("ask_and_look")
    assert result.status == "ok", result
    assert server.requests[0].headers["x-key"] == KEY
    assert "authorization" not in server.requests[0].headers
    assert json.loads(result.data["body"])["host"] == f"127.0.0.1:{server.port}"
    assert KEY not in result.data["body"]
    assert result.data["planted"] >= 1  # the look finds what is there
    assert {name: result.data[name] for name in ("context", "environment", "files", "memory")} == {
        "context": 0, "environment": 0, "files": 0, "memory": 0,
    }  # fmt: skip
    assert result.data["reached"] == []
