"""What Tavily's search interface answers, by its documentation and its own client (tavily-python 0.8.5).

Refused as the real one does: another key than its own (401), a client that asks without one (`X-Tavily-Access-Mode:
keyless`), and a body that it does not know (400). Errors come as `{"detail": {"error": …}}`.
"""

from __future__ import annotations

from typing import Any

from servers.authority import Authority
from servers.https import HttpsServer, Request, Respond, Response

KEY = "tvly-canary-7c2b81f4a9d05e36"
FIELDS = frozenset(("query", "max_results", "country", "language", "filter_by_language"))
PAGES: list[dict[str, Any]] = [
    {"title": f"Page {number}", "url": f"https://example.org/{number}", "content": f"What page {number} says.",
     "score": 0.9, "raw_content": None}
    for number in range(1, 31)
]  # fmt: skip


class TavilyServer(HttpsServer):
    """Answers each search with the first of PAGES, unless `answer` says otherwise."""

    def __init__(self, authority: Authority) -> None:
        self.answer: Respond | None = None
        super().__init__(self._search, authority)

    def resource(self, name: str = "tavily") -> str:
        """The endpoint in resources.yaml, two blanks deep; its key comes from TAVILY_API_KEY."""
        return (
            f"  {name}:\n    url: {self.origin}\n    methods: [POST]\n    path_prefixes: [/search]\n"
            "    key: {header: Authorization, format: \"Bearer {}\", secret: {env: TAVILY_API_KEY}}\n"
            f"    ca: ca.pem\n"
        )

    def _search(self, request: Request) -> Response:
        wrong = _wrong(request)
        if wrong is not None:
            return wrong
        if self.answer is not None:
            return self.answer(request)
        asked = request.json()
        return Response.of({"query": asked["query"], "results": PAGES[: asked.get("max_results", 5)]})


def _wrong(request: Request) -> Response | None:
    if (request.method, request.path) != ("POST", "/search"):
        return _error(404, "Not Found")
    if request.headers.get("authorization") != f"Bearer {KEY}" or "x-tavily-access-mode" in request.headers:
        return _error(401, "Unauthorized: missing or invalid API key.")
    body = request.json()
    if not isinstance(body, dict) or not body.get("query") or body.keys() - FIELDS:
        return _error(400, "Query is missing, or there is an unknown field.")
    return None


def _error(status: int, text: str) -> Response:
    return Response.of({"detail": {"error": text}}, status)
