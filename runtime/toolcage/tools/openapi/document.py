"""Reads an OpenAPI 3 document, JSON or YAML, as plain data within bounds, and finds what its references mean.

Strict where laxness would let two readers see two documents: duplicate keys, constants that JSON does not have, and all
that the strict YAML subset refuses. References stay inside the document; one that leads elsewhere is an error, because
fetching it would let the document's author choose what this host asks for. Following references costs: every node that
is visited counts, so a document of a few lines cannot unfold into millions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from toolcage.errors import DeclarationError
from toolcage.strict_yaml import parse_document, visible

MAX_BYTES: Final = 4 * 1024 * 1024
MAX_DEPTH: Final = 60
MAX_VISITS: Final = 100_000
MAX_CHAIN: Final = 20


@dataclass(slots=True, kw_only=True)
class OpenApiDocument:
    """The document and how much of it was visited."""

    name: str
    data: Mapping[str, Any]
    _visits: int = field(default=0, repr=False)

    def visited(self) -> None:
        """Counts one node. Raises DeclarationError when it was too many."""
        self._visits += 1
        if self._visits > MAX_VISITS:
            raise DeclarationError(f"{self.name}: it unfolds into more than {MAX_VISITS} parts; declare less of it")

    def resolved(self, node: Any) -> tuple[Any, tuple[str, ...]]:
        """What stands behind `node`, and the references that led there, in order. Raises DeclarationError."""
        way: list[str] = []
        while isinstance(node, Mapping) and "$ref" in node:
            self.visited()
            reference = node["$ref"]
            if not isinstance(reference, str) or not reference.startswith("#/"):
                raise DeclarationError(f"{self.name}: the reference {shown(reference)} leads out of the document; copy"
                                       " what it means into it")  # fmt: skip
            if reference in way or len(way) >= MAX_CHAIN:
                raise DeclarationError(f"{self.name}: the reference {shown(reference)} leads to itself")
            way.append(reference)
            node = self._at(reference)
        return node, tuple(way)

    def mapping(self, node: Any) -> Mapping[str, Any]:
        """The same where a mapping must stand; an empty one for anything else. Raises DeclarationError."""
        found, _ = self.resolved(node)
        return found if isinstance(found, Mapping) else {}

    def _at(self, reference: str) -> Any:
        node: Any = self.data
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, Mapping) else None
            if node is None:
                raise DeclarationError(f"{self.name}: the reference {shown(reference)} leads nowhere")
        return node


def read_openapi(path: Path) -> OpenApiDocument:
    """The document in a file. Raises DeclarationError."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DeclarationError(f"{path.name} cannot be read: {error.strerror}") from error
    return parse_openapi(raw, path.name)


def parse_openapi(raw: bytes, name: str) -> OpenApiDocument:
    """The document in `raw`; `name` stands in messages. Raises DeclarationError."""
    if len(raw) > MAX_BYTES:
        raise DeclarationError(f"{name}: larger than {MAX_BYTES // 1024 // 1024} MiB; take out what is not needed")
    text = raw.removeprefix(b"\xef\xbb\xbf").lstrip()
    data = _json(text, name) if text.startswith(b"{") else parse_document(raw, name, DeclarationError).data
    _check_depth(data, name)
    version = data.get("openapi") if isinstance(data, dict) else None
    if not isinstance(version, str) or not version.startswith(("3.0", "3.1")):
        raise DeclarationError(f"{name}: no OpenAPI 3.0 or 3.1 document; convert an older one first")
    return OpenApiDocument(name=name, data=data)


def shown(value: object) -> str:
    """A stranger's text in a message."""
    return repr(visible(str(value))[:120])


def _json(text: bytes, name: str) -> Any:
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refused, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise DeclarationError(f"{name}: not JSON as it should be: {visible(str(error))[:200]}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return made


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no number")


def _whole(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError("a number has more than 20 digits")
    return int(digits)


def _check_depth(data: Any, name: str) -> None:
    """Not recursive: what the reader could still nest may be more than the stack holds."""
    level = [data]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise DeclarationError(f"{name}: nested deeper than {MAX_DEPTH} levels")
