"""Tools for tests that try to make their portals lead to given URLs, in every form that a client gives them."""

from __future__ import annotations

import contextlib
import socket
import urllib.parse
import urllib.request
from typing import Any

from toolcage import Tool

_PORTS = {"http": 80, "https": 443, "gopher": 70, "ftp": 21, "ldap": 389, "dict": 2628, "sftp": 22, "tftp": 69}


class TryUrls(Tool):
    """For each URL what each form of asking was answered: (form, number of the URL, first line and code)."""

    name = "try_urls"
    description = "Tries URLs. For tests. Not for anything else. Input: urls. Output: what was answered."
    parameters = {"urls": {"type": "array", "items": {"type": "string"}}}  # noqa: RUF012
    effects = frozenset({"sends", "reads_untrusted"})
    resources = {"endpoint": "endpoint"}  # noqa: RUF012
    isolation = "namespace"
    wall_s = 120.0

    def execute(self, urls: list[str]) -> list[list[Any]]:
        portal = self.context["portals"]["api"]
        proxy = self.context["proxy"]
        told: list[list[Any]] = []
        for number, url in enumerate(urls):
            for form, request in _to_endpoint(number, url):
                told.append([form, number, _said(portal["host"], portal["port"], request)])
            for form, request in _to_proxy(url):
                told.append([form, number, _said(proxy["host"], proxy["port"], request)])
            told.append(["library", number, _opened(url)])
        told.append(["control", -1, _said(proxy["host"], proxy["port"], _connect("granted.example.org:443"))])
        return told


class TryNames(TryUrls):
    """The same for places that the operator granted by name."""

    name = "try_names"


def place_of(url: str) -> str:
    """`host:port` of a URL, as a careless client cuts it out."""
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
    has_port = host.rpartition("]")[2].count(":") == 1
    return host if has_port else f"{host}:{_PORTS.get(scheme, 80)}"


def _to_endpoint(number: int, url: str) -> list[tuple[str, bytes]]:
    place, quoted = place_of(url), urllib.parse.quote(url, safe="")
    close = "Connection: close\r\n\r\n"
    return [
        (form, text.encode("utf-8", "replace"))
        for form, text in (
            ("absolute", f"GET {url} HTTP/1.1\r\nHost: {place}\r\n{close}"),
            ("host", f"GET /v1/x HTTP/1.1\r\nHost: {place}\r\nX-Forwarded-Host: {place}\r\n{close}"),
            ("authority", f"GET //{place}/v1/x HTTP/1.1\r\nHost: x\r\n{close}"),
            ("at", f"GET /v1/@{place}/ HTTP/1.1\r\nHost: x\r\n{close}"),
            ("tunnel", f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{close}"),
            ("quoted", f"GET /v1/{quoted} HTTP/1.1\r\nHost: x\r\n{close}"),
            ("query", f"GET /v1/x?url={quoted} HTTP/1.1\r\nHost: x\r\n{close}"),
            ("redirect", f"GET /v1/go/{number} HTTP/1.1\r\nHost: x\r\n{close}"),
        )
    ]


def _to_proxy(url: str) -> list[tuple[str, bytes]]:
    place = place_of(url)
    plain = f"GET {url} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode("utf-8", "replace")
    granted = f"CONNECT {place} HTTP/1.1\r\nHost: granted.example.org:443\r\n\r\n".encode("utf-8", "replace")
    return [("proxy", _connect(place)), ("proxy, another host", granted), ("proxy, plain", plain)]


def _connect(place: str) -> bytes:
    return f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode("utf-8", "replace")


def _said(host: str, port: int, request: bytes) -> str:
    """The first line of the answer, with the code of a refusal or the place of a redirect."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=20) as made:
        made.sendall(request)
        made.settimeout(20)
        read = b""
        while b"\r\n\r\n" not in read and (piece := made.recv(4096)):
            read += piece
        lines = read.decode("latin-1").partition("\r\n\r\n")[0].split("\r\n")
        kept = [line for line in lines[1:] if line.lower().startswith(("x-toolcage-refused:", "location:"))]
        return " | ".join([lines[0], *kept])
    return "nothing"


def _opened(url: str) -> str:
    """What the standard library's own client says, with the proxy of its environment."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return f"opened: {answer.read(100)!r}"
    except Exception as error:
        return type(error).__name__
