"""The set-up script on machines that lack something: each is a folder of stand-in commands; nothing real is touched.

The stand-ins write what they were asked to a log. `dockerd` really runs as a harmless process of that name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = (
    "bash", "cat", "cmp", "cp", "dirname", "env", "mkdir", "mktemp", "rm", "seq", "setsid", "sh", "sleep", "touch",
)  # fmt: skip

PYTHON = """
case "$*" in
    *version_info*) exit 0 ;;
    *"import ensurepip"*) {ensurepip} ;;
    *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$HOME/bin/toolcage-console" .venv/bin/toolcage ;;
    *"-m pip"*) exit 0 ;;
    *Engine.connect*) test -e "$HOME/engine-runs" ;;
esac
"""
CONSOLE = """
case "$*" in
    "images verify python shell web"*) test -e "$HOME/images-built" ;;
    "images build python shell web"*) touch "$HOME/images-built" ;;
esac
"""
APT = """
case "$*" in *install*) for name in $OFFERS; do cp "$HOME/packages/$name" "$HOME/bin/$name"; done ;; esac
"""


@dataclass(frozen=True)
class Machine:
    """A checkout in `folder/checkout` and all the commands that there are, in `folder/bin`."""

    folder: Path

    def add(self, name: str, body: str, *, where: str = "bin") -> None:
        path = self.folder / where / name
        path.unlink(missing_ok=True)  # it may be a link to the real one
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>"$HOME/log"\n{body}\n')
        path.chmod(0o755)

    def run(self, script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        home = str(self.folder)
        environment = {"PATH": f"{home}/bin", "HOME": home, "TMPDIR": home, "SETUP_RUN_DIR": f"{home}/run"}
        command = ["/bin/bash", str(self.folder / "checkout" / "scripts" / script), *arguments]
        environment = {"OFFERS": ""} | environment | variables
        nothing = subprocess.DEVNULL
        return subprocess.run(command, env=environment, stdin=nothing, capture_output=True, text=True, check=False)

    def asked(self, name: str) -> list[str]:
        log = self.folder / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Linux, not root, Python and nothing else."""
    (tmp_path / "bin").mkdir()
    for name in ORDINARY:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin" / name).symlink_to(found)
    (tmp_path / "checkout").mkdir()
    shutil.copytree(ROOT / "scripts", tmp_path / "checkout" / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "checkout")
    machine = Machine(tmp_path)
    machine.add("id", "echo 1000")
    machine.add("uname", "echo Linux")
    machine.add("python3", PYTHON.format(ensurepip="exit 0"))
    machine.add("toolcage-console", CONSOLE)
    return machine


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if line.startswith("setup: missing: ")]


def test_with_everything_there_nothing_is_installed_or_started(machine: Machine) -> None:
    (machine.folder / "engine-runs").touch()
    (machine.folder / "images-built").touch()
    machine.add("apt-get", "exit 1")
    machine.add("dockerd", "exit 1")
    first, second = machine.run("setup.sh"), machine.run("setup.sh")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert machine.asked("apt-get") == machine.asked("dockerd") == []
    assert len([line for line in machine.asked("python3") if "pip install" in line]) == 1
    assert "making .venv" not in second.stdout


def test_a_changed_pyproject_is_installed_again(machine: Machine) -> None:
    machine.run("setup.sh", "--without-engine")
    with (machine.folder / "checkout" / "pyproject.toml").open("a") as file:
        file.write("\n")
    machine.run("setup.sh", "--without-engine")
    assert len([line for line in machine.asked("python3") if "pip install" in line]) == 2


def test_missing_images_are_built(machine: Machine) -> None:
    (machine.folder / "engine-runs").touch()
    assert machine.run("setup.sh").returncode == 0
    assert "images build python shell web" in machine.asked("toolcage-console")


def test_the_large_image_is_built_for_the_tests_alone(machine: Machine) -> None:
    (machine.folder / "engine-runs").touch()
    assert machine.run("setup.sh", "--all-images").returncode == 0
    assert "images build python shell web data" in machine.asked("toolcage-console")


def test_for_the_demo_the_wiki_alone_is_installed_and_for_the_tests_every_server(machine: Machine) -> None:
    demo, tests = machine.run("test_servers.sh", "--wiki"), machine.run("test_servers.sh")
    assert demo.returncode == tests.returncode == 1
    assert "mediawiki php-cli" in demo.stderr
    assert "postgresql" not in demo.stderr
    assert "mediawiki php-cli" in tests.stderr
    assert "postgresql" in tests.stderr


def test_without_engine_neither_engine_nor_images_are_looked_at(machine: Machine) -> None:
    assert machine.run("setup.sh", "--without-engine").returncode == 0
    assert machine.asked("toolcage-console") == []


def test_without_python_and_engine_each_is_one_line(machine: Machine) -> None:
    machine.add("python3", "exit 1")
    done = machine.run("setup.sh")
    assert done.returncode == 1
    python, engine = complaints(done)
    assert "Python 3.11 or newer" in python
    assert "install Docker" in engine


def test_without_the_venv_module_it_says_so(machine: Machine) -> None:
    machine.add("python3", PYTHON.format(ensurepip="exit 1"))
    done = machine.run("setup.sh")
    assert done.returncode == 1
    assert "python3-venv" in complaints(done)[0]


@pytest.mark.parametrize(
    ("system", "commands", "variables", "words"),
    [
        ("Linux", (), {}, "apt-get install docker.io"),
        ("Linux", ("dockerd",), {}, "join the group docker"),
        ("Linux", ("apt-get",), {}, "as root"),
        ("Darwin", (), {}, "Docker Desktop"),
        ("Linux", ("dockerd",), {"DOCKER_HOST": "unix:///nowhere.sock"}, "DOCKER_HOST=unix:///nowhere.sock"),
    ],
)
def test_without_root_a_missing_engine_is_one_clear_line_and_nothing_is_changed(
    machine: Machine, system: str, commands: tuple[str, ...], variables: dict[str, str], words: str
) -> None:
    machine.add("uname", f"echo {system}")
    for name in commands:
        machine.add(name, "exit 1")
    done = machine.run("setup.sh", **variables)
    assert done.returncode == 1
    assert len(complaints(done)) == 1
    assert words in complaints(done)[0]
    assert machine.asked("apt-get") == machine.asked("dockerd") == []


def test_as_root_without_apt_a_missing_engine_is_one_clear_line(machine: Machine) -> None:
    machine.add("id", "echo 0")
    done = machine.run("setup.sh")
    assert done.returncode == 1
    assert ["this system's package manager" in line for line in complaints(done)] == [True]


def as_root_on_debian(machine: Machine) -> None:
    machine.add("id", "echo 0")
    machine.add("apt-get", APT)
    machine.add("dpkg-query", "exit 1")
    machine.add("iptables", "", where="packages")
    shutil.copy(shutil.which("sleep") or "sleep", machine.folder / "packages" / "dockerd-process")
    # A process whose name is really dockerd, so that the stop script recognises it.
    body = 'touch "$HOME/engine-runs"; cp "$HOME/packages/dockerd-process" "$HOME/dockerd"; exec "$HOME/dockerd" 600'
    machine.add("dockerd", body, where="packages")


def running(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_as_root_on_debian_the_engine_is_installed_started_and_only_that_one_stopped(machine: Machine) -> None:
    as_root_on_debian(machine)
    done = machine.run("setup.sh", OFFERS="dockerd iptables")
    assert done.returncode == 0, done.stderr
    installs = [line for line in machine.asked("apt-get") if "install" in line]
    assert "docker.io iptables" in installs[0]
    assert "mmdebstrap debian-archive-keyring" in installs[1]
    pid = int((machine.folder / "checkout" / ".state" / "dockerd.pid").read_text())
    assert running(pid)
    machine.run("stop_engine.sh")
    assert not running(pid)


def test_with_systemd_the_service_is_started_and_nothing_is_recorded_as_ours(machine: Machine) -> None:
    as_root_on_debian(machine)
    (machine.folder / "run" / "systemd" / "system").mkdir(parents=True)
    machine.add("systemctl", 'touch "$HOME/engine-runs"')
    done = machine.run("setup.sh", OFFERS="dockerd iptables")
    assert done.returncode == 0, done.stderr
    assert machine.asked("systemctl") == ["start docker"]
    assert not (machine.folder / "checkout" / ".state").exists()


def test_an_engine_that_runs_and_does_not_answer_is_named_and_no_second_one_started(machine: Machine) -> None:
    as_root_on_debian(machine)
    machine.add("dockerd", "exit 1")
    machine.add("iptables", "")
    machine.add("sleep", "")
    (machine.folder / "run").mkdir()
    (machine.folder / "run" / "docker.pid").write_text(f"{os.getpid()}\n")
    done = machine.run("setup.sh")
    assert done.returncode == 1
    assert "runs and does not answer" in complaints(done)[0]
    assert machine.asked("dockerd") == []


def test_an_engine_that_dies_at_its_start_is_named_with_its_log(machine: Machine) -> None:
    as_root_on_debian(machine)
    machine.add("dockerd", 'echo "no such storage driver"; exit 1')
    machine.add("iptables", "")
    done = machine.run("setup.sh")
    assert done.returncode == 1
    log = Path(complaints(done)[0].rsplit("its log is ", 1)[1])
    assert "no such storage driver" in log.read_text()


def test_a_package_that_cannot_be_installed_is_named(machine: Machine) -> None:
    as_root_on_debian(machine)
    machine.add("apt-get", "exit 100")
    done = machine.run("setup.sh")
    assert done.returncode == 1
    assert "apt-get could not install" in complaints(done)[0]


def test_stopping_leaves_a_process_alone_that_is_no_engine(machine: Machine) -> None:
    with subprocess.Popen(["sleep", "600"]) as bystander:
        state = machine.folder / "checkout" / ".state"
        state.mkdir()
        (state / "dockerd.pid").write_text(f"{bystander.pid}\n")
        done = machine.run("stop_engine.sh")
        assert done.returncode == 0
        assert bystander.poll() is None
        assert not (state / "dockerd.pid").exists()
        bystander.kill()


def test_stopping_without_anything_started_is_no_error(machine: Machine) -> None:
    assert machine.run("stop_engine.sh").returncode == 0


def test_the_ci_script_ends_what_it_started_and_fails_when_the_tests_do(machine: Machine) -> None:
    shutil.copytree(ROOT / ".ci", machine.folder / "checkout" / ".ci")
    machine.add("make", '[ "$1" != test ] || exit 5')
    with subprocess.Popen(["sleep", "600"]) as engine:
        state = machine.folder / "checkout" / ".state"
        state.mkdir()
        (state / "dockerd.pid").write_text(f"{engine.pid}\n")
        done = machine.run("../.ci/run")
        engine.kill()
    assert done.returncode == 5
    assert machine.asked("make") == ["lint", "test"]
    assert not (state / "dockerd.pid").exists()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
