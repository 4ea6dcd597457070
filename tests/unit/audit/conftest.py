"""A short genuine log to attack, and the words to make another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcage.audit import AuditLog, Closing, Event, Intent

KEY = b"a key of the operator, 32 bytes."


def write_log(
    directory: Path, *, runtime_id: str = "run", key: bytes | None = None, max_file_bytes: int = 1 << 26
) -> Path:
    """A runtime's log of eight records: start, three whole calls, end. Returns its (first) file."""
    with AuditLog.open(directory, runtime_id=runtime_id, key=key, max_file_bytes=max_file_bytes) as log:
        first = log.path
        log.append(Event(type="runtime_start", detail={"version": "0.1.0"}))
        for number in range(3):
            arguments = f'{{"sql":"SELECT {number}"}}'
            intent = log.append(Intent(call_id=f"call{number}", role="analyst", tool="query", arguments=arguments))
            intent.wait()
            log.append(Closing(call_id=f"call{number}", intent=intent.seq, status="ok", code="ok"))
        log.append(Event(type="runtime_end")).wait()
    return first


@pytest.fixture
def key() -> bytes:
    return KEY


@pytest.fixture
def make_log(tmp_path: Path) -> Callable[..., Path]:
    """Writes a log, in `tmp_path / "audit"` unless told otherwise."""

    def make(**options: Any) -> Path:
        return write_log(options.pop("directory", tmp_path / "audit"), **options)

    return make


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return write_log(tmp_path / "audit")


@pytest.fixture
def keyed_file(tmp_path: Path) -> Path:
    return write_log(tmp_path / "audit", key=KEY)
