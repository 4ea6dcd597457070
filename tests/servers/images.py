"""What OpenAI's images interface answers (`POST /v1/images/generations`), by its documentation and its own client
(openai-python 3.57.0 was run against this server).

Older models send a URL unless `response_format` says otherwise and refuse `output_format`; `gpt-image-*` always sends
the picture and refuses `response_format`. Errors come as `{"error": {"message", "type", "code"}}`.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from typing import Any

from servers.authority import Authority
from servers.https import HttpsServer, Request, Respond, Response

KEY = "sk-canary-0a6e3d92f1b84c57"
SIZES = ("256x256", "512x512", "1024x1024", "1024x1536", "1536x1024")


def png(colour: int = 0) -> bytes:
    """A picture of one pixel."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", binascii.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes((0, colour, colour, colour)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


class ImagesServer(HttpsServer):
    """Makes grey pixels, unless `answer` says otherwise."""

    def __init__(self, authority: Authority) -> None:
        self.answer: Respond | None = None
        super().__init__(self._serve, authority)

    def resource(self, name: str = "images") -> str:
        """The endpoint in resources.yaml, two blanks deep; its key comes from IMAGES_KEY."""
        return (
            f"  {name}:\n    url: {self.origin}/v1\n    methods: [GET, POST]\n"
            "    path_prefixes: [/v1/images, /v1/files]\n"
            "    key: {header: Authorization, format: \"Bearer {}\", secret: {env: IMAGES_KEY}}\n"
            f"    ca: ca.pem\n    max_bytes: 64MiB\n"
        )

    def _serve(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return _error(401, "Incorrect API key provided.")
        if self.answer is not None:
            return self.answer(request)
        if request.path.startswith("/v1/files/"):
            return Response(200, png(), {"Content-Type": "image/png"})
        if (request.method, request.path) != ("POST", "/v1/images/generations"):
            return _error(404, "Unknown request URL.")
        return self._generate(request.json())

    def _generate(self, asked: dict[str, Any]) -> Response:
        newer = str(asked.get("model", "dall-e-2")).startswith("gpt-image")
        for unknown in (["response_format"] if newer else ["output_format"]) + ["quality_of_mind"]:
            if unknown in asked:
                return _error(400, f"Unknown parameter: '{unknown}'.")
        if not asked.get("prompt") or asked.get("size", SIZES[2]) not in SIZES or not 1 <= asked.get("n", 1) <= 10:
            return _error(400, "Invalid value.")
        inline = newer or asked.get("response_format") == "b64_json"
        return Response.of({"created": 1, "data": [self._picture(number, inline) for number in range(asked["n"])]})

    def _picture(self, number: int, inline: bool) -> dict[str, Any]:
        if inline:
            return {"b64_json": base64.b64encode(png(number)).decode()}
        return {"url": f"{self.origin}/v1/files/{number}.png"}


def _error(status: int, text: str) -> Response:
    return Response.of({"error": {"message": text, "type": "invalid_request_error", "code": None}}, status)
