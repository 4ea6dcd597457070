"""What the doctor makes of an engine's own words. The verdict needs no engine."""

from __future__ import annotations

from typing import Any

import pytest

from toolcage.cli.doctor import _engine_findings

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
        ({"SecurityOptions": None}, {"seccomp": "problem", "user namespace": "advice", "LSM": "advice"}),
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
