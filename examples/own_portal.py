"""A tool of one's own that reaches a server: a class, one granted endpoint, no network in its cage.

    python examples/own_portal.py

The endpoint is a small server on this machine. The tool learns where its portal is from `self.context`, and names no
host. A cage imports this very file, so the rest of toolcage is imported where it is used.
"""

from __future__ import annotations

import json
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

from toolcage import Tool, ToolFailure

RESOURCES = """
version: 1
endpoints:
  wiki: {{url: "http://127.0.0.1:{port}/wiki"}}
"""
POLICY = """
version: 1
role: reader
tools:
  look_up:
    resources: {endpoint: [wiki]}
    allow:
      - word: {pattern: "^[a-z]{1,40}$"}
"""


class LookUp(Tool):
    """What the declaration says is what a model is shown and what a grant is checked against."""

    name = "look_up"
    description = "Looks a word up in the company's wiki."
    resources: Mapping[str, str] = MappingProxyType({"endpoint": "endpoint"})  # no argument: the grant names one
    effects = ("reads_untrusted",)
    wall_s = 10.0

    def execute(self, word: str, section: str = "words") -> dict[str, Any]:
        (portal,) = self.context["portals"].values()
        url = f"{portal['base']}/{urllib.parse.quote(section)}?{urllib.parse.urlencode({'of': word})}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return {"meaning": json.load(answer)["meaning"]}
        except urllib.error.HTTPError as error:
            raise ToolFailure("wiki.missing", f"The wiki has no such word ({error.code}).", "Try another.") from None


class Wiki(BaseHTTPRequestHandler):
    """Knows one word."""

    def do_GET(self) -> None:
        known = self.path == "/wiki/words?of=cage"
        body = json.dumps({"meaning": "a place with one door"}).encode() if known else b"{}"
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def main(folder: Path) -> None:
    from toolcage import Runtime

    server = ThreadingHTTPServer(("127.0.0.1", 0), Wiki)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    resources, policy = folder / "resources.yaml", folder / "reader.yaml"
    resources.write_text(RESOURCES.format(port=server.server_port))
    policy.write_text(POLICY)
    with Runtime.from_files(policy, resources=resources, tools=[LookUp()]) as runtime, runtime.session() as session:
        print(session.call("look_up", {"word": "cage"}).data)
        unknown = session.call("look_up", {"word": "door"})
        print(unknown.code, unknown.hint)
        print(session.call("look_up", {"word": "../admin"}).code)
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
