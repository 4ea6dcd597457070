"""Secrets that must not come out: how they could be spelled, and everything that a call left behind."""

from __future__ import annotations

import base64
import json
import urllib.parse
from typing import Any

from toolcage import ToolResult


def spellings(secret: str) -> list[bytes]:
    """A secret as it is, and as it could hide."""
    raw = secret.encode()
    return [raw, base64.b64encode(raw), raw.hex().encode(), urllib.parse.quote(secret, safe="").encode(), raw[::-1]]


def let_out(installation: Any, result: ToolResult) -> bytes:
    """Everything that a call left: its result, its files, the audit log."""
    parts = [json.dumps(result.to_dict()).encode(), str(result.raw).encode(), result.to_text().encode()]
    parts += [artifact.content for artifact in result.artifacts]
    parts += [path.read_bytes() for path in (installation.state / "audit").rglob("*") if path.is_file()]
    return b"\n".join(parts)
