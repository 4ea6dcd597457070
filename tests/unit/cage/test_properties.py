"""The judges of an attestation: how trials ended, and what is made of many findings. No engine."""

from __future__ import annotations

from typing import Any

import pytest

from toolcage.cage.properties import filesystem, trials
from toolcage.cage.properties.model import Finding, found
from toolcage.cage.report import CageReport, CollectedFile
from toolcage.cage.spec import MIB, CageSpec
from toolcage.cli.attest import _evidence

SPEC = CageSpec(image_id="sha256:0", isolation="container", memory_bytes=256 * MIB, cpus=1, pids=64, tmp_bytes=64 * MIB)
BY_NAME = {trial.name: trial for trial in trials.TRIALS}
MINE = CollectedFile(name=b"honest", content=b"mine")


def verdicts(trial: str, **report: Any) -> dict[str, str]:
    return {item.id: item.verdict for item in BY_NAME[trial].judge(CageReport(**report), None, SPEC)}


@pytest.mark.parametrize(
    ("trial", "good", "bad", "number"),
    [
        ("the workspace", {"status": 0, "files": (MINE,)},
         {"status": 0, "files": (MINE, CollectedFile(name=b"a/passwd", content=b"root:x:0"))}, "P32"),
        ("the workspace", {"status": 0, "files": (MINE,)},
         {"status": 0, "files": (CollectedFile(name=b"fifo", content=b"mine"),)}, "P34"),
        ("the workspace", {"status": 0, "files": (MINE,)}, {"limit": "wall"}, "P34"),
        ("memory", {"status": 9, "oom_kills": 1}, {"limit": "wall"}, "P47"),
        ("memory", {"status": 9, "oom_kills": 1}, {"broken": "closed"}, "P47"),
        ("processors", {"status": 0, "cpu_s": 1.5, "wall_s": 1.5}, {"status": 0, "cpu_s": 4.5, "wall_s": 1.5}, "P48"),
        ("processors", {"status": 0, "cpu_s": 1.5, "wall_s": 1.5}, {"status": 0, "cpu_s": 0.0, "wall_s": 1.5}, "P48"),
        ("time", {"limit": "wall", "wall_s": 1.5}, {"broken": "host_deadline", "wall_s": 3.5}, "P49"),
        ("time", {"limit": "wall", "wall_s": 1.5}, {"status": 0}, "P49"),
        ("processes", {"status": 0, "pids_refused": 3}, {"status": 0}, "P50"),
        ("processes", {"status": 0, "pids_refused": 3}, {"broken": "closed", "pids_refused": 3}, "P50"),
        ("output", {"limit": "output", "stdout": b"x" * 99, "written": {1: 2 * MIB}},
         {"status": 0, "stdout": b"x" * 99, "written": {1: 99}}, "P51"),
        ("output", {"limit": "output", "stdout": b"x" * 99, "written": {1: 2 * MIB}},
         {"limit": "output", "stdout": b"x" * 2 * MIB, "written": {1: 2 * MIB}}, "P51"),
    ],
)  # fmt: skip
def test_a_trial_holds_when_it_ended_as_it_must_and_fails_otherwise(
    trial: str, good: dict[str, Any], bad: dict[str, Any], number: str
) -> None:
    assert verdicts(trial, **good)[number] == "holds"
    assert verdicts(trial, **bad)[number] == "fails"


@pytest.mark.parametrize(
    ("report", "verdict"),
    [
        ({"status": 0, "result": b'{"success": true, "data": []}'}, "holds"),
        ({"status": 0, "result": b'{"success": true, "data": ["/tmp"]}'}, "fails"),
        ({"status": 0, "result": b""}, "fails"),
        ({"status": 0, "result": b"[]"}, "fails"),
        ({"status": 256, "result": b'{"success": true, "data": []}'}, "fails"),
    ],
)
def test_a_reset_holds_only_when_the_next_program_says_that_it_found_nothing(
    report: dict[str, Any], verdict: str
) -> None:
    assert trials.reset(CageReport(**report), "nothing").verdict == verdict


def test_the_evidence_of_a_failure_is_the_problem_and_says_where() -> None:
    holds, fails = found("P01", [], "all is well"), found("P01", ["uid 0"], "all is well")
    assert (holds.verdict, holds.evidence, fails.verdict, fails.evidence) == ("holds", "all is well", "fails", "uid 0")
    both: dict[Any, Finding] = {("python", "container"): holds, ("data", "session"): fails}
    assert _evidence(both) == "data, session: uid 0"


def mounted(kind: str, root: str, place: str) -> list[str]:
    return ["1", "0", "0:5", root, place, "rw,nosuid", "-", kind, "none", "rw"]


@pytest.mark.parametrize(
    ("mount", "verdict"),
    [
        (mounted("devtmpfs", "/null", "/dev/null"), "holds"),
        (mounted("devtmpfs", "/urandom", "/dev/urandom"), "holds"),
        (mounted("devtmpfs", "/null", "/proc/keys"), "holds"),
        (mounted("tmpfs", "/zero", "/dev/zero"), "holds"),
        (mounted("devtmpfs", "/", "/dev"), "fails"),
        (mounted("devtmpfs", "/sda", "/dev/sda"), "fails"),
        (mounted("devtmpfs", "/zero", "/dev/mem"), "fails"),
        (mounted("tmpfs", "/run/secret", "/tmp/x"), "fails"),
        (mounted("ext4", "/null", "/dev/null"), "fails"),
        (mounted("ext4", "/home", "/workspace"), "fails"),
    ],
)
def test_of_the_hosts_devices_only_the_harmless_six_may_be_mounted_each_under_its_own_name(
    mount: list[str], verdict: str
) -> None:
    assert filesystem._mounts({"mounts": [mount]}).verdict == verdict
