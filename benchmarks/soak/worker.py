"""One host process of the soak: a Runtime of two roles, called from several threads. Started and killed by the soak.

Every call leaves two lines in the journal: when it begins and how it ended. At the end it waits to be told that the
faults are over, then counts what is left of its threads and descriptors.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import itertools
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.soak.calls import Planned, judged, plan
from benchmarks.soak.faults import open_descriptors
from toolcage import CancelToken, PoolTerms, Runtime, RuntimeClosedError, Session, ToolResult

TERMS: Final = PoolTerms(min_idle=1, max_cages=8, max_waiting=32, max_wait_s=20.0)
THREADS: Final = 4
CANCELLED_IN: Final = 12  # one call in so many is cancelled by its caller, each of two ways


class Journal:
    """Lines of JSON, whole ones, in the order in which things happened."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, **fields: object) -> None:
        os.write(self._descriptor, (json.dumps(fields) + "\n").encode())


class Worker:
    """Calls from `first` upwards until `count` were made, or until it is told to stop."""

    def __init__(self, folder: Path, journal: Journal, seed: int, first: int, count: int) -> None:
        self._folder, self._journal, self._seed = folder, journal, seed
        self._numbers = iter(range(first, first + count))
        self._next = threading.Lock()
        self.stop = threading.Event()

    def runtime(self) -> Runtime:
        return Runtime.from_files(
            [self._folder / "coder.yaml", self._folder / "analyst.yaml"], resources=self._folder / "resources.yaml",
            state_dir=self._folder / "state", pool=TERMS,
        )  # fmt: skip

    def run(self, runtime: Runtime) -> None:
        threads = [threading.Thread(target=self._calls, args=(runtime,)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _calls(self, runtime: Runtime) -> None:
        sessions = {role: runtime.session(role=role) for role in ("coder", "analyst")}
        pause = 0.5
        while not self.stop.is_set():
            with self._next:
                number = next(self._numbers, None)
            if number is None:
                return
            served = self._one(sessions, number)
            pause = 0.5 if served else min(5.0, pause * 2)
            if not served:  # an engine that is away would be asked thousands of times
                self.stop.wait(pause)

    def _one(self, sessions: dict[str, Session], number: int) -> bool:
        """Whether the sandbox was there for it."""
        planned = plan(number, self._seed)
        rng = random.Random(f"cancel/{self._seed}/{number}")
        way = rng.randrange(CANCELLED_IN)
        self._journal.write(begun=number, kind=planned.kind)
        started = time.monotonic()
        session = sessions[planned.role]
        if way == 0:
            result = _cancelled_by_token(session, planned, rng.random() * 0.6)
        elif way == 1:
            result = _cancelled_task(session, planned, rng.random() * 0.6)
        else:
            result = session.call(planned.tool, planned.arguments, files=planned.files)
        self._journal.write(ended=number, kind=planned.kind, seconds=round(time.monotonic() - started, 2),
                            **_of(planned, result))  # fmt: skip
        return result is None or result.status != "unavailable"


def _of(planned: Planned, result: ToolResult | None) -> dict[str, Any]:
    if result is None:
        return {"status": "cancelled", "code": "task.cancelled", "wrong": None, "call_id": None}
    wrong = judged(planned, result)
    seen = {} if wrong is None else {"seen": f"{result.data!r} {result.error} {result.stdout[:200]!r}"[:600]}
    return {"status": result.status, "code": result.code, "wrong": wrong, "call_id": result.call_id,
            "success": result.success, **seen}  # fmt: skip


def _cancelled_by_token(session: Session, planned: Planned, after_s: float) -> ToolResult:
    token = CancelToken()
    timer = threading.Timer(after_s, token.cancel)
    timer.start()
    try:
        return session.call(planned.tool, planned.arguments, files=planned.files, cancel=token)
    finally:
        timer.cancel()
        timer.join()


def _cancelled_task(session: Session, planned: Planned, after_s: float) -> ToolResult | None:
    async def scene() -> ToolResult | None:
        call = session.acall(planned.tool, planned.arguments, files=planned.files)
        try:
            return await asyncio.wait_for(call, after_s)
        except TimeoutError:
            return None

    return asyncio.run(scene())


def _count() -> dict[str, int]:
    gc.collect()
    return {"threads": threading.active_count(), **open_descriptors()}


def _quiet(runtime: Runtime) -> bool:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        stats = runtime.stats()
        if not stats.get("running") and not stats.get("coming") and not stats.get("waiting"):
            return True
        time.sleep(0.1)
    return False


def main() -> None:
    folder, journal_path, seed, first, count = sys.argv[1:6]
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    journal = Journal(Path(journal_path))
    worker = Worker(Path(folder), journal, int(seed), int(first), int(count))
    healed = threading.Event()

    def orders() -> None:
        for line in sys.stdin:
            if line.strip() == "stop":
                worker.stop.set()
            elif line.strip() == "healed":
                healed.set()

    threading.Thread(target=orders, daemon=True).start()
    with worker.runtime() as runtime:  # what is made once for a process, made
        runtime.session(role="coder").call("calculate_expression", {"expression": "1+1"})
    before = _count()
    runtime = worker.runtime()
    journal.write(open=True, runtime=runtime.audit_path.name.split(".")[0], pid=os.getpid())
    try:
        worker.run(runtime)
        journal.write(finished=True)
        healed.wait()
        plain = runtime.session(role="coder").call("execute_python", {"code": "6*7"})
        quiet = _quiet(runtime)
        at_end, stats = _count(), dict(runtime.stats())
    except RuntimeClosedError as error:
        journal.write(broken=str(error))
        raise
    finally:
        runtime.close()
    after = _settled(before)
    names = sorted(thread.name for thread in threading.enumerate())
    journal.write(left={"before": before, "at end": at_end, "after close": after}, stats=stats, quiet=quiet,
                  healed=plain.data == 42, threads=names)  # fmt: skip


def _settled(before: dict[str, int]) -> dict[str, int]:
    """What is left once threads that were ending have ended."""
    for _ in itertools.repeat(None, 50):
        after = _count()
        if all(after[name] <= before.get(name, 0) for name in after):
            break
        time.sleep(0.1)
    return after


if __name__ == "__main__":
    main()
