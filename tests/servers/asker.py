"""Tools for tests: one that asks its endpoint and looks for the key, and one that tells what its cage has loaded."""

from __future__ import annotations

import contextlib
import http.client
import socket
import sys
from typing import Any

from servers.talker import LookForSecrets
from toolcage import Tool


class AskAndLook(LookForSecrets):
    """Counts as `look_for_secrets` does, after a request whose answer it keeps in memory; says where else it got."""

    name = "ask_and_look"
    description = "Asks an endpoint and looks for its key."
    effects = frozenset({"sends", "reads_untrusted"})
    resources = {"endpoint": "endpoint"}  # noqa: RUF012

    def execute(self) -> dict[str, Any]:
        (told,) = self.context["portals"].values()
        path = "/" + told["base"].split("/", 3)[3] if told["base"].count("/") > 2 else "/"
        connection = http.client.HTTPConnection(told["host"], told["port"], timeout=10)
        connection.request("GET", path, headers={"Authorization": "Bearer mine", "X-Key": "mine"})
        answer = connection.getresponse()
        body = answer.read()
        seen = super().execute()
        return {**seen, "status": answer.status, "body": body.decode("utf-8", "replace"), "reached": _reached()}


def _reached() -> list[str]:
    """Places outside that a plain connection gets to."""
    found = []
    for host, port in (("1.1.1.1", 443), ("169.254.169.254", 80), ("172.17.0.1", 22), ("example.org", 443)):
        with contextlib.suppress(OSError):
            socket.create_connection((host, port), timeout=1).close()
            found.append(host)
    return found


class LoadedModules(Tool):
    """Which of some modules are there before it imports anything."""

    name = "list_loaded"
    description = "Lists modules that are loaded."
    parameters = {"type": "object", "properties": {}}  # noqa: RUF012
    image = "web"
    isolation = "namespace"

    def execute(self) -> list[str]:
        return sorted({"bs4", "requests", "tavily", "wikipedia", "httpx"} & set(sys.modules))
