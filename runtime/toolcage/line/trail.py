"""The audit rail of one call: an intent record before anything runs, exactly one closing record on every path.

It gathers what the stages learned as they pass and writes it in two durable records. If the intent cannot be written,
nothing runs. If the closing, or the record of one of the call's connections, cannot be written, the result is withheld:
what leaves no trace did not happen for the caller. Arguments are recorded as canonical text, so that a decision can be
replayed; of a call that was refused before any policy was asked, large ones are recorded by their digest alone, so that
no caller fills the log for nothing.
"""

from __future__ import annotations

import asyncio
from typing import Final

from toolcage.audit.log import AuditLog, Ticket
from toolcage.audit.record import Closing, Event, Intent, facts_text, session_facts_text
from toolcage.broker.broker import Record
from toolcage.errors import AuditError, Refused, UsageError
from toolcage.types import JSON, ApprovedCall, AuthorizedCall, Refusal, SessionFacts, ToolCall, Usage, ValidCall

MOST_REFUSED_BYTES: Final = 16 * 1024
_UNWRITABLE: Final = "the audit log cannot be written"


class Trail:
    """One call's rail. `reached` is told each stage's output; `close` must be called exactly once."""

    def __init__(self, log: AuditLog, *, call_id: str, session: str, role: str, policy_digest: str) -> None:
        self._log = log
        self._intent: Ticket | None = None
        self._connections: list[Ticket] = []
        self._unrecorded: AuditError | UsageError | None = None
        self._fields: dict[str, str | None] = {
            "call_id": call_id, "session": session, "role": role, "policy_digest": policy_digest,
        }  # fmt: skip

    def reached(self, passed: ToolCall | ValidCall | AuthorizedCall | ApprovedCall) -> None:
        """Takes over what a stage established."""
        match passed:
            case ToolCall():
                self._fields |= {
                    "call_id": passed.call_id,
                    "tool": passed.tool,
                    "arguments": passed.canonical.decode(),
                    "arguments_digest": passed.digest,
                }
            case ValidCall():
                self._fields |= {
                    "tool": passed.declaration.name,
                    "arguments": passed.canonical.decode(),
                    "arguments_digest": passed.digest,
                    "facts": facts_text(passed.facts),
                }
            case AuthorizedCall():
                self._fields["rule"] = passed.decision.rule
                self._fields["decision"] = f"{passed.decision.effect} {passed.decision.code}"
            case ApprovedCall():
                self._fields["approver"] = passed.approver

    def knew(self, known: SessionFacts) -> None:
        """What the decision is about to be made from, besides the call."""
        self._fields["session_facts"] = session_facts_text(known)

    def denied(self, refusal: Refusal) -> None:
        """The policy's own refusal, as distinct from what other stages refuse."""
        self._fields |= {"decision": f"deny {refusal.code}", "rule": refusal.operator}

    def shadowed(self, decision: str) -> None:
        """What the policy beside the enforced one says."""
        self._fields["shadow"] = decision

    def released(self, by: str | None) -> None:
        """Who let the model read an output that speaks to it, if anybody was asked and did."""
        self._fields["released_by"] = by

    def connected(self, record: Record) -> None:
        """Writes that a connection of the call is over. Called in the broker's thread. Where it fails, `close` says so:
        the log may have been mended by then, and this record would still be missing."""
        note = record.connection
        detail: dict[str, JSON] = {
            "call_id": self.call_id, "tool": self._fields.get("tool"), "portal": note.portal, "kind": note.kind,
            "target": note.target, "address": note.address, "bytes_up": note.bytes_up, "bytes_down": note.bytes_down,
            "milliseconds": round(record.seconds * 1000), "verdict": note.verdict, "reason": note.reason,
            "detail": note.detail[:1000], "cached": note.cached or None, "count": record.count,
        }  # fmt: skip
        told = {name: value for name, value in detail.items() if value not in ("", None)}
        try:
            ticket = self._log.append(
                Event(type="connection", session=self._fields["session"], role=self._fields["role"],
                      policy_digest=self._fields["policy_digest"], detail=told)
            )  # fmt: skip
        except (AuditError, UsageError) as error:
            self._unrecorded = error
        else:
            self._connections.append(ticket)

    @property
    def call_id(self) -> str:
        return self._fields["call_id"] or ""

    async def intend(self) -> None:
        """Writes the intent and waits until it is durable. Raises Refused (`unavailable`)."""
        try:
            ticket = self._log.append(Intent(**self._fields))  # type: ignore[arg-type]
            try:
                await ticket.durable()
            except asyncio.CancelledError:  # the record is on its way all the same, and the closing must name it
                self._intent = ticket
                await ticket.durable()
                raise
        except (AuditError, UsageError) as error:
            raise Refused(unwritable("nothing was run", error)) from error
        self._intent = ticket

    @property
    def intended(self) -> bool:
        """Whether the intent is on record, so that the call may have run."""
        return self._intent is not None

    async def close(self, refusal: Refusal | None, usage: Usage) -> str:
        """Writes how the call ended, waits until it is durable, the records of its connections too, and returns its id.
        Raises AuditError."""
        if "decision" not in self._fields and len(self._fields.get("arguments") or "") > MOST_REFUSED_BYTES:
            del self._fields["arguments"]
        closing = Closing(
            **{name: value for name, value in self._fields.items() if name != "rule"},  # type: ignore[arg-type]
            rule=self._fields.get("rule") or (refusal.operator if refusal and refusal.status == "denied" else None),
            intent=None if self._intent is None else self._intent.seq,
            status="ok" if refusal is None else refusal.status,
            code="ok" if refusal is None else refusal.code,
            note=None if refusal is None or refusal.operator == self._fields.get("rule") else refusal.operator,
            usage=usage,
        )
        ticket = self._log.append(closing)
        await ticket.durable()
        for earlier in self._connections:
            await earlier.durable()
        if self._unrecorded is not None:
            raise AuditError(f"a connection of the call could not be recorded: {self._unrecorded}")
        return ticket.audit_id


def unwritable(what: str, error: Exception) -> Refusal:
    """The refusal for a call whose record cannot be kept. `what` says whether something ran."""
    return Refusal(
        status="unavailable", code="audit.unwritable", message=f"{_UNWRITABLE}; {what}",
        hint="Nothing is wrong with the call; the operator must mend the log.", operator=str(error)[:1000],
        retryable=True,
    )  # fmt: skip
