"""An HTTP answer as a result: JSON as JSON, text as text, anything else as a file. Runs in a cage.

What would not fit into the grant's result is cut here, where it can be said, and kept whole as a file beside it. The
names of files are constants of this module; nothing that a server says becomes part of one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

from toolcage.tools.base import ToolFailure
from toolcage.tools.endpoint_client import Answer

WORKSPACE: Final = "/workspace"
SHOWN_HEADERS: Final = ("etag", "last-modified", "link", "location", "retry-after", "x-total-count")
MAX_HEADER_CHARACTERS: Final = 500
_FRAME_BYTES: Final = 2048
_SUFFIXES: Final[Mapping[str, str]] = {
    "application/json": "json", "application/pdf": "pdf", "application/zip": "zip", "audio/mpeg": "mp3",
    "image/gif": "gif", "image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "text/csv": "csv",
    "text/html": "html", "text/plain": "txt", "text/xml": "xml", "application/xml": "xml",
}  # fmt: skip
_TEXTS: Final = ("application/xml", "application/xhtml+xml", "application/yaml", "application/javascript")


def told(answer: Answer, context: Mapping[str, Any]) -> dict[str, Any]:
    """What the model gets of an answer."""
    room = max(1024, int((context.get("limits") or {}).get("max_bytes") or 64 * 1024) - _FRAME_BYTES)
    made: dict[str, Any] = {"status": answer.status, "media_type": answer.media_type, "bytes": len(answer.body)}
    headers = {name: answer.headers[name][:MAX_HEADER_CHARACTERS] for name in SHOWN_HEADERS if name in answer.headers}
    if headers:
        made["headers"] = headers
    if not answer.body:
        return {**made, "text": "", "truncated": False}
    return {**made, **_body(answer, room)}


def _body(answer: Answer, room: int) -> dict[str, Any]:
    if _is_json(answer.media_type) and not answer.cut:
        return _json(answer, room)
    if answer.media_type.startswith("text/") or answer.media_type in _TEXTS or _is_json(answer.media_type):
        return _text(answer, answer.text(), room)
    return {"file": kept(answer.body, _SUFFIXES.get(answer.media_type, "bin")), "truncated": answer.cut}


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or media_type.endswith("+json")


def _json(answer: Answer, room: int) -> dict[str, Any]:
    """A body that says it is JSON and is not comes back as the text that it is."""
    try:
        value = answer.json()
        written = json.dumps(value, ensure_ascii=False)
    except (ToolFailure, RecursionError):
        return _text(answer, answer.text(), room)
    if len(written.encode("utf-8", "surrogatepass")) <= room:
        return {"json": value, "truncated": False}
    return _text(answer, answer.text(), room)


def _text(answer: Answer, text: str, room: int) -> dict[str, Any]:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= room and not answer.cut:
        return {"text": text, "truncated": False}
    head = encoded[:room].decode("utf-8", "ignore")
    return {"text": head, "truncated": True, "file": kept(answer.body, _SUFFIXES.get(answer.media_type, "txt"))}


def kept(content: bytes, suffix: str, stem: str = "response") -> str:
    """The name of the file in the workspace that now holds `content`; it comes out as an artifact."""
    name = f"{stem}.{suffix}"
    descriptor = os.open(os.path.join(WORKSPACE, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(content)
    return name
