"""Runtime and Session: the stages of the line called in order, and nothing that decides.

The Runtime owns one loop thread, the audit log and the means of execution. Every way in (the library call, the CLI, a
tool's own `execute` inside a session) ends in `Runtime._pass`, the one choke point. A refused or failed call is a
`ToolResult`; exceptions are for mistakes of the developer and the operator, and for a runtime that is closed.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import contextvars
import logging
import os
import secrets
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from toolcage.audit.log import AuditLog
from toolcage.audit.record import Event
from toolcage.audit.report import one_line
from toolcage.cage import sweep
from toolcage.cage.images import ImageLock
from toolcage.cage.live import Owner
from toolcage.cage.pool import PoolTerms
from toolcage.errors import AuditError, ImageError, PolicyError, Refused, ResourceError, RuntimeClosedError, UsageError
from toolcage.line.approve import Approver, Edited, approve
from toolcage.line.clean import clean
from toolcage.line.execute import Stopwatch, execute
from toolcage.line.judge import closed_role, judge, shadow_decision
from toolcage.line.ledger import Ledger
from toolcage.line.live_output import OnText, live_output
from toolcage.line.means import Means
from toolcage.line.parse import parse
from toolcage.line.public_arguments import check_call, check_paths, check_request, check_runtime, check_tools
from toolcage.line.result import ToolResult, refused, result
from toolcage.line.screen import screen
from toolcage.line.session_memory import SessionMemory
from toolcage.line.shapes import plain_call
from toolcage.line.trail import Trail, unwritable
from toolcage.line.validate import Validator, compile_schema
from toolcage.policy.limits import Limit
from toolcage.policy.load import load_roles
from toolcage.policy.model import Role, Situation
from toolcage.policy.narrow import narrowed
from toolcage.policy.origin import fields_of
from toolcage.resources import Resources, load_resources
from toolcage.state import default_state_dir
from toolcage.tools import base
from toolcage.tools.registry import ALIASES, ToolRegistry, builtin_tools
from toolcage.types import (
    JSON,
    AuthorizedCall,
    CageOutput,
    CleanOutput,
    Refusal,
    SandboxTerms,
    Status,
    ToolCall,
    ToolDeclaration,
    Usage,
)

if TYPE_CHECKING:
    from toolcage.facts.sql_text import Dialect

RawCall = bytes | str | Mapping[str, object]
ONE_SHOT: Final = PoolTerms(min_idle=0)
CLOSE_S: Final = 15.0
MOST_EDITS: Final = 3
_CLOSED: Final = "the runtime is closed; make a new one"
_CLOSED_DURING: Final = "the runtime was closed during the call"
_LOG: Final = logging.getLogger("toolcage")
_open_runtimes: Final[set[Runtime]] = set()
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
        shadow: Sequence[Path] = (),
        accept_tool_changes: bool = False,
    ) -> None:
        """See `from_files`, which is the usual way to make one."""
        check_runtime(approver=approver, audit_key=audit_key)
        offered = check_tools(tools)
        self._id = secrets.token_hex(16)
        self._state_dir = state_dir or default_state_dir()
        self._resources = resources
        self._approver = approver
        self._terms = pool or PoolTerms()
        self._closing = contextlib.ExitStack()
        self._begun = False
        self._closed = False
        self._gate = threading.Lock()
        self._validators: dict[str, tuple[Mapping[str, Any], Validator]] = {}
        self._ledger = Ledger()
        self._policies, self._shadow_policies = tuple(policies), tuple(shadow)
        self._shadow: Mapping[str, Role] | None = None
        self._generation = 0
        try:
            self._open(offered, audit_key, accept_tool_changes)
        except BaseException:
            self._closing.close()
            raise
        _open_runtimes.add(self)

    def _open(
        self, tools: Iterable[base.Tool | str | os.PathLike[str]], audit_key: bytes | None, accept_tool_changes: bool
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
                self._registry.load(tool, accept_changes=accept_tool_changes)
        self._roles, self._shadow = self._read_policies()
        self._sources = _sources(self._roles, self._shadow)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="toolcage-loop")
        self._thread.start()
        self._closing.callback(self._stop_loop)
        self._log.append(Event(type="runtime_start", detail=_digests(self._roles, self._shadow))).wait()
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
        shadow: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        accept_tool_changes: bool = False,
    ) -> Runtime:
        """A runtime for the roles in `policy` (a file, a folder, or several) and the resources in `resources`.

        `tools` are tools that your code imported, or paths of files that the host must not import: those are described
        and run only in cages. `approver` is asked where a policy says `ask`. `audit_key` (at least 16 bytes) makes
        the audit log's records unforgeable for whoever does not have it. `pool` sizes the warm pool. `shadow` names
        policies that only write beside each call in the audit log what they would have said; they never decide.
        `accept_tool_changes` accepts a stranger's file that is not what tools.lock records: pass it once, after review.

        Raises: PolicyError, ResourceError, DeclarationError, AuditError; EngineError and ImageError only when a
        stranger's file must be described. A missing engine is otherwise no error here: calls are `unavailable`.
        """
        check_paths(policy, "policy")
        check_paths(shadow, "shadow")
        if resources is not None and not isinstance(resources, str | os.PathLike):
            raise UsageError(f"resources is of type {type(resources).__name__}; pass the path of resources.yaml")
        return cls(
            _paths(policy),
            resources=Resources.empty() if resources is None else load_resources(Path(resources)),
            tools=tools,
            approver=approver,
            state_dir=None if state_dir is None else Path(state_dir),
            audit_key=audit_key,
            pool=pool,
            shadow=_paths(shadow),
            accept_tool_changes=accept_tool_changes,
        )

    # what users hold

    def session(
        self, request: str = "", *, role: str | None = None, facts: Mapping[str, object] | None = None
    ) -> Session:
        """A conversation of one agent: its role (the only one if there is one) and what the user asked for.

        `facts` are what the host vouches for, such as tenant and user; a policy reads them under `facts:`. Raises
        UsageError for a role that is not loaded and for facts that are not JSON, RuntimeClosedError.
        """
        self._check_open()
        check_request(request, role)
        if role is None and len(self._roles) == 1:
            role = next(iter(self._roles))
        if role is None:
            known = ", ".join(sorted(self._roles))
            raise UsageError(f"several roles are loaded; say which with session(role=...): one of {known}")
        if role not in self._roles:
            raise UsageError(f"no role {role!r} is loaded; choose one of: {', '.join(sorted(self._roles))}")
        try:
            memory = SessionMemory(facts)
        except TypeError as error:
            raise UsageError(f"the session's facts cannot be used: {error}") from error
        found = self._roles[role]
        if self._terms.min_idle:
            terms = {grant.sandbox for grant in found.grants.values() if not grant.resources}
            threading.Thread(target=self._warm, args=(terms,), daemon=True, name="toolcage-warm").start()
        return Session(self, (role,), request, memory)

    def reload(self) -> None:
        """Reads the policy files again and puts them in force at once, for running sessions too.

        All or nothing: when any file has a fault the policies in force stay in force, the audit log gets a note, and
        the error is raised. A call that was decided before keeps its decision, unless it still waits for a person: then
        it is refused. Raises PolicyError, ResourceError, RuntimeClosedError.
        """
        self._check_open()
        try:
            roles, shadow = self._read_policies()
        except (PolicyError, ResourceError) as error:
            self._note_reload(f"the policies were not reloaded, the earlier ones stay in force: {error}", self._roles)
            raise
        with self._gate:
            self._roles, self._shadow, self._sources = roles, shadow, _sources(roles, shadow)
            self._generation += 1
        self._note_reload("the policies were reloaded", roles)

    def _read_policies(self) -> tuple[Mapping[str, Role], Mapping[str, Role] | None]:
        declarations = self._declarations()
        roles = load_roles(self._policies, declarations)
        _check_resources(roles, self._resources)
        problems = [text for role in roles.values() for text in unknown_images(role, self._state_dir)]
        if problems:
            raise PolicyError("\n".join(problems))
        return roles, load_roles(self._shadow_policies, declarations) if self._shadow_policies else None

    def _note_reload(self, text: str, roles: Mapping[str, Role]) -> None:
        self._log.append(Event(type="note", note=text[:4000], detail=_digests(roles, self._shadow))).wait()

    def _role_of(self, lineage: tuple[str, ...]) -> Role:
        """The role in force for a session, under those that delegated to it; the closed one when any of them is
        gone."""
        found = [self._roles.get(name) for name in lineage]
        named = [role for role in found if role is not None]
        if len(named) < len(found):
            return closed_role(lineage[-1])
        try:
            return narrowed(named[-1], named[:-1])
        except ValueError:  # a reload made them contradict each other
            return closed_role(lineage[-1])

    def _warm(self, terms: Iterable[SandboxTerms]) -> None:
        try:
            for item in terms:
                self._means.warm(item)
        except Exception as error:  # noqa: BLE001 - a thread's outermost frame: the calls themselves will say it again
            _LOG.warning("%s", one_line(f"no cages were made ahead: {type(error).__name__}: {error}"))

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
        _open_runtimes.discard(self)
        self._closing.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

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
        for _ in range(MOST_EDITS):
            try:
                return await self._pass_once(session, raw, files, on_output)
            except Edited as edited:
                raw = {"tool": edited.tool, "arguments": edited.arguments}
        return refused(_EDITED_TOO_OFTEN, call_id=None, audit_id=None, duration_ms=0.0)

    async def _pass_once(
        self, session: Session, raw: RawCall, files: Mapping[str, bytes] | None, on_output: OnText | None
    ) -> ToolResult:
        """One call, recorded whole. Raises Edited, its record closed, when the approver wants another one."""
        started = time.monotonic()
        role = session.role
        trail = Trail(
            self._log, call_id=secrets.token_hex(12), session=session.id, role=role.name, policy_digest=role.digest
        )
        refusal, clean_output, edited = None, None, None
        limits: tuple[Limit, ...] = ()
        stopwatch = Stopwatch()
        try:
            authorized = self._judge(session, role, raw, files, trail)
            limits = role.limits_of(authorized.valid.declaration.name)
            screened = screen(authorized)
            approved = await approve(
                screened, session=session.id, approver=self._approver, remembered=session.memory
            )
            if approved.approver is not None and session.role.digest != role.digest:
                raise Refused(_POLICY_CHANGED)
            trail.reached(approved)
            await trail.intend()
            session.memory.used(authorized.valid.declaration.effects)
            async with live_output(authorized.output, on_output) as stream:
                output = await execute(
                    approved, means=self._means, session=session.id, on_output=stream, stopwatch=stopwatch
                )
            cleaned = await _cleaned(output)
            tool = authorized.valid.declaration.name
            fields = fields_of(tool, self._sources)
            if fields or f"tool:{tool}" in self._sources:  # off the loop: it reads the whole result
                await asyncio.to_thread(session.memory.learned, cleaned, fields=fields)
            clean_output, refusal = cleaned, output.refusal
        except Edited as caught:
            refusal, edited = caught.refusal, caught
        except Refused as caught:
            refusal = caught.refusal
        except asyncio.CancelledError:
            used = Usage(wall_s=stopwatch.seconds())
            self._ledger.end(limits, session.root, bytes_out=0, wall_s=used.wall_s)
            await self._end(trail, _CANCELLED, used, started)
            raise
        except Exception as error:  # noqa: BLE001 - the outermost frame of the line: an unforeseen error refuses
            refusal = _internal(error)
        usage = clean_output.output.usage if clean_output is not None else Usage(wall_s=stopwatch.seconds())
        self._ledger.end(limits, session.root, bytes_out=usage.bytes_out, wall_s=usage.wall_s)
        audit_id, unrecorded = await self._end(trail, refusal, usage, started)
        duration_ms = (time.monotonic() - started) * 1000
        if edited is not None and unrecorded is None:
            raise edited
        if clean_output is not None and unrecorded is None:
            return result(clean_output, audit_id=audit_id or "", duration_ms=duration_ms)
        told = unrecorded if clean_output is not None else refusal
        assert told is not None
        if told.status == "unavailable":
            _LOG.warning("%s", one_line(f"{told.code}, call {trail.call_id}: {told.operator or told.message}"))
        return refused(told, call_id=trail.call_id, audit_id=audit_id, duration_ms=duration_ms)

    def _judge(
        self, session: Session, role: Role, raw: RawCall, files: Mapping[str, bytes] | None, trail: Trail
    ) -> AuthorizedCall:
        """Parse, validate, authorize: what needs no person and runs nothing. Counts a call that is let through."""
        call = parse(plain_call(raw), files=files, aliases=ALIASES)
        trail.reached(call)
        if self._shadow is not None:
            trail.shadowed(self._shadow_says(session, role, call))
        limits = role.limits_of(call.tool)
        spent = self._ledger.spent(limits, session.root) if limits else frozenset()
        authorized = judge(
            call, role=role, memory=session.memory, spent=spent, trail=trail, validator=self._validator,
            dialect=self._dialect,
        )  # fmt: skip
        if limits:
            self._ledger.begin(limits, session.root)
        return authorized

    def _shadow_says(self, session: Session, role: Role, call: ToolCall) -> str:
        assert self._shadow is not None
        other = self._shadow.get(role.name) or closed_role(role.name)
        return shadow_decision(
            call, role=other, memory=session.memory, validator=self._validator, dialect=self._dialect
        )

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
        if held is None or held[0] is not declaration.parameters:
            held = self._validators[declaration.name] = (declaration.parameters, compile_schema(declaration))
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

    def __init__(
        self, runtime: Runtime, lineage: tuple[str, ...], request: str, memory: SessionMemory, root: str | None = None
    ) -> None:
        own = secrets.token_hex(12)
        self.id: Final = own if root is None else f"{root}.{own[:8]}"
        self.root: Final = root or own
        self.memory: Final = memory
        self._lineage: Final = lineage
        self._runtime = runtime
        self._role: tuple[int, Role] = (-1, closed_role(lineage[-1]))
        self.user_said(request)
        self._tokens: list[contextvars.Token[Session | None]] = []
        self._ended = False
        self._forgotten = weakref.finalize(self, runtime._means.end_session_soon, self.id)
        self._forgotten.atexit = False

    @property
    def role(self) -> Role:
        """The role as it is in force now, under every role that delegated to this session."""
        generation = self._runtime._generation
        if self._role[0] != generation:
            self._role = (generation, self._runtime._role_of(self._lineage))
        return self._role[1]

    def tools(self) -> tuple[ToolDeclaration, ...]:
        """The tools that this role has, by name: what a model may be shown."""
        return tuple(grant.declaration for _, grant in sorted(self.role.grants.items()))

    def user_said(self, text: str) -> None:
        """Adds a turn of the user: what stands in it counts as said. Never pass on what a tool returned."""
        self.memory.user_said(text)

    def delegate(self, role: str) -> Session:
        """A session of another role that may do only what both may. It shares what this one has heard, read and used
        up; approvals given to this one do not count there.

        Raises UsageError for a role that is not loaded, and for two roles whose terms contradict each other.
        """
        self._check_open()
        if role not in self._runtime._roles:
            known = ", ".join(sorted(self._runtime._roles))
            raise UsageError(f"no role {role!r} is loaded; choose one of: {known}")
        try:
            narrowed(self._runtime._roles[role], [self.role])
        except ValueError as error:
            raise UsageError(f"{role} cannot be delegated to: {error}") from error
        return Session(self._runtime, (*self._lineage, role), "", self.memory, self.root)

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
        """The same for a call as a model wrote it: JSON bytes or text, or a mapping.

        It has exactly one of the shapes of `line/shapes.py`: `tool` and `arguments`, or as the common model APIs give
        it: `name` and `arguments` (also within `function`), or `name` and `input`.
        """
        self._check_open()
        check_call(files, on_output, cancel, CancelToken)
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
        self._check_open()
        check_call(files, on_output, cancel, CancelToken)
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
        """Many calls, each (tool, arguments), at most `max_concurrent` at once; results in the order of `calls`. A
        failure loses none of the others."""
        self._check_open()
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
        self._runtime._check_open()
        self._tokens.append(_current.set(self))
        self._ended = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._tokens.pop())
        if not self._tokens:
            self.close()

    def close(self) -> None:
        """Ends the session and what it keeps between its calls, as the end of its `with` block does; a running call of
        `session` isolation ends as `cancelled`. Later calls raise RuntimeClosedError until it is entered again."""
        self._ended = True
        self._runtime._means.end_session(self.id)

    def _check_open(self) -> None:
        self._runtime._check_open()
        if self._ended:
            raise RuntimeClosedError("the session ended with its `with` block or `close`; enter it again, or make a"
                                     " new one")  # fmt: skip

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


def described_tools(files: Iterable[str | os.PathLike[str]]) -> Mapping[str, ToolDeclaration]:
    """The built-in tools' declarations and those of a stranger's files, each described in a cage and not accepted.

    tools.lock is neither asked nor written: this is for looking at policies. Raises DeclarationError, EngineError,
    ImageError.
    """
    paths = tuple(files)
    if not paths:
        return declared_tools()
    state_dir, runtime_id = default_state_dir(), secrets.token_hex(16)
    with tempfile.TemporaryDirectory() as scratch, sweep.alive(state_dir, runtime_id):
        registry = ToolRegistry(describer=lambda shipment: means.describe(shipment), lock_folder=Path(scratch))
        means = Means(
            registry=registry, resources=Resources.empty(), state_dir=state_dir, terms=ONE_SHOT,
            owner=Owner(host=sweep.host_id(state_dir), runtime=runtime_id),
            on_problem=lambda text: _LOG.info("%s", text),
        )  # fmt: skip
        try:
            found = [tool.declaration for path in paths for tool in registry.load(path)]
        finally:
            means.close()
    return {**declared_tools(), **{declaration.name: declaration for declaration in found}}


def judge_for(
    role: Role, declarations: Mapping[str, ToolDeclaration], resources: Resources | None = None
) -> Callable[..., tuple[Status, str]]:
    """A function that takes a call through parse to screen and says how it would end, running nothing.

    It takes the tool, the arguments and, if it matters, the `Situation` of the session; it answers `ok` for a call that
    would run and `approval_required` for one that would ask.
    """
    known = resources or Resources.empty()
    validators = {name: compile_schema(declaration) for name, declaration in declarations.items()}

    def answer(
        tool: str, arguments: Mapping[str, Any], situation: Situation | None = None
    ) -> tuple[Status, str]:
        try:
            call = parse({"tool": tool, "arguments": arguments}, aliases=ALIASES)
            authorized = judge(
                call,
                role=role,
                memory=_memory_of(situation),
                validator=lambda declaration: validators[declaration.name],
                dialect=lambda name: known.dialect(name) if name in known.databases else "sqlite",
            )
            screen(authorized)
        except Refused as caught:
            return caught.refusal.status, caught.refusal.code
        if authorized.decision.effect == "ask":
            return "approval_required", "approval.required"
        return "ok", "ok"

    return answer


_EMPTY_MEMORY: Final = SessionMemory()


def _memory_of(situation: Situation | None) -> SessionMemory:
    if situation is None:
        return _EMPTY_MEMORY
    memory = SessionMemory(situation.facts)
    for text in situation.said:
        memory.user_said(text)
    for tool, text in situation.seen.items():
        memory.saw(tool, [text], {})
    memory.used(situation.used)
    return memory


_POLICY_CHANGED: Final = Refusal(
    status="denied", code="policy.changed", message="the policy changed while the call waited for approval",
    hint="Send the call again.", retryable=True,
)  # fmt: skip
_EDITED_TOO_OFTEN: Final = Refusal(
    status="rejected", code="approval.edited", message="the call was edited again and again and never approved",
    hint="Ask the user what they want.",
)  # fmt: skip
CLEAN_IN_PLACE_BYTES: Final = 8 * 1024


async def _cleaned(output: CageOutput) -> CleanOutput:
    """Cleans off the loop what may take long there, so that one call's output never holds up another call."""
    texts = [output.stdout, output.stderr, output.data if isinstance(output.data, str) else ""]
    if not isinstance(output.data, Mapping | tuple) and sum(map(len, texts)) <= CLEAN_IN_PLACE_BYTES:
        return clean(output)
    return await asyncio.to_thread(clean, output)


_CANCELLED: Final = Refusal(status="cancelled", code="call.cancelled", message="the call was cancelled", retryable=True)


@atexit.register
def _close_all() -> None:
    """A runtime that nobody closed leaves no cage behind, and its log has an end, when the program ends."""
    for runtime in list(_open_runtimes):
        runtime.close()


def _internal(error: Exception) -> Refusal:
    return Refusal(
        status="unavailable", code="internal.error", message="the runtime could not complete the call",
        hint="Nothing is wrong with the call; the operator's log says more.",
        operator=f"{type(error).__name__}: {error}"[:2000],
    )  # fmt: skip


def _paths(named: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    return [Path(named)] if isinstance(named, str | os.PathLike) else [Path(path) for path in named]


def _sources(roles: Mapping[str, Role], shadow: Mapping[str, Role] | None) -> frozenset[str]:
    """The sources that some rule asks about: results of other tools need not be remembered."""
    return frozenset().union(*(role.origin_sources() for role in [*roles.values(), *(shadow or {}).values()]))


def _digests(roles: Mapping[str, Role], shadow: Mapping[str, Role] | None) -> Mapping[str, JSON]:
    detail: dict[str, JSON] = {"policies": MappingProxyType({role.name: role.digest for role in roles.values()})}
    if shadow is not None:
        detail["shadow"] = MappingProxyType({role.name: role.digest for role in shadow.values()})
    return MappingProxyType(detail)


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


def unknown_images(role: Role, state_dir: Path) -> list[str]:
    """A line for each grant whose image has no recipe and was not built here: every call of it would be unavailable.

    Empty where nothing was built yet or images.lock cannot be trusted: variants are known by it alone, and each call
    says then what is wrong.
    """
    try:
        lock = ImageLock.load(state_dir)
    except ImageError:
        return []
    if not lock.images:
        return []
    return [
        f"{role.source}:{grant.line}: tools.{tool}: there is no image `{grant.sandbox.image}`; write one of"
        f" {', '.join(lock.names())}, or build it with `toolcage images build IMAGE --with NAME==VERSION --as VARIANT`"
        for tool, grant in role.grants.items()
        if grant.sandbox.image not in lock.names()
    ]


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
