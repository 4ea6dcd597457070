"""What `import toolcage` costs a program that only imports it, in fresh processes."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import Any

ROUNDS = 15
PROBE = "import time; s = time.perf_counter(); import {}; print((time.perf_counter() - s) * 1000)"


def run() -> dict[str, Any]:
    """Medians in milliseconds, `import docker` beside it."""
    return {"unit": "ms", "p50": {module: _median(module) for module in ("toolcage", "toolcage.runtime", "docker")}}


def _median(module: str) -> float:
    command = [sys.executable, "-c", PROBE.format(module)]
    times = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(ROUNDS)]
    return round(statistics.median(times), 1)
