"""The tool of the portal measurement: asks its endpoint again and again and says how long each answer took."""

import http.client
import time

from toolcage import Tool


def timed(connect, path, requests, kept):
    """Milliseconds of each request, on one connection or each on its own."""
    times = []
    connection = connect() if kept else None
    for _ in range(requests):
        started = time.perf_counter()
        asked = connection or connect()
        asked.request("GET", path)
        size = len(asked.getresponse().read())
        if not kept:
            asked.close()
        times.append((time.perf_counter() - started) * 1000)
    if connection is not None:
        connection.close()
    return {"ms": times, "bytes": size}


class AskRepeatedly(Tool):
    """Asks one endpoint many times."""

    name = "ask_repeatedly"
    description = (
        "Asks one endpoint many times and returns how long each answer took. Use it to measure a portal. Do not use it "
        "for anything else. Input: the path, how often, and whether on one connection. Output: milliseconds."
    )
    parameters = {  # noqa: RUF012 - a tool's class is its declaration
        "path": {"type": "string", "description": "The path to ask for."},
        "requests": {"type": "integer", "description": "How often.", "minimum": 1, "maximum": 10_000},
        "kept": {"type": "boolean", "description": "Whether all requests share one connection."},
    }
    resources = {"endpoint": "endpoint"}  # noqa: RUF012
    effects = frozenset({"reads_untrusted"})
    isolation = "namespace"
    wall_s = 120.0

    def execute(self, path: str, requests: int, kept: bool) -> dict:
        portal = next(iter(self.context["portals"].values()))
        return timed(lambda: http.client.HTTPConnection(portal["host"], portal["port"]), path, requests, kept)
