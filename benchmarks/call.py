"""A warm and a cold call through the whole line against what `docker run` does, in one run and on equal work.

The reference creates, starts, waits for and removes a container of the same image with the very same configuration
(every hardening flag), whose command prints the same line: the engine's own cost, with neither policy nor audit. Where
the `docker` command is installed it is timed too. The three take turns, so that they share whatever else the machine
does. Warm calls are paced: a cage costs the engine about 0.2 s to make; a caller that never pauses measures the engine.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolcage import PoolTerms, Runtime
from toolcage.cage.engine import Engine
from toolcage.cage.images import ImageLock
from toolcage.cage.seccomp import load_profile
from toolcage.cage.spec import FIRST_UID, CageSpec, container_config
from toolcage.shipped import shipped_dir
from toolcage.state import default_state_dir
from toolcage.types import SandboxTerms

PROGRAM = "print(6 * 7)"
ROUNDS = 30
WARM_UP = 3
PAUSE_S = 0.7


def run() -> dict[str, Any]:
    """Milliseconds, by what was measured: p50, p99, and the ratios of the medians."""
    times: dict[str, list[float]] = {"warm": [], "cold": [], "engine": []}
    engine = Engine.connect()
    reference = engine_reference(engine)
    command = docker_command()
    if command is not None:
        times["docker run"] = []
    with (
        tempfile.TemporaryDirectory() as state,
        runtime_in(state, PoolTerms(min_idle=2)) as warm,
        runtime_in(state, PoolTerms(min_idle=0)) as cold,
    ):
        warm_session, cold_session = warm.session(), cold.session()
        for number in range(ROUNDS + WARM_UP):
            kept = number >= WARM_UP
            _measure(times["warm"], kept, lambda: _call(warm_session))
            time.sleep(PAUSE_S)
            _measure(times["cold"], kept, lambda: _call(cold_session))
            _measure(times["engine"], kept, reference)
            if command is not None:
                _measure(times["docker run"], kept, command)
            time.sleep(PAUSE_S)
    engine.close()
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "unit": "ms",
        "rounds": ROUNDS,
        "p50": {name: round(value, 2) for name, value in medians.items()},
        "p99": {name: round(sorted(values)[-1 - len(values) // 100], 2) for name, values in times.items()},
        "engine / warm": round(medians["engine"] / medians["warm"], 1),
        "cold / engine": round(medians["cold"] / medians["engine"], 2),
    }


def runtime_in(state: str, terms: PoolTerms, policy: Path | None = None) -> Runtime:
    """A runtime of the role `coder`, or of another policy, with its own audit log and this installation's images."""
    lock = Path(state, "images.lock")
    if not lock.exists():
        shutil.copy(default_state_dir() / "images.lock", lock)
    return Runtime.from_files(policy or shipped_dir("policies") / "coder.yaml", state_dir=state, pool=terms)


def _call(session: Any) -> None:
    result = session.call("execute_python", {"code": PROGRAM})
    if result.stdout != "42\n":
        raise RuntimeError(f"the call failed: {result!r}")


def cage_spec() -> CageSpec:
    """What a call of `execute_python` gets by default."""
    terms = SandboxTerms()
    return CageSpec(
        image_id=ImageLock.load(default_state_dir()).resolve("python").image_id,
        isolation="container",
        memory_bytes=terms.memory_bytes,
        cpus=terms.cpus,
        pids=terms.pids,
        tmp_bytes=terms.tmp_bytes,
    )


def engine_reference(engine: Engine) -> Callable[[], None]:
    """Create, attach, start, read to the end, remove: the engine's own part of one cold call."""
    command = ("/usr/bin/python3", "-I", "-B", "-c", PROGRAM)
    config = container_config(
        cage_spec(), uid=FIRST_UID + 1, command=command, labels={}, seccomp=load_profile("container").text
    )
    config |= {"OpenStdin": False, "StdinOnce": False, "AttachStdin": False}

    def once() -> None:
        container = engine.create(config, f"toolcage-bench-{time.time_ns()}")
        stream = engine.attach(container)
        engine.start(container)
        stream.setblocking(True)
        received = b""
        while piece := stream.recv(4096):
            received += piece
        stream.close()
        engine.remove(container)
        if b"42\n" not in received:
            raise RuntimeError(f"the reference failed: {received!r}")

    return once


def docker_command() -> Callable[[], None] | None:
    """`docker run` with the same flags, None where the command is not installed."""
    docker = shutil.which("docker")
    if docker is None:
        return None
    host = container_config(cage_spec(), uid=FIRST_UID + 1, command=(), labels={}, seccomp="")["HostConfig"]
    profile = str(shipped_dir("sandbox_images") / "seccomp" / "container.json")
    arguments = [
        docker, "run", "--rm", "--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges",
        f"--security-opt=seccomp={profile}", "--read-only", f"--memory={host['Memory']}",
        f"--memory-swap={host['MemorySwap']}", f"--cpus={host['NanoCpus'] / 1e9}", f"--pids-limit={host['PidsLimit']}",
        "--ipc=private", "--cgroupns=private", "--log-driver=none", f"--shm-size={host['ShmSize']}",
        f"--user={FIRST_UID + 1}:{FIRST_UID + 1}", "--hostname=cage", "--workdir=/workspace",
        *(f"--ulimit={item['Name']}={item['Soft']}:{item['Hard']}" for item in host["Ulimits"]),
        *(f"--tmpfs={folder}:{options}" for folder, options in host["Tmpfs"].items()),
        cage_spec().image_id, "/usr/bin/python3", "-I", "-B", "-c", PROGRAM,
    ]  # fmt: skip

    def once() -> None:
        printed = subprocess.run(arguments, capture_output=True, check=True, timeout=60).stdout
        if printed != b"42\n":
            raise RuntimeError(f"docker run failed: {printed!r}")

    return once


def _measure(into: list[float], kept: bool, work: Callable[[], None]) -> None:
    started = time.perf_counter()
    work()
    if kept:
        into.append((time.perf_counter() - started) * 1000)
