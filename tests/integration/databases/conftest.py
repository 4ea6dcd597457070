"""A real PostgreSQL server before the tools' bodies, with the parser's gate absent, and before the whole line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from servers.portal import TERMS, Portal, Serve
from servers.postgres import PASSWORD_IN, PostgresServer
from toolcage.broker.dial import Upstream
from toolcage.broker.postgres import serve
from toolcage.broker.postgres_login import PostgresConfig
from toolcage.secret_reference import SecretRef
from toolcage.tools.base import Tool, body_of

Body = Callable[..., Any]


@pytest.fixture
def body(postgres: PostgresServer, portal: Callable[[Serve], Portal], monkeypatch: pytest.MonkeyPatch) -> Body:
    """Runs a tool's body through the portal, as `user`: no screen has seen what it is given."""
    monkeypatch.setenv(PASSWORD_IN, postgres.password)

    def run(
        tool: Tool,
        *,
        user: str = "reader",
        read_only: bool = True,
        terms: Mapping[str, Any] | None = None,
        wall_s: float = 10.0,
        max_bytes: int = 65536,
        **arguments: Any,
    ) -> Any:
        config = PostgresConfig(
            database="shop", user=user, password=SecretRef(source="env", place=PASSWORD_IN), read_only=read_only,
            server=Upstream(host="127.0.0.1", port=postgres.port, ca=postgres.ca), statement_s=wall_s * 0.8,
        )  # fmt: skip
        opened = portal(lambda client, note: serve(client, config=config, terms=TERMS, note=note))
        tool.context = {
            "resources": {"database": {"name": "shop", "kind": "postgres"}},
            "sql": {"tables": None, "columns_except": [], "max_rows": 1000, **(terms or {})},
            "limits": {"max_bytes": max_bytes, "wall_s": wall_s},
            "portals": {"shop.postgres": {"kind": "postgres", "host": "127.0.0.1", "port": opened.port}},
        }
        return body_of(tool)(database="shop", **arguments)

    return run
