"""toolcage: a fresh container for every call, from the warm pool and without one, through the whole line."""

from __future__ import annotations

import importlib.metadata
import tempfile
import time

from contestant import PROGRAM, measured, serve

from benchmarks.call import runtime_in
from toolcage import PoolTerms, Runtime, Session

PAUSE_S = 0.02


def printed(session: Session) -> str:
    return session.call("execute_python", {"code": PROGRAM}).stdout


def wait_until(holds: object, runtime: Runtime) -> None:
    while not holds(runtime.stats()):  # type: ignore[operator]
        time.sleep(PAUSE_S)


with (
    tempfile.TemporaryDirectory() as state,
    runtime_in(state, PoolTerms(min_idle=2)) as warm_runtime,
    runtime_in(state, PoolTerms(min_idle=0)) as cold_runtime,
):
    warm_session, cold_session = warm_runtime.session(), cold_runtime.session()
    printed(warm_session)
    printed(cold_session)

    def warm() -> dict[str, float]:
        """With two idle cages there, as a pool that keeps up has them; their making is the other figures' matter."""
        wait_until(lambda stats: stats["coming"] == 0 and stats["idle"] >= 2, warm_runtime)
        return measured(lambda: printed(warm_session))

    def cold() -> dict[str, float]:
        def gone() -> None:
            wait_until(lambda stats: stats["removed"] == stats["created"], cold_runtime)

        gone()
        return measured(lambda: printed(cold_session), gone)

    serve(importlib.metadata.version("toolcage"), {"warm": warm, "cold": cold})
