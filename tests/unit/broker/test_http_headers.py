"""What a server says by headers that are the broker's own reaches nobody."""

from __future__ import annotations

import pytest

from toolcage.broker.answers import CODE_HEADER
from toolcage.broker.http_headers import coming_down


@pytest.mark.parametrize("name", [CODE_HEADER, CODE_HEADER.lower(), CODE_HEADER.replace("-", "_"), "Set-Cookie"])
def test_a_server_cannot_say_that_the_broker_refused(name: str) -> None:
    kept = coming_down([("content-type", "text/plain"), (name, "egress.method_not_granted")])
    assert kept == [("content-type", "text/plain")]
