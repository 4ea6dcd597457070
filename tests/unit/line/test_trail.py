"""A call is over when its record is durable, and the record of every connection that it made."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from toolcage.audit.log import AuditLog
from toolcage.broker.broker import Record
from toolcage.broker.stream import Connection
from toolcage.errors import AuditError
from toolcage.line.trail import Trail
from toolcage.types import Usage


def closed(folder: Path, detail: str) -> str:
    """The id of the closing record of a call that made one connection, with `detail` in its record."""
    with AuditLog.open(folder, runtime_id="r") as log:
        trail = Trail(log, call_id="c", session="s", role="analyst", policy_digest="d")
        note = Connection(portal="api", kind="http", target="GET https://api.example.com/", detail=detail)
        trail.connected(Record(connection=note, seconds=0.1))
        try:
            return asyncio.run(trail.close(None, Usage()))
        finally:
            assert log.head().seq == (1 if "\ud800" in detail else 2)


def test_a_call_whose_connection_is_on_record_is_closed(tmp_path: Path) -> None:
    assert closed(tmp_path, "fine") == "r:2"


def test_a_call_whose_connection_could_not_be_recorded_is_not_closed_well(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="a connection of the call could not be recorded"):
        closed(tmp_path, "\ud800")
