"""The line: the one choke point. Every call, whoever makes it, passes here, through its stages in their order.

It calls the stages, keeps the call's record and turns whatever happens into one `ToolResult`; it decides nothing. What
is recorded first and told after: a result, a refusal too, is given out only when its closing record is durable.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from toolcage.audit.log import AuditLog
from toolcage.audit.report import one_line
from toolcage.cage.pool import OnProblem
from toolcage.errors import AuditError, Refused, ResourceError, UsageError
from toolcage.line.approve import Approver, Edited, approve
from toolcage.line.clean import clean
from toolcage.line.execute import Stopwatch, execute, resource_unusable
from toolcage.line.judge import judge, shadow_decision
from toolcage.line.ledger import Ledger
from toolcage.line.live_output import OnText, live_output
from toolcage.line.means import Means
from toolcage.line.parse import parse
from toolcage.line.policies import Policies
from toolcage.line.release import release
from toolcage.line.result import ToolResult, refused, result
from toolcage.line.screen import screen
from toolcage.line.session_memory import SessionMemory
from toolcage.line.shapes import plain_call
from toolcage.line.trail import Trail, unwritable
from toolcage.line.validate import Validator, compile_schema
from toolcage.line.workspace import Exchange
from toolcage.policy.limits import Limit
from toolcage.policy.model import Role
from toolcage.policy.origin import fields_of
from toolcage.resources import Resources
from toolcage.tools.registry import ALIAS_ARGUMENTS, ALIASES
from toolcage.types import JSON, AuthorizedCall, CageOutput, CleanOutput, Refusal, ToolDeclaration, Usage

if TYPE_CHECKING:
    from toolcage.facts.sql_text import Dialect

MOST_EDITS: Final = 3
CLEAN_IN_PLACE: Final = 8 * 1024
PART_CHARACTERS: Final = 100
_LOG: Final = logging.getLogger("toolcage")
CANCELLED: Final = Refusal(status="cancelled", code="call.cancelled", message="the call was cancelled", retryable=True)
RawCall = bytes | str | Mapping[str, object]


class Caller(Protocol):
    """Who makes a call: a session, as far as the line needs to know it."""

    @property
    def id(self) -> str: ...

    @property
    def root(self) -> str:
        """The session whose limits count the call."""

    @property
    def memory(self) -> SessionMemory: ...

    @property
    def role(self) -> Role:
        """As it is in force now."""


class _Way:
    """One call on its way: what its stages and its record share."""

    __slots__ = ("caller", "exchange", "limits", "role", "started", "stopwatch", "trail")

    def __init__(self, *, caller: Caller, role: Role, exchange: Exchange, log: AuditLog) -> None:
        self.started = time.monotonic()
        self.caller = caller
        self.role = role
        """As it was when the call came."""
        self.exchange = exchange
        self.trail = Trail(
            log, call_id=secrets.token_hex(12), session=caller.id, role=role.name, policy_digest=role.digest
        )
        self.limits: tuple[Limit, ...] = ()
        """Those that count the call, once it was let through."""
        self.stopwatch = Stopwatch()

    def milliseconds(self) -> float:
        return (time.monotonic() - self.started) * 1000


class Line:
    """The stages and what they share. `policies` says what is in force now; `on_problem` puts a line into the log."""

    def __init__(
        self,
        *,
        log: AuditLog,
        means: Means,
        resources: Resources,
        approver: Approver | None,
        policies: Callable[[], Policies],
        on_problem: OnProblem,
    ) -> None:
        self._log = log
        self._means = means
        self._resources = resources
        self._approver = approver
        self._policies = policies
        self._on_problem = on_problem
        self._ledger = Ledger()
        self._validators: dict[str, tuple[Mapping[str, Any], Validator]] = {}

    async def take(
        self, caller: Caller, raw: RawCall, files: Mapping[str, bytes] | None, on_output: OnText | None
    ) -> ToolResult:
        """One call of the caller, and what an approver made of it. Never raises for what a call, a tool or a person
        does; raises CancelledError when this task is cancelled, its record closed."""
        for _ in range(MOST_EDITS):
            exchange = Exchange(self._means.workspaces, caller.id)
            try:
                return await self._take_once(caller, raw, files, on_output, exchange)
            except Edited as edited:
                raw = {"tool": edited.tool, "arguments": edited.arguments}
            finally:
                exchange.discard()
        return refused(_EDITED_TOO_OFTEN, call_id=None, audit_id=None, duration_ms=0.0)

    async def _take_once(
        self, caller: Caller, raw: RawCall, files: Mapping[str, bytes] | None, on_output: OnText | None,
        exchange: Exchange,
    ) -> ToolResult:
        """One call, recorded whole. Raises Edited, its record closed, when the approver wants another one."""
        way = _Way(caller=caller, role=caller.role, exchange=exchange, log=self._log)
        clean_output, refusal, edited = None, None, None
        try:
            clean_output = await self._through(way, raw, files, on_output)
            refusal = clean_output.output.refusal
        except Edited as caught:
            refusal, edited = caught.refusal, caught
        except Refused as caught:
            refusal = caught.refusal
        except asyncio.CancelledError:
            await self._end(way, CANCELLED, Usage(wall_s=way.stopwatch.seconds()))
            raise
        except Exception as error:  # noqa: BLE001 - the outermost frame of the line: an unforeseen error refuses
            refusal = _internal(error)
        usage = clean_output.output.usage if clean_output is not None else Usage(wall_s=way.stopwatch.seconds())
        audit_id, unrecorded = await self._end(way, refusal, usage)
        if clean_output is not None and refusal is None and unrecorded is None:
            unrecorded = await self._commit(way)
        if edited is not None and unrecorded is None:
            raise edited
        if clean_output is not None and unrecorded is None:
            return result(clean_output, audit_id=audit_id or "", duration_ms=way.milliseconds())
        told = unrecorded or refusal  # a refusal that left no trace is not told either
        assert told is not None
        if told.status == "unavailable" or (told.code == "approval.required" and told.operator):  # its approver failed
            _LOG.warning("%s", one_line(f"{told.code}, call {way.trail.call_id}: {told.operator or told.message}"))
        return refused(told, call_id=way.trail.call_id, audit_id=audit_id, duration_ms=way.milliseconds())

    async def _through(
        self, way: _Way, raw: RawCall, files: Mapping[str, bytes] | None, on_output: OnText | None
    ) -> CleanOutput:
        """The stages in their order. Raises Refused, or Edited, where one of them does not let the call on."""
        caller, trail = way.caller, way.trail
        authorized = self._judge(way, raw, files)
        screened = screen(authorized)
        approved = await approve(screened, session=caller.id, approver=self._approver, remembered=caller.memory)
        if approved.approver is not None and caller.role.digest != way.role.digest:
            raise Refused(_POLICY_CHANGED)
        trail.reached(approved)
        await trail.intend()
        declaration = authorized.valid.declaration
        caller.memory.used(declaration.effects_of(authorized.valid.arguments))
        hidden = await _secrets(authorized, self._means)
        async with live_output(authorized.output, on_output, hidden) as stream:
            output = await execute(
                approved, means=self._means, session=caller.id, on_output=stream, on_record=trail.connected,
                stopwatch=way.stopwatch, exchange=way.exchange,
            )  # fmt: skip
        cleaned, released_by = await release(
            await _cleaned(output, hidden), session=caller.id, approver=self._approver
        )
        trail.released(released_by)
        sources = self._policies().sources
        fields = fields_of(declaration.name, sources)
        if fields or f"tool:{declaration.name}" in sources:  # off the loop: it reads the whole result
            await asyncio.to_thread(caller.memory.learned, cleaned, fields=fields)
        return cleaned

    def _judge(self, way: _Way, raw: RawCall, files: Mapping[str, bytes] | None) -> AuthorizedCall:
        """Parse, validate, authorize: what needs no person and runs nothing. Counts a call that is let through."""
        call = parse(plain_call(raw), files=files, aliases=ALIASES, alias_arguments=ALIAS_ARGUMENTS)
        way.trail.reached(call)
        memory, shadow = way.caller.memory, self._policies().shadow_of(way.role.name)
        if shadow is not None:
            way.trail.shadowed(
                shadow_decision(call, role=shadow, memory=memory, validator=self.validator, dialect=self.dialect)
            )
        limits = way.role.limits_of(call.tool)
        spent = self._ledger.spent(limits, way.caller.root) if limits else frozenset()
        authorized = judge(
            call, role=way.role, memory=memory, spent=spent, trail=way.trail, validator=self.validator,
            dialect=self.dialect,
        )  # fmt: skip
        if limits:
            self._ledger.begin(limits, way.caller.root)
            way.limits = limits
        return authorized

    async def _end(self, way: _Way, refusal: Refusal | None, usage: Usage) -> tuple[str | None, Refusal | None]:
        """The closing record's id, or the refusal that its failure is. What the call used counts from here on."""
        self._ledger.end(way.limits, way.caller.root, bytes_out=usage.bytes_out, wall_s=usage.wall_s)
        try:
            return await way.trail.close(refusal, dataclasses.replace(usage, duration_ms=way.milliseconds())), None
        except (AuditError, UsageError) as error:
            what = "the call ran and its result is withheld" if way.trail.intended else "nothing was run"
            return None, unwritable(what, error)

    async def _commit(self, way: _Way) -> Refusal | None:
        """Puts the call's file in its place, now that the call is on record. What went wrong is noted there too."""
        if not way.exchange.is_pending:
            return None
        failed = await asyncio.to_thread(way.exchange.commit)
        if failed is not None:
            call = way.trail.call_id
            self._on_problem(f"call {call} is recorded as ok, but its file was not written: {failed.code}")
        return failed

    def validator(self, declaration: ToolDeclaration) -> Validator:
        """The compiled schema of a tool, kept until the tool is declared anew."""
        held = self._validators.get(declaration.name)
        if held is None or held[0] is not declaration.parameters:
            held = self._validators[declaration.name] = (declaration.parameters, compile_schema(declaration))
        return held[1]

    def dialect(self, name: str) -> Dialect:
        """What SQL a database speaks."""
        known = name in self._resources.databases
        return self._resources.dialect(name) if known else "sqlite"  # an unknown name is the policy's to refuse


_POLICY_CHANGED: Final = Refusal(
    status="denied", code="policy.changed", message="the policy changed while the call waited for approval",
    hint="Send the call again.", retryable=True,
)  # fmt: skip
_EDITED_TOO_OFTEN: Final = Refusal(
    status="rejected", code="approval.edited", message="the call was edited again and again and never approved",
    hint="Ask the user what they want.",
)  # fmt: skip


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


def _internal(error: Exception) -> Refusal:
    return Refusal(
        status="unavailable", code="internal.error", message="the runtime could not complete the call",
        hint="Nothing is wrong with the call; the operator's log says more.",
        operator=f"{type(error).__name__}: {error}"[:2000],
    )  # fmt: skip
