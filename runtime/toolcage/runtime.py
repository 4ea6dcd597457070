"""Runtime: the stages of the line called in order, and nothing that decides.

The Runtime owns one loop thread, the audit log and the means of execution. Every way in (the library call, the CLI, a
tool's own `execute` inside a session) ends in `Runtime._pass`, the one choke point. A refused or failed call is a
`ToolResult`; exceptions are for mistakes of the developer and the operator, and for a runtime that is closed.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from toolcage.audit.log import AuditLog
from toolcage.audit.record import Event
from toolcage.audit.report import one_line
from toolcage.cage import sweep
from toolcage.cage.live import Owner
from toolcage.cage.pool import PoolTerms
from toolcage.errors import AuditError, PolicyError, Refused, ResourceError, RuntimeClosedError, UsageError
from toolcage.line.approve import Approver, Edited, approve
from toolcage.line.clean import clean
from toolcage.line.execute import Stopwatch, execute, resource_unusable
from toolcage.line.judge import closed_role, judge, shadow_decision
from toolcage.line.ledger import Ledger
from toolcage.line.live_output import OnText, live_output
from toolcage.line.means import Means
from toolcage.line.parse import parse
from toolcage.line.public_arguments import check_paths, check_request, check_runtime, check_tools
from toolcage.line.release import release
from toolcage.line.result import ToolResult, refused, result
from toolcage.line.screen import screen
from toolcage.line.session_memory import SessionMemory
from toolcage.line.shapes import plain_call
from toolcage.line.trail import Trail, unwritable
from toolcage.line.unserved import unserved_grants
from toolcage.line.validate import Validator, compile_schema
from toolcage.line.workspace import Exchange
from toolcage.policy.limits import Limit
from toolcage.policy.load import load_roles
from toolcage.policy.model import Role
from toolcage.policy.narrow import narrowed
from toolcage.policy.origin import fields_of
from toolcage.policy_desk import declared_tools, unknown_images
from toolcage.resources import Resources, load_resources
from toolcage.session import CANCELLED, CLOSE_S, RawCall, Session, call_in_current_session
from toolcage.state import default_state_dir
from toolcage.tools import base
from toolcage.tools.registry import ALIAS_ARGUMENTS, ALIASES, ToolRegistry
from toolcage.types import (
    JSON,
    AuthorizedCall,
    CageOutput,
    CleanOutput,
    Refusal,
    SandboxTerms,
    ToolCall,
    ToolDeclaration,
    Usage,
)

if TYPE_CHECKING:
    from toolcage.facts.sql_text import Dialect

MOST_EDITS: Final = 3
_CLOSED: Final = "the runtime is closed; make a new one"
_LOG: Final = logging.getLogger("toolcage")
_open_runtimes: Final[set[Runtime]] = set()
_T = TypeVar("_T")


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
        base._call_through = call_in_current_session

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
            terms = {(grant.sandbox, bool(grant.egress)) for grant in found.grants.values() if not grant.resources}
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

    def _warm(self, terms: Iterable[tuple[SandboxTerms, bool]]) -> None:
        try:
            for item, internet in terms:
                self._means.warm(item, internet=internet)
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
            exchange = Exchange(self._means.workspaces, session.id)
            try:
                return await self._pass_once(session, raw, files, on_output, exchange)
            except Edited as edited:
                raw = {"tool": edited.tool, "arguments": edited.arguments}
            finally:
                exchange.discard()
        return refused(_EDITED_TOO_OFTEN, call_id=None, audit_id=None, duration_ms=0.0)

    async def _pass_once(
        self, session: Session, raw: RawCall, files: Mapping[str, bytes] | None, on_output: OnText | None,
        exchange: Exchange,
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
            session.memory.used(authorized.valid.declaration.effects_of(authorized.valid.arguments))
            hidden = await _secrets(authorized, self._means)
            async with live_output(authorized.output, on_output, hidden) as stream:
                output = await execute(
                    approved, means=self._means, session=session.id, on_output=stream, on_record=trail.connected,
                    stopwatch=stopwatch, exchange=exchange,
                )  # fmt: skip
            cleaned, released_by = await release(
                await _cleaned(output, hidden), session=session.id, approver=self._approver
            )
            trail.released(released_by)
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
            await self._end(trail, CANCELLED, used, started)
            raise
        except Exception as error:  # noqa: BLE001 - the outermost frame of the line: an unforeseen error refuses
            refusal = _internal(error)
        usage = clean_output.output.usage if clean_output is not None else Usage(wall_s=stopwatch.seconds())
        self._ledger.end(limits, session.root, bytes_out=usage.bytes_out, wall_s=usage.wall_s)
        audit_id, unrecorded = await self._end(trail, refusal, usage, started)
        if clean_output is not None and refusal is None and unrecorded is None:
            unrecorded = await self._commit(exchange, trail)
        duration_ms = (time.monotonic() - started) * 1000
        if edited is not None and unrecorded is None:
            raise edited
        if clean_output is not None and unrecorded is None:
            return result(clean_output, audit_id=audit_id or "", duration_ms=duration_ms)
        told = unrecorded or refusal  # a refusal that left no trace is not told either
        assert told is not None
        if told.status == "unavailable":
            _LOG.warning("%s", one_line(f"{told.code}, call {trail.call_id}: {told.operator or told.message}"))
        return refused(told, call_id=trail.call_id, audit_id=audit_id, duration_ms=duration_ms)

    async def _commit(self, exchange: Exchange, trail: Trail) -> Refusal | None:
        """Puts the call's file in its place, now that the call is on record. What went wrong is noted there too."""
        if not exchange.is_pending:
            return None
        failed = await asyncio.to_thread(exchange.commit)
        if failed is not None:
            self._note_problem(f"call {trail.call_id} is recorded as ok, but its file was not written: {failed.code}")
        return failed

    def _judge(
        self, session: Session, role: Role, raw: RawCall, files: Mapping[str, bytes] | None, trail: Trail
    ) -> AuthorizedCall:
        """Parse, validate, authorize: what needs no person and runs nothing. Counts a call that is let through."""
        call = parse(plain_call(raw), files=files, aliases=ALIASES, alias_arguments=ALIAS_ARGUMENTS)
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
            what = "the call ran and its result is withheld" if trail.intended else "nothing was run"
            return None, unwritable(what, error)

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


_POLICY_CHANGED: Final = Refusal(
    status="denied", code="policy.changed", message="the policy changed while the call waited for approval",
    hint="Send the call again.", retryable=True,
)  # fmt: skip
_EDITED_TOO_OFTEN: Final = Refusal(
    status="rejected", code="approval.edited", message="the call was edited again and again and never approved",
    hint="Ask the user what they want.",
)  # fmt: skip
CLEAN_IN_PLACE: Final = 8 * 1024
PART_CHARACTERS: Final = 100


async def _secrets(authorized: AuthorizedCall, means: Means) -> tuple[str, ...]:
    """What must not be seen of the call's resources. Raises Refused when it cannot be known."""
    if not authorized.resources:
        return ()
    try:
        return await asyncio.to_thread(means.secrets, authorized)  # files, maybe on a slow disk
    except ResourceError as error:
        raise Refused(resource_unusable(error)) from error


async def _cleaned(output: CageOutput, exact_secrets: Sequence[str] = ()) -> CleanOutput:
    """Cleans off the loop what may take long there, so that one call's output never holds up another call."""
    room = CLEAN_IN_PLACE - len(output.stdout) - len(output.stderr)
    if _weight(output.data, room) <= room:
        return clean(output, exact_secrets)
    return await asyncio.to_thread(clean, output, exact_secrets)


def _weight(data: JSON, most: int) -> int:
    """Characters of a value, and as many for each part as cleaning a part costs. Counts no further than `most`."""
    counted, parts = 0, [data]
    while parts and counted <= most:
        part = parts.pop()
        counted += PART_CHARACTERS + (len(part) if isinstance(part, str) else 0)
        if isinstance(part, Mapping):
            counted += len(part) * PART_CHARACTERS
            parts += [item for name, item in part.items() for item in (name, item)] if counted <= most else []
        elif isinstance(part, tuple):
            counted += len(part) * PART_CHARACTERS
            parts += part if counted <= most else ()
    return counted


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
    if problems := [line for role in roles.values() for line in unserved_grants(role, resources)]:
        raise ResourceError("\n".join(problems))
