"""Fresh cages as fast as the engine makes them, warm namespaces, what an idle cage weighs, a megabyte of output.

`sustained`: calls a second with `execute_python` in a container of its own each, at 1, 2 and 4 callers that never
pause, against the engine's own create + start + wait + remove of the same configuration by as many callers. The two
take turns in short windows; a window of ours ends only when its used cages are removed, so that no work is left over.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import docker

from benchmarks.call import engine_reference, runtime_in
from toolcage import PoolTerms, Runtime, Session
from toolcage.cage.engine import Engine

CALLERS: Final = (1, 2, 4)
WINDOW_S: Final = 5.0
TURNS: Final = 3
SERIAL: Final = 300
MIB: Final = 1 << 20
ROLE: Final = """
version: 1
role: bench
tools:
  execute_python:
    allow: [{}]
    output: {max_bytes: 4MiB}
  calculate_expression:
    allow: [{}]
"""


def run() -> dict[str, Any]:
    """Rates, latencies, megabytes."""
    with tempfile.TemporaryDirectory() as state:
        policy = Path(state, "role.yaml")
        policy.write_text(ROLE, encoding="utf-8")
        return {
            "sustained, calls/s": _sustained(state, policy),
            "namespace": _namespace(state, policy),
            "idle cage, MiB": _idle_memory(state, policy),
            "output, ms": _output(state, policy),
        }


# --- sustained -------------------------------------------------------------------------------------------------------


def _sustained(state: str, policy: Path) -> dict[str, Any]:
    engine = Engine.connect()
    reference = engine_reference(engine)
    figures: dict[str, Any] = {}
    for callers in CALLERS:
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(TURNS):
            theirs.append(_rate(callers, lambda: reference))
            ours.append(_our_rate(state, policy, callers))
        figures[f"{callers} callers"] = {
            "toolcage": round(statistics.median(ours), 2),
            "engine": round(statistics.median(theirs), 2),
            "toolcage / engine": round(statistics.median(ours) / statistics.median(theirs), 2),
        }
    engine.close()
    best = max(row["toolcage"] for row in figures.values()) / max(row["engine"] for row in figures.values())
    return {**figures, "best / engine's best": round(best, 2)}


def _our_rate(state: str, policy: Path, callers: int) -> float:
    """With the pool of its own that a busy service would have; made and removed cages counted within the window."""
    with runtime_in(state, PoolTerms(min_idle=max(2, callers), max_cages=16), policy) as runtime:
        session = runtime.session()
        _python(session)
        _wait(runtime, lambda stats: stats["coming"] == 0 and stats["removed"] >= 1)
        made = runtime.stats()["removed"]
        return _rate(callers, lambda: lambda: _python(session), end=lambda: _removed(runtime, made))


def _removed(runtime: Runtime, before: int) -> None:
    _wait(
        runtime, lambda stats: stats["removed"] - before >= stats["created"] - stats["idle"] - stats["coming"] - before
    )


def _wait(runtime: Runtime, holds: Callable[[dict[str, int]], bool]) -> None:
    end = time.monotonic() + 30
    while not holds(dict(runtime.stats())) and time.monotonic() < end:
        time.sleep(0.01)


def _rate(callers: int, make: Callable[[], Callable[[], object]], end: Callable[[], None] | None = None) -> float:
    """Calls a second by so many threads over one window, `end`, which finishes what they left, included."""
    done = [0] * callers
    until = time.perf_counter() + WINDOW_S

    def work(place: int) -> None:
        once = make()
        while time.perf_counter() < until:
            once()
            done[place] += 1

    started = time.perf_counter()
    threads = [threading.Thread(target=work, args=(place,)) for place in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if end is not None:
        end()
    return sum(done) / (time.perf_counter() - started)


def _python(session: Session) -> None:
    result = session.call("execute_python", {"code": "print(6 * 7)"})
    if result.stdout != "42\n":
        raise RuntimeError(f"the call failed: {result!r}")


# --- the rest --------------------------------------------------------------------------------------------------------


def _namespace(state: str, policy: Path) -> dict[str, Any]:
    with runtime_in(state, PoolTerms(min_idle=2), policy) as runtime:
        session = runtime.session()

        def once() -> None:
            result = session.call("calculate_expression", {"expression": "6 * 7"})
            if not result.success:
                raise RuntimeError(f"the call failed: {result!r}")

        once()
        times = sorted(_timed(once) for _ in range(SERIAL))
        return {
            "one caller, ms": {"p50": _ms(statistics.median(times)), "p99": _ms(times[-1 - SERIAL // 100])},
            "calls/s": {f"{callers} callers": round(_rate(callers, lambda: once), 1) for callers in CALLERS},
        }


def _idle_memory(state: str, policy: Path) -> dict[str, Any]:
    """What the engine charges to an idle, prepared cage: its own pages, and with the page cache and kernel memory."""
    client = docker.from_env()
    with runtime_in(state, PoolTerms(min_idle=0), policy) as runtime:
        _python(runtime.session())  # the first cage of a state directory compiles our modules for those after it
    with runtime_in(state, PoolTerms(min_idle=3), policy) as runtime:
        _python(runtime.session())
        _wait(runtime, lambda stats: stats["idle"] >= 3)
        host = Path(state, "host-id").read_text(encoding="ascii")
        found = client.api.containers(filters={"label": [f"toolcage.host={host}"]})
        stats = [client.api.stats(item["Id"], stream=False)["memory_stats"] for item in found]
    client.close()
    own = [item["stats"].get("total_rss", item["stats"].get("anon", 0)) for item in stats if item.get("stats")]
    return {
        "own pages": round(statistics.median(own) / MIB, 1),
        "charged in all": round(statistics.median(item["usage"] for item in stats) / MIB, 1),
        "cages looked at": len(stats),
    }


def _output(state: str, policy: Path) -> dict[str, Any]:
    """A megabyte of text through the door and the whole cleaning, beside one line."""
    with runtime_in(state, PoolTerms(min_idle=2), policy) as runtime:
        session = runtime.session()
        _python(session)
        times: dict[str, list[float]] = {"one line": [], "1 MB of text": []}
        program = "print('all work and no play makes jack a dull boy\\n' * 21_740, end='')"
        for _ in range(12):
            for name, code in (("one line", "print(6 * 7)"), ("1 MB of text", program)):
                _wait(runtime, lambda stats: stats["idle"] >= 2)
                times[name].append(_timed(lambda code=code: _printed(session, code)))  # type: ignore[misc]
    return {name: {"p50": _ms(statistics.median(values))} for name, values in times.items()}


def _printed(session: Session, code: str) -> None:
    result = session.call("execute_python", {"code": code})
    if not result.success or result.truncated:
        raise RuntimeError(f"the call failed: {result.status} {result.code} {result.truncated}")


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)
