"""What an operator still has to write for declared operations: the endpoint in resources.yaml, and grants.

Text to start from, never loaded by itself: that a document asks for an address or a key is no reason to give it one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from toolcage.facts.ip import reach_of
from toolcage.tools.openapi.document import OpenApiDocument

_PLAIN: Final = re.compile(r"[A-Za-z0-9-]{1,60}")


def endpoint_hint(document: OpenApiDocument, name: str, specs: Iterable[Mapping[str, Any]]) -> str:
    """Lines for resources.yaml."""
    base = _server(document)
    methods = sorted({str(spec["method"]) for spec in specs})
    return "\n".join(
        [
            "endpoints:", f"  {name}:", f"    url: {base or 'https://HOST/PATH   # the document names no server'}",
            f"    methods: [{', '.join(methods)}]", *_key(document, name),
        ]
    )  # fmt: skip


def grant_hint(name: str, specs: Iterable[Mapping[str, Any]]) -> str:
    """Lines for a policy: what reads is allowed, the rest asks."""
    lines = ["tools:"]
    for spec in specs:
        word = "allow" if spec["method"] in ("GET", "HEAD", "OPTIONS") else "ask"
        lines += [f"  {spec['name']}:", f"    resources: {{endpoint: [{name}]}}", f"    {word}: [{{}}]"]
    return "\n".join(lines)


def _server(document: OpenApiDocument) -> str | None:
    servers = document.data.get("servers")
    first = document.mapping(servers[0]) if isinstance(servers, list) and servers else {}
    url = first.get("url")
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or set(url) & set("{}#?'\"\\ "):
        return None
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    scheme = "http" if parts.scheme == "http" and _at_home(parts.hostname) else "https"
    return f"{scheme}://{host}{port}{parts.path.rstrip('/')}"


def _at_home(host: str) -> bool:
    """An address to which an endpoint may be reached without TLS."""
    try:
        return reach_of(ip_address(host)) in ("loopback", "private")
    except ValueError:
        return False


def _key(document: OpenApiDocument, name: str) -> list[str]:
    schemes = document.mapping(document.mapping(document.data.get("components")).get("securitySchemes"))
    variable = f"{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}_KEY"
    for node in schemes.values():
        placed = _placed(document.mapping(node))
        if placed is not None:
            header, form = placed
            secret = f"{{env: {variable}}}"
            return [f"    key: {{header: {header}, format: {json.dumps(form)}, secret: {secret}}}"]
    return ["    # the document asks for a key that no header carries"] if schemes else []


def _placed(scheme: Mapping[str, Any]) -> tuple[str, str] | None:
    """Header and format."""
    kind = scheme.get("type")
    if kind == "apiKey" and scheme.get("in") == "header" and _PLAIN.fullmatch(str(scheme.get("name"))):
        return str(scheme["name"]), "{}"
    if kind == "http" and str(scheme.get("scheme")).lower() == "basic":
        return "Authorization", "Basic {}"
    return ("Authorization", "Bearer {}") if kind in ("http", "oauth2", "openIdConnect") else None
