"""What the documents promise exists, and the changelog can be read by a program."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").glob("*.md")])

SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
RELEASE = re.compile(r"## \[(Unreleased|\d+\.\d+\.\d+)\](?: - (\d{4}-\d{2}-\d{2}))?")


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def commands_in(text: str) -> list[str]:
    """Code spans, and the lines of code blocks less their prompt."""
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return lines + re.findall(r"`([^`\n]+)`", text)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_make_command_in_a_document_is_one(document: Path) -> None:
    matches = [re.match(r"make ([a-z-]+)", command) for command in commands_in(document.read_text())]
    assert {match[1] for match in matches if match} <= make_targets()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_to_a_file_of_the_tree_leads_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text())
    files = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert [target for target in files if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_test_that_a_document_names_exists(document: Path) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", document.read_text())
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"^(async )?def {name}\(", _text_or_nothing(ROOT / file), re.MULTILINE)
    ]
    assert missing == []


def _text_or_nothing(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def test_make_help_names_every_target_once_with_what_it_does() -> None:
    command = ["make", "-C", str(ROOT), "--no-print-directory", "help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = dict(re.findall(r"^make (\S+) +(\S.*)$", shown.stdout, re.MULTILINE))
    assert rows.keys() == make_targets()
    assert len(rows) == len(shown.stdout.splitlines())


def changelog_problems(text: str) -> list[str]:
    """What a reader of Keep a Changelog would stumble over."""
    problems, releases, section = [], [], None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            match = RELEASE.fullmatch(line)
            if match is None or (match[1] == "Unreleased") == (match[2] is not None):
                problems.append(f"{number}: not a release heading")
            releases.append(line)
            section = None
        elif line.startswith("### "):
            section = line.removeprefix("### ")
            if section not in SECTIONS or not releases:
                problems.append(f"{number}: not a section of a release")
        elif line.startswith("- ") and section is None:
            problems.append(f"{number}: an entry outside a section")
        elif line.startswith("-") and not re.match(r"- [A-Z`]", line):
            problems.append(f"{number}: an entry is a sentence")
    problems += [f"entry without a full stop: {entry[:40]}" for entry in entries_of(text) if not entry.endswith(".")]
    if not releases or releases[0] != "## [Unreleased]":
        problems.append("the first release is not Unreleased")
    return problems


def entries_of(text: str) -> list[str]:
    found = re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE)
    return [" ".join(entry.split()) for entry in found]


def test_the_changelog_keeps_its_format() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert text.startswith("# Changelog\n")
    assert changelog_problems(text) == []
    assert entries_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "## [0.1.0] - 2026-01-01\n### Added\n- A thing.\n",
        "## [Unreleased]\n### News\n- A thing.\n",
        "## [Unreleased]\n- A thing.\n",
        "## [Unreleased]\n### Added\n- a thing.\n",
        "## [Unreleased]\n### Added\n- A thing\n",
        "## [Unreleased]\n### Added\n- A thing.\n## 0.1.0\n",
    ],
)
def test_a_changelog_out_of_format_is_noticed(text: str) -> None:
    assert changelog_problems(text)
