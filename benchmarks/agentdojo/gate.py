"""One session of one role, and what the line says to each of its calls: parse, validate, authorize, screen, approve.

These are the line's own stages with its own memory of the session; nothing is decided here. A call that comes back has
passed all of them. Running it, and telling the session what it returned, is the replay's part: AgentDojo's functions
hold objects of this process, which no cage can have.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolcage.errors import Refused
from toolcage.line.approve import ApprovalRequest, approve
from toolcage.line.judge import judge
from toolcage.line.ledger import Ledger
from toolcage.line.parse import parse
from toolcage.line.screen import screen
from toolcage.line.session_memory import SessionMemory
from toolcage.line.validate import Validator, compile_schema
from toolcage.policy.model import Role
from toolcage.policy.origin import fields_of, scalars
from toolcage.types import ToolDeclaration, thaw


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the line says to one call. `arguments` are those that run, None for a call that does not."""

    arguments: dict[str, Any] | None
    code: str
    asked: bool = False


class Gate(Protocol):
    """What a replay asks before each call, and tells after it."""

    def check(self, tool: str, arguments: Mapping[str, Any], *, answer: bool | None) -> Verdict: ...

    def returned(self, tool: str, arguments: Mapping[str, Any], data: Any) -> None: ...


class Open:
    """No policy: every call runs as it is."""

    def check(self, tool: str, arguments: Mapping[str, Any], *, answer: bool | None) -> Verdict:
        return Verdict(arguments=dict(arguments), code="none")

    def returned(self, tool: str, arguments: Mapping[str, Any], data: Any) -> None:
        return


@dataclass(slots=True, kw_only=True)
class Line:
    """A session that has heard `said`. `answer` stands for the person who is asked: yes, no, or nobody there (None)."""

    role: Role
    said: str
    validator: Callable[[ToolDeclaration], Validator]
    loop: asyncio.AbstractEventLoop
    memory: SessionMemory = field(default_factory=SessionMemory)
    ledger: Ledger = field(default_factory=Ledger)
    session: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        self.memory.user_said(self.said)

    def check(self, tool: str, arguments: Mapping[str, Any], *, answer: bool | None) -> Verdict:
        """The verdict on a call. One that passes counts in the limits, and its effects count from now on."""
        asked = False

        async def approver(request: ApprovalRequest) -> bool:
            return bool(answer)

        try:
            call = parse({"tool": tool, "arguments": arguments})
            limits = self.role.limits_of(call.tool)
            authorized = judge(
                call, role=self.role, memory=self.memory, validator=self.validator, dialect=lambda _: "sqlite",
                spent=self.ledger.spent(limits, self.session),
            )  # fmt: skip
            self.ledger.begin(limits, self.session)
            screened = screen(authorized)
            asked = authorized.decision.effect == "ask"
            waiting = approve(screened, session=self.session, approver=None if answer is None else approver)
            self.loop.run_until_complete(waiting)
        except Refused as caught:
            return Verdict(arguments=None, code=caught.refusal.code, asked=asked)
        self.memory.used(authorized.valid.declaration.effects)
        return Verdict(arguments=thaw(authorized.valid.arguments), code=authorized.decision.code, asked=asked)

    def returned(self, tool: str, arguments: Mapping[str, Any], data: Any) -> None:
        """What an approved call returned without an error: a source from now on."""
        self.memory.saw(tool, list(scalars(data)), arguments)
        self.memory.saw_fields(tool, data, fields_of(tool, self.role.origin_sources()), arguments)


class Roles:
    """Role → sessions of it; the compiled schemas are shared."""

    def __init__(self, role: Role) -> None:
        self._role = role
        self._loop = asyncio.new_event_loop()
        self._validators: dict[str, Validator] = {}

    def session(self, said: str) -> Line:
        """A session of the role whose user has said this."""
        return Line(role=self._role, said=said, validator=self._validator, loop=self._loop)

    def close(self) -> None:
        """Ends the event loop that approvals run on."""
        self._loop.close()

    def _validator(self, declaration: ToolDeclaration) -> Validator:
        if declaration.name not in self._validators:
            self._validators[declaration.name] = compile_schema(declaration)
        return self._validators[declaration.name]
