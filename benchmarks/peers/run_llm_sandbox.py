"""llm-sandbox: its pool for `warm`, a session for `cold`. No package set-up, which would only make it slower."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import traceback

from contestant import PROGRAM, measured, serve
from llm_sandbox import SandboxSession
from llm_sandbox.pool import PoolConfig, create_pool_manager
from llm_sandbox.pool.session import PooledSandboxSession

IMAGE = sys.argv[1]
pool = create_pool_manager(
    config=PoolConfig(min_pool_size=1, max_pool_size=2, enable_prewarming=True),
    lang="python",
    image=IMAGE,
    skip_environment_setup=True,
    keep_template=True,
)


def warm() -> dict[str, float]:
    """Takes a container from the pool, runs, gives it back: what its documentation shows."""

    def once() -> str:
        with PooledSandboxSession(pool_manager=pool, lang="python") as session:
            return str(session.run(PROGRAM).stdout)

    return measured(once)


def cold() -> dict[str, float]:
    session = SandboxSession(lang="python", image=IMAGE, skip_environment_setup=True, keep_template=True)

    def once() -> str:
        session.open()
        return str(session.run(PROGRAM).stdout)

    return measured(once, session.close)


try:
    serve(importlib.metadata.version("llm-sandbox"), {"warm": warm, "cold": cold})
except Exception:  # noqa: BLE001 - told, because what follows ends the process at once
    traceback.print_exc()
finally:
    pool.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
