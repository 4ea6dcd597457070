"""What a broker says over HTTP when it refuses: a status, the code in a header, and both in a JSON body.

The text is the refusal's own, written for tools and models: no secret, no rule, no address. The connection ends with
it. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from toolcage.broker.pace import TooFast
from toolcage.broker.stream import Denied

CODE_HEADER: Final = "X-Toolcage-Refused"
_REASONS: Final = MappingProxyType(
    {400: "Bad Request", 403: "Forbidden", 413: "Content Too Large", 429: "Too Many Requests", 502: "Bad Gateway",
     503: "Service Unavailable", 504: "Gateway Timeout"}
)  # fmt: skip
_STATUSES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "egress.bad_request": 400, "egress.line": 400, "egress.bad_path": 400, "egress.bytes_up": 413,
        "egress.rate": 429, "egress.connections": 503, "egress.timeout": 504, "egress.idle": 504, "egress.time": 504,
        "egress.name": 502, "egress.tls": 502, "egress.unreachable": 502, "egress.broken": 502, "egress.encoded": 502,
        "egress.redirect": 502, "egress.bytes_down": 502,
    }
)  # fmt: skip


def status_of(denied: Denied) -> int:
    """The HTTP status that fits the refusal: 403 unless something else is the matter."""
    return _STATUSES.get(denied.code, 403)


def answer(denied: Denied, status: int) -> bytes:
    """The whole answer as bytes."""
    body = json.dumps({"error": {"code": denied.code, "message": denied.message}}, ensure_ascii=True).encode()
    lines = [
        f"HTTP/1.1 {status} {_REASONS[status]}",
        f"{CODE_HEADER}: {denied.code}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if isinstance(denied, TooFast):
        lines.append(f"Retry-After: {denied.wait_s}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body
