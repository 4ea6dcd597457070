"""Runtime and Session: the stages of the line called in order, and nothing that decides.

The Runtime owns one loop thread, the audit log and the means of execution. Every way in (the library call, the CLI, a
tool's own `execute` inside a session) ends in `Runtime._pass`, the one choke point. A refused or failed call is a
`ToolResult`; exceptions are for mistakes of the developer and the operator, and for a runtime that is closed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import os
import secrets
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from toolcage.audit.log import AuditLog
from toolcage.audit.record import Event
from toolcage.cage import sweep
from toolcage.cage.live import Owner
from toolcage.cage.pool import PoolTerms
from toolcage.errors import AuditError, Refused, ResourceError, RuntimeClosedError, UsageError
from toolcage.line.approve import Approver, approve
from toolcage.line.authorize import authorize
from toolcage.line.clean import clean
from toolcage.line.execute import execute
from toolcage.line.live_output import OnText, live_output
from toolcage.line.means import Means
from toolcage.line.parse import parse
from toolcage.line.result import ToolResult, refused, result
from toolcage.line.screen import screen
from toolcage.line.trail import Trail, unwritable
from toolcage.line.validate import Validator, compile_schema, validate
from toolcage.policy.load import load_roles
from toolcage.policy.model import Role
from toolcage.resources import Resources, load_resources
from toolcage.state import default_state_dir
from toolcage.tools import base
from toolcage.tools.registry import ALIASES, ToolRegistry, builtin_tools
from toolcage.types import (
    AuthorizedCall,
    Refusal,
    SandboxTerms,
    Status,
    ToolDeclaration,
    Usage,
    ValidCall,
)

if TYPE_CHECKING:
    from toolcage.facts.sql_text import Dialect

RawCall = bytes | str | Mapping[str, object]
ONE_SHOT: Final = PoolTerms(min_idle=0)
CLOSE_S: Final = 15.0
_CLOSED: Final = "the runtime is closed; make a new one"
_CLOSED_DURING: Final = "the runtime was closed during the call"
_T = TypeVar("_T")
_current: contextvars.ContextVar[Session | None] = contextvars.ContextVar("toolcage_session", default=None)


class CancelToken:
    """Cancels a call from any thread. One token may be given to many calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._callbacks: dict[object, Callable[[], object]] = {}

    def cancel(self) -> None:
        """Ends the calls that hold this token, now and later: each answers `cancelled`."""
        with self._lock:
            self._cancelled = True
            callbacks, self._callbacks = self._callbacks, {}
        for callback in callbacks.values():
            callback()

    @contextlib.contextmanager
    def watched(self, callback: Callable[[], object]) -> Iterator[None]:
        """Inside the block, `callback` is called once when the token is cancelled; at once when it is already."""
        key = object()
        with self._lock:
            cancelled = self._cancelled
            if not cancelled:
                self._callbacks[key] = callback
        if cancelled:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.pop(key, None)


class Runtime:
    """One or more roles, their tools and resources, and the sandbox. Use it with `with`, or call `close`."""

    def __init__(
        self,
        policies: Sequence[Path],
        *,
        resources: Resources,
        tools: Iterable[base.Tool | str | os.PathLike[str]] = (),
        approver: Approver | None = None,
        state_dir: Path | None = None,
        audit_key: bytes | None = None,
        pool: PoolTerms | None = None,
    ) -> None:
        """See `from_files`, which is the usual way to make one."""
        self._id = secrets.token_hex(16)
        self._state_dir = state_dir or default_state_dir()
        self._resources = resources
        self._approver = approver
        self._terms = pool or PoolTerms()
        self._closing = contextlib.ExitStack()
        self._begun = False
        self._closed = False
        self._gate = threading.Lock()
        self._validators: dict[str, tuple[ToolDeclaration, Validator]] = {}
        try:
            self._open(policies, tools, audit_key)
        except BaseException:
            self._closing.close()
            raise

    def _open(
        self,
        policies: Sequence[Path],
        tools: Iterable[base.Tool | str | os.PathLike[str]],
        audit_key: bytes | None,
    ) -> None:
        self._log = AuditLog.open(self._state_dir / "audit", runtime_id=self._id, key=audit_key)
        self._closing.callback(self._log.close)
        self._closing.callback(self._note_end)
        self._closing.enter_context(sweep.alive(self._state_dir, self._id))
        owner = Owner(host=sweep.host_id(self._state_dir), runtime=self._id)
        self._registry = ToolRegistry(describer=self._describe, lock_folder=self._state_dir)
        self._means = Means(
            registry=self._registry, resources=self._resources, state_dir=self._state_dir, owner=owner,
            terms=self._terms, on_problem=self._note_problem,
        )  # fmt: skip
        self._closing.callback(self._means.close)
        for tool in tools:
            if isinstance(tool, base.Tool):
                self._registry.register(tool)
            else:
                self._registry.load(tool)
        self._roles = load_roles(policies, self._declarations())
        _check_resources(self._roles, self._resources)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="toolcage-loop")
        self._thread.start()
        self._closing.callback(self._stop_loop)
        digests = MappingProxyType({role.name: role.digest for role in self._roles.values()})
        self._log.append(Event(type="runtime_start", detail=MappingProxyType({"policies": digests}))).wait()
        self._begun = True
        base._call_through = _call_in_current_session

    @classmethod
    def from_files(
        cls,
        policy: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        resources: str | os.PathLike[str] | None = None,
        tools: Iterable[base.Tool | str | os.PathLike[str]] = (),
        approver: Approver | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        audit_key: bytes | None = None,
        pool: PoolTerms | None = None,
    ) -> Runtime:
        """A runtime for the roles in `policy` (a file, a folder, or several) and the resources in `resources`.

        `tools` are tools that your code imported, or paths of files that the host must not import: those are described
        and run only in cages. `approver` is asked where a policy says `ask`. `audit_key` (at least 16 bytes) makes
        the audit log's records unforgeable for whoever does not have it. `pool` sizes the warm pool.

        Raises: PolicyError, ResourceError, DeclarationError, AuditError; EngineError and ImageError only when a
        stranger's file must be described. A missing engine is otherwise no error here: calls are `unavailable`.
        """
        paths = [policy] if isinstance(policy, str | os.PathLike) else list(policy)
        return cls(
            [Path(path) for path in paths],
            resources=Resources.empty() if resources is None else load_resources(Path(resources)),
            tools=tools,
            approver=approver,
            state_dir=None if state_dir is None else Path(state_dir),
            audit_key=audit_key,
            pool=pool,
        )

    # what users hold

    def session(self, request: str = "", *, role: str | None = None) -> Session:
        """A conversation of one agent: its role (the only one if there is one) and what the user asked for.

        Raises UsageError for a role that is not loaded, RuntimeClosedError.
        """
        self._check_open()
        if role is None and len(self._roles) == 1:
            role = next(iter(self._roles))
        if role is None or role not in self._roles:
            raise UsageError(f"no role {role!r} is loaded; choose one of: {', '.join(sorted(self._roles))}")
        found = self._roles[role]
        if self._terms.min_idle:
            terms = {grant.sandbox for grant in found.grants.values() if not grant.resources}
            threading.Thread(target=self._warm, args=(terms,), daemon=True, name="toolcage-warm").start()
        return Session(self, found, request)

    def _warm(self, terms: Iterable[SandboxTerms]) -> None:
        for item in terms:
            self._means.warm(item)

    def stats(self) -> Mapping[str, int]:
        """The pool's counts: idle, coming, running, waiting, and created, removed, failed since the start."""
        return self._means.stats()

    @property
    def audit_path(self) -> Path:
        """The audit log's current file."""
        return self._log.path

    def export_audit_head(self, path: str | os.PathLike[str]) -> None:
        """Writes the log's head, to be kept where the log's owner cannot change it: it makes truncation detectable."""
        self._log.export_head(Path(path))

    def close(self) -> None:
        """Ends running calls, removes every cage, closes the audit log. A second call does nothing."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
        self._closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # the line

    async def _pass(
        self, session: Session, raw: RawCall, files: Mapping[str, bytes] | None, on_output: OnText | None
    ) -> ToolResult:
        """The choke point: every call, whoever makes it, passes here."""
        started = time.monotonic()
        trail = Trail(
            self._log, call_id=secrets.token_hex(12), session=session.id, role=session.role.name,
            policy_digest=session.role.digest,
        )  # fmt: skip
        refusal, clean_output = None, None
        try:
            authorized = self._judge(session.role, raw, files, trail)
            screened = screen(authorized)
            approved = await approve(screened, session=session.id, approver=self._approver)
            trail.reached(approved)
            await trail.intend()
            async with live_output(authorized.output, on_output) as stream:
                output = await execute(approved, means=self._means, on_output=stream)
            clean_output = clean(output)
            refusal = output.refusal
        except Refused as caught:
            refusal = caught.refusal
        except asyncio.CancelledError:
            await self._end(trail, _CANCELLED, Usage(), started)
            raise
        except Exception as error:  # noqa: BLE001 - the outermost frame of the line: an unforeseen error refuses
            refusal = _internal(error)
        usage = clean_output.output.usage if clean_output is not None else Usage()
        audit_id, unrecorded = await self._end(trail, refusal, usage, started)
        duration_ms = (time.monotonic() - started) * 1000
        if clean_output is not None and unrecorded is None:
            return result(clean_output, audit_id=audit_id or "", duration_ms=duration_ms)
        told = unrecorded if clean_output is not None else refusal
        assert told is not None
        return refused(told, call_id=trail.call_id, audit_id=audit_id, duration_ms=duration_ms)

    def _judge(
        self, role: Role, raw: RawCall, files: Mapping[str, bytes] | None, trail: Trail | None = None
    ) -> AuthorizedCall:
        """Parse, validate, authorize: what needs no person and runs nothing."""
        call = parse(raw, files=files, aliases=ALIASES)
        if trail is not None:
            trail.reached(call)
        view = {name: grant.declaration for name, grant in role.grants.items()}
        valid: ValidCall = validate(call, view=view, validator=self._validator, dialect=self._dialect)
        if trail is not None:
            trail.reached(valid)
        authorized = authorize(valid, role=role)
        if trail is not None:
            trail.reached(authorized)
        return authorized

    async def _end(
        self, trail: Trail, refusal: Refusal | None, usage: Usage, started: float
    ) -> tuple[str | None, Refusal | None]:
        """The closing record's id, or the refusal that its failure is."""
        measured = Usage(
            queue_s=usage.queue_s, wall_s=usage.wall_s, cpu_s=usage.cpu_s, memory_peak_bytes=usage.memory_peak_bytes,
            bytes_out=usage.bytes_out, duration_ms=(time.monotonic() - started) * 1000,
        )  # fmt: skip
        try:
            return await trail.close(refusal, measured), None
        except (AuditError, UsageError) as error:
            return None, unwritable("the call ran and its result is withheld", error)

    # inside

    def _submit(self, coroutine: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        """Hands over to the loop thread. Under the gate, so that nothing is handed over behind the loop's end."""
        with self._gate:
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        coroutine.close()
        raise RuntimeClosedError(_CLOSED)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeClosedError(_CLOSED)

    def _check_may_wait(self) -> None:
        self._check_open()
        if threading.current_thread() is self._thread:
            raise UsageError("a call that waits was made inside the runtime's own loop, for instance by an async"
                             " approver; await acall there")  # fmt: skip

    def _declarations(self) -> Mapping[str, ToolDeclaration]:
        own = {name: self._registry.get_tool(name) for name in self._registry.list_tools()}
        return {**declared_tools(), **{name: tool.declaration for name, tool in own.items() if tool is not None}}

    def _describe(self, shipment: Any) -> Mapping[str, Any]:
        return self._means.describe(shipment)

    def _validator(self, declaration: ToolDeclaration) -> Validator:
        held = self._validators.get(declaration.name)
        if held is None or held[0] is not declaration:
            held = self._validators[declaration.name] = (declaration, compile_schema(declaration))
        return held[1]

    def _dialect(self, name: str) -> Dialect:
        known = name in self._resources.databases
        return self._resources.dialect(name) if known else "sqlite"  # an unknown name is the policy's to refuse

    def _note_problem(self, text: str) -> None:
        with contextlib.suppress(AuditError):
            self._log.append(Event(type="pool", note=text[:2000]))

    def _note_end(self) -> None:
        """The last record, behind the closings of the calls that `close` ended."""
        if not self._begun:
            return
        with contextlib.suppress(AuditError):
            self._log.append(Event(type="runtime_end"))

    def _stop_loop(self) -> None:
        """Cancels what runs, waits until each call has closed its record, then ends the loop's thread."""

        async def drain() -> None:
            running = asyncio.all_tasks() - {asyncio.current_task()}
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running, timeout=CLOSE_S)

        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(drain(), self._loop).result(CLOSE_S + 5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_S)
        if not self._thread.is_alive():
            self._loop.close()


class Session:
    """One agent conversation. Calls may come from any thread, Jupyter and a running event loop included."""

    def __init__(self, runtime: Runtime, role: Role, request: str) -> None:
        self.id: Final = secrets.token_hex(12)
        self.role: Final = role
        self._runtime = runtime
        self._said = [request] if request else []
        self._tokens: list[contextvars.Token[Session | None]] = []

    def tools(self) -> tuple[ToolDeclaration, ...]:
        """The tools that this role has, by name: what a model may be shown."""
        return tuple(grant.declaration for _, grant in sorted(self.role.grants.items()))

    def user_said(self, text: str) -> None:
        """Adds a turn of the user."""
        self._said.append(text)

    def call(
        self,
        tool: str,
        arguments: Mapping[str, object] | None = None,
        *,
        files: Mapping[str, bytes] | None = None,
        on_output: OnText | None = None,
        cancel: CancelToken | None = None,
    ) -> ToolResult:
        """Takes one call through the line and waits for its result. Never raises for what the call does.

        `files` are attached (relative name → bytes). `on_output` gets (`stdout` or `stderr`, cleaned text) while it
        runs, from another thread; one that blocks or raises loses only its own view. Ctrl-C ends the call before it is
        raised here. Raises RuntimeClosedError.
        """
        raw = {"tool": tool, "arguments": arguments or {}}
        return self.call_raw(raw, files=files, on_output=on_output, cancel=cancel)

    def call_raw(
        self,
        raw: RawCall,
        *,
        files: Mapping[str, bytes] | None = None,
        on_output: OnText | None = None,
        cancel: CancelToken | None = None,
    ) -> ToolResult:
        """The same for a call as a model wrote it: JSON bytes or text, or a mapping, with `tool` and `arguments`."""
        self._runtime._check_may_wait()
        ended = threading.Event()
        token = cancel or CancelToken()
        future = self._runtime._submit(self._answer(raw, files, on_output, token, ended))
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise RuntimeClosedError(_CLOSED_DURING) from None
        except BaseException:
            token.cancel()
            ended.wait(CLOSE_S)
            raise

    async def acall(
        self,
        tool: str,
        arguments: Mapping[str, object] | None = None,
        *,
        files: Mapping[str, bytes] | None = None,
        on_output: OnText | None = None,
        cancel: CancelToken | None = None,
    ) -> ToolResult:
        """`call` for a running event loop. Cancelling the task kills the call's cage."""
        self._runtime._check_open()
        raw = {"tool": tool, "arguments": arguments or {}}
        answer = self._answer(raw, files, on_output, cancel or CancelToken(), threading.Event())
        future = self._runtime._submit(answer)
        waiting = asyncio.wrap_future(future)
        try:
            await asyncio.wait([waiting])
        except asyncio.CancelledError:
            waiting.cancel()  # the caller's task, not the call: the call is cancelled with it
            raise
        if waiting.cancelled():
            raise RuntimeClosedError(_CLOSED_DURING)
        return waiting.result()

    def map(self, calls: Iterable[tuple[str, Mapping[str, object]]], *, max_concurrent: int = 8) -> list[ToolResult]:
        """Many calls with bounded concurrency, results in the order of `calls`; a failure loses none of the others."""
        self._runtime._check_may_wait()

        async def run() -> list[ToolResult]:
            gate = asyncio.Semaphore(max_concurrent)

            async def one(tool: str, arguments: Mapping[str, object]) -> ToolResult:
                async with gate:
                    raw = {"tool": tool, "arguments": arguments}
                    return await self._answer(raw, None, None, CancelToken(), threading.Event())

            return list(await asyncio.gather(*(one(tool, arguments) for tool, arguments in calls)))

        future = self._runtime._submit(run())
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise RuntimeClosedError(_CLOSED_DURING) from None
        except BaseException:
            future.cancel()
            raise

    def __enter__(self) -> Self:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._tokens.pop())

    async def _answer(
        self,
        raw: RawCall,
        files: Mapping[str, bytes] | None,
        on_output: OnText | None,
        cancel: CancelToken,
        ended: threading.Event,
    ) -> ToolResult:
        """One pass through the line. `cancel` ends it with a result; cancelling this task ends it with CancelledError.
        Either way the cage is dead and the record closed when this returns, and `ended` is set then."""
        loop = asyncio.get_running_loop()
        passing = asyncio.ensure_future(self._runtime._pass(self, raw, files, on_output))

        def end() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed, so the call has ended
                loop.call_soon_threadsafe(passing.cancel)

        try:
            await asyncio.sleep(0)  # the call begins, so that it is recorded even when it is cancelled already
            with cancel.watched(end):
                await asyncio.wait([passing])
        except asyncio.CancelledError:
            passing.cancel()
            await asyncio.wait([passing])
            raise
        finally:
            ended.set()
        if passing.cancelled():
            return refused(_CANCELLED, call_id=None, audit_id=None, duration_ms=0.0)
        return passing.result()


def declared_tools() -> Mapping[str, ToolDeclaration]:
    """The built-in tools' declarations by name."""
    return {name: tool.declaration for name, tool in builtin_tools().items()}


def judge_for(
    role: Role, declarations: Mapping[str, ToolDeclaration], resources: Resources | None = None
) -> Callable[[str, Mapping[str, Any]], tuple[Status, str]]:
    """A function that takes a call through parse to screen and says how it would end, running nothing.

    It answers `ok` for a call that would run and `approval_required` for one that would ask.
    """
    known = resources or Resources.empty()
    validators = {name: compile_schema(declaration) for name, declaration in declarations.items()}

    def judge(tool: str, arguments: Mapping[str, Any]) -> tuple[Status, str]:
        try:
            call = parse({"tool": tool, "arguments": arguments}, aliases=ALIASES)
            valid = validate(
                call,
                view={name: grant.declaration for name, grant in role.grants.items()},
                validator=lambda declaration: validators[declaration.name],
                dialect=lambda name: known.dialect(name) if name in known.databases else "sqlite",
            )
            authorized = authorize(valid, role=role)
            screen(authorized)
        except Refused as caught:
            return caught.refusal.status, caught.refusal.code
        if authorized.decision.effect == "ask":
            return "approval_required", "approval.required"
        return "ok", "ok"

    return judge


_CANCELLED: Final = Refusal(status="cancelled", code="call.cancelled", message="the call was cancelled", retryable=True)


def _internal(error: Exception) -> Refusal:
    return Refusal(
        status="unavailable", code="internal.error", message="the runtime could not complete the call",
        hint="Nothing is wrong with the call; the operator's log says more.",
        operator=f"{type(error).__name__}: {error}"[:2000],
    )  # fmt: skip


def _check_resources(roles: Mapping[str, Role], resources: Resources) -> None:
    """A role that names a resource which is not configured is a mistake to be told at start."""
    for role in roles.values():
        for kind, name in sorted(role.resource_names()):
            if kind == "database" and name not in resources.databases:
                known = ", ".join(sorted(resources.databases)) or "none"
                raise ResourceError(
                    f"{role.source}: role {role.name} names the database {name}, which the resources file does not"
                    f" have (it has: {known}); add it there and pass that file as `resources`"
                )


def _call_in_current_session(tool: base.Tool, arguments: Mapping[str, Any], is_async: bool) -> Any:
    """What a tool's `execute` does on the host: the line of the current session, `denied` without one."""
    session = _current.get()
    if session is None:
        denied = ToolResult(
            False, None, f"{tool.name} was called outside a session",
            status="denied", code="session.none", hint="Call it inside `with runtime.session(...)`.",
        )  # fmt: skip
        return _ready(denied) if is_async else denied
    return session.acall(tool.name, arguments) if is_async else session.call(tool.name, arguments)


async def _ready(value: _T) -> _T:
    return value
