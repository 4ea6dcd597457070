"""Other engines than the machine's own, each really started: sockets, TLS, contexts, remapped users, rootless.

Every engine has its own data, its own network namespace with nothing but loopback, and its own mounts; it ends with all
that it started, and the machine's engine is never touched. toolcage runs as its command line, which reads its engine
from the environment as users have it. What cannot be had here is a skip with the reason, never a pass.
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
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from toolcage.cage.engine import Engine
from toolcage.cage.images import ImageLock
from toolcage.state import default_state_dir

pytestmark = [pytest.mark.docker, pytest.mark.long]

IMAGE = "python"
START_S = 60.0
SUBORDINATES = "daemon:300000:65536\n"
ROOTLESS = "/usr/share/docker.io/contrib/dockerd-rootless.sh"
MODES = ("container", "namespace", "session")
PROGRAM = """
version: 1
role: coder
tools: {execute_python: {allow: [{}]%s}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondEngine:
    """Where it answers; `inside` stands before a command that must be in its network namespace to reach it."""

    folder: Path
    process: subprocess.Popen[bytes]
    environment: Mapping[str, str]
    inside: tuple[str, ...] = field(default=())

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("DOCKER_")}
        environment = {**clean, **self.environment, **more}
        return subprocess.run(
            [*self.inside, *command], capture_output=True, text=True, timeout=300, check=False, env=environment
        )

    def toolcage(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-c", "from toolcage.cli.main import main; main()", *arguments, **more)

    def answer(self, code: str, sandbox: str = "", **more: str) -> dict[str, Any]:
        """What `toolcage call` says of a program in a cage of this engine."""
        policy = self.folder / "role.yaml"
        policy.write_text(PROGRAM % sandbox, encoding="utf-8")
        arguments = ("--policy", str(policy), "--args", json.dumps({"code": code}), "--json")
        done = self.toolcage("call", "execute_python", *arguments, **more)
        assert done.stdout, done.stderr
        return {**json.loads(done.stdout), "told": done.stderr}

    def attested(self, isolation: str) -> dict[str, dict[str, str]]:
        """What `toolcage attest` finds here, by property."""
        done = self.toolcage("attest", "--image", IMAGE, "--isolation", isolation, "--json")
        assert done.stdout, done.stderr
        return {item["id"]: item for item in json.loads(done.stdout)["properties"]}

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")


def need(*programs: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("a second engine needs root")
    missing = [name for name in programs if shutil.which(name) is None and not Path(name).exists()]
    if missing:
        pytest.skip(f"not on this machine: {', '.join(missing)}")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image as the machine's engine has it."""
    need("docker")
    target = tmp_path_factory.mktemp("image") / "image.tar"
    image = ImageLock.load(default_state_dir()).resolve(IMAGE)
    subprocess.run(["docker", "save", "--output", str(target), image.image_id], check=True, timeout=120)
    return target


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, since a unix socket's path has 107 characters, and passable for users that it is remapped to."""
    made = Path(tempfile.mkdtemp(prefix="tc2-"))
    made.chmod(0o711)
    (made / "subordinates").write_text(SUBORDINATES)
    yield made
    shutil.rmtree(made)


@contextlib.contextmanager
def running(folder: Path, shell: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`shell` with `arguments`, in network and mount namespaces of its own; ended with every process it began."""
    need("unshare", "nsenter", "ip")
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", shell, "sh", *arguments]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(OSError, IndexError, subprocess.TimeoutExpired):
            os.kill(first_child(process.pid), signal.SIGTERM)
            process.wait(30)
        process.send_signal(signal.SIGKILL)  # the namespace's first process goes with it, and takes the others
        process.wait(60)


@contextlib.contextmanager
def dockerd(folder: Path, archive: Path, *options: str, **environment: str) -> Iterator[SecondEngine]:
    need("dockerd")
    shell = (
        "mount -t proc proc /proc; ip link set lo up; "
        f"mount --bind {folder}/subordinates /etc/subuid; mount --bind {folder}/subordinates /etc/subgid; "
        'exec dockerd "$@"'
    )
    own = ("--data-root", "data", "--exec-root", "exec", "--pidfile", "pid", "--host", "s")
    named = [item if item.startswith("--") else f"{'unix://' if item == 's' else ''}{folder}/{item}" for item in own]
    quiet = ("--bridge", "none", "--iptables=false", "--ip-forward=false")
    with running(folder, shell, *named, *quiet, *options) as process:
        unix = SecondEngine(folder=folder, process=process, environment={"DOCKER_HOST": f"unix://{folder}/s"})
        ready(unix, archive)
        if not environment:
            yield unix
            return
        inside = ("nsenter", f"--net=/proc/{first_child(process.pid)}/ns/net", "--")
        yield SecondEngine(folder=folder, process=process, environment=environment, inside=inside)


def ready(engine: SecondEngine, archive: Path) -> None:
    """Waits until it answers, and loads the image. Skips, with its own words, where it does not start."""
    end = time.monotonic() + START_S
    while engine.run("docker", "version").returncode != 0:
        if engine.process.poll() is not None or time.monotonic() > end:
            pytest.skip(f"a second engine does not start here: {engine.log()[-600:]}")
        time.sleep(0.1)
    loaded = engine.run("docker", "load", "--input", str(archive))
    assert loaded.returncode == 0, loaded.stderr


def first_child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def certificates(folder: Path) -> Path:
    """A certificate authority of the test's own, and the engine's and the client's certificates signed by it."""
    need("openssl")
    made = folder / "certs"
    made.mkdir()

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=made, timeout=60)

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl(*new, "-x509", "-keyout", "ca-key.pem", "-out", "ca.pem", "-subj", "/CN=test authority", "-days", "2")
    for name, usage in (("server", "serverAuth"), ("", "clientAuth"), ("stranger", "clientAuth")):
        stem = f"{name}-" if name else ""
        openssl(*new, "-keyout", f"{stem}key.pem", "-out", f"{stem}request.pem", "-subj", f"/CN={name or 'client'}")
        (made / "usage").write_text(f"subjectAltName=IP:127.0.0.1\nextendedKeyUsage={usage}\n")
        signer = ("-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial")
        signer = ("-signkey", "stranger-key.pem") if name == "stranger" else signer
        openssl("x509", "-req", "-in", f"{stem}request.pem", *signer, "-out", f"{stem}cert.pem", "-days", "2",
                "-extfile", "usage")  # fmt: skip
    return made


def assert_all_hold(found: Mapping[str, Mapping[str, str]]) -> None:
    failed = {number: item["evidence"] for number, item in found.items() if item["verdict"] == "fails"}
    assert failed == {}
    assert Counter(item["verdict"] for item in found.values())["holds"] > 50


# --- where the engine is ---------------------------------------------------------------------------------------------


def test_the_engine_that_docker_host_names_by_its_socket_runs_the_call(folder: Path, archive: Path) -> None:
    with dockerd(folder, archive) as engine:
        assert engine.answer("6 * 7")["data"] == 42
        assert_all_hold(engine.attested("container"))


def test_an_engine_behind_tls_serves_the_holder_of_a_certificate_and_nobody_else(folder: Path, archive: Path) -> None:
    certs = certificates(folder)
    server = ("--host", "tcp://127.0.0.1:2376", "--tlsverify", "--tlscacert", f"{certs}/ca.pem",
              "--tlscert", f"{certs}/server-cert.pem", "--tlskey", f"{certs}/server-key.pem")  # fmt: skip
    ours = {"DOCKER_HOST": "tcp://127.0.0.1:2376", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(certs),
            "REQUESTS_CA_BUNDLE": f"{certs}/stranger-cert.pem", "HTTPS_PROXY": "http://127.0.0.1:9"}  # fmt: skip
    with dockerd(folder, archive, *server, **ours) as engine:
        found = engine.answer("print('x' * 300_000); open('f', 'wb').write(bytes(2_000_000)); 6 * 7")
        assert found["status"] == "ok", found["told"]
        assert (found["data"], found["status"], [item["size"] for item in found["artifacts"]]) == (42, "ok", [2000000])
        assert_all_hold(engine.attested("container"))
        for name in ("cert.pem", "key.pem"):
            (certs / name).replace(certs / f"our-{name}")
            shutil.copy(certs / f"stranger-{name}", certs / name)
        refused = engine.answer("6 * 7")
        assert (refused["status"], refused["code"]) == ("unavailable", "engine.unavailable")
        assert "does not accept the other's certificate" in refused["told"]
        unencrypted = engine.answer("6 * 7", DOCKER_TLS_VERIFY="", DOCKER_CERT_PATH="")
        assert unencrypted["status"] == "unavailable"


def test_the_current_docker_context_is_used_and_docker_host_wins_over_it(folder: Path, archive: Path) -> None:
    with dockerd(folder, archive) as engine:
        config = {"DOCKER_CONFIG": str(folder / "config")}
        named = engine.environment["DOCKER_HOST"]
        create = ("docker", "context", "create", "second", f"--docker=host={named}")
        created = engine.run(*create, DOCKER_HOST="", **config)
        assert created.returncode == 0, created.stderr
        assert engine.run("docker", "context", "use", "second", DOCKER_HOST="", **config).returncode == 0
        assert engine.answer("6 * 7", DOCKER_HOST="", **config)["data"] == 42
        seen = engine.toolcage("doctor", "--json", DOCKER_HOST="", **config)
        assert '"engine"' in seen.stdout
        gone = engine.answer("6 * 7", DOCKER_HOST="unix:///nonexistent/docker.sock", **config)
        assert gone["status"] == "unavailable"


# --- whose the users are ---------------------------------------------------------------------------------------------


@pytest.mark.threat("P09")
@pytest.mark.parametrize("isolation", MODES)
def test_every_property_holds_where_the_engine_remaps_users(isolation: str, folder: Path, archive: Path) -> None:
    with dockerd(folder, archive, "--userns-remap=daemon") as engine:
        assert "name=userns" in engine.run("docker", "info", "--format", "{{.SecurityOptions}}").stdout
        found = engine.attested(isolation)
        assert_all_hold(found)
        assert found["P09"]["verdict"] == "holds"
        assert engine.answer("import os; open('/proc/self/uid_map').read().split()")["data"] == ["0", "300000", "65536"]


@pytest.mark.threat("P09")
def test_a_rootless_engine_serves_calls_where_it_can_enforce_limits_and_is_refused_where_not(
    folder: Path, archive: Path
) -> None:
    with rootless(folder, archive) as engine:
        limits = engine.run("docker", "info", "--format", "{{.MemoryLimit}} {{.PidsLimit}} {{.CPUCfsQuota}}").stdout
        found = engine.attested("container")
        assert found["P09"]["verdict"] == "holds"
        answer = engine.answer("6 * 7")
        if limits.split() == ["true"] * 3:
            assert_all_hold(found)
            assert answer["data"] == 42
            return
        lacking = {number for number, item in found.items() if item["verdict"] == "fails"}
        assert lacking == {"P47", "P48", "P50"}  # measured: nothing else is weaker, and these are not there
        assert (answer["status"], answer["code"]) == ("unavailable", "engine.unfit")
        assert "enforces no limit on memory, processes, processors" in answer["told"]


@contextlib.contextmanager
def rootless(folder: Path, archive: Path) -> Iterator[SecondEngine]:
    need(ROOTLESS, "rootlesskit", "newuidmap", "slirp4netns", "setpriv")
    own = {name: folder / name for name in ("home", "run", "data")}
    for path in own.values():
        path.mkdir(mode=0o700)
        shutil.chown(path, "daemon", "daemon")
    variables = (f"HOME={own['home']}", f"XDG_RUNTIME_DIR={own['run']}", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
    shell = (
        "mount -t proc proc /proc; ip link set lo up; cd /; "
        f"mount --bind {folder}/subordinates /etc/subuid; mount --bind {folder}/subordinates /etc/subgid; "
        'exec setpriv --reuid=daemon --regid=daemon --clear-groups env -i "$@"'
    )
    options = ("--data-root", f"{own['data']}", "--exec-root", f"{own['run']}/exec", "--host", f"unix://{own['run']}/s",
               "--bridge", "none", "--iptables=false")  # fmt: skip
    with running(folder, shell, *variables, "sh", ROOTLESS, *options) as process:
        engine = SecondEngine(folder=folder, process=process, environment={"DOCKER_HOST": f"unix://{own['run']}/s"})
        ready(engine, archive)
        yield engine


# --- which runtime ---------------------------------------------------------------------------------------------------


def test_a_runtime_that_the_engine_does_not_have_is_unavailable_and_the_operator_is_told_what_to_do(
    installation: Any, caplog: pytest.LogCaptureFixture
) -> None:
    session = installation.session(PROGRAM % ", sandbox: {runtime: runsc}")
    if "runsc" in runtimes():
        pytest.skip("this engine has runsc; tests/unit/cage/test_fitness.py holds the refusal")
    result = session.call("execute_python", {"code": "1"})
    assert (result.status, result.code) == ("unavailable", "engine.no_runtime")
    assert "runsc" not in f"{result.error}{result.hint}"  # that is the operator's, not the model's
    assert "run `runsc install` and restart the engine" in caplog.text
    assert installation.containers() == []


def runtimes() -> Mapping[str, Any]:
    engine = Engine.connect()
    try:
        found: Mapping[str, Any] = engine.info().get("Runtimes") or {}
        return found
    finally:
        engine.close()
