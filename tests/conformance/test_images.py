"""Every shipped image, really built: the same id twice, what it holds, what it must not hold."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from toolcage.cage.engine import Engine
from toolcage.cage.images import ImageLock, build, verify
from toolcage.cage.recipe import known_images
from toolcage.errors import ImageError
from toolcage.state import default_state_dir

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine.connect()
    yield engine
    engine.close()


def run(image_id: str, program: str) -> str:
    client = docker.from_env()
    try:
        container = client.containers.create(
            image_id,
            ["/usr/bin/python3.13", "-I", "-c", program],
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
        )
        try:
            container.start()
            container.wait(timeout=60)
            return str(container.logs().decode())
        finally:
            container.remove(force=True)
    finally:
        client.close()


@pytest.fixture(params=known_images())
def image_id(request: pytest.FixtureRequest, engine: Engine) -> str:
    return verify(engine, ImageLock.load(default_state_dir()).resolve(request.param))


@pytest.fixture(scope="module")
def built(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory of its own, every image freshly built."""
    state_dir = tmp_path_factory.mktemp("state")
    build([], engine, state_dir)
    return state_dir


def test_a_second_build_of_one_recipe_gives_the_same_id(engine: Engine, built: Path, tmp_path: Path) -> None:
    first = ImageLock.load(built).images
    second = {image.name: image for image in build([], engine, tmp_path)}
    assert second == first
    assert set(second) == set(known_images())
    assert all(image.packages and image.wheels for image in second.values())


def test_what_is_built_already_is_kept_also_by_two_builders_at_once(engine: Engine, built: Path) -> None:
    steps: list[str] = []

    def again() -> None:
        build(["python"], engine, built, on_step=lambda name, step: steps.append(step))

    threads = [threading.Thread(target=again) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert steps.count("already built") == 2
    assert "extracting Debian packages" not in steps


def test_a_builder_waits_for_the_one_that_holds_the_lock(engine: Engine, built: Path) -> None:
    holder = os.open(built / "images.build", os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    waiting = threading.Event()
    steps: list[str] = []

    def note(name: str, step: str) -> None:
        steps.append(step)
        waiting.set()

    thread = threading.Thread(target=lambda: build(["python"], engine, built, on_step=note))
    thread.start()
    assert waiting.wait(30)
    assert steps == ["waiting for another build"]
    os.close(holder)
    thread.join(60)
    assert steps == ["waiting for another build", "already built"]


def test_an_engine_without_the_image_is_an_error_and_nothing_is_pulled(engine: Engine, built: Path) -> None:
    elsewhere = "sha256:" + "0" * 64
    locked = replace(ImageLock.load(built).resolve("python"), image_id=elsewhere, accepted_ids=(elsewhere,))
    with pytest.raises(ImageError, match="is not in this engine; run `toolcage images build python`"):
        verify(engine, locked)


@pytest.mark.threat("P06")
@pytest.mark.threat("P27")
def test_the_image_holds_no_shell_setuid_file_package_manager_or_secret(image_id: str) -> None:
    program = """
import json, os, stat
files, special, writable = [], [], []
for folder, folders, names in os.walk("/"):
    if folder == "/":
        for gone in ("proc", "sys", "dev"):
            folders.remove(gone)
    for name in [*folders, *names]:
        path = os.path.join(folder, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode): files.append(path)
        if mode & 0o6000 or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)): special.append(path)
        if mode & 0o022 and not stat.S_ISLNK(mode): writable.append(path)
        assert os.lstat(path).st_uid == 0, path
print(json.dumps([files, special, writable, os.getuid(), sorted(os.listdir("/etc"))]))
"""
    files, special, writable, uid, settings = json.loads(run(image_id, program))
    names = {Path(path).name for path in files}
    assert not names & {
        "sh",
        "bash",
        "dash",
        "busybox",
        "apt",
        "apt-get",
        "dpkg",
        "pip",
        "perl",
        "su",
        "mount",
        "ldconfig",
    }
    assert [path for path in files if "/bin/" in path or "/sbin/" in path] == ["/usr/bin/python3.13"]
    assert special == []
    assert writable == ["/tmp"]
    assert uid not in (0, 65534)
    assert set(settings) - {"hostname", "hosts", "resolv.conf", "mtab"} == {
        "group", "mime.types", "nsswitch.conf", "passwd", "protocols", "services",
    }  # fmt: skip


def test_every_module_is_byte_compiled_so_that_nothing_checks_or_writes_one(image_id: str) -> None:
    program = """
import importlib.util, os, sys
missing, checked = [], []
for root in ("/usr/lib/python3.13", "/usr/local/lib/python3.13/dist-packages"):
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".py"):
                cached = importlib.util.cache_from_source(os.path.join(folder, name))
                if not os.path.exists(cached): missing.append(cached)
                elif open(cached, "rb").read(8)[4:] != b"\\x01\\0\\0\\0": checked.append(cached)
print(missing, checked)
"""
    assert run(image_id, program).strip() == "[] []"


def test_the_wheels_are_importable_in_isolated_mode_and_the_mount_points_are_there(image_id: str) -> None:
    program = """
import os, pydantic, RestrictedPython, ssl, sqlite3, ctypes, lzma, bz2, zlib, decimal, zoneinfo
class Model(pydantic.BaseModel):
    count: int
print(Model(count="3").count, RestrictedPython.compile_restricted("1", "x", "eval") is not None, os.getcwd(),
      all(os.path.isdir(path) for path in ("/tmp", "/workspace", "/data")))
"""
    assert run(image_id, program).strip() == "3 True /workspace True"


def test_the_command_line_verifies_what_is_there_and_says_what_is_not(tmp_path: Path) -> None:
    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        program = "from toolcage.cli.images import app; app()"
        return subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, env=environment
        )

    there = call("verify", "--json", TOOLCAGE_STATE_DIR=str(default_state_dir()))
    assert (there.returncode, {item["ok"] for item in json.loads(there.stdout)}) == (0, {True})
    missing = call("verify", TOOLCAGE_STATE_DIR=str(tmp_path))
    assert missing.returncode == 1
    assert "run `toolcage images build python`" in missing.stdout
    no_engine = call("verify", TOOLCAGE_STATE_DIR=str(tmp_path), DOCKER_HOST="unix:///nonexistent/engine.sock")
    assert no_engine.returncode == 3
    assert [item["state"] for item in json.loads(call("list", "--json", TOOLCAGE_STATE_DIR=str(tmp_path)).stdout)] == [
        "not built" for _ in known_images()
    ]
