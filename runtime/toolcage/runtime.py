"""Runtime: what lives as long as the process that uses tools, opened and closed in order. Nothing here decides.

The Runtime owns one loop thread, the audit log and the means of execution. Every way in (the library call, the CLI, a
tool's own `execute` inside a session) ends in `Line.take`, the one choke point. A refused or failed call is a
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
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from toolcage.audit.log import AuditLog
from toolcage.audit.record import Event
from toolcage.audit.report import one_line
from toolcage.cage import sweep
from toolcage.cage.live import Owner
from toolcage.cage.pool import PoolTerms
from toolcage.errors import AuditError, PolicyError, ResourceError, RuntimeClosedError, UsageError
from toolcage.line.approve import Approver
from toolcage.line.line import Line
from toolcage.line.means import Means
from toolcage.line.policies import Policies
from toolcage.line.public_arguments import check_paths, check_request, check_runtime, check_tools
from toolcage.line.session_memory import SessionMemory
from toolcage.line.unserved import unserved_grants
from toolcage.policy.load import load_roles
from toolcage.policy.model import Role
from toolcage.policy_desk import declared_tools, unknown_images
from toolcage.resources import Resources, load_resources
from toolcage.session import CLOSE_S, Session, call_in_current_session
from toolcage.state import default_state_dir
from toolcage.tools import base
from toolcage.tools.registry import ToolRegistry
from toolcage.types import SandboxTerms, ToolDeclaration

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
        self._reloading = threading.Lock()
        self._policy_paths, self._shadow_paths = tuple(policies), tuple(shadow)
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
        self._policies = self._read_policies(generation=0)
        self._line = Line(
            log=self._log, means=self._means, resources=self._resources, approver=self._approver,
            policies=lambda: self._policies, on_problem=self._note_problem,
        )  # fmt: skip
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="toolcage-loop")
        self._thread.start()
        self._closing.callback(self._stop_loop)
        self._log.append(Event(type="runtime_start", detail=self._policies.digests())).wait()
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
        roles = self._policies.roles
        if role is None and len(roles) == 1:
            role = next(iter(roles))
        if role is None:
            known = ", ".join(sorted(roles))
            raise UsageError(f"several roles are loaded; say which with session(role=...): one of {known}")
        if role not in roles:
            raise UsageError(f"no role {role!r} is loaded; choose one of: {', '.join(sorted(roles))}")
        try:
            memory = SessionMemory(facts)
        except TypeError as error:
            raise UsageError(f"the session's facts cannot be used: {error}") from error
        found = roles[role]
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
        with self._reloading:
            try:
                policies = self._read_policies(generation=self._policies.generation + 1)
            except (PolicyError, ResourceError) as error:
                self._note_reload(f"the policies were not reloaded, the earlier ones stay in force: {error}")
                raise
            self._policies = policies
            self._note_reload("the policies were reloaded")

    def _read_policies(self, *, generation: int) -> Policies:
        declarations = self._declarations()
        roles = load_roles(self._policy_paths, declarations)
        _check_resources(roles, self._resources)
        problems = [text for role in roles.values() for text in unknown_images(role, self._state_dir)]
        if problems:
            raise PolicyError("\n".join(problems))
        shadow = load_roles(self._shadow_paths, declarations) if self._shadow_paths else None
        return Policies(roles=roles, shadow=shadow, generation=generation)

    def _note_reload(self, text: str) -> None:
        self._log.append(Event(type="note", note=text[:4000], detail=self._policies.digests())).wait()

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


@atexit.register
def _close_all() -> None:
    """A runtime that nobody closed leaves no cage behind, and its log has an end, when the program ends."""
    for runtime in list(_open_runtimes):
        runtime.close()


def _paths(named: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    return [Path(named)] if isinstance(named, str | os.PathLike) else [Path(path) for path in named]


def _check_resources(roles: Mapping[str, Role], resources: Resources) -> None:
    """A role that names a resource which is not configured is a mistake to be told at start."""
    if problems := [line for role in roles.values() for line in unserved_grants(role, resources)]:
        raise ResourceError("\n".join(problems))
