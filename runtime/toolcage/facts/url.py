"""Facts of URLs, read as a browser reads them: the WHATWG URL standard's parser, not a looser or a stricter one.

Backslashes are slashes, any number of slashes begins the authority of `http:`, tabs and line ends inside are dropped,
user information ends at the last `@`. What is read here is what must be connected to: whoever connects uses `href`,
`host` and `port` of these facts and never parses the text again.

Decides nothing and resolves nothing. A text that is no absolute URL has `host` None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from toolcage.facts.host import Host, read_host
from toolcage.types import Facts

DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_SPECIAL: Final = frozenset({*DEFAULT_PORTS, "file"})
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:", re.ASCII)
_EDGE: Final = "".join(map(chr, range(0x21)))
_DROPPED: Final = re.compile(r"[\t\n\r]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PORT: Final = re.compile(r"[0-9]{0,8}\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """`scheme` is lower case and '' where there is none. `host` None = none, or not readable. `port` is the given or
    the default one; None = none, or not readable (`bad_port`). `has_userinfo`: anything before an `@`.
    `spelled`: the address is written in its one plain form. `backslash`: one stands before query and fragment, where
    browsers read `/` and other programs do not."""

    text: str
    scheme: str = ""
    host: Host | None = None
    port: int | None = None
    bad_port: bool = False
    has_userinfo: bool = False
    has_control: bool = False
    spelled: bool = True
    backslash: bool = False
    path: str = ""
    query: str = ""
    fragment: str = ""

    @property
    def href(self) -> str:
        """The URL in its plain form, to be used instead of the text. '' where it has no readable host."""
        if self.host is None or self.bad_port:
            return ""
        default = DEFAULT_PORTS.get(self.scheme)
        port = "" if self.port in (None, default) else f":{self.port}"
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{self.host.name}{port}{self.path or '/'}{query}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFacts(Facts):
    """One `Url` for each text of the argument."""

    kind: Literal["url"] = "url"
    urls: tuple[Url, ...] = ()
    has_nul: bool = False


def read(*texts: str) -> UrlFacts:
    """The facts of one or several URLs. Never refuses."""
    return UrlFacts(urls=tuple(map(read_url, texts)), has_nul=any("\x00" in text for text in texts))


def read_url(text: str) -> Url:
    """One URL, read as a browser would. Linear, never raises."""
    has_control = _CONTROL.search(text) is not None
    bare = _DROPPED.sub("", text.strip(_EDGE))
    match = _SCHEME.match(bare)
    if match is None:
        return Url(text=text, has_control=has_control)
    scheme, rest = match.group()[:-1].lower(), bare[match.end() :]
    rest, _, fragment = rest.partition("#")
    if scheme not in _SPECIAL:
        return Url(text=text, scheme=scheme, has_control=has_control, path=rest, fragment=fragment)
    rest, _, query = rest.partition("?")
    slashed = rest.replace("\\", "/")
    authority, slash, path = slashed.lstrip("/").partition("/")
    userinfo, at, hostport = authority.rpartition("@")
    host_text, port, bad_port = _split_port(hostport, scheme)
    host = read_host(host_text) if host_text else None
    return Url(
        text=text,
        scheme=scheme,
        host=host,
        port=port,
        bad_port=bad_port,
        has_userinfo=bool(at) or bool(userinfo),
        has_control=has_control,
        spelled=host is not None and host.spelled and slashed == rest and rest.startswith("//"),
        backslash=slashed != rest,
        path=slash + path,
        query=query,
        fragment=fragment,
    )


def _split_port(hostport: str, scheme: str) -> tuple[str, int | None, bool]:
    """The host, the port, and whether the port is not one. A colon inside `[…]` belongs to the host."""
    end = hostport.rfind("]")
    colon = hostport.find(":", end + 1)
    if colon < 0:
        return hostport, DEFAULT_PORTS.get(scheme), False
    host, digits = hostport[:colon], hostport[colon + 1 :]
    if _PORT.match(digits) is None:
        return host, None, True
    if not digits:
        return host, DEFAULT_PORTS.get(scheme), False
    return (host, int(digits), False) if int(digits) <= 65535 else (host, None, True)
