"""The README's Python runs as it stands, its policies pass their own tests, and every command of a document exists."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main
from pydantic import BaseModel

from toolcage import Approval, Session
from toolcage.cage.recipe import known_images
from toolcage.cli.main import app
from toolcage.policy.file_format import GrantFile, RoleFile
from toolcage.policy_desk import declared_tools
from toolcage.types import Artifact

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*/README.md")])
TOOLCAGE = [sys.executable, "-c", "from toolcage.cli.main import main; main()"]
FENCE = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"# ([a-z_]+\.(?:yaml|py))\n")


@dataclass(frozen=True)
class Block:
    """A fenced block. `file` is what its first line calls it: such a block is written down, not run."""

    language: str
    text: str

    @property
    def file(self) -> str | None:
        match = FILE_NAME.match(self.text)
        return match[1] if match else None


BLOCKS = [Block(*match) for match in FENCE.findall(README)]
PROGRAMS = [block.text for block in BLOCKS if block.language == "python" and block.file is None]


def commands(text: str) -> Iterator[list[str]]:
    """Every `toolcage …` of a block or a code span, split as a shell splits it, optional parts in brackets included."""
    lines = [line.strip() for language, block in FENCE.findall(text) if not language for line in block.splitlines()]
    for line in (*lines, *re.findall(r"`(toolcage [^`\n]+)`", text)):
        if line.startswith("toolcage "):
            yield shlex.split(line.replace("[", "").replace("]", "").replace("…", ""), comments=True)[1:]


CALLS = [words for words in commands(README) if words[0] == "call" and len(words) > 2]


def subcommands(command: Any) -> dict[str, Any]:
    """The commands below a group, none below a command."""
    return getattr(command, "commands", {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout as a reader of the README has it: the shipped policies, and the files that the README shows."""
    (tmp_path / "policies").symlink_to(ROOT / "policies")
    for block in BLOCKS:
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text)
    return tmp_path


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.docker
@pytest.mark.parametrize("program", PROGRAMS, ids=[f"block {number}" for number in range(1, len(PROGRAMS) + 1)])
def test_every_python_block_runs_and_prints_what_its_comments_say(program: str, folder: Path) -> None:
    done = run([sys.executable, "-W", "error", "-c", program], folder)
    assert done.returncode == 0, done.stderr
    for said in re.findall(r"print\(.*\) +# (.+)$", program, re.MULTILINE):
        assert said in done.stdout


@pytest.mark.docker
@pytest.mark.parametrize(
    "command", [item for item in commands(README) if item[0] == "call" and len(item) > 2], ids=" ".join
)
def test_every_call_that_the_readme_shows_succeeds(command: list[str], folder: Path) -> None:
    done = run([*TOOLCAGE, *command], folder)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("file", ["analyst.yaml", "policies/"])
def test_the_policies_of_the_readme_pass_the_tests_inside_them(file: str, folder: Path) -> None:
    done = run([*TOOLCAGE, "policy", "test", file], folder)
    assert done.returncode == 0, done.stdout
    assert file == "policies/" or "3 of 3 cases hold" in done.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_that_a_document_names_exists_with_its_options(document: Path) -> None:
    for words in commands(document.read_text()):
        command: Any = typer.main.get_command(app)
        while words and (below := subcommands(command)):
            assert words[0] in below, words
            command, words = below[words[0]], words[1:]
        options = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, words


def test_every_command_that_there_is_stands_in_the_readme() -> None:
    shown = {" ".join(words[:count]) for words in commands(README) for count in (1, 2)}
    for name, command in subcommands(typer.main.get_command(app)).items():
        for below in subcommands(command) or [""]:
            assert f"{name} {below}".strip() in shown


def test_the_first_screen_says_what_it_is_what_it_is_not_and_how_to_begin() -> None:
    screen = "\n".join(README.splitlines()[:36])
    assert "is **not**" in screen
    assert len(PROGRAMS[0].splitlines()) <= 10
    assert PROGRAMS[0] in screen
    for command in ("make demo", "make test"):
        assert command in screen


def first_cells(heading: str) -> set[str]:
    """The code spans in the first column of the table below a heading row that begins so."""
    lines = README.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(heading))
    names: set[str] = set()
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        names |= set(re.findall(r"`([^`]+)`", line.split("|")[1]))
    return names


def test_the_table_of_tools_names_every_tool_with_its_image_and_isolation() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(container|namespace)` \|", README, re.MULTILINE)
    declared = declared_tools().values()
    assert sorted(rows) == sorted((item.name, item.image, item.isolation) for item in declared)


def test_the_table_of_images_names_every_image() -> None:
    assert first_cells("| image | holds") == set(known_images())


@pytest.mark.parametrize(
    ("heading", "model"), [("| key | says", RoleFile), ("| key of a grant | says", GrantFile)], ids=["file", "grant"]
)
def test_the_tables_of_policy_keys_name_every_key_and_no_other(heading: str, model: type[BaseModel]) -> None:
    assert first_cells(heading) == set(model.model_fields)


def test_the_table_of_commands_names_every_command_and_no_other() -> None:
    there = {
        f"toolcage {name} {below}".strip()
        for name, command in subcommands(typer.main.get_command(app)).items()
        for below in subcommands(command) or [""]
    }
    shown = {" ".join(word for word in cell.split() if word.islower()) for cell in first_cells("| command | does")}
    assert shown == there


def test_the_fields_and_signatures_that_the_readme_names_are_there() -> None:
    assert {"name", "media_type", "size", "sha256", "content"} == set(Artifact.__slots__)
    assert {"approved", "approver", "reason", "for_session", "edited", "show_output"} == set(Approval.__slots__)
    assert "max_concurrent=8" in README
    assert inspect.signature(Session.map).parameters["max_concurrent"].default == 8
