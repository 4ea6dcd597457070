"""What the rings that need an engine share: an installation of one's own, roles on the fly, and a look at what is left.

Every test that opens a runtime gets its own state directory, so its own audit logs, tools.lock and host id. When the
test ends, no container with that id may be left and its audit logs must verify. A missing engine fails, it never skips.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from toolcage import PoolTerms, Runtime, Session, ToolResult
from toolcage.audit.report import read_records, verify
from toolcage.state import default_state_dir

pytest_plugins = ["servers.fixtures", "servers.web_fixtures"]

CODER = """
version: 1
role: coder
tools:
  execute_python:
    allow: [{}]
  calculate_expression:
    allow: [{}]
"""
COLD = PoolTerms(min_idle=0)


class Installation:
    """One state directory and what was opened in it."""

    def __init__(self, folder: Path, engine: docker.DockerClient) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.state.mkdir(mode=0o700)
        shutil.copy(default_state_dir() / "images.lock", self.state / "images.lock")
        self._engine = engine
        self._opened: list[Runtime] = []

    def policy(self, text: str = CODER, name: str = "role.yaml") -> Path:
        path = self.folder / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def runtime(self, policy: str = CODER, **options: Any) -> Runtime:
        """A runtime, cold unless a pool is asked for; closed when the test ends."""
        options = {"pool": COLD, "state_dir": self.state, **options}
        runtime = Runtime.from_files(self.policy(policy, f"role{len(self._opened)}.yaml"), **options)
        self._opened.append(runtime)
        return runtime

    def from_folder(self, policies: Path, **options: Any) -> Runtime:
        """A cold runtime with every role of a folder; closed when the test ends."""
        runtime = Runtime.from_files(policies, **{"pool": COLD, "state_dir": self.state, **options})
        self._opened.append(runtime)
        return runtime

    def session(self, policy: str = CODER, **options: Any) -> Session:
        return self.runtime(policy, **options).session()

    def records(self) -> list[Mapping[str, str | int]]:
        """Every audit record, in order."""
        return list(read_records(self.state / "audit"))

    def closings(self) -> list[tuple[str, str]]:
        """(status, code) of each closing record."""
        return [(str(item["status"]), str(item["code"])) for item in self.records() if item["type"] == "closing"]

    def containers(self) -> list[Any]:
        """Every container of this installation, running or not."""
        try:
            host = (self.state / "host-id").read_text(encoding="ascii")
        except FileNotFoundError:
            return []
        wanted = {"label": f"toolcage.host={host}"}
        return list(self._engine.containers.list(all=True, filters=wanted, ignore_removed=True))

    def kill_all(self) -> None:
        """SIGKILL from outside to every container of this installation."""
        for container in self.containers():
            with contextlib.suppress(docker.errors.APIError):  # gone, or on its way
                container.kill()

    def gone(self, within_s: float = 20.0) -> bool:
        """Whether no container of this installation is left, now or soon."""
        return until(lambda: not self.containers(), within_s)

    def program(self, body: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """A host process of its own that uses this installation's state directory."""
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(body), *arguments],
            env={**os.environ, "TOOLCAGE_STATE_DIR": str(self.state), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def command(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The `toolcage` command, to its end."""
        return subprocess.run(
            [sys.executable, "-c", "from toolcage.cli.main import main; main()", *arguments],
            env={**os.environ, "TOOLCAGE_STATE_DIR": str(self.state), **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def end(self) -> None:
        """Closes what is open, then asserts that nothing is left and every log verifies."""
        for runtime in self._opened:
            runtime.close()
        left = self.containers()
        for container in left:
            with contextlib.suppress(docker.errors.APIError):
                container.remove(force=True)
        assert [container.name for container in left] == []
        if any((self.state / "audit").glob("*.jsonl")):
            report = verify(self.state / "audit")
            assert report.errors == ()


def until(holds: Callable[[], bool], within_s: float = 20.0) -> bool:
    """Whether `holds` comes true. Looks again and again; how long it takes proves nothing."""
    end = time.monotonic() + within_s
    while not (found := holds()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """The real engine. Its absence is a failure."""
    client = docker.from_env()
    client.ping()
    yield client
    client.close()


@pytest.fixture
def installation(tmp_path: Path, engine: docker.DockerClient) -> Iterator[Installation]:
    made = Installation(tmp_path, engine)
    yield made
    made.end()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory, engine: docker.DockerClient) -> Iterator[Installation]:
    """An installation for the tests of one file that change nothing in it."""
    made = Installation(tmp_path_factory.mktemp("lasting"), engine)
    yield made
    made.end()


@pytest.fixture(scope="module")
def coder(lasting: Installation) -> Session:
    """A session whose role may run any program; every call gets a fresh cage, some of them warmed."""
    return lasting.session(pool=PoolTerms(min_idle=1))


@pytest.fixture(scope="module")
def run(coder: Session) -> Callable[..., ToolResult]:
    """One program through the whole line."""

    def through(code: str, **options: Any) -> ToolResult:
        return coder.call("execute_python", {"code": textwrap.dedent(code)}, **options)

    return through


@pytest.fixture
def eventually() -> Callable[..., bool]:
    return until


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A small SQLite database."""
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, total INTEGER);
            CREATE TABLE staff (id INTEGER PRIMARY KEY, salary INTEGER);
            INSERT INTO orders VALUES (1, 'Ada', 10), (2, 'Bo', 32);
            INSERT INTO staff VALUES (1, 99);
            """
        )
    connection.close()
    return path
