"""The classifier: three families, told from counters and deeds, never from an exit code alone."""

import signal
from typing import Any

import pytest

from toolcage.cage.outcome import classify, exit_code
from toolcage.cage.report import CageReport, EngineState

RUNNING = EngineState(reachable=True, found=True, running=True)
GONE = EngineState(reachable=True)
KILLED_FROM_OUTSIDE = EngineState(reachable=True, found=True, running=False, exit_code=137)
OUT_OF_MEMORY = EngineState(reachable=True, found=True, running=False, oom_killed=True, exit_code=137)
UNREACHABLE = EngineState(reachable=False)


def ended(state: EngineState | None = None, **fields: Any) -> tuple[str, str] | None:
    refusal = classify(CageReport(**fields), state, wall_s=5)
    return None if refusal is None else (refusal.status, refusal.code)


def test_exit_code_zero_is_no_refusal() -> None:
    assert ended(status=0) is None


def test_exit_code_zero_stays_a_success_though_a_child_hit_a_limit() -> None:
    assert ended(status=0, oom_kills=1, pids_refused=3) is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": 3 << 8}, ("tool_error", "program.exit")),
        ({"status": 137 << 8}, ("tool_error", "program.exit")),
        ({"status": signal.SIGKILL}, ("tool_error", "program.signal")),
        ({"status": signal.SIGSEGV}, ("tool_error", "program.signal")),
        ({"status": signal.SIGXFSZ}, ("limit_exceeded", "limit.file_size")),
        ({"status": signal.SIGKILL, "oom_kills": 1}, ("out_of_memory", "limit.memory")),
        ({"status": 1 << 8, "oom_kills": 1}, ("out_of_memory", "limit.memory")),
        ({"status": 1 << 8, "pids_refused": 9}, ("limit_exceeded", "limit.pids")),
        ({"status": None}, ("tool_error", "program.unknown_end")),
        ({"status": 9, "limit": "wall"}, ("timeout", "limit.wall")),
        ({"status": 9, "limit": "wall", "oom_kills": 1}, ("timeout", "limit.wall")),
        ({"status": 9, "limit": "output"}, ("limit_exceeded", "limit.output")),
        ({"status": 9, "limit": "result"}, ("limit_exceeded", "limit.result")),
        ({"status": 0, "limit": "something new"}, ("unavailable", "cage.unknown_limit")),
    ],
)
def test_a_report_through_a_whole_door(fields: dict[str, Any], expected: tuple[str, str]) -> None:
    assert ended(**fields) == expected


@pytest.mark.parametrize(
    ("broken", "state", "expected"),
    [
        ("cancelled", RUNNING, ("cancelled", "call.cancelled")),
        ("host_deadline", RUNNING, ("timeout", "limit.wall")),
        ("closed", OUT_OF_MEMORY, ("out_of_memory", "limit.memory")),
        ("malformed", OUT_OF_MEMORY, ("out_of_memory", "limit.memory")),
        ("malformed", RUNNING, ("unavailable", "cage.door_malformed")),
        ("closed", KILLED_FROM_OUTSIDE, ("unavailable", "cage.lost")),
        ("closed", RUNNING, ("unavailable", "cage.lost")),
        ("closed", GONE, ("unavailable", "cage.lost")),
        ("closed", UNREACHABLE, ("unavailable", "engine.unreachable")),
        ("closed", None, ("unavailable", "engine.unreachable")),
    ],
)
def test_a_broken_door_is_never_a_success(broken: str, state: EngineState | None, expected: tuple[str, str]) -> None:
    assert ended(state, broken=broken, status=0) == expected


def test_oom_killed_on_a_running_container_proves_nothing() -> None:
    state = EngineState(reachable=True, found=True, running=True, oom_killed=True)
    assert ended(state, broken="closed") == ("unavailable", "cage.lost")


def test_an_exit_code_is_told_only_of_a_program_that_ended_by_itself() -> None:
    assert exit_code(CageReport(status=3 << 8)) == 3
    assert exit_code(CageReport(status=signal.SIGSEGV)) == -signal.SIGSEGV
    assert exit_code(CageReport(status=9, limit="wall")) is None
    assert exit_code(CageReport(status=0, broken="closed")) is None
