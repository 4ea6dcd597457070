"""What the doctor makes of an engine's own words. The verdict needs no engine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from toolcage.cage.updates import waiting
from toolcage.cli.doctor import _core_findings, _engine_findings, _update_findings

STRONG: dict[str, Any] = {
    "SecurityOptions": ["name=seccomp,profile=builtin", "name=apparmor", "name=userns"],
    "CgroupVersion": "2",
    "Runtimes": {"runc": {}, "runsc": {}},
    "MemoryLimit": True,
    "PidsLimit": True,
    "CpuCfsQuota": True,
}


def verdicts(version: str = "29.7.1", **info: Any) -> dict[str, str]:
    findings = _engine_findings({"Version": version, "ApiVersion": "1.52"}, STRONG | info)
    assert all(finding.mend for finding in findings if finding.verdict != "ok")
    return {finding.check: finding.verdict for finding in findings if finding.verdict != "ok"}


def test_a_strong_engine_has_nothing_to_mend() -> None:
    assert verdicts() == {}


@pytest.mark.parametrize(
    ("version", "old"),
    [("29.7.0", False), ("30.0", False), ("29.6.9", True), ("20.10.24+dfsg1", True), ("devel", True), ("", True)],
)
def test_an_engine_older_than_its_advisories_fix_or_of_no_version_is_told(version: str, old: bool) -> None:
    assert verdicts(version) == ({"engine age": "advice"} if old else {})


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"SecurityOptions": ["name=apparmor", "name=userns"]}, {"seccomp": "problem"}),
        ({"SecurityOptions": None},
         {"seccomp": "problem", "userns-remap": "advice", "rootless": "advice", "LSM": "advice"}),
        ({"SecurityOptions": ["name=seccomp", "name=selinux", "name=rootless"]}, {}),
        ({"CgroupVersion": "1"}, {"cgroups": "advice"}),
        ({"Runtimes": {"runc": {}}}, {"gVisor": "advice"}),
        ({"Runtimes": None}, {"gVisor": "advice"}),
        ({"MemoryLimit": False}, {"MemoryLimit": "problem"}),
        ({"PidsLimit": False}, {"PidsLimit": "problem"}),
        ({"CpuCfsQuota": False}, {"CpuCfsQuota": "problem"}),
    ],
)
def test_each_weakness_is_told_by_its_name_and_a_missing_limit_is_a_problem(
    info: dict[str, Any], expected: dict[str, str]
) -> None:
    assert verdicts(**info) == expected


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("core\n", None),
        ("/var/crash/core.%p\n", None),
        ("\n", None),
        ("|/usr/lib/systemd/systemd-coredump %P %u\n", "/usr/lib/systemd/systemd-coredump"),
    ],
)
def test_a_program_that_crashes_of_cages_would_start_on_the_host_is_told(
    tmp_path: Path, pattern: str, named: str | None
) -> None:
    path = tmp_path / "core_pattern"
    path.write_text(pattern)
    findings = _core_findings(path)
    assert [(item.check, item.verdict) for item in findings] == ([("core handler", "advice")] if named else [])
    assert all(str(named) in item.found and item.mend for item in findings)
    assert _core_findings(tmp_path / "none") == []


LIST = """Package: openssl
Version: 3.5.1-1+deb13u2
Description: x

Package: zlib1g
Version: 1:1.3
"""


@pytest.mark.parametrize(
    ("filename", "packages", "expected"),
    [
        ("m_debian_dists_trixie_main_binary-amd64_Packages", {"openssl": "3.5.1-1"}, {"openssl": "3.5.1-1+deb13u2"}),
        ("m_debian_dists_trixie-security_main_binary-amd64_Packages", {"openssl": "3.5.1-1"},
         {"openssl": "3.5.1-1+deb13u2"}),
        ("m_debian_dists_trixie_main_binary-amd64_Packages", {"openssl": "3.5.1-1+deb13u2", "zlib1g": "1:1.3"}, {}),
        ("m_debian_dists_trixie_main_binary-amd64_Packages", {"openssl": "3.6"}, {}),
        ("m_debian_dists_trixie_main_binary-amd64_Packages", {"other": "1"}, {}),
        ("m_debian_dists_bookworm_main_binary-amd64_Packages", {"openssl": "3.5.1-1"}, None),
        ("m_debian_dists_trixie-backports_main_binary-amd64_Packages", {"openssl": "3.5.1-1"}, None),
    ],
)  # fmt: skip
@pytest.mark.skipif(shutil.which("dpkg") is None, reason="the host has no dpkg, so no apt lists either")
def test_updates_are_told_from_the_lists_of_the_image_s_own_suite(
    tmp_path: Path, filename: str, packages: dict[str, str], expected: dict[str, str] | None
) -> None:
    (tmp_path / filename).write_text(LIST)
    assert waiting(packages, "trixie", tmp_path) == expected
    findings = _update_findings("python", packages, "trixie", tmp_path)
    assert [item.mend for item in findings] == (["toolcage images build python --force"] if expected else [])


def test_without_lists_there_is_no_answer(tmp_path: Path) -> None:
    assert waiting({"openssl": "1"}, "trixie", tmp_path / "absent") is None
    assert _update_findings("python", {"openssl": "1"}, "trixie", tmp_path) == []
