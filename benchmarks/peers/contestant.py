"""What a contestant is: a process that makes boxes and runs `print(42)` in them, one word on stdin at a time.

`warm` runs it in a box that is there already, `cold` in a new one that is gone afterwards. Each answers one line of
JSON with milliseconds until the output was there (`answer`) and until nothing of the box was left (`gone`, cold only).
It imports nothing of this project, so that it runs in the virtual environment of the peer.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

PROGRAM = "print(42)"


def measured(work: Callable[[], str], tidy: Callable[[], object] | None = None) -> dict[str, float]:
    """Times `work`, which returns what was printed, and then `tidy`."""
    started = time.perf_counter()
    printed = work()
    answer = time.perf_counter()
    if printed.strip() != "42":
        raise RuntimeError(f"the program printed {printed!r}")
    figures = {"answer": (answer - started) * 1000}
    if tidy is not None:
        tidy()
        figures["gone"] = (time.perf_counter() - started) * 1000
    return figures


def serve(version: str, words: dict[str, Callable[[], dict[str, float]]]) -> None:
    """Answers until stdin ends."""
    print(json.dumps({"version": version}), flush=True)
    for line in sys.stdin:
        print(json.dumps(words[line.strip()]()), flush=True)
