"""Which headers pass between a cage and an endpoint, each way. Pure.

Up: what frames a message, what belongs to one hop, what names a host, whatever a credential could ride in, and whatever
asks a server to take another method, path or client for the real one, is the broker's to say or nobody's. Down: what
frames or belongs to one hop, cookies (they are credentials, and a cage keeps none), and orders to a browser.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

Headers: TypeAlias = list[tuple[str, str]]

_HOP: Final = frozenset(
    """
    connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade
    http2-settings
    """.split()  # noqa: SIM905 - a list of names reads better than a list of quotes
)
_FRAMING: Final = frozenset(("content-length", "expect", "host"))
_CREDENTIALS: Final = frozenset(("authorization", "cookie", "cookie2", "x-api-key", "api-key"))
_DISGUISES: Final = frozenset(
    """
    destination forwarded via x-client-ip x-forwarded-for x-forwarded-host x-forwarded-port x-forwarded-proto
    x-forwarded-server x-forwarded-prefix x-host x-http-host-override x-http-method x-http-method-override
    x-method-override x-original-host x-original-url x-real-ip x-rewrite-url true-client-ip cf-connecting-ip
    """.split()  # noqa: SIM905
)
_UP: Final = _HOP | _FRAMING | _CREDENTIALS | _DISGUISES | {"accept-encoding"}
_DOWN: Final = _HOP | {
    "set-cookie", "set-cookie2", "content-length", "alt-svc", "strict-transport-security", "clear-site-data", "refresh",
    "public-key-pins", "nel", "report-to", "reporting-endpoints",
}  # fmt: skip


def going_up(headers: Iterable[tuple[str, str]]) -> Headers:
    """The client's headers that a server may see."""
    return _without(headers, _UP)


def coming_down(headers: Iterable[tuple[str, str]]) -> Headers:
    """The server's headers that a client may see. Its length is for whoever frames the message."""
    return _without(headers, _DOWN)


def _without(headers: Iterable[tuple[str, str]], dropped: frozenset[str]) -> Headers:
    """Also without those that a `Connection` header names as belonging to this hop."""
    found = list(headers)
    named = {token.strip().lower() for name, value in found if name == "connection" for token in value.split(",")}
    return [(name, value) for name, value in found if name not in dropped and name not in named]
