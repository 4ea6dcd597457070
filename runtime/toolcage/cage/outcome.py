"""How a call ended, in three families that are never mixed: the program failed, a limit was hit, the sandbox is broken.

Pure. It judges the warden's report and, when the door broke, the engine's view of the container. Exit code 137 proves
nothing by itself: it is what an out-of-memory kill, our own kill and a program's own suicide all look like, so limits
are told from counters and from what the warden and the host did, and `OOMKilled` counts only for a container that is no
longer running and whose door broke. A tool that forges its counters can only make its own call fail.
"""

from __future__ import annotations

import os
import signal
from typing import Final, assert_never

from toolcage.cage.report import CageReport, EngineState
from toolcage.types import Refusal

_OUTPUT_HINT: Final = "Print less: aggregate, slice or summarise, or write a file."


def classify(report: CageReport, state: EngineState | None, *, wall_s: float) -> Refusal | None:
    """The refusal that the call ended with; None when the program ended by itself with exit code 0.

    `state` is the engine's view, needed (and asked for) only when the door broke.
    """
    if report.broken is not None:
        return _broken(report, state, wall_s)
    if report.limit is not None:
        return _limit(report.limit, report, wall_s)
    if report.status is None:
        return Refusal(status="tool_error", code="program.unknown_end", message="the program ended in an unknown way")
    if os.WIFSIGNALED(report.status):
        return _signalled(os.WTERMSIG(report.status), report)
    code = os.waitstatus_to_exitcode(report.status)
    if code == 0:
        return None
    if report.oom_kills > 0:
        return _out_of_memory("a process of the program was killed")
    if report.pids_refused > 0:
        return _pids()
    return Refusal(status="tool_error", code="program.exit", message=f"the program ended with exit code {code}")


def exit_code(report: CageReport) -> int | None:
    """The program's exit code as shells tell it: negative for a signal, None when it did not end by itself."""
    if report.status is None or report.broken is not None or report.limit is not None:
        return None
    return os.waitstatus_to_exitcode(report.status)


def _signalled(number: int, report: CageReport) -> Refusal:
    if number == signal.SIGKILL and report.oom_kills > 0:
        return _out_of_memory("the program was killed")
    if number == signal.SIGXFSZ:
        return Refusal(
            status="limit_exceeded", code="limit.file_size", message="the program wrote a file above the size limit"
        )
    if report.pids_refused > 0:
        return _pids()
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return Refusal(status="tool_error", code="program.signal", message=f"the program was ended by {name}")


def _limit(limit: str, report: CageReport, wall_s: float) -> Refusal:
    if limit == "wall":
        note = "the process limit was reached on the way" if report.pids_refused else None
        return _timeout(wall_s, note)
    if limit == "output":
        return Refusal(
            status="limit_exceeded", code="limit.output", message="the program wrote more output than its limit",
            hint=_OUTPUT_HINT,
        )  # fmt: skip
    if limit == "result":
        return Refusal(
            status="limit_exceeded", code="limit.result", message="the tool returned more data than its limit",
            hint=_OUTPUT_HINT,
        )  # fmt: skip
    if limit == "portal":
        return Refusal(
            status="tool_error", code="portal.taken",
            message="something that an earlier call of this session left running holds the port of a portal",
            hint="Call again: what the session kept has been ended.", retryable=True,
        )  # fmt: skip
    return Refusal(status="unavailable", code="cage.unknown_limit", message="the sandbox answered in an unknown way")


def _broken(report: CageReport, state: EngineState | None, wall_s: float) -> Refusal:
    broken = report.broken
    assert broken is not None
    if broken == "cancelled":
        return Refusal(status="cancelled", code="call.cancelled", message="the call was cancelled", retryable=True)
    if broken == "host_deadline":
        return _timeout(wall_s, "the sandbox did not end it in time and was killed")
    if state is not None and state.found and not state.running and state.oom_killed:
        return _out_of_memory("the sandbox ran out of memory")
    if broken == "malformed":
        return _unavailable("cage.door_malformed", "the sandbox broke its protocol and was killed", report)
    if broken == "closed":
        if state is None or not state.reachable:
            return _unavailable("engine.unreachable", "the container engine stopped answering", report)
        return _unavailable("cage.lost", "the sandbox ended during the call", report)
    assert_never(broken)


def _timeout(wall_s: float, note: str | None) -> Refusal:
    return Refusal(
        status="timeout", code="limit.wall", message=f"the call ran longer than its {wall_s:g} s",
        hint="Do less in one call: smaller input, fewer steps.", operator=note,
    )  # fmt: skip


def _out_of_memory(what: str) -> Refusal:
    return Refusal(
        status="out_of_memory", code="limit.memory", message=f"{what} at the memory limit",
        hint="Use less memory: stream, work in chunks, keep fewer copies.",
    )  # fmt: skip


def _pids() -> Refusal:
    return Refusal(
        status="limit_exceeded", code="limit.pids", message="the program started more processes than its limit",
        hint="Start fewer processes and threads.",
    )  # fmt: skip


def _unavailable(code: str, message: str, report: CageReport) -> Refusal:
    return Refusal(
        status="unavailable", code=code, message=message, hint="Nothing is wrong with the call; try it again later.",
        operator=report.last_words[-2000:] or None, retryable=True,
    )  # fmt: skip
