"""`generate_image`: pictures from a description, by an interface that speaks OpenAI's images API. Runs in a cage.

Each picture comes out as a file. A service may send a picture itself or a URL of it; a URL is asked for through the
same portal, so whatever host it names, only the granted endpoint is ever reached. What comes back is looked at before
it is kept: a file is named by what its first bytes say it is, and what is no picture is refused.

Deliberately does not decode pictures: what they show is the service's, and untrusted.
"""

import base64
import binascii
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any, Final

from toolcage.tools import endpoint_client
from toolcage.tools.api_answer import kept
from toolcage.tools.base import Tool, ToolFailure

MAX_WAIT_S: Final = 120.0
MAX_ANSWER_BYTES: Final = 48 * 1024 * 1024
MAX_IMAGE_BYTES: Final = 16 * 1024 * 1024
MAX_REVISED_CHARACTERS: Final = 1000
_WEBP: Final = re.compile(rb"RIFF.{4}WEBP", re.DOTALL)
_OWN_FORMAT: Final = ("gpt-image", "chatgpt-image")

PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "prompt": {
            "type": "string",
            "minLength": 1,
            "maxLength": 4000,
            "description": "What the picture shows: subject, style, composition.",
        },
        "size": {
            "type": "string",
            "enum": ["256x256", "512x512", "1024x1024", "1024x1536", "1536x1024"],
            "default": "1024x1024",
            "description": "Width and height in pixels; a service may not offer every one.",
        },
        "n": {
            "type": "integer", "minimum": 1, "maximum": 4, "default": 1, "description": "How many; each costs.",
        },
        "format": {
            "type": "string", "enum": ["png", "jpeg", "webp"], "default": "png", "description": "Format of the files.",
        },
        "model": {
            "type": "string",
            "pattern": "^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$",
            "description": "The service's name of a model. Absent: the service's own choice.",
        },
    },
    "required": ["prompt"],
    "additionalProperties": False,
}  # fmt: skip
_RESOURCES: Final = {"endpoint": "endpoint"}


class GenerateImage(Tool):
    """Makes pictures."""

    name = "generate_image"
    description = (
        "Makes pictures from a description and returns them as files. Use it when the user asks for a drawing, an "
        "illustration, a logo draft or another new picture. Do not use it for charts of data or exact diagrams (use "
        "execute_python), to find existing pictures, or to change one. Input: `prompt` in plain words; `size`, `n`, "
        "`format` and `model` where they matter. Output: images with file name, media type and size in bytes; the "
        "files are artifacts. Each picture costs money."
    )
    parameters = PARAMETERS
    effects = frozenset({"reads_untrusted", "spends"})
    resources = _RESOURCES
    image = "web"
    isolation = "namespace"
    wall_s = 90.0
    ships = ("toolcage.tools.api_answer", "toolcage.tools.endpoint_client")

    def execute(
        self, prompt: str, size: str = "1024x1024", n: int = 1, format: str = "png", model: str | None = None
    ) -> dict[str, Any]:
        """The names of the files. Raises ToolFailure with an `image.*` or `endpoint.*` code."""
        base = endpoint_client.portal_of(self.context)
        timeout_s = endpoint_client.time_left(self.context, MAX_WAIT_S)
        answer = endpoint_client.ask(
            base, "POST", "/images/generations",
            headers=endpoint_client.JSON_HEADERS,
            body=endpoint_client.as_json(_request(prompt, size, n, format, model)),
            timeout_s=timeout_s,
            max_bytes=MAX_ANSWER_BYTES,
        )  # fmt: skip
        if answer.cut:
            raise endpoint_client.bad_answer(f"it is larger than {MAX_ANSWER_BYTES} bytes")
        made = _entries(endpoint_client.check(answer).json())[:n]
        return {"images": [_kept(number, entry, base, timeout_s) for number, entry in enumerate(made, 1)]}


def _request(prompt: str, size: str, n: int, wanted: str, model: str | None) -> dict[str, Any]:
    """Newer models always send the picture and know `output_format`; older ones send a URL unless told otherwise, and
    each refuses the other's word."""
    asked: dict[str, Any] = {"prompt": prompt, "n": n, "size": size}
    if model is not None:
        asked["model"] = model
    if model is not None and model.startswith(_OWN_FORMAT):
        return {**asked, "output_format": wanted}
    if wanted != "png":
        asked["output_format"] = wanted
    return {**asked, "response_format": "b64_json"}


def _entries(document: Any) -> list[Mapping[str, Any]]:
    entries = document.get("data") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise endpoint_client.bad_answer("it has no list of pictures")
    return entries


def _kept(number: int, entry: Mapping[str, Any], base: str, timeout_s: float) -> dict[str, Any]:
    content = _content(entry, base, timeout_s)
    media_type, suffix = _kind(content)
    told: dict[str, Any] = {
        "file": kept(content, suffix, f"image-{number}"), "media_type": media_type, "bytes": len(content),
    }  # fmt: skip
    revised = entry.get("revised_prompt")
    if isinstance(revised, str) and revised:
        told["revised_prompt"] = revised[:MAX_REVISED_CHARACTERS]
    return told


def _content(entry: Mapping[str, Any], base: str, timeout_s: float) -> bytes:
    encoded, url = entry.get("b64_json"), entry.get("url")
    if isinstance(encoded, str) and encoded:
        try:
            content = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise endpoint_client.bad_answer("a picture in it is not Base64") from None
    elif isinstance(url, str) and url:
        content = _fetched(url, base, timeout_s)
    else:
        raise endpoint_client.bad_answer("a picture in it has neither content nor URL")
    if len(content) > MAX_IMAGE_BYTES:
        raise ToolFailure("image.too_large", f"A picture is larger than {MAX_IMAGE_BYTES} bytes.", "Ask for less.")
    return content


def _fetched(url: str, base: str, timeout_s: float) -> bytes:
    """The picture at the URL's path beneath the endpoint. The portal's own server is the only one that can be asked."""
    parts, root = urllib.parse.urlsplit(url), urllib.parse.urlsplit(base).path
    path = urllib.parse.unquote(parts.path)
    if parts.scheme not in ("", "http", "https") or not path.startswith(f"{root}/"):
        raise _elsewhere()
    query = urllib.parse.parse_qs(parts.query, keep_blank_values=True)
    try:
        answer = endpoint_client.ask(
            base, "GET", path[len(root) :], query=query, timeout_s=timeout_s, max_bytes=MAX_IMAGE_BYTES + 1
        )
        return endpoint_client.check(answer).body
    except ToolFailure as failed:
        if failed.code in ("endpoint.refused", "endpoint.path"):
            raise _elsewhere() from None
        raise


def _elsewhere() -> ToolFailure:
    return ToolFailure(
        "image.elsewhere", "The service put the picture in a place that is not granted.",
        "The operator can grant that path of the endpoint, or a model that sends pictures itself.",
    )  # fmt: skip


def _kind(content: bytes) -> tuple[str, str]:
    """Media type and suffix by the first bytes. Raises ToolFailure for what is no picture."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png", "png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg", "jpg"
    if _WEBP.match(content):
        return "image/webp", "webp"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif", "gif"
    raise ToolFailure("image.not_an_image", "What the service sent is no picture.", "Try again, or tell the user.")
