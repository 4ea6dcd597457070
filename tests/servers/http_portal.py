"""An `http` portal before the byte-by-byte HTTPS server of the tests, and clients for it."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Callable

from servers.authority import Authority
from servers.http import HttpServer
from servers.portal import TERMS, Portal, Serve
from toolcage.broker.dial import Upstream, open_stream
from toolcage.broker.http import HttpConfig, serve
from toolcage.broker.http_repeat import Sends
from toolcage.broker.kept_answers import Keeping
from toolcage.broker.pace import Pace
from toolcage.broker.stream import PortalTerms

Open = Callable[[Serve], Portal]
KEY = "sk-canary-0123456789abcdef"


def config_of(server: HttpServer) -> HttpConfig:
    """An endpoint with a key and three methods beneath `/v1`."""
    return HttpConfig(
        resource="endpoint api",
        origin=f"https://localhost:{server.port}",
        authority=f"localhost:{server.port}",
        methods=frozenset({"GET", "POST", "HEAD"}),
        path_prefixes=("/v1",),
        key=("Authorization", f"Bearer {KEY}"),
        secrets=(KEY,),
    )


def through(
    portal: Open,
    config: HttpConfig,
    wire_server: HttpServer,
    authority: Authority,
    *,
    terms: PortalTerms = TERMS,
    pace: Pace | None = None,
    resolve: Callable[[str, int], object] | None = None,
    host: str = "localhost",
    keeping: Keeping | None = None,
    sends: Sends | None = None,
) -> Portal:
    """A portal to the server, as the line opens it."""
    upstream = Upstream(host=host, port=wire_server.port, ca=authority.file, allow_private=resolve is None)
    shared = pace or Pace()
    options = {} if resolve is None else {"resolve": resolve}

    async def dial():  # type: ignore[no-untyped-def]
        return await open_stream(upstream, connect_s=terms.connect_s, **options)  # type: ignore[arg-type]

    return portal(
        lambda client, note: serve(
            client, config=config, dial=dial, pace=shared, terms=terms, note=note, keeping=keeping, sends=sends
        )
    )


def ask(
    opened: Portal, path: str = "/v1/x", method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers of one request on a connection of its own."""
    client = http.client.HTTPConnection("127.0.0.1", opened.port, timeout=20)
    try:
        client.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = client.getresponse()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
    finally:
        client.close()


def said(opened: Portal, *pieces: bytes) -> bytes:
    """What comes back for exactly these bytes, to the end."""
    with socket.create_connection(("127.0.0.1", opened.port), timeout=20) as client:
        with contextlib.suppress(OSError):
            for piece in pieces:
                client.sendall(piece)
            client.shutdown(socket.SHUT_WR)
        read = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(65536):
                read += piece
        return read


def refusal(answer: tuple[int, bytes, dict[str, str]]) -> tuple[int, str]:
    """The status and the code of an answer that is the broker's own."""
    status, body, headers = answer
    code = json.loads(body)["error"]["code"]
    assert headers["x-toolcage-refused"] == code
    return status, code
