"""An HTTP interface with a key: the tool asks it from a cage that has neither a network nor the key.

    python examples/web_api.py

The interface is a small server on this machine; a real one stands in resources.yaml by its https address.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from toolcage import Runtime

KEY = "weather-key-5f2c91"
RESOURCES = """
version: 1
endpoints:
  weather:
    url: http://127.0.0.1:{port}/v1
    methods: [GET]
    path_prefixes: [/v1/forecast]
    key: {{header: X-Key, format: "{{}}", secret: {{env: WEATHER_KEY}}}}
"""
POLICY = """
version: 1
role: forecaster
tools:
  call_api:
    resources: {endpoint: [weather]}
    allow:
      - method: {const: GET}
        path: {pattern: "^/(forecast|admin)/[a-z]{2,40}$"}
"""


class Weather(BaseHTTPRequestHandler):
    """Knows who asks by the key, and gives it away to whoever asks for it."""

    def do_GET(self) -> None:
        known = self.headers.get("X-Key") == KEY
        body = json.dumps({"asked": self.path, "known": known, "headers": dict(self.headers)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def main(folder: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Weather)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["WEATHER_KEY"] = KEY
    resources, policy = folder / "resources.yaml", folder / "forecaster.yaml"
    resources.write_text(RESOURCES.format(port=server.server_port))
    policy.write_text(POLICY)
    with Runtime.from_files(policy, resources=resources) as runtime, runtime.session() as session:
        told = session.call("call_api", {"endpoint": "weather", "path": "/forecast/ulm", "query": {"days": 3}})
        answer = told.data["json"]
        print(answer["asked"], "known:", answer["known"], "key shown:", KEY in str(told.to_dict()))
        for arguments in (
            {"path": "/forecast/ulm", "method": "DELETE"},  # the policy
            {"path": "/forecast/../admin/users"},  # the policy's pattern
            {"path": "/admin/users"},  # the policy lets it pass; the endpoint does not
        ):
            refused = session.call("call_api", {"endpoint": "weather", **arguments})
            print(refused.status, refused.code)
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
