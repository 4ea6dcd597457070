"""The small grammars inside resources.yaml: paths, hosts, addresses of servers, secrets, headers, rates.

Each takes what stands in the file and returns what it means, or raises ValueError with what to write instead. One
spelling each. No message repeats a value where a person could by mistake have written a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from ipaddress import IPv6Address
from typing import Any, Final
from urllib.parse import urlsplit

from toolcage.facts.host import local_name, read_host
from toolcage.facts.ip import reach_of
from toolcage.quantities import KIB, MIB, size_bytes
from toolcage.types import SESSION_WORKSPACE

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_FRAMING_WORDS: Final = """
    host connection content-length transfer-encoding te trailer upgrade expect keep-alive proxy-connection content-type
    cookie
"""
_FRAMING: Final = frozenset(_FRAMING_WORDS.split())
_PLAIN_PATH: Final = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*/?")
_RATE: Final = re.compile(r"([1-9][0-9]{0,5})/(second|minute|hour|day)")
_SPANS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_ADDRESS: Final = re.compile(r"([A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*)@([^@\s]+)")
_FOLDER: Final = re.compile(r'[^\x00-\x1f\x7f*%"\\]{1,128}')
SECRET_FORM: Final = "write {env: NAME} or {file: PATH}; a secret itself never stands in this file"  # noqa: S105


def word(*known: str, refused: Mapping[str, str] | None = None) -> Callable[[Any], Any]:
    """A check for one of a closed set of words; `refused` gives reasons for words that one could expect."""

    def check(value: Any) -> Any:
        if isinstance(value, str) and value in known:
            return value
        reason = (refused or {}).get(value, "is not known here") if isinstance(value, str) else "is not known here"
        raise ValueError(f"`{str(value)[:40]}` {reason}; write {' or '.join(known)}")

    return check


def version(value: Any) -> Any:
    """The one version of the format."""
    if value != 1 or isinstance(value, bool | float):
        raise ValueError("this version of toolcage reads `version: 1`; write that")
    return value


def path_text(value: Any) -> Any:
    """A path as it is written out; never the whole machine."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("write a path")
    if os.path.normpath(value) in ("/", "//"):
        raise ValueError("`/` is the whole machine; name the folder or file that is meant")
    if value.startswith("~") or "$" in value:
        raise ValueError(f"`{value[:80]}`: neither ~ nor variables are filled in; write the path out")
    return value


def secret(value: Any) -> Any:
    """A mapping with one of `env` and `file`. Never repeats what stands there: it may be the secret itself."""
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ValueError(SECRET_FORM)
    source, place = next(iter(value.items()))
    if source == "env" and isinstance(place, str) and _VARIABLE.fullmatch(place):
        return dict(value)
    if source == "file":
        path_text(place)
        return dict(value)
    raise ValueError(SECRET_FORM)


def host(value: Any) -> str:
    """A host name or address in its one plain spelling; an IPv6 address may stand with or without brackets."""
    if not isinstance(value, str) or not value or set(value) & set("/@\\"):
        raise ValueError("write a host name or an address alone, without scheme, user, password or path")
    found = read_host(f"[{value}]" if value.count(":") > 1 and not value.startswith("[") else value)
    if found is None or "*" in value:
        raise ValueError(f"`{value[:80]}` is no host name; write one name, without a scheme, a port or a wildcard")
    if found.mixed_script or found.passes_for_latin:
        raise ValueError(f"`{value[:80]}` only looks like its name: {found.name} is meant; write that if it is right")
    name = found.name.strip("[]")
    if found.ip is not None:
        _check_literal(value.strip("[]"), name)
    return name


def _check_literal(written: str, name: str) -> None:
    address = read_host(f"[{name}]" if ":" in name else name)
    assert address is not None
    assert address.ip is not None
    if written.lower() != name:
        raise ValueError(f"`{written[:80]}` is {name} in another spelling; write that")
    if isinstance(address.ip, IPv6Address) and address.ip.ipv4_mapped is not None:
        raise ValueError(f"`{name}` carries {address.ip.ipv4_mapped}; write that")
    if address.ip.is_unspecified or reach_of(address.ip) in ("multicast", "reserved"):
        raise ValueError(f"`{name}` is no address of one server; write the server's own")


def reachable(name: str, *, tls: bool, allow_private: bool) -> str | None:
    """What is wrong with reaching `name` so, or None. An address is its own permission; a name needs `allow_private`.

    A plain connection is for loopback and private addresses alone; what a name resolves to is judged again when it is
    connected.
    """
    found = read_host(f"[{name}]" if ":" in name else name)
    address = found.ip if found is not None else None
    if address is None and not allow_private and local_name(name):
        return f"`{name}` can only be a private address; write `allow_private: true` beside it, or the address"
    if tls:
        return None
    private = allow_private if address is None else reach_of(address) in ("loopback", "private")
    if not private:
        return f"a connection to `{name}` without TLS would be readable on the way; use TLS (`https://` in a url)"
    return None


def url(value: Any) -> Any:
    """`https://host[:port][/path]`, nothing else in it."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("write an address such as https://api.example.org/v1")
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ValueError("write an address such as https://api.example.org/v1") from None
    if "@" in parts.netloc or "?" in value or "#" in value or "\\" in value:
        raise ValueError("no user, password, query or fragment may stand in it; write scheme, host, port and path")
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        raise ValueError("write an address such as https://api.example.org/v1")
    host(parts.hostname)
    url_path(parts.path)
    return value


def url_path(value: Any) -> Any:
    """A plain absolute path: no escapes, empty or dot segments, query or fragment."""
    if not isinstance(value, str) or not _PLAIN_PATH.fullmatch(value):
        raise ValueError("write a plain path such as /v1/items, without escapes, empty segments, `?` or `#`")
    if {".", ".."} & set(value.split("/")):
        raise ValueError("`.` and `..` may not stand in a path; write it out")
    return value


def header(value: Any) -> Any:
    """The name of a request header that carries no framing."""
    if not isinstance(value, str) or not _HEADER.fullmatch(value):
        raise ValueError("write the name of a header, such as Authorization")
    if value.lower() in _FRAMING:
        raise ValueError(f"`{value}` says how a request is read and is never a key's place; write another header")
    return value


def key_format(value: Any) -> Any:
    """Text around the key, which stands where `{}` is. A text without it may be a key and is not repeated."""
    if not isinstance(value, str) or value.count("{}") != 1 or not (value.isascii() and value.isprintable()):
        raise ValueError('write text with {} once, where the key goes, such as "Bearer {}"')
    if set(value.replace("{}", "")) & set("{}"):
        raise ValueError("only {} may stand in braces")
    return value


def rate(value: Any) -> tuple[int, int]:
    """Count and seconds of `60/minute`."""
    found = _RATE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"`{str(value)[:40]}` is no rate; write a number, `/` and second, minute, hour or day")
    return int(found[1]), _SPANS[found[2]]


def cache_seconds(value: Any) -> int:
    """For how long an answer may be given again."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 86_400:
        raise ValueError("write a number of seconds from 1 to 86400")
    return value


def retries(value: Any) -> int:
    """How often a request may be sent again."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 5:
        raise ValueError("write a number from 0 to 5")
    return value


def transfer_size(value: Any) -> int:
    """The most that one message or answer may have."""
    return size_bytes(value, low=KIB, high=256 * MIB)


def quota(value: Any) -> int:
    """The most that a folder may hold."""
    return size_bytes(value, low=KIB, high=1024 * 1024 * MIB)


def file_count(value: Any) -> int:
    """The most files that a folder may hold."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 100_000:
        raise ValueError("write a number of files from 1 to 100000")
    return value


def workspace_name(value: str) -> str:
    """A name that is not every session's own."""
    if value == SESSION_WORKSPACE:
        raise ValueError("`session` is each session's own workspace and always there; choose another name")
    return value


def mail_address(value: Any) -> str:
    """One plain mail address; its domain in ASCII form."""
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    domain = read_host(found[2]) if found else None
    if found is None or domain is None or domain.ip is not None or len(found[1]) > 64:
        raise ValueError("write one plain address such as team@example.com")
    return f"{found[1]}@{domain.name}"


def folder(value: Any) -> Any:
    """The name of one mail folder."""
    if not isinstance(value, str) or not _FOLDER.fullmatch(value) or value != value.strip():
        raise ValueError("write the name of one folder, without wildcards, quotes or backslashes")
    return value


def account(value: Any) -> Any:
    """A user's or database's name: one printable line."""
    if not isinstance(value, str) or not value or len(value) > 255 or not value.isprintable():
        raise ValueError("write a name of one line")
    return value


def port(value: Any) -> Any:
    """A TCP port."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 65536:
        raise ValueError("write a port from 1 to 65535")
    return value
