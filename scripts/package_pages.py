"""Descriptions of published packages: ordinary documentation by a hundred and seventy authors.

`package_pages.txt` pins the packages. pip says what it would install, with their metadata; nothing of them is installed
or run. Each page is what a package's METADATA holds: the headers, and the description, cut where an agent's tool would.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LIST: Final = Path(__file__).with_suffix(".txt")
_MOST_CHARACTERS: Final = 16_384
_HEADERS: Final = ("name", "version", "summary", "keywords", "author", "license", "classifier", "requires_dist")


def pages() -> Iterator[tuple[str, str]]:
    """(name, page) of every package of the list, in its order."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"]
        command += ["--only-binary=:all:", "--report", report.name, "--requirement", str(LIST)]
        subprocess.run(command, check=True)  # noqa: S603 - installs nothing
        found = json.loads(Path(report.name).read_text(encoding="utf-8"))["install"]
    for package in sorted(found, key=lambda one: str(one["metadata"]["name"]).lower()):
        yield package["metadata"]["name"], _page(package["metadata"])[:_MOST_CHARACTERS]


def _page(metadata: dict[str, object]) -> str:
    lines = []
    for header in _HEADERS:
        value = metadata.get(header) or []
        for one in value if isinstance(value, list) else [value]:
            lines.append(f"{header.replace('_', '-').title()}: {one}")
    return "\n".join([*lines, "", str(metadata.get("description") or "")])
