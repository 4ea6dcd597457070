"""sdist → wheel → installed: the data travels with the package, and nothing of the build machine does."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ("policies", "sandbox_images")


def tracked_files(*under: str) -> list[Path]:
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--", *under]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_carries_every_data_file_byte_for_byte(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for file in tracked_files(*DATA):
            assert f"toolcage/_shipped/{file}" in names
            assert archive.read(f"toolcage/_shipped/{file}") == (ROOT / file).read_bytes()


def test_the_wheel_holds_the_package_its_types_mark_and_its_licence_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"toolcage", wheel.name.rsplit("-", 3)[0] + ".dist-info"}
    assert "toolcage/py.typed" in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_the_sdist_holds_what_the_wheel_needs(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    assert set(tracked_files("runtime", *DATA)) <= names
    assert {Path("README.md"), Path("LICENSE"), Path("CHANGELOG.md"), Path("SECURITY.md")} <= names


def test_an_installed_wheel_finds_its_own_data_wherever_it_runs(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    for name in DATA:
        (tmp_path / name).mkdir()
    program = f"from toolcage.shipped import shipped_dir\nfor name in {DATA}: print(shipped_dir(name))"
    environment = os.environ | {"PYTHONPATH": str(target)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [str(target / "toolcage" / "_shipped" / name) for name in DATA]


def test_an_editable_checkout_finds_the_data_at_its_root() -> None:
    from toolcage.shipped import shipped_dir

    assert [shipped_dir("policies"), shipped_dir("sandbox_images")] == [ROOT / name for name in DATA]


def test_no_file_of_the_tree_names_a_path_of_the_machine_it_was_written_on() -> None:
    machine = {str(ROOT), *("/" + "work/" + name for name in ("main", "shared"))}
    found = [
        (str(file), path)
        for file in tracked_files()
        for path in machine
        if path.encode() in (ROOT / file).read_bytes()
    ]
    assert found == []
