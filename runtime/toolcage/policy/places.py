"""Where something goes: paths, hosts and mail addresses within the bounds that an entry states.

Judged on a strict reading of the whole value: a path that leaves its folder, a URL with a user name or an address in
place of a host name, an address list that two readers would cut differently is outside of every bound. This is a
permission, not the floor: what no grant may reach (private addresses, links out of a workspace) is for the screens and
for whoever opens the connection.

`broad_host` and `broad_folder` say at load why a bound would be no bound. Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from toolcage.policy.origin import identifiers_in, scalars
from toolcage.types import EgressTarget

HOST_PATTERN: Final = r"^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"
EGRESS_PATTERN: Final = HOST_PATTERN.removesuffix("$") + ":[1-9][0-9]{0,4}$"
_HOST: Final = re.compile(HOST_PATTERN)
_EGRESS: Final = (
    " In this role its programs may connect to the following and nothing else, over TLS, through the proxy that"
    " HTTPS_PROXY names:"
)
# Names under which anybody may have a host: a star there grants the world. Not the whole public suffix list; a bound
# with a star is refused on these and wherever only one label would stand behind the star.
_SHARED: Final = frozenset(
    """
    co.uk org.uk gov.uk ac.uk com.au net.au org.au co.nz co.jp or.jp ne.jp com.br com.cn com.tw com.hk co.kr co.in
    com.sg com.mx com.tr co.za co.il com.ar com.pl eu.org us.com uk.com de.com github.io gitlab.io
    githubusercontent.com herokuapp.com netlify.app vercel.app pages.dev workers.dev web.app firebaseapp.com
    appspot.com run.app azurewebsites.net cloudfront.net amazonaws.com s3.amazonaws.com blob.core.windows.net
    core.windows.net windows.net storage.googleapis.com googleapis.com googleusercontent.com blogspot.com
    wordpress.com tumblr.com ngrok.io ngrok-free.app ngrok.app trycloudflare.com fly.dev onrender.com surge.sh
    glitch.me repl.co replit.app duckdns.org ddns.net dyndns.org no-ip.org nip.io sslip.io webhook.site
    requestbin.net pipedream.net r2.dev digitaloceanspaces.com ondigitalocean.app azureedge.net trafficmanager.net
    cloudapp.net myshopify.com
    """.split()  # noqa: SIM905 - a list literal would be sixty lines
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathBounds:
    """`under`: folders, relative to the workspace. `suffixes`: endings that a file's name must have one of."""

    under: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBounds:
    """`names`: exact host names, or `*.` and a domain for every host below it (not the domain itself)."""

    names: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ("https",)
    ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressBounds:
    """`domains`: exact mail domains. `only`: exact addresses. `max_count`: how many addresses at most."""

    domains: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    max_count: int | None = None


def path_miss(argument: str, bounds: PathBounds, value: Any) -> str | None:
    """None if every path lies within the bounds, else what a model may be told."""
    found = identifiers_in(value, "path")
    if not found:
        return f"The argument `{argument}` must be a plain relative path without `..`."
    for path in (item.removeprefix("path:") for item in found):
        if path.startswith("/"):
            return f"The argument `{argument}` must be a path relative to the workspace."
        if bounds.under and not any(folder in (".", path) or path.startswith(f"{folder}/") for folder in bounds.under):
            return f"The argument `{argument}` is outside of the granted folders."
        if bounds.suffixes and not path.endswith(bounds.suffixes):
            return f"The argument `{argument}` names a kind of file that is not granted."
    return None


def host_miss(argument: str, bounds: HostBounds, value: Any) -> str | None:
    """None if every URL leads to a host within the bounds, else what a model may be told."""
    urls = list(scalars(value))
    if not urls:
        return f"The argument `{argument}` holds no URL."
    for url in urls:
        read = _read_url(url)
        if read is None:
            return f"The argument `{argument}` must be one full URL with a host name and no user name."
        scheme, host, port = read
        if scheme not in bounds.schemes:
            return f"The argument `{argument}` must use {' or '.join(bounds.schemes)}."
        if not host_is_one_of(host, bounds.names):
            return f"The host of `{argument}` is not granted."
        if port not in (bounds.ports or (443 if scheme == "https" else 80,)):
            return f"The port of `{argument}` is not granted."
    return None


def address_miss(argument: str, bounds: AddressBounds, value: Any) -> str | None:
    """None if every address is within the bounds, else what a model may be told."""
    found = identifiers_in(value, "address")
    if not found:
        return f"The argument `{argument}` must be plain mail addresses, separated by commas."
    if bounds.max_count is not None and len(found) > bounds.max_count:
        return f"The argument `{argument}` holds more addresses than the {bounds.max_count} that are granted."
    for address in (item.removeprefix("email:") for item in found):
        domain = address.rpartition("@")[2]
        if (bounds.domains or bounds.only) and domain not in bounds.domains and address not in bounds.only:
            return f"The argument `{argument}` holds an address that is not granted."
    return None


def host_is_one_of(host: str, names: Iterable[str]) -> bool:
    """Whether a host name, in lower case, is one of the exact names or below one of the starred domains."""
    return any(host.endswith(name[1:]) if name.startswith("*.") else host == name for name in names)


def broad_host(name: str) -> str | None:
    """Why a host in a policy would be no bound, or not a host at all; None when it is one."""
    if not _HOST.fullmatch(name):
        return (
            f"`{name[:80]}` is not a host: write a full name in lower case such as api.example.com, or `*.example.com`"
            " for every host below a domain; addresses, ports and single labels are not hosts"
        )
    if name.removeprefix("*.").rpartition(".")[2] in ("local", "internal", "localhost", "lan", "home", "arpa", "onion"):
        return f"`{name[:80]}` names hosts of the local network; name a public host"
    behind = name.removeprefix("*.")
    if name.startswith("*.") and ("." not in behind or behind in _SHARED):
        return f"`{name[:80]}` grants hosts that anybody can have; name the hosts one by one"
    return None


def egress_target(text: str) -> EgressTarget:
    """The host and port that an `egress` entry names. Raises ValueError with what to write instead."""
    host, colon, digits = text.rpartition(":")
    if not colon:
        raise ValueError(f"`{text[:80]}` names no port; write the host with its port, such as `{text[:80]}:443`")
    if (problem := broad_host(host)) is not None:
        raise ValueError(problem)
    if not (digits.isascii() and digits.isdigit()) or digits.startswith("0") or not 0 < int(digits[:6]) < 65536:
        raise ValueError(f"`{digits[:20]}` is not a port; write one from 1 to 65535, 443 for https")
    return EgressTarget(host=host, port=int(digits))


def with_egress(description: str, targets: Sequence[EgressTarget]) -> str:
    """What a model is told of a tool whose programs may connect to these hosts."""
    told = description.partition(_EGRESS)[0]
    return f"{told}{_EGRESS} {', '.join(map(str, targets))}." if targets else told


def broad_folder(folder: str) -> str | None:
    """Why a folder in a policy would be no bound; None when it is one."""
    if folder.startswith(("/", "~")) or "\\" in folder or ".." in folder.split("/"):
        return f"`{folder[:80]}` is not a folder below the workspace; write it relative, without `..`"
    if posixpath.normpath(folder) == ".":
        return f"`{folder[:80]}` is the whole workspace; name folders in it, or leave `under` out"
    return None


def _read_url(url: str) -> tuple[str, str, int] | None:
    """Scheme, host name and port, where every reader finds the same ones."""
    if not url.isascii() or not url.isprintable() or any(character in url for character in " \\<>\"'`{}|^"):
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if not host or "@" in parts.netloc or "%" in parts.netloc or not url.lower().startswith(f"{scheme}://"):
        return None
    plain = host.removesuffix(".")
    if not _HOST.fullmatch(plain) or plain.startswith("*."):
        return None
    return scheme, plain, port or {"https": 443, "http": 80}.get(scheme, 0)
