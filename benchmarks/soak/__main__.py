"""Thousands of calls while the engine, the wire to it, the disk, the cages, the callers and the host process fail.

Two host processes work on one engine and one state directory: a survivor, and a victim that is SIGKILLed again and
again and started anew. Meanwhile one fault at a time: the engine stopped, or killed, and started; the wire to it cut,
or slow; cages killed or frozen through the engine; the disk of the audit log full. Then everything heals, and it is
counted: wrong successes (each call's answer is known), failures that blame the call for a fault, containers and
processes left, audit chains that do not verify, successes without their record, threads and descriptors that leaked.

    python -m benchmarks.soak [--calls 2000] [--seconds 900] [--seed 1] [--shared-engine]

The engine is one of its own (a second dockerd, which needs root) unless `--shared-engine` is given or it does not come
up: then only the wire to the usual engine is cut. Exits 1 when anything was wrong. `benchmarks/results/soak.json`.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

import docker
import docker.errors
import requests.exceptions

from benchmarks.hostile import caged_processes
from benchmarks.machine import machine
from benchmarks.soak.calls import ANALYST, CODER, ROWS
from benchmarks.soak.faults import OwnEngine, SmallDisk, Wire
from toolcage import PoolTerms, Runtime
from toolcage.audit.report import read_records, verify
from toolcage.cage.images import ImageLock
from toolcage.state import default_state_dir

RESULTS: Final = Path(__file__).parents[1] / "results"
IMAGES: Final = ("python", "shell")
GAP_S: Final = (1.0, 6.0)
STUCK_S: Final = 150.0
DYING_S: Final = 10.0
LABEL: Final = "toolcage.host"
EngineTrouble: Final = (docker.errors.DockerException, requests.exceptions.RequestException, OSError)


class Process:
    """One worker process, its journal, and the call number that its successor starts from."""

    def __init__(self, folder: Path, name: str, seed: int, first: int, count: int, address: str) -> None:
        self._folder, self._name, self._seed = folder, name, seed
        self._first, self._count = first, count
        self._environment = {**os.environ, "DOCKER_HOST": address}
        self.journal = folder / f"{name}.journal"
        self.journal.touch()
        self.starts = 0
        self.killed = 0
        self._child: subprocess.Popen[str] | None = None

    def lines(self) -> list[dict[str, Any]]:
        found = self.journal.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in found]

    def begun(self) -> int:
        return sum("begun" in line for line in self.lines())

    def progress(self) -> int:
        return self.journal.stat().st_size

    def finished(self) -> bool:
        return any("finished" in line for line in self.lines()[-3:])

    def opened(self) -> bool:
        return any("open" in line for line in self.lines()[:1])

    def alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Starts it, or its successor, at the call after the last one that was begun."""
        begun = self.begun()
        self.starts += 1
        with (self._folder / f"{self._name}.log").open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.soak.worker", str(self._folder), str(self.journal),
                 str(self._seed), str(self._first + begun), str(max(0, self._count - begun))],
                env=self._environment, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
                cwd=Path(__file__).parents[2],
            )  # fmt: skip

    def kill(self) -> None:
        if self._child is not None and self._child.poll() is None:
            self.killed += 1
            self._child.kill()
            self._child.wait(30)

    def tell(self, word: str) -> None:
        if self._child is not None and self._child.stdin is not None:
            with contextlib.suppress(OSError):
                self._child.stdin.write(word + "\n")
                self._child.stdin.flush()

    def dump(self) -> None:
        """Every thread's stack into the log, for whoever looks why it is stuck."""
        if self._child is not None and self.alive():
            self._child.send_signal(signal.SIGUSR1)

    def end(self, within_s: float) -> int | None:
        assert self._child is not None
        try:
            return self._child.wait(within_s)
        except subprocess.TimeoutExpired:
            self.dump()
            return None


class Faults:
    """One fault at a time, each with its own end; `heal` ends them all."""

    def __init__(
        self, rng: random.Random, wire: Wire, disk: SmallDisk, own: OwnEngine | None, victim: Process,
        client: Callable[[], docker.DockerClient], host: Callable[[], str],
    ) -> None:  # fmt: skip
        self._rng, self._wire, self._disk, self._own, self._victim = rng, wire, disk, own, victim
        self._client, self._host = client, host
        self.counts: collections.Counter[str] = collections.Counter()
        kinds: dict[str, tuple[Callable[[], bool], int]] = {
            "cage killed": (lambda: self._on_a_cage("kill"), 30),
            "cage frozen": (lambda: self._on_a_cage("pause"), 8),
            "cage removed": (lambda: self._on_a_cage("remove"), 8),
            "wire cut": (self._cut, 14),
            "engine slow": (self._slow, 12),
            "host killed": (self._kill_host, 14),
        }
        if disk.mounted:
            kinds["disk full"] = (self._full, 8)
        if own is not None:
            kinds["engine stopped"] = (lambda: self._restart(signal.SIGTERM), 5)
            kinds["engine killed"] = (lambda: self._restart(signal.SIGKILL), 5)
        self._kinds = kinds

    def throw(self) -> str:
        name = self._rng.choices(list(self._kinds), [weight for _, weight in self._kinds.values()])[0]
        if self._kinds[name][0]():
            self.counts[name] += 1
        return name

    def heal(self) -> None:
        self._wire.delay_s = 0.0
        self._wire.open()
        self._disk.free()

    def _on_a_cage(self, verb: str) -> bool:
        try:
            client = self._client()
            found = client.containers.list(filters={"label": [f"{LABEL}={self._host()}"]})
            for item in self._rng.sample(found, min(len(found), self._rng.randrange(1, 3))):
                if verb == "remove":
                    item.remove(force=True)
                else:
                    getattr(item, verb)()
            client.close()
        except EngineTrouble:  # it was removed meanwhile
            return False
        return bool(found)

    def _cut(self) -> bool:
        self._wire.cut()
        time.sleep(self._rng.uniform(0.1, 3.0))
        self._wire.open()
        return True

    def _slow(self) -> bool:
        self._wire.delay_s = self._rng.uniform(0.02, 0.4)
        time.sleep(self._rng.uniform(1.0, 5.0))
        self._wire.delay_s = 0.0
        return True

    def _full(self) -> bool:
        self._disk.fill()
        time.sleep(self._rng.uniform(0.2, 2.0))
        self._disk.free()
        return True

    def _kill_host(self) -> bool:
        if not self._victim.alive():
            return False
        self._victim.kill()
        return True

    def _restart(self, number: int) -> bool:
        assert self._own is not None
        self._own.stop(number)
        time.sleep(self._rng.uniform(0.0, 2.0))
        self._own.start()
        return True


# --- the scene -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def scene(shared: bool) -> Iterator[tuple[Path, Path, OwnEngine | None, str | None]]:
    """A folder, the engine's socket, our own engine if there is one, and why there is none."""
    # A container that another engine starts just then holds a copy of our mounts for a moment: no figure is lost.
    with tempfile.TemporaryDirectory(prefix="toolcage-soak-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        own, why = (None, "asked for the shared engine") if shared else _own_engine(folder)
        target = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
        try:
            yield folder, own.socket if own is not None else Path(target), own, why
        finally:
            if own is not None:
                own.remove()


def _own_engine(folder: Path) -> tuple[OwnEngine | None, str | None]:
    if os.geteuid() != 0:
        return None, "starting an engine needs root"
    own = OwnEngine(folder / "engine")
    (folder / "engine").mkdir()
    try:
        own.start()
        source = docker.from_env()
        lock = ImageLock.load(default_state_dir())
        for image in IMAGES:
            own.load(lock.resolve(image).image_id, source)
        source.close()
    except (RuntimeError, OSError) as error:
        own.remove()
        return None, str(error)
    return own, None


def _files(folder: Path) -> None:
    (folder / "coder.yaml").write_text(CODER, encoding="utf-8")
    (folder / "analyst.yaml").write_text(ANALYST, encoding="utf-8")
    with contextlib.closing(sqlite3.connect(folder / "shop.sqlite")) as database, database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total INTEGER)")
        database.executemany("INSERT INTO orders VALUES (?, ?)", [(number, number * 7919) for number in range(ROWS)])
    (folder / "resources.yaml").write_text(
        "version: 1\ndatabases:\n  shop: {kind: sqlite, path: shop.sqlite}\n", encoding="utf-8"
    )


def soak(calls: int, seconds: float, seed: int, shared: bool) -> dict[str, Any]:
    """The whole run and what was found."""
    started = time.monotonic()
    with scene(shared) as (folder, target, own, why):
        disk = SmallDisk(folder / "state")
        try:
            shutil.copy(default_state_dir() / "images.lock", folder / "state" / "images.lock")
            _files(folder)
            wire = Wire(folder / "wire.sock", target)
            survivor = Process(folder, "survivor", seed, 0, calls * 3 // 5, wire.address)
            victim = Process(folder, "victim", seed, 10**6, calls - calls * 3 // 5, wire.address)

            def client() -> docker.DockerClient:
                return docker.DockerClient(base_url=f"unix://{target}", timeout=20)

            def host() -> str:
                return (folder / "state" / "host-id").read_text(encoding="ascii")

            faults = Faults(random.Random(seed), wire, disk, own, victim, client, host)
            try:
                watched = _drive(survivor, victim, faults, started + seconds)
            finally:
                survivor.kill()
                victim.kill()
            document = _recovered(folder, survivor, victim, client, host, target)
        finally:
            disk.close()
    return {
        "measured": "soak", "on": machine(), "seed": seed, "seconds": round(time.monotonic() - started),
        "engine": "its own" if own is not None else f"shared, wire cut only: {why}",
        "faults": dict(faults.counts.most_common()), **watched, **document,
    }  # fmt: skip


def _drive(survivor: Process, victim: Process, faults: Faults, until: float) -> dict[str, Any]:
    """Lets them work under faults until both have made their calls or the time is over; then everything heals."""
    survivor.start()
    victim.start()
    while not survivor.opened() and survivor.alive() and time.monotonic() < until:
        time.sleep(0.2)  # a runtime that cannot open its log raises, which is not what is looked at here
    rng, stuck, seen, since = random.Random(7), 0, -1, time.monotonic()
    shown = time.monotonic()
    while time.monotonic() < until and not (survivor.finished() and victim.finished()):
        if not victim.alive() and not victim.finished():
            victim.start()
        if not survivor.alive():
            break
        time.sleep(rng.uniform(*GAP_S))
        name = faults.throw()
        if (progress := survivor.progress()) != seen or survivor.finished():
            seen, since = progress, time.monotonic()
        elif time.monotonic() - since > STUCK_S:
            survivor.dump()
            stuck, since = stuck + 1, time.monotonic()
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"{survivor.begun()} + {victim.begun()} calls, {sum(faults.counts.values())} faults, last: {name}",
                  flush=True)  # fmt: skip
    faults.heal()
    if not victim.alive():
        victim.start()
    for process in (survivor, victim):
        process.tell("stop")
        process.tell("healed")
    ends = {"survivor": survivor.end(150), "victim": victim.end(150)}
    return {"stuck": stuck, "exit codes": ends}


def _recovered(
    folder: Path, survivor: Process, victim: Process, client: Callable[[], docker.DockerClient],
    host: Callable[[], str], target: Path,
) -> dict[str, Any]:  # fmt: skip
    """What is left after the next start of a runtime, and what the journals and the audit log say."""
    engine = client()
    label = {"label": [f"{LABEL}={host()}"]}
    before = [item["Id"] for item in engine.api.containers(all=True, filters=label)]
    os.environ["DOCKER_HOST"] = f"unix://{target}"
    with Runtime.from_files(folder / "coder.yaml", state_dir=folder / "state", pool=PoolTerms(min_idle=0)) as runtime:
        next_start = runtime.session().call("execute_python", {"code": "6*7"})
    left = [item["Id"] for item in engine.api.containers(all=True, filters=label)]
    here = {item["Id"] for item in engine.api.containers(all=True)} if survivor_only(target) else set()
    engine.close()
    ids = set(before) | here
    processes = _processes_of(ids - here)
    lines = {"survivor": survivor.lines(), "victim": victim.lines()}
    return {
        **_calls(lines), **_audit(folder, lines),
        "containers after the faults": len(before), "containers after the next start": len(left),
        "processes left": len(processes), "the next start answers": next_start.data == 42,
        "victim": {"starts": victim.starts, "killed": victim.killed},
        "leaks": next((line for line in reversed(lines["survivor"]) if "left" in line), None),
    }  # fmt: skip


def _processes_of(removed: set[str]) -> list[int]:
    """The processes of removed containers that do not end: the kernel may still be taking the last of them apart when
    the engine says that they are gone."""
    until = time.monotonic() + DYING_S
    while (found := [pid for pid, name in caged_processes() if name in removed]) and time.monotonic() < until:
        time.sleep(0.2)
    return found


def survivor_only(target: Path) -> bool:
    """Whether the engine is ours alone, so that every container on it is."""
    return target.name == "engine.sock"


def _calls(lines: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    ended = [line for found in lines.values() for line in found if "ended" in line]
    begun = sum("begun" in line for found in lines.values() for line in found)
    seconds = [line["seconds"] for line in ended]
    return {
        "calls": begun, "calls lost with their host": begun - len(ended),
        "statuses": dict(collections.Counter(line["status"] for line in ended).most_common()),
        "codes": dict(collections.Counter(line["code"] or "ok" for line in ended).most_common()),
        "kinds": dict(collections.Counter(line["kind"] for line in ended).most_common()),
        "call seconds": {"p50": statistics.median(seconds), "max": max(seconds)} if seconds else {},
        "wrong successes": [line for line in ended if line["wrong"] == "wrong success"],
        "misjudged": [line for line in ended if line["wrong"] == "misjudged"],
    }  # fmt: skip


def _audit(folder: Path, lines: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The chains, and whether each success that a caller saw has its closing record."""
    report = verify(folder / "state" / "audit")
    closed: dict[str, str] = {}
    for record in read_records(folder / "state" / "audit"):
        if record["type"] == "closing":
            closed[str(record["call_id"])] = str(record["status"])
    ended = [line for found in lines.values() for line in found if "ended" in line]
    unrecorded = [
        line["ended"] for line in ended
        if line["call_id"] and closed.get(line["call_id"]) != line["status"] and line["code"] != "audit.unwritable"
    ]  # fmt: skip
    survivors = {str(line["runtime"]) for line in lines["survivor"] if "runtime" in line}
    warnings: collections.Counter[str] = collections.Counter()
    for item in report.warnings:
        whose = "survivor" if Path(item.file).name.split(".")[0] in survivors else "killed hosts"
        warnings[f"{whose}: {item.problem}"] += 1
    return {
        "audit": {"runtimes": len(report.heads), "records": report.records,
                  "errors": [f"{item.problem} {item.message}" for item in report.errors],
                  "warnings": dict(warnings), "results withheld for want of a record":
                  sum(line["code"] == "audit.unwritable" for line in ended)},
        "answers without their record": unrecorded,
    }  # fmt: skip


def faulty(document: Mapping[str, Any]) -> list[str]:
    """What makes this run a failure."""
    found = [
        f"{len(document[name])} {name}"
        for name in ("wrong successes", "misjudged", "answers without their record")
        if document[name]
    ]
    found += [f"{document[name]} {name}" for name in ("containers after the next start", "processes left", "stuck")
              if document[name]]  # fmt: skip
    found += document["audit"]["errors"]
    if (
        document["audit"]["warnings"].get("survivor: intent.open", 0)
        > document["audit"]["results withheld for want of a record"]
    ):
        found.append("a surviving runtime left an intent without its closing")
    if not document["the next start answers"]:
        found.append("the next start does not answer")
    leaks = document["leaks"]
    if leaks is None:
        return [*found, "the surviving process did not come to its end"]
    for name, count in leaks["left"]["after close"].items():
        if count > leaks["left"]["before"].get(name, 0):
            found.append(f"{name} leaked: {leaks['left']}")
    if not (leaks["healed"] and leaks["quiet"]):
        found.append("the surviving runtime did not heal")
    return found


class _Arguments(argparse.Namespace):
    calls: int
    seconds: float
    seed: int
    shared_engine: bool

    @classmethod
    def parse(cls) -> Self:
        parser = argparse.ArgumentParser(description="calls under faults")
        parser.add_argument("--calls", type=int, default=2000)
        parser.add_argument("--seconds", type=float, default=900.0)
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--shared-engine", action="store_true")
        return parser.parse_args(namespace=cls())


def main() -> None:
    arguments = _Arguments.parse()
    document = soak(arguments.calls, arguments.seconds, arguments.seed, arguments.shared_engine)
    problems = faulty(document)
    document["verdict"] = problems or "no orphan, no wrong success, audit chains whole, nothing leaked"
    text = json.dumps(document, indent=1)
    print(text, flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "soak.json").write_text(text + "\n", encoding="utf-8")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
