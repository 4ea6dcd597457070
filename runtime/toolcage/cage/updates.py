"""Which Debian packages of an image have newer versions waiting, as far as this host's own package lists know.

Reads the lists that apt has fetched for the image's suite, security and point releases included; fetches nothing and
runs nothing but dpkg's comparison of two versions. Without such lists there is no answer, which is not the answer
"none". How fresh the lists are is the host's affair.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

APT_LISTS: Final = Path("/var/lib/apt/lists")
_COMPARISON_S: Final = 10


def waiting(packages: Mapping[str, str], suite: str, lists: Path = APT_LISTS) -> Mapping[str, str] | None:
    """Package → newer version, for `packages` (name → version) of `suite`; None when no list of that suite is here."""
    files = [path for path in sorted(lists.glob("*_Packages")) if _is_of(path.name, suite)] if lists.is_dir() else []
    if not files:
        return None
    newest: dict[str, str] = {}
    for path in files:
        for name, version in _offered(path):
            if name in packages and _newer(version, newest.get(name, packages[name])):
                newest[name] = version
    return newest


def _is_of(filename: str, suite: str) -> bool:
    """apt names a list after its address: `…_dists_SUITE_main_…`, `…_dists_SUITE-security_main_…`."""
    _, found, rest = filename.partition("_dists_")
    return bool(found) and rest.split("_")[0] in (suite, f"{suite}-security", f"{suite}-updates")


def _offered(path: Path) -> Iterator[tuple[str, str]]:
    name = ""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("Package: "):
                name = line[9:].strip()
            elif line.startswith("Version: ") and name:
                yield name, line[9:].strip()
                name = ""


def _newer(version: str, than: str) -> bool:
    if version == than:
        return False
    try:
        command = ["dpkg", "--compare-versions", version, "gt", than]
        return subprocess.run(command, check=False, timeout=_COMPARISON_S).returncode == 0  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
