"""One HTTP/1.1 request head out of a cage, read strictly: what two servers could read in two ways is refused.

Smuggling needs a message that one side cuts elsewhere than the other. So a head is refused that has a bare CR or LF, a
NUL, a folded line, a space before a colon, two lengths, a length and a transfer coding, any coding but `chunked`, more
than MAX_HEAD bytes or MAX_HEADERS lines. What passes is parsed once more by h11, and the broker writes its own request
from the result: no byte of the head reaches a server as it came.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from toolcage.broker.buffered import BufferedReader, Ended
from toolcage.broker.stream import Denied

MAX_HEAD: Final = 32 * 1024
MAX_LINE: Final = 16 * 1024
MAX_HEADERS: Final = 100
_REQUEST: Final = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e]{1,8192}) HTTP/1\.([01])")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    """`target` as it came. Names of `headers` are lower case, in the order in which they came. `raw` is the whole."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    raw: bytes

    def value(self, name: str) -> str | None:
        """The first value of a header, None where there is none."""
        return next((value for known, value in self.headers if known == name), None)

    @property
    def has_body(self) -> bool:
        return self.value("transfer-encoding") is not None or self.value("content-length") not in (None, "0")


async def read_head(reader: BufferedReader) -> RequestHead | None:
    """The next request's head; None when the client is done. Raises Denied (`egress.bad_request`), Ended."""
    first = await reader.line(MAX_LINE)
    if not first:
        return None
    request = _REQUEST.fullmatch(_bare(first))  # judged line by line: what is no HTTP is not waited for
    if request is None:
        raise bad("does not begin with a plain HTTP/1.1 request line")
    raw, headers = bytearray(first), list[tuple[str, str]]()
    while line := await reader.line(MAX_LINE):
        raw += line
        if len(raw) > MAX_HEAD or len(headers) > MAX_HEADERS:
            raise bad(f"has a head of more than {MAX_HEAD} bytes or {MAX_HEADERS} headers")
        if line == b"\r\n":
            return _head(request, headers, bytes(raw))
        headers.append(_header(_bare(line)))
    raise Ended


def _head(request: re.Match[bytes], headers: list[tuple[str, str]], raw: bytes) -> RequestHead:
    version = f"1.{request[3].decode()}"
    _check_framing(headers, version)
    return RequestHead(
        method=request[1].decode(), target=request[2].decode(), version=version, headers=tuple(headers), raw=raw
    )


def bad(what: str) -> Denied:
    """The refusal of a request that could be read in two ways. `what` goes on after "the request"."""
    return Denied("egress.bad_request", f"the request {what}")


def _bare(line: bytes) -> bytes:
    if not line.endswith(b"\r\n") or b"\r" in line[:-2] or b"\0" in line:
        raise bad("has a line that does not end in CR LF, or a control character in one")
    return line[:-2]


def _header(line: bytes) -> tuple[str, str]:
    match = _HEADER.fullmatch(line)
    if match is None:
        raise bad("has a header that is folded or malformed")
    return match[1].decode().lower(), match[2].decode("latin-1").strip(" \t")


def _check_framing(headers: list[tuple[str, str]], version: str) -> None:
    counted = {
        name: [value for known, value in headers if known == name]
        for name in ("content-length", "transfer-encoding", "host")
    }
    lengths, codings, hosts = counted.values()
    if len(lengths) > 1 or len(codings) > 1 or (lengths and codings):
        raise bad("says more than once how long its body is")
    if lengths and not _LENGTH.fullmatch(lengths[0].encode("latin-1")):
        raise bad("has a length that is no number")
    if codings and (codings[0].lower() != "chunked" or version != "1.1"):
        raise bad("has a transfer coding other than chunked")
    if len(hosts) > 1 or (not hosts and version == "1.1"):
        raise bad("must name its host once")
