"""Every shipped image, really built: the same id twice, what it holds, what it must not hold.

Those that setup leaves out are built here when they are missing, into the state directory that all tests use.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import docker
import pytest
from typer.testing import CliRunner

from toolcage.cage.engine import Engine
from toolcage.cage.images import ImageLock, build, build_variant, read_sbom, verify
from toolcage.cage.recipe import known_images, load_recipe
from toolcage.cli.images import app
from toolcage.errors import ImageError
from toolcage.state import default_state_dir

pytestmark = pytest.mark.docker


QUICK = ("python", "shell")
"""The images of the built-in tools; the others take minutes to build twice."""


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


@pytest.fixture(
    params=[
        *QUICK,
        *(pytest.param(name, marks=pytest.mark.long) for name in known_images() if name not in QUICK),
    ]
)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def image_id(name: str, engine: Engine) -> str:
    build([name], engine, default_state_dir())
    return verify(engine, ImageLock.load(default_state_dir()).resolve(name))


@pytest.fixture(scope="module")
def built(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory of its own with a freshly built image."""
    state_dir = tmp_path_factory.mktemp("state")
    build(["python"], engine, state_dir)
    return state_dir


def test_a_second_build_of_one_recipe_gives_the_same_id_and_list_of_contents(
    name: str, engine: Engine, tmp_path: Path
) -> None:
    [first] = build([name], engine, default_state_dir())
    [second] = build([name], engine, tmp_path)
    assert second == first
    assert second.packages
    assert second.wheels
    assert read_sbom(tmp_path, second) == read_sbom(default_state_dir(), first)


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
def test_the_image_holds_its_own_programs_only_and_no_setuid_file_package_manager_or_secret(
    name: str, image_id: str
) -> None:
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
    recipe = load_recipe(name)
    links = {"usr/bin/python3", *recipe.links}
    programs = {path.lstrip("/") for path in files if {"bin", "sbin"} & set(Path(path).parent.parts)}
    assert programs == recipe.executables - links
    names = {Path(path).name for path in files}
    shells = {"bash", "dash", "busybox", "perl"} - ({"bash"} if name == "shell" else set())
    assert not names & {
        *shells,
        "apt",
        "apt-get",
        "dpkg",
        "dpkg-deb",
        "pip",
        "su",
        "sudo",
        "mount",
        "ldconfig",
        "chroot",
    }
    assert not [path for path in files if path.endswith(".pth") or "/pip/" in path or "/dpkg/" in path]
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


IMPORTS = {
    "python": "pydantic, RestrictedPython",
    "shell": "pydantic",
    "data": "pydantic, RestrictedPython, numpy, pandas, polars, pyarrow.parquet, pyarrow.dataset, openpyxl, matplotlib",
    "web": "pydantic, httpx, pg8000.native, icalendar, wikipedia, tavily, requests, bs4, imaplib, smtplib",
}


def test_the_wheels_are_importable_in_isolated_mode_and_the_mount_points_are_there(name: str, image_id: str) -> None:
    program = f"""
import os, ssl, sqlite3, ctypes, lzma, bz2, zlib, decimal, zoneinfo
os.environ["MPLCONFIGDIR"] = "/dev/shm/matplotlib"
import {IMPORTS[name]}
class Model(pydantic.BaseModel):
    count: int
print(Model(count="3").count, os.getcwd(), zoneinfo.ZoneInfo("Europe/Berlin"),
      all(os.path.isdir(path) for path in ("/tmp", "/workspace", "/data")))
"""
    assert run(image_id, program).strip() == "3 /workspace Europe/Berlin True"


def test_the_list_of_contents_has_every_package_with_its_hash_and_no_wheel_under_a_gpl(
    name: str, engine: Engine
) -> None:
    [locked], recipe = build([name], engine, default_state_dir()), load_recipe(name)
    document = json.loads(read_sbom(default_state_dir(), locked))
    assert document["metadata"]["component"]["version"] in locked.accepted_ids
    components = document["components"]
    wheels = [item for item in components if item["purl"].startswith("pkg:pypi/")]
    assert {item["name"]: item["version"] for item in components if item not in wheels} == locked.packages
    assert {item["name"]: item["version"] for item in wheels} == locked.wheels
    pinned = recipe.requirements.read_text() + "".join(source.sha256 for source in recipe.sources)
    for item in wheels:
        assert item["hashes"][0]["content"] in pinned, item["name"]
        assert item["licenses"], item["name"]
        assert not re.search(r"GPL|General Public", json.dumps(item["licenses"])), item["name"]
    assert all(len(item["hashes"][0]["content"]) == 64 for item in components)


@pytest.mark.long
def test_the_font_list_is_what_matplotlib_would_make_of_its_own_fonts(engine: Engine) -> None:
    [data] = build(["data"], engine, default_state_dir())
    """A new matplotlib fails here until sandbox_images/data/fontlist.json is made anew."""
    program = """
import glob, json, os
os.environ["MPLCONFIGDIR"] = "/dev/shm/matplotlib"
import matplotlib.font_manager
[shipped] = glob.glob("/usr/share/toolcage/matplotlib/*")
[made] = glob.glob("/dev/shm/matplotlib/fontlist*")
def content(path):
    lists = json.load(open(path))
    return {key: sorted(value, key=json.dumps) if isinstance(value, list) else value for key, value in lists.items()}
print(os.path.basename(shipped) == os.path.basename(made), content(shipped) == content(made))
"""
    assert run(data.image_id, program).strip() == "True True"


def test_a_variant_has_its_wheels_with_what_they_need_and_is_built_again_from_its_record(
    engine: Engine, built: Path
) -> None:
    first = build_variant("python", "templates", ["jinja2==3.1.6"], engine, built)
    assert first.variant is not None
    assert [pin.partition("==")[0] for pin in first.variant.pins] == ["jinja2", "markupsafe"]
    program = "import jinja2, pydantic; print(jinja2.Template('{{ 6 * 7 }}').render())"
    assert run(verify(engine, ImageLock.load(built).resolve("templates")), program).strip() == "42"
    assert build(["templates"], engine, built) == [first]
    assert build(["templates"], engine, built, force=True) == [first]
    assert "templates" in read_sbom(built, first)


def test_a_variant_is_removed_from_the_lock_and_the_engine_and_a_shipped_image_when_confirmed(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCAGE_STATE_DIR", str(tmp_path))
    made = build_variant("python", "unwanted", ["six==1.17.0"], engine, tmp_path)
    done = CliRunner().invoke(app, ["remove", "unwanted"])
    assert (done.exit_code, done.output) == (0, f"unwanted: removed {made.image_id}\n")
    assert engine.image_inspect(made.image_id) is None
    assert dict(ImageLock.load(tmp_path).images) == {}
    again = CliRunner().invoke(app, ["remove", "unwanted"])
    assert (again.exit_code, "is not built here" in again.output) == (1, True)
    assert CliRunner().invoke(app, ["remove", "--yes", "python"]).exit_code == 1  # confirmed, and not built there


@pytest.mark.threat("P59")
def test_a_variant_cannot_change_what_its_image_has(engine: Engine, built: Path) -> None:
    before = ImageLock.load(built)
    with pytest.raises(ImageError, match=r"could not find wheels for pydantic==2\.10\.0"):
        build_variant("python", "older", ["pydantic==2.10.0"], engine, built)
    assert ImageLock.load(built) == before


def test_the_command_line_verifies_what_is_there_and_says_what_is_not(tmp_path: Path) -> None:
    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        program = "from toolcage.cli.images import app; app()"
        return subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, env=environment
        )

    there = call("verify", "python", "shell", "--json", TOOLCAGE_STATE_DIR=str(default_state_dir()))
    assert (there.returncode, [item["ok"] for item in json.loads(there.stdout)]) == (0, [True, True])
    contents = call("sbom", "shell", TOOLCAGE_STATE_DIR=str(default_state_dir()))
    assert json.loads(contents.stdout)["bomFormat"] == "CycloneDX"
    assert call("build", "--as", "x", TOOLCAGE_STATE_DIR=str(tmp_path)).returncode == 2
    assert call("sbom", "shell", TOOLCAGE_STATE_DIR=str(tmp_path)).returncode == 1
    nothing = call("verify", TOOLCAGE_STATE_DIR=str(tmp_path))
    assert (nothing.returncode, "run `toolcage images build`" in nothing.stderr) == (1, True)
    missing = call("verify", "python", TOOLCAGE_STATE_DIR=str(tmp_path))
    assert missing.returncode == 1
    assert "run `toolcage images build python`" in missing.stdout
    no_engine = call("verify", "python", TOOLCAGE_STATE_DIR=str(tmp_path), DOCKER_HOST="unix:///nonexistent/engine.sock")
    assert no_engine.returncode == 3
    assert [item["state"] for item in json.loads(call("list", "--json", TOOLCAGE_STATE_DIR=str(tmp_path)).stdout)] == [
        "not built" for _ in known_images()
    ]
