"""Which headers pass between a cage and an endpoint, each way. Pure.

Up: what frames a message, what belongs to one hop, what names a host, whatever a credential could ride in, and whatever
asks a server to take another method, path or client for the real one, is the broker's to say or nobody's. Names are
compared as servers fold them: to many of them `X_Http_Method`, `X.Http.Method` and `X-Http-Method` are one. Down: what
frames or belongs to one hop, cookies (they are credentials, and a cage keeps none), and orders to a browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

import h11

from toolcage.broker.answers import CODE_HEADER

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
    base-url destination forwarded proxy proxy-host remote-user request-uri via true-client-ip x-client-ip x-host
    x-method x-method-override x-override-url x-proxy-url
    """.split()  # noqa: SIM905
)
_FAMILIES: Final = (
    "cf-", "ssl-", "x-accel-", "x-auth-request-", "x-authenticated-", "x-cluster-", "x-envoy-",
    "x-forwarded-", "x-http-", "x-original-", "x-real-", "x-remote-", "x-rewrite-", "x-sendfile", "x-ssl-",
)  # fmt: skip
"""How the names begin of what one proxy tells the next: who asks, and what for."""
_UP: Final = _HOP | _FRAMING | _CREDENTIALS | _DISGUISES | {"accept-encoding"}
_DOWN: Final = _HOP | {
    "set-cookie", "set-cookie2", "content-length", "alt-svc", "strict-transport-security", "clear-site-data", "refresh",
    "public-key-pins", "nel", "report-to", "reporting-endpoints",
}  # fmt: skip


def folded(name: str) -> str:
    """The name as the laxest of servers compares it: CGI and its heirs know only letters, digits and one other sign."""
    return re.sub(r"[^a-z0-9]", "-", name.lower())


def all_of(response: h11.Response) -> Headers:
    """The headers of an answer; their names are in lower case."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers]


def as_bytes(headers: Headers) -> list[tuple[bytes, bytes]]:
    """As h11 takes them whole: of a text it takes only ASCII, and a value may hold any byte from 0x80 on."""
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers]


def value_of(headers: Headers, name: str) -> str | None:
    """The first value of a header, None where there is none."""
    return next((value for known, value in headers if known == name), None)


def going_up(headers: Iterable[tuple[str, str]], own: Iterable[str] = ()) -> Headers:
    """The client's headers that a server may see. `own` are those that the broker sets: the endpoint's key, say."""
    dropped = _UP | {folded(name) for name in own}
    kept = _without(headers, dropped)
    return [(name, value) for name, value in kept if not folded(name).startswith(_FAMILIES)]


def coming_down(headers: Iterable[tuple[str, str]]) -> Headers:
    """The server's headers that a client may see. Its length is for whoever frames the message; the header by which the
    broker says that it refused is the broker's alone."""
    return _without(headers, _DOWN | {folded(CODE_HEADER)})


def _without(headers: Iterable[tuple[str, str]], dropped: frozenset[str]) -> Headers:
    """Also without those that a `Connection` header names as belonging to this hop."""
    found = list(headers)
    named = {folded(token.strip()) for name, value in found if name == "connection" for token in value.split(",")}
    return [(name, value) for name, value in found if folded(name) not in dropped and folded(name) not in named]
