"""Runs an approved call in a cage of its own, under one deadline. It decides nothing.

From the call's terms it builds a recipe and an order; a worker thread takes a cage, hands over the payload, listens,
and gives the cage back to be removed. Whatever happens, the caller gets a `CageOutput` or a refusal, everything in the
cage is dead when it does, and nothing runs anywhere else: no engine, no image, no cage is `unavailable`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from toolcage.broker.broker import OnRecord
from toolcage.broker.stream import Connection
from toolcage.cage.live import CageRecipe, LiveCage, OnOutput
from toolcage.cage.outcome import classify, exit_code
from toolcage.cage.pool import PoolBusy, PoolClosed
from toolcage.cage.report import MIB, CageReport, CallOrder
from toolcage.errors import EngineError, ImageError, Refused, ResourceError
from toolcage.line.changing import Changing
from toolcage.line.means import Means
from toolcage.line.portals import Opened
from toolcage.line.workspace import Exchange
from toolcage.types import (
    JSON,
    ApprovedCall,
    Artifact,
    AuthorizedCall,
    CageOutput,
    InputFile,
    Refusal,
    Truncation,
    Usage,
    claim_seal,
    freeze,
    require,
    thaw,
)

OUTPUT_FLOOD: Final = 8 * MIB
RESULT_BYTES: Final = 4 * MIB
RESULT_DEPTH: Final = 128
HOST_GRACE_S: Final = 5.0
LEAST_CHANGE_S: Final = 1.0
MAX_TOOL_TEXT: Final = 4000
_CODE: Final = re.compile(r"[a-z0-9_]{1,30}(\.[a-z0-9_]{1,30}){0,2}")
_CAGE_FAMILIES: Final = frozenset(
    {"calc", "calendar", "content", "endpoint", "image", "mail", "python", "result", "search", "shell", "sql", "tool"}
)
"""The only families of codes that a cage may claim; the others are the line's own word."""
_FOR_NOW: Final = frozenset(
    {"calendar.conflict", "calendar.unreachable", "endpoint.broken", "endpoint.failed", "endpoint.rate_limited",
     "endpoint.timeout", "mail.later", "mail.unreachable", "sql.unreachable"}
)  # fmt: skip
"""Failures of ours after which the same call may succeed."""
_SESSION_LOST: Final = Truncation(part="session", kept=0, dropped=None)
_RUNS_PROGRAMS: Final = frozenset({"python", "shell"})

_mint = claim_seal(CageOutput)
_spent: Final[weakref.WeakSet[ApprovedCall]] = weakref.WeakSet()
_spending: Final = threading.Lock()


@dataclass(slots=True)
class Stopwatch:
    """How long a call has held a cage, also when it ends without a report: cancelled, or refused on its way out."""

    began: float | None = None

    def start(self) -> None:
        self.began = time.monotonic()

    def seconds(self) -> float:
        """0 for a call that never had a cage."""
        return 0.0 if self.began is None else time.monotonic() - self.began


@dataclass(slots=True, kw_only=True)
class _Run:
    """One execution, shared by the loop and its worker thread."""

    approved: ApprovedCall
    means: Means
    session: str
    on_output: OnOutput | None
    on_record: OnRecord
    stopwatch: Stopwatch
    exchange: Exchange
    lock: threading.Lock = field(default_factory=threading.Lock)
    cage: LiveCage | None = None
    cancelled: bool = False

    def hold(self, cage: LiveCage) -> bool:
        """Whether the call is still wanted now that it has a cage."""
        with self.lock:
            self.cage = cage
            if not self.cancelled:
                self.stopwatch.start()
            return not self.cancelled

    def cancel(self) -> None:
        with self.lock:
            self.cancelled = True
            cage = self.cage
        if cage is not None:
            cage.kill()
        else:
            self.means.look_again()


async def execute(
    approved: ApprovedCall,
    *,
    means: Means,
    session: str,
    on_output: OnOutput | None = None,
    on_record: OnRecord = lambda record: None,
    stopwatch: Stopwatch | None = None,
    exchange: Exchange | None = None,
) -> CageOutput:
    """The output of the call, whatever it was. `on_output` gets (`stdout` or `stderr`, bytes) as they come, from a
    worker thread. `session` is whose call it is: with `session` isolation it meets what earlier ones left.
    `on_record` is told, from the broker's thread, of each connection through a portal that is over; of all of them by
    the time this returns. `stopwatch` is started when the call gets its cage. `exchange` has a file ready for the
    workspace when the call ended well and is to write one; it is the caller's to commit or discard.

    Raises Refused when nothing ran: `busy`, `unavailable`, or `approval_required` for an approval that expired or was
    used. Cancelling the task kills the cage before the cancellation goes on.
    """
    require(approved, ApprovedCall)
    _spend(approved)
    if approved.expires_at is not None and time.monotonic() > approved.expires_at:
        raise Refused(
            Refusal(status="approval_required", code="approval.expired", message="the approval has expired",
                    hint="Ask again.", retryable=True)
        )  # fmt: skip
    run = _Run(
        approved=approved, means=means, session=session, on_output=on_output, on_record=on_record,
        stopwatch=stopwatch or Stopwatch(), exchange=exchange or Exchange(means.workspaces, session),
    )  # fmt: skip
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[CageOutput] = loop.create_future()
    means.workers.run(lambda: _work(run, loop, ended))
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        await _end(run, ended)
        raise


async def _end(run: _Run, ended: asyncio.Future[CageOutput]) -> None:
    """Kills the cage and waits until the worker has given it back, however often this task is cancelled meanwhile."""
    loop = asyncio.get_running_loop()
    until = loop.time() + HOST_GRACE_S
    pending: set[asyncio.Future[Any]] = {ended, asyncio.ensure_future(asyncio.to_thread(run.cancel))}
    while pending and loop.time() < until:
        with contextlib.suppress(asyncio.CancelledError):
            _, pending = await asyncio.wait(pending, timeout=until - loop.time())


def _spend(approved: ApprovedCall) -> None:
    """An approval, asked for or not, is for one run: whoever kept the stage's output cannot run it again."""
    with _spending:
        if approved not in _spent:
            _spent.add(approved)
            return
    raise Refused(
        Refusal(status="approval_required", code="approval.used", message="the approval was used already",
                hint="Send the call again.", retryable=True)
    )  # fmt: skip


def _work(run: _Run, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[CageOutput]) -> None:
    """The worker thread's outermost frame."""
    output: CageOutput | None = None
    problem: BaseException | None = None
    try:
        output = _execute(run)
    except BaseException as error:  # noqa: BLE001 - handed to the waiting task, which raises it
        problem = error

    def settle() -> None:
        if ended.done():
            return
        if problem is not None:
            ended.set_exception(problem)
            ended.exception()  # a cancelled caller may never look
        else:
            assert output is not None
            ended.set_result(output)

    with contextlib.suppress(RuntimeError):  # the runtime closed without waiting any longer: nobody listens
        loop.call_soon_threadsafe(settle)


def _execute(run: _Run) -> CageOutput:
    authorized = run.approved.screened.authorized
    queued = time.monotonic()
    try:
        run.exchange.fetch(authorized)
        changing = run.means.changing(authorized, lambda: run.cancelled)
        opened = run.means.portals(authorized, run.session)
        cage, lost = run.means.take(authorized, run.session, lambda: run.cancelled, internet=bool(opened))
    except PoolBusy:
        raise _unready("busy", "pool.busy", "every sandbox is in use", None) from None
    except PoolClosed:
        raise _unready("unavailable", "runtime.closed", "the runtime is shutting down", None) from None
    except ImageError as error:
        raise _unready("unavailable", "image.missing", "the sandbox image is not there", str(error)) from error
    except ResourceError as error:
        raise Refused(resource_unusable(error)) from error
    except EngineError as error:
        raise _unready("unavailable", error.code, "no sandbox could be started", str(error)) from error
    queue_s = time.monotonic() - queued
    try:
        if not run.hold(cage):
            raise _unready("cancelled", "call.cancelled", "the call was cancelled", None)
        order = _order(run, cage.recipe, opened)
        report, denied = _call(run, cage, order, opened)
        state = cage.state() if report.broken is not None else None
        if report.broken is not None:
            cage.kill()
    finally:
        run.means.give_back(cage)
    refusal = classify(report, state, wall_s=order.wall_s)
    making = None if changing is None else partial(_make, run, changing, cage.recipe, order.wall_s - report.wall_s)
    return _output(run, report, refusal, queue_s, lost=lost, denied=denied, making=making)


def _make(
    run: _Run, changing: Changing, recipe: CageRecipe, seconds: float, data: JSON
) -> tuple[JSON, Refusal | None]:
    """What a cage that is gone proposed for a database, made by the host or refused; on record either way."""
    seen = {file.name: file.sha256 for file in recipe.spec.data}
    try:
        return freeze(changing.make(data, seen, max(LEAST_CHANGE_S, seconds), run.on_record)), None
    except Refused as caught:
        return None, caught.refusal
    except ResourceError as error:
        return None, resource_unusable(error)


def _call(
    run: _Run, cage: LiveCage, order: CallOrder, opened: tuple[Opened, ...]
) -> tuple[CageReport, tuple[Connection, ...]]:
    """The call in its cage, its portals open meanwhile. Every connection is over when this returns. What was refused is
    the second."""
    if not opened:
        return cage.call(order, run.on_output), ()
    try:
        passage = run.means.passage(opened, run.on_record)
    except PoolClosed:
        raise _unready("unavailable", "runtime.closed", "the runtime is shutting down", None) from None
    denied: tuple[Connection, ...] = ()
    try:
        report = cage.call(order, run.on_output, lambda portal, stream: passage.connect(portal.name, stream))
    finally:
        denied = passage.end()
    return report, denied


def _order(run: _Run, recipe: CageRecipe, opened: tuple[Opened, ...]) -> CallOrder:
    authorized = run.approved.screened.authorized
    payload = {
        "action": "call",
        "tool": run.means.tool(authorized, recipe),
        "arguments": thaw(authorized.valid.arguments),
        "context": {**run.means.context(authorized, run.session, opened), "workspace": run.exchange.context},
    }
    return CallOrder(
        payload=payload,
        files=(*authorized.valid.call.files, *run.exchange.files),
        wall_s=authorized.sandbox.wall_s,
        output_bytes=max(OUTPUT_FLOOD, authorized.output.max_bytes),
        result_bytes=max(RESULT_BYTES, authorized.output.max_bytes),
        portals=tuple(item.portal for item in opened),
    )


def _output(
    run: _Run,
    report: CageReport,
    refusal: Refusal | None,
    queue_s: float,
    *,
    lost: bool,
    denied: tuple[Connection, ...] = (),
    making: Callable[[JSON], tuple[JSON, Refusal | None]] | None = None,
) -> CageOutput:
    authorized = run.approved.screened.authorized
    data, failure = None, None
    if refusal is None or (refusal.code == "program.exit" and report.result):
        data, failure = _read_result(report, authorized)
    began = time.monotonic()
    if making is not None and refusal is None and failure is None:
        data, failure = making(data)
    made_s = time.monotonic() - began
    judged = _with_denials(failure or refusal, denied) or run.exchange.stage(report.files)
    artifacts = _artifacts(report, (*authorized.valid.call.files, *run.exchange.files), run.exchange)
    return _mint(
        approved=run.approved,
        refusal=judged,
        data=data if judged is None else None,
        stdout=report.stdout,
        stderr=report.stderr,
        exit_code=exit_code(report),
        artifacts=artifacts,
        truncated=(*_truncated(report), *([_SESSION_LOST] if lost else [])),
        usage=Usage(
            queue_s=queue_s,
            wall_s=report.wall_s + made_s,
            cpu_s=report.cpu_s,
            memory_peak_bytes=report.memory_peak_bytes,
            bytes_out=sum(report.written.values()) + sum(item.size for item in artifacts),
        ),
        private="reads_private" in authorized.valid.declaration.effects,
        egress_denied=len(denied),
    )


def _with_denials(refusal: Refusal | None, denied: tuple[Connection, ...]) -> Refusal | None:
    """A call that failed is told, besides its own hint, what a portal refused: most likely that is why."""
    if refusal is None or not denied:
        return refusal
    told = dict.fromkeys(f"A connection was refused: {item.message} ({item.reason})." for item in denied[:3])
    return replace(refusal, hint=" ".join([*told, *([refusal.hint] if refusal.hint else [])]))


def _read_result(report: CageReport, authorized: AuthorizedCall) -> tuple[JSON, Refusal | None]:
    """The body's answer. Fields beyond success, data, error, code and hint are ignored."""
    runs_programs = bool(_RUNS_PROGRAMS & set(authorized.valid.declaration.kinds.values()))
    if not report.result and runs_programs:
        return None, None  # the program ended itself; its exit code has been judged
    try:
        answer = json.loads(report.result, parse_constant=_no_constant)
        success, error = answer["success"], answer.get("error")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None, _failure("tool.no_result", "the tool ended without a readable result", None)
    if success is True:
        data = answer.get("data")
        if _deeper_than(data, RESULT_DEPTH):
            return None, _failure("result.too_deep", "the tool's result is nested too deeply", "Return a flatter one.")
        return freeze(data), None
    if runs_programs and error is None:
        return None, None
    return None, _failure(_code(answer.get("code")), str(error)[:MAX_TOOL_TEXT], answer.get("hint"))


def _deeper_than(value: object, levels: int) -> bool:
    """Not recursive: what the decoder could still read may be more than later stages' stacks can hold."""
    level = [value]
    while level and levels:
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        levels -= 1
    return any(isinstance(item, dict | list) for item in level)


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _failure(code: str, message: str, hint: object) -> Refusal:
    text = hint[:MAX_TOOL_TEXT] if isinstance(hint, str) else None
    return Refusal(status="tool_error", code=code, message=message, hint=text, retryable=code in _FOR_NOW)


def _code(claimed: object) -> str:
    """A tool's own code, if it is shaped like one: it is shown, never acted upon."""
    if not isinstance(claimed, str) or not _CODE.fullmatch(claimed):
        return "tool.failed"
    return claimed if claimed.split(".")[0] in _CAGE_FAMILIES else f"tool.{claimed}"


def _artifacts(report: CageReport, given: tuple[InputFile, ...], exchange: Exchange) -> tuple[Artifact, ...]:
    """What came out, but for files that only went in, and those that belong to the workspace. Names are cleaned by the
    next stage."""
    attached = {item.name: item.content for item in given}
    made = []
    for item in report.files:
        name = item.name.decode("utf-8", "replace")
        if attached.get(name) != item.content and not exchange.brought_back(item):
            digest = hashlib.sha256(item.content).hexdigest()
            made.append(
                Artifact(name=name, media_type="application/octet-stream", size=len(item.content), sha256=digest,
                         content=item.content)
            )  # fmt: skip
    return tuple(made)


def _truncated(report: CageReport) -> tuple[Truncation, ...]:
    found = [
        Truncation(part=part, kept=len(kept), dropped=max(0, report.written.get(stream, 0) - len(kept)) or None)
        for stream, part, kept in ((1, "stdout", report.stdout), (2, "stderr", report.stderr))
        if report.written.get(stream, 0) > len(kept)
    ]
    if report.files_found > len(report.files):
        found.append(
            Truncation(part="artifacts", kept=len(report.files), dropped=report.files_found - len(report.files))
        )
    return tuple(found)


def resource_unusable(error: ResourceError) -> Refusal:
    """What a call is told whose database, server or secret is not to be had now."""
    return _unready("unavailable", "resource.unusable", "a resource cannot be used now", str(error)).refusal


def _unready(status: Any, code: str, message: str, operator: str | None) -> Refused:
    hint = None if status == "cancelled" else "Nothing is wrong with the call; try it again later."
    return Refused(Refusal(status=status, code=code, message=message, hint=hint, operator=operator, retryable=True))
