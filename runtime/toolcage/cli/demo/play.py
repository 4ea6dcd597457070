"""Takes the script's calls through the line of a real runtime and judges each by what it was to show.

It trusts no result: every byte that a call brings back, and the audit log, are searched for the canary that stands in a
file and in the environment of the host. At the end the log must verify and hold one closing record per call, and the
engine must hold no container of this runtime. A folder that is not a demo's own is never written to.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolcage.audit.report import VerifyReport, read_records, verify
from toolcage.cage.engine import Engine
from toolcage.cage.images import ImageLock
from toolcage.cage.images import verify as verify_image
from toolcage.cage.spec import LABEL_RUNTIME
from toolcage.cli.demo.outside import Outside, outside
from toolcage.cli.demo.research import REQUEST
from toolcage.cli.demo.sample import make_shop
from toolcage.cli.demo.script import DATABASE
from toolcage.cli.demo.step import Scene, Step, Unmet
from toolcage.errors import UsageError
from toolcage.line.result import ToolResult
from toolcage.runtime import Runtime
from toolcage.session import Session
from toolcage.shipped import shipped_dir
from toolcage.state import default_state_dir

ROLES: Final = ("analyst", "coder")
CANARY_VARIABLE: Final = "TOOLCAGE_DEMO_CANARY"
WARM_CALLS: Final = 9
_RESOURCES: Final = f"version: 1\ndatabases:\n  {DATABASE}: {{kind: sqlite, path: shop.sqlite}}\n"
_REQUESTS: Final = {"researcher": REQUEST}
_OWN: Final = ".toolcage-demo"
_WARM_QUEUE_S: Final = 0.05
_REFILL_S: Final = 3.0
_NOTHING_RAN: Final = frozenset({"malformed", "invalid", "denied", "blocked"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One call as it went. `problem` is what was not as it must be, None when the step passed; `result` is None when
    the call could not be made, because an earlier one failed or because of what is `absent` on this host."""

    step: Step
    arguments: str
    result: ToolResult | None
    reason: str
    problem: str | None
    saved: tuple[str, ...] = ()
    absent: str | None = None

    @property
    def verdict(self) -> str:
        """`worked`; `stopped` before anything ran; `contained` by the cage or the cleaning; `not shown`; `FAILED`."""
        if self.absent is not None:
            return "not shown"
        if self.problem is not None or self.result is None:
            return "FAILED"
        if self.step.kind == "work":
            return "worked"
        return "stopped" if self.result.status in _NOTHING_RAN else "contained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The whole demo as it went. `problems` are those of no single row; `p50_warm_ms` None = no warm call was seen."""

    rows: tuple[Row, ...]
    database_rows: int
    calls: int
    cages: int
    p50_warm_ms: float | None
    seconds: float
    audit: VerifyReport
    audit_path: Path
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Every step was shown, and it and everything around the steps was as it must be."""
        return not self.problems and all(row.problem is None and row.absent is None for row in self.rows)


def require_sandbox() -> None:
    """Returns when cages can be made here. Raises EngineError or ImageError, each with what to do."""
    engine = Engine.connect()
    try:
        verify_image(engine, ImageLock.load(default_state_dir()).resolve("python"))
    finally:
        engine.close()


def own_folder(folder: Path) -> Path:
    """The folder, made or a demo's own from before. Raises UsageError for one that holds anything else."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()) and not (folder / _OWN).exists():
            raise UsageError(f"{folder} holds other files; name an empty or a new folder with --output")
        (folder / _OWN).touch()
    except OSError as error:
        raise UsageError(f"the demo cannot write to {folder}: {error.strerror}; name another with --output") from error
    return folder.absolute()


def play(
    folder: Path,
    steps: Sequence[Step],
    *,
    warm_calls: int = WARM_CALLS,
    on_step: Callable[[Step], object] = lambda _: None,
) -> Played:
    """Everything from the sample database to the verified log. `folder` is a demo's own (`own_folder`)."""
    started = time.monotonic()
    with contextlib.ExitStack() as closing:
        beside = closing.enter_context(outside(steps))
        database_rows = make_shop(folder / "shop.sqlite")
        resources = folder / "resources.yaml"
        resources.write_text(f"{_RESOURCES}{beside.resources}")
        policies = [*(shipped_dir("policies") / f"{role}.yaml" for role in ROLES), *beside.policies]
        canary, host_file = closing.enter_context(_canary(folder))
        with Runtime.from_files(policies, resources=resources) as runtime:
            rows = list(_rows(runtime, steps, folder, canary, host_file, beside, on_step))
            warm_ms = _warm_calls(runtime, warm_calls)
            cages = runtime.stats().get("created", 0)
            audit_path = runtime.audit_path
        audit = verify(audit_path)
        calls = sum(row.result is not None for row in rows) + warm_calls
        problems = tuple(_around(audit, audit_path, calls, canary))
    return Played(
        rows=tuple(rows), database_rows=database_rows, calls=calls, cages=cages,
        p50_warm_ms=statistics.median(warm_ms) if warm_ms else None, seconds=time.monotonic() - started,
        audit=audit, audit_path=audit_path, problems=problems,
    )  # fmt: skip


@contextlib.contextmanager
def _canary(folder: Path) -> Iterator[tuple[str, Path]]:
    """A word that stands in a file and in the environment of the host for as long as the demo runs."""
    canary = f"canary-{secrets.token_hex(12)}"
    host_file = folder / "host-secret.txt"
    host_file.write_text(f"{canary}\n")
    os.environ[CANARY_VARIABLE] = canary
    try:
        yield canary, host_file
    finally:
        del os.environ[CANARY_VARIABLE]
        host_file.unlink(missing_ok=True)


# --- the rows ------------------------------------------------------------------------------------------------------


def _rows(
    runtime: Runtime, steps: Sequence[Step], folder: Path, canary: str, host_file: Path, beside: Outside,
    on_step: Callable[[Step], object],
) -> Iterator[Row]:  # fmt: skip
    results: dict[str, ToolResult] = {}
    sessions: dict[str, Session] = {}
    scene = Scene(
        results=results, host_file=host_file, letters=beside.letters,
        records=lambda result: _records(runtime.audit_path, result),
    )  # fmt: skip
    for step in steps:
        on_step(step)
        if (absent := beside.why_not(step)) is not None:
            yield Row(step=step, arguments="", result=None, reason=absent, problem=None, absent=absent)
            continue
        if step.role not in sessions:  # a session warms cages of its role, so each is opened when it is needed
            request = _REQUESTS.get(step.role, f"the demo: {step.role}")
            sessions[step.role] = runtime.session(request, role=step.role)
        row = _row(sessions[step.role], step, scene, canary, folder)
        if row.result is not None:
            results[step.name] = row.result
        yield row


def _records(audit_path: Path, result: ToolResult) -> Sequence[Mapping[str, str | int]]:
    """The log's records of one call. A connection's names it in its detail."""
    call_id = result.call_id or "none"
    records = list(read_records(audit_path))
    return [item for item in records if item.get("call_id") == call_id or call_id in str(item.get("detail"))]


def _row(session: Session, step: Step, scene: Scene, canary: str, folder: Path) -> Row:
    try:
        arguments = step.arguments(scene) if callable(step.arguments) else step.arguments
        files = step.files(scene) if step.files is not None else None
    except (KeyError, TypeError, IndexError):
        why = "not called: an earlier call that it builds on brought nothing"
        return Row(step=step, arguments="", result=None, reason=why, problem=why)
    result = session.call_raw(step.raw if step.raw is not None else _call(step, arguments), files=files)
    shown = step.raw.decode() if step.raw is not None else json.dumps(arguments)
    saved = _save(result, folder) if step.kind == "work" else ()
    reason, problem = result.error or "", None
    try:
        reason = _judged(step, result, scene, canary)
    except Unmet as unmet:
        problem = str(unmet)
    return Row(step=step, arguments=shown, result=result, reason=reason, problem=problem, saved=saved)


def _call(step: Step, arguments: Mapping[str, object]) -> Mapping[str, object]:
    return {"tool": step.tool, "arguments": arguments}


def _judged(step: Step, result: ToolResult, scene: Scene, canary: str) -> str:
    """The words for the table. Raises Unmet."""
    if brings_back(result, canary):
        raise Unmet("the canary of the host came out")
    if (result.status, result.code) != (step.status, step.code):
        expected = " ".join(filter(None, (step.status, step.code)))
        raise Unmet(f"expected {expected}, got {' '.join(filter(None, (result.status, result.code)))}")
    try:
        told = result.error or "" if step.demand is None else step.demand(result)
        return told if step.witness is None else step.witness(scene, result)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise Unmet(f"the result has another shape than expected ({type(error).__name__})") from error


def brings_back(result: ToolResult, word: str) -> bool:
    """Whether `word` is in anything that the call brought back, the exact output and the files' contents included."""
    raw = result.raw
    texts = (json.dumps(result.to_dict()), json.dumps(raw.data), result.to_text(), result.to_html())
    contents = (raw.stdout, raw.stderr, *(artifact.content for artifact in result.artifacts))
    return any(word in text for text in texts) or any(word.encode() in content for content in contents)


def _save(result: ToolResult, folder: Path) -> tuple[str, ...]:
    """Writes the files that came out beside the report. Their names were cleaned by the line."""
    saved = []
    for artifact in result.artifacts:
        path = folder / "files" / artifact.name.replace("/", "_")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(artifact.content)
        saved.append(str(path.relative_to(folder)))
    return tuple(saved)


# --- around the rows -----------------------------------------------------------------------------------------------


def _warm_calls(runtime: Runtime, count: int) -> list[float]:
    """How long calls take that find a cage waiting, in milliseconds, of `count` calls."""
    session = runtime.session("the demo: warm calls", role="coder")
    taken_ms = []
    for _ in range(count):
        _await_refill(runtime)
        result = session.call("execute_python", {"code": "6 * 7"})
        if result.success and result.usage.queue_s < _WARM_QUEUE_S:
            taken_ms.append(result.duration_ms)
    return taken_ms


def _await_refill(runtime: Runtime) -> None:
    """Returns once no cage is being made; a call that comes while one is shares the processors with it."""
    end = time.monotonic() + _REFILL_S
    time.sleep(0.05)
    while runtime.stats().get("coming", 0) and time.monotonic() < end:
        time.sleep(0.02)


def _around(audit: VerifyReport, audit_path: Path, calls: int, canary: str) -> Iterator[str]:
    """What is wrong apart from the rows. The runtime is closed by now."""
    for finding in (*audit.errors, *audit.warnings):
        yield f"audit log: {finding.problem}: {finding.message}"
    closings = sum(record.get("type") == "closing" for record in read_records(audit_path))
    if closings != calls:
        yield f"audit log: {closings} closing records for {calls} calls"
    if canary.encode() in audit_path.read_bytes():
        yield "audit log: the canary of the host stands in it"
    left = sum(_left_behind(head.runtime) for head in audit.heads)
    if left:
        yield f"{left} container(s) of the demo are still there"


def _left_behind(runtime_id: str) -> int:
    engine = Engine.connect()
    try:
        return len(engine.list_labelled(f"{LABEL_RUNTIME}={runtime_id}"))
    finally:
        engine.close()
