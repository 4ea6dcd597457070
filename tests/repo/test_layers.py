"""Dependencies point one way: import-linter's contracts hold, and they can fail."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "runtime" / "toolcage"
LINTER = Path(sys.executable).with_name("lint-imports")


def lint(checkout: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(checkout / "runtime")}
    command = [str(LINTER), "--no-cache"]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "runtime" / "toolcage", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_layers_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("types.py", "import toolcage.audit.log"),
        ("audit/log.py", "import toolcage.cleaning.unicode"),
        ("line/parse.py", "import toolcage.cli.audit"),
        ("policy/decide.py", "import docker"),
        ("line/parse.py", "import toolcage.warden.document"),
        ("warden/document.py", "import toolcage.errors"),
    ],
)
def test_an_import_against_the_layers_is_noticed(copy: Path, module: str, forbidden: str) -> None:
    with (copy / "runtime" / "toolcage" / module).open("a") as file:
        file.write(f"\n{forbidden}  # noqa\n")
    done = lint(copy)
    assert done.returncode != 0
    assert "BROKEN" in done.stdout


def imports_of(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_warden_needs_the_standard_library_and_the_frame_codec_alone() -> None:
    files = [*(PACKAGE / "warden").glob("*.py"), PACKAGE / "cage" / "wire.py"]
    foreign = [
        (file.name, name)
        for file in files
        for name in imports_of(file)
        if name.split(".")[0] not in sys.stdlib_module_names
        and not name.startswith(("toolcage.warden.", "toolcage.cage.wire"))
    ]
    assert foreign == []


def test_the_source_root_is_no_package_of_its_own() -> None:
    assert not (ROOT / "runtime" / "__init__.py").exists()
    assert [path.name for path in (ROOT / "runtime").iterdir() if path.is_dir()] == ["toolcage"]
