"""The small HTTPS servers of the web as fixtures, anew for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from servers.authority import Authority
from servers.https import HttpsServer, Respond
from servers.images import ImagesServer
from servers.tavily import TavilyServer


@pytest.fixture
def tavily(authority: Authority) -> Iterator[TavilyServer]:
    """A search service."""
    server = TavilyServer(authority)
    yield server
    server.stop()


@pytest.fixture
def images(authority: Authority) -> Iterator[ImagesServer]:
    """A picture service."""
    server = ImagesServer(authority)
    yield server
    server.stop()


@pytest.fixture
def https(authority: Authority) -> Iterator[Callable[[Respond], HttpsServer]]:
    """Opens HTTPS servers that end with the test."""
    opened: list[HttpsServer] = []

    def open_one(respond: Respond) -> HttpsServer:
        opened.append(HttpsServer(respond, authority))
        return opened[-1]

    yield open_one
    for server in opened:
        server.stop()
