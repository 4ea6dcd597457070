"""Session: one agent conversation, and the ways to make a call in it. Nothing here decides.

`call`, `acall`, `call_raw` and `map`, from any thread or event loop, and a tool's own `execute` inside a `with` block,
all hand the call to the runtime's loop thread and end in `Line.take`, the one choke point. What the session has
heard, read and used up is in its memory; which role is in force is asked of the runtime at each call.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import secrets
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from toolcage.errors import RuntimeClosedError, UsageError
from toolcage.line.judge import closed_role
from toolcage.line.line import CANCELLED, RawCall
from toolcage.line.live_output import OnText
from toolcage.line.public_arguments import check_call
from toolcage.line.result import ToolResult, refused
from toolcage.line.session_memory import SessionMemory
from toolcage.policy.model import Role
from toolcage.policy.narrow import narrowed
from toolcage.progress import bar
from toolcage.tools import base
from toolcage.types import ToolDeclaration

if TYPE_CHECKING:
    from toolcage.runtime import Runtime

CLOSE_S: Final = 15.0
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
        policies = self._runtime._policies
        if self._role[0] != policies.generation:
            self._role = (policies.generation, policies.role_of(self._lineage))
        return self._role[1]

    def tools(self) -> tuple[ToolDeclaration, ...]:
        """The tools that this role has, by name: what a model may be shown."""
        return self.role.shown()

    def user_said(self, text: str) -> None:
        """Adds a turn of the user: what stands in it counts as said. Never pass on what a tool returned."""
        self.memory.user_said(text)

    def delegate(self, role: str) -> Session:
        """A session of another role that may do only what both may. It shares what this one has heard, read and used
        up; approvals given to this one do not count there.

        Raises UsageError for a role that is not loaded, and for two roles whose terms contradict each other.
        """
        self._check_open()
        roles = self._runtime._policies.roles
        if role not in roles:
            raise UsageError(f"no role {role!r} is loaded; choose one of: {', '.join(sorted(roles))}")
        try:
            narrowed(roles[role], [self.role])
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

    def map(
        self,
        calls: Iterable[tuple[str, Mapping[str, object]]],
        *,
        max_concurrent: int = 8,
        progress: bool | None = None,
    ) -> list[ToolResult]:
        """Many calls, each (tool, arguments), at most `max_concurrent` at once; results in the order of `calls`. A
        failure loses none of the others. `progress` shows a bar on standard error: None where that is a terminal."""
        self._check_open()
        self._runtime._check_may_wait()

        ordered = _pairs(calls)

        async def run(done: Callable[[], None]) -> list[ToolResult]:
            gate = asyncio.Semaphore(max_concurrent)

            async def one(tool: str, arguments: Mapping[str, object]) -> ToolResult:
                async with gate:
                    raw = {"tool": tool, "arguments": arguments}
                    answer = await self._answer(raw, None, None, CancelToken(), threading.Event())
                    done()
                    return answer

            return list(await asyncio.gather(*(one(tool, arguments) for tool, arguments in ordered)))

        with bar(len(ordered), progress) as done:
            future = self._runtime._submit(run(done))
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

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._tokens.pop())  # here: a thread has a context of its own
        if not self._tokens:
            await asyncio.to_thread(self.close)

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
        passing = asyncio.ensure_future(self._runtime._line.take(self, raw, files, on_output))

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
            return refused(CANCELLED, call_id=None, audit_id=None, duration_ms=0.0)
        return passing.result()


def _pairs(calls: Iterable[tuple[str, Mapping[str, object]]]) -> list[tuple[str, Mapping[str, object]]]:
    """The calls of `map`, all of which are looked at before one runs."""
    ordered = list(calls)
    for place, call in enumerate(ordered):
        if not isinstance(call, tuple | list) or len(call) != 2:
            raise UsageError(f"call {place} of map is of type {type(call).__name__}; write each as (tool, arguments)")
    return ordered


def call_in_current_session(tool: base.Tool, arguments: Mapping[str, Any], is_async: bool) -> Any:
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
