"""A head that two servers could cut differently is refused; the same head without the trick is read."""

from __future__ import annotations

import asyncio

import pytest

from toolcage.broker.buffered import BufferedReader, Ended
from toolcage.broker.request_head import MAX_HEAD, MAX_HEADERS, RequestHead, read_head
from toolcage.broker.stream import Denied

PLAIN = b"POST /v1/items HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"


class Bytes:
    def __init__(self, content: bytes, piece: int) -> None:
        self._content, self._piece = content, piece

    async def read(self, n: int) -> bytes:
        size = min(n, self._piece)
        piece, self._content = self._content[:size], self._content[size:]
        return piece


def read(content: bytes, piece: int = 4096) -> RequestHead | None:
    reader = BufferedReader(Bytes(content, piece), count=lambda count: None, idle_s=5.0)
    return asyncio.run(read_head(reader))


@pytest.mark.parametrize("piece", [1, 7, 4096])
def test_a_plain_head_is_read_however_it_arrives(piece: int) -> None:
    head = read(PLAIN + b"hello", piece)
    assert head is not None
    assert (head.method, head.target, head.version, head.has_body) == ("POST", "/v1/items", "1.1", True)
    assert head.headers == (("host", "x"), ("content-length", "5"))
    assert head.raw == PLAIN


def test_the_end_of_a_connection_is_no_request_and_half_a_head_is_an_end() -> None:
    assert read(b"") is None
    with pytest.raises(Ended):
        read(PLAIN[:-2])


@pytest.mark.parametrize(
    "headers",
    [
        b"Transfer-Encoding: chunked\r\n",
        b"transfer-encoding: CHUNKED\r\n",
        b"Content-Length: 0\r\n",
        b"X-A: b\tc \xe9\r\n",
        b"X-Empty:\r\n",
    ],
)
def test_an_ordinary_header_is_read(headers: bytes) -> None:
    assert read(b"POST /x HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n") is not None


@pytest.mark.parametrize(
    "content",
    [
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 0x5\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5 5\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999999999\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\x0b\r\n\r\n",
        b"POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\n Transfer-Encoding: chunked\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nX-A: b\r\n\tc\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\nContent-Length: 5\r\n\r\n",
        b"POST /x HTTP/1.1\nHost: x\n\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nX-A: b\rContent-Length: 5\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nX-A: b\x00c\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nX A: b\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\n: empty\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"POST /x HTTP/1.1\r\n\r\n",
        b"\r\nPOST /x HTTP/1.1\r\nHost: x\r\n\r\n",
        b"post /x HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST  /x HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /x y HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /x HTTP/2.0\r\nHost: x\r\n\r\n",
        b"POST /x HTTP/1.1 \r\nHost: x\r\n\r\n",
        b"POST /x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
def test_a_head_that_could_be_read_in_two_ways_is_refused(content: bytes) -> None:
    with pytest.raises(Denied) as refused:
        read(content)
    assert refused.value.code == "egress.bad_request"


def test_headers_without_end_are_refused_before_they_are_all_read() -> None:
    many = b"".join(b"X-%d: y\r\n" % number for number in range(MAX_HEADERS + 1))
    long = b"".join(b"X-%d: %b\r\n" % (number, b"y" * 15000) for number in range(3))
    for content in (many, long):
        with pytest.raises(Denied):
            read(b"GET /x HTTP/1.1\r\nHost: x\r\n" + content + b"\r\n\r\n")
    with pytest.raises(Denied, match="longer than"):
        read(b"GET /" + b"x" * MAX_HEAD)
    fitting = b"".join(b"X-%d: y\r\n" % number for number in range(MAX_HEADERS - 1))
    assert read(b"GET /x HTTP/1.1\r\nHost: x\r\n" + fitting + b"\r\n") is not None
