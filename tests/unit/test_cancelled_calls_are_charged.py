"""The time of a cage counts against `seconds` however the call ended. Stands in for the cage alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from toolcage import CancelToken, Runtime
from toolcage.cage.pool import PoolTerms
from toolcage.errors import Refused
from toolcage.line import line
from toolcage.types import Refusal

POLICY = """
version: 1
role: c
tools:
  execute_python:
    allow: [{}]
    limits: {seconds: [1/session]}
"""
BROKEN = Refusal(status="unavailable", code="cage.broken", message="the cage broke")


@pytest.fixture
def session(tmp_path: Path) -> Any:
    policy = tmp_path / "p.yaml"
    policy.write_text(POLICY)
    with Runtime.from_files(policy, state_dir=tmp_path / "state", pool=PoolTerms(min_idle=0)) as made:
        yield made.session()


def call(session: Any, cancel: CancelToken | None = None) -> tuple[str, str]:
    result = session.call("execute_python", {"code": "1"}, cancel=cancel)
    return result.status, result.code


@pytest.mark.parametrize(("got_a_cage", "after"), [(True, "limit_exceeded"), (False, "cancelled")])
def test_a_cancelled_call_is_charged_for_the_time_that_it_had_a_cage(
    session: Any, monkeypatch: pytest.MonkeyPatch, got_a_cage: bool, after: str
) -> None:
    token = CancelToken()

    async def execute(*_: Any, stopwatch: Any, **__: Any) -> None:
        if got_a_cage:
            stopwatch.start()
        token.cancel()
        await asyncio.Event().wait()

    monkeypatch.setattr(line, "execute", execute)
    assert call(session, token)[0] == "cancelled"
    token = CancelToken()
    assert call(session, token)[0] == after


@pytest.mark.parametrize(("got_a_cage", "after"), [(True, "limit_exceeded"), (False, "unavailable")])
def test_a_call_that_is_refused_after_its_start_is_charged(
    session: Any, monkeypatch: pytest.MonkeyPatch, got_a_cage: bool, after: str
) -> None:
    async def execute(*_: Any, stopwatch: Any, **__: Any) -> None:
        if got_a_cage:
            stopwatch.start()
        raise Refused(BROKEN)

    monkeypatch.setattr(line, "execute", execute)
    assert call(session)[0] == "unavailable"
    assert call(session)[0] == after
