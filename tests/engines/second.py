"""A second Docker engine for a test: its own data, its own network namespace, ended with everything it started.

The engine of the machine is never touched. `start` runs `dockerd` as root, `start_rootless` as an unprivileged user made
for the test by its subordinate ids; both return an `Engine` whose `environment` points the docker client and toolcage
at it. What cannot be had here is a skip with its reason, never a pass.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

START_S = 60.0
IMAGE = "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondEngine:
    """Where it answers, and how to run a program that can reach it (`inside` is put before a command)."""

    folder: Path
    socket: Path
    inside: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path

    def run(self, *command: str, timeout: float = 300.0, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **self.environment, **more}
        return subprocess.run(
            [*self.inside, *command], capture_output=True, text=True, timeout=timeout, check=False, env=environment
        )

    def toolcage(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-c", "from toolcage.cli.main import main; main()", *arguments, **more)


def need(*programs: str) -> None:
    """Skips the test where the machine lacks one of `programs`, or is not root's own."""
    if os.geteuid() != 0:
        pytest.skip("a second engine needs root")
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not on this machine: {', '.join(missing)}")


@contextlib.contextmanager
def start(image: Path, *options: str, prepare: str = ":", **environment: str) -> Iterator[SecondEngine]:
    """`dockerd` with `options` beside the machine's own, in a network namespace where only loopback is."""
    need("dockerd", "unshare", "nsenter", "ip")
    folder = Path(tempfile.mkdtemp(prefix="tc2-"))  # short: a unix socket's path has 107 characters
    folder.chmod(0o711)  # the users that it is remapped to have to reach what is below
    command = [
        "unshare", "--net", "--mount", "sh", "-c", f'{prepare}; ip link set lo up && exec dockerd "$@"', "dockerd",
        "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid",
        "--host", f"unix://{folder}/s", "--bridge", "none", "--iptables=false", "--ip-forward=false", *options,
    ]  # fmt: skip
    with _running(folder, command, {}) as process:
        inside = ("nsenter", f"--net=/proc/{process.pid}/ns/net", "--")
        yield _ready(folder, folder / "s", inside, environment, image, process)


@contextlib.contextmanager
def _running(folder: Path, command: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, **environment},
        )  # fmt: skip
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)
        _remove(folder)


def _remove(folder: Path) -> None:
    """The folder, once nothing is mounted below it any more."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for mount in sorted((item for item in mounts if item.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


def _ready(
    folder: Path, socket: Path, inside: tuple[str, ...], environment: Mapping[str, str], image: Path,
    process: subprocess.Popen[bytes],
) -> SecondEngine:
    """The engine once it answers and has the image. Skips, with the engine's own words, where it does not start."""
    named = {"DOCKER_HOST": f"unix://{socket}", "DOCKER_CONTEXT": "", **environment}
    engine = SecondEngine(folder=folder, socket=socket, inside=inside, environment=named, log=folder / "log")
    end = time.monotonic() + START_S
    while engine.run("docker", "version").returncode != 0:
        if process.poll() is not None or time.monotonic() > end:
            pytest.skip(f"a second engine does not start here: {engine.log.read_text(errors='replace')[-600:]}")
        time.sleep(0.2)
    loaded = engine.run("docker", "load", "--input", str(image))
    assert loaded.returncode == 0, loaded.stderr
    return engine


def attested(engine: SecondEngine, isolation: str, **more: str) -> dict[str, dict[str, str]]:
    """What `toolcage attest` finds on that engine, by property."""
    done = engine.toolcage("attest", "--image", IMAGE, "--isolation", isolation, "--json", **more)
    assert done.returncode in (0, 1), done.stderr
    return {item["id"]: item for item in json.loads(done.stdout)["properties"]}
