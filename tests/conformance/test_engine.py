"""The way to the engine: what it keeps open."""

from __future__ import annotations

import os

import pytest

from toolcage.cage.engine import Engine

pytestmark = pytest.mark.docker


def _sockets() -> int:
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue  # the listing's own
    return sum(link.startswith("socket:") for link in links)


def test_however_many_containers_were_asked_about_one_connection_is_kept() -> None:
    if not os.environ.get("DOCKER_HOST", "unix://").startswith("unix://"):
        pytest.skip("the engine is not on a unix socket: its client keeps one connection for all paths")
    before = _sockets()
    engine = Engine.connect()
    try:
        for number in range(40):
            assert engine.inspect(f"{number:064x}") is None
        assert _sockets() == before + 1
    finally:
        engine.close()
    assert _sockets() <= before
