"""Where the decision was `ask`: a person, or a callback, approves exactly this call, once, until an expiry.

The approval is bound to the digest of (session, role, tool, final canonical arguments, attached files, resources,
policy). What the approver is shown is what runs. An approver may say yes once, or to this same call for the rest of the
session, or no with a reason, or hand back other arguments: that is a new call, which passes the whole line again. No
approver, a late answer, an exception or anything that is not a plain yes does not run.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from toolcage.errors import Refused
from toolcage.types import JSON, ApprovedCall, Refusal, ScreenedCall, claim_seal, require

ANSWER_WITHIN_S: Final = 300.0
VALID_FOR_S: Final = 60.0

_mint = claim_seal(ApprovedCall)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """What an approver decides on. `digest` names this call and no other; `rule` is why it asks, for the operator.

    `arguments` may hold any characters: show them escaped (`canonical` is ASCII-safe JSON text of the same).
    `files_sha256` holds the digest of each attached file's bytes, in the order of `files`.

    `output` is None for a call that waits to be run. Otherwise the call *has run*, its output speaks to the model, and
    the policy asks (`on_injection: ask`) whether the model may read this text: answer
    `Approval(approved=True, show_output=True)`; anything else withholds it.
    """

    session: str
    role: str
    tool: str
    arguments: Mapping[str, JSON]
    canonical: str
    files: tuple[str, ...]
    resources: Mapping[str, str]
    rule: str | None
    digest: str
    files_sha256: tuple[str, ...] = ()
    output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """An approver's answer with a name for the audit log and, on a no, a reason that the model may read.

    `for_session`: a yes to this same call (same arguments, files, resources and policy) as often as the session makes
    it. `edited`: other arguments for the same tool. They are a new call, so `approved` must be false beside them.
    `show_output`: the model may read the request's `output`; nothing for a call that waits to be run.
    """

    approved: bool
    approver: str = "approver"
    reason: str | None = None
    for_session: bool = False
    edited: Mapping[str, object] | None = None
    show_output: bool = False


Answer = bool | Approval
Approver = Callable[[ApprovalRequest], Answer | Awaitable[Answer]]


class Remembered(Protocol):
    """Where approvals for a session are kept."""

    def approve(self, digest: str, approver: str) -> None: ...

    def approved_by(self, digest: str) -> str | None: ...


class Edited(Refused):
    """The approver wants other arguments. The call as it was is rejected; the runtime passes the new one."""

    def __init__(self, tool: str, arguments: Mapping[str, object], approver: str) -> None:
        super().__init__(
            Refusal(status="rejected", code="approval.edited", message="the call was edited and sent anew",
                    operator=f"edited by {approver[:100]}")
        )  # fmt: skip
        self.tool = tool
        self.arguments = arguments


async def approve(
    screened: ScreenedCall, *, session: str, approver: Approver | None, remembered: Remembered | None = None
) -> ApprovedCall:
    """An `ApprovedCall`. Raises Refused: `approval_required` when nobody can be asked or nobody answers in time,
    `rejected` when the answer is no; its subclass Edited when the answer is another call."""
    require(screened, ScreenedCall)
    digest = approval_digest(screened, session)
    if screened.authorized.decision.effect == "allow":
        return _mint(screened=screened, approver=None, approval_digest=digest, expires_at=None)
    if remembered is not None and (earlier := remembered.approved_by(digest)) is not None:
        return _approved(screened, digest, f"{earlier} (earlier, for this session)")
    if approver is None:
        raise _needed("this call needs a person's approval and nobody can be asked here")
    answer = await ask(approver, request_for(screened, session, digest))
    if answer.edited is not None:
        if answer.approved is not False:
            raise _needed("the request for approval failed", "an edited call cannot be approved in the same answer")
        raise Edited(screened.authorized.valid.declaration.name, answer.edited, answer.approver)
    if answer.approved is not True:
        reason = f": {answer.reason[:500]}" if answer.reason else ""
        raise Refused(
            Refusal(status="rejected", code="approval.rejected", message=f"the call was not approved{reason}",
                    hint="Do not send it again unchanged.", operator=f"rejected by {answer.approver[:100]}")
        )  # fmt: skip
    name = answer.approver[:100]
    if answer.for_session is True and remembered is not None:
        remembered.approve(digest, name)
        name = f"{name} (for this session)"
    return _approved(screened, digest, name)


def _approved(screened: ScreenedCall, digest: str, approver: str) -> ApprovedCall:
    expires_at = time.monotonic() + VALID_FOR_S
    return _mint(screened=screened, approver=approver, approval_digest=digest, expires_at=expires_at)


def approval_digest(screened: ScreenedCall, session: str) -> str:
    """SHA-256, in hex, over everything that an approval is bound to."""
    authorized = screened.authorized
    bound = [
        session, authorized.role, authorized.valid.declaration.name, authorized.valid.digest,
        sorted(authorized.resources.items()), authorized.policy_digest,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(bound).encode()).hexdigest()


async def ask(approver: Approver, request: ApprovalRequest) -> Approval:
    """What the approver answers. Raises Refused (`approval_required`): late, failed, or no answer of its type."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            answer: object
            if inspect.iscoroutinefunction(approver):
                answer = approver(request)
            else:  # may block, so not on the loop
                answer = await asyncio.to_thread(approver, request)
            if inspect.isawaitable(answer):
                answer = await answer
    except TimeoutError:
        raise _needed("nobody answered the request for approval in time") from None
    except Exception as error:  # an approver that fails has not approved, whatever it raised
        raise _needed("the request for approval failed", f"{type(error).__name__}: {error}"[:500]) from error
    if isinstance(answer, Approval):
        return answer
    if answer is True or answer is False:
        return Approval(approved=answer)
    raise _needed("the request for approval failed", f"the approver answered {type(answer).__name__}, not a bool")


def request_for(screened: ScreenedCall, session: str, digest: str) -> ApprovalRequest:
    """What an approver is shown of the call. `digest` is what the answer is bound to."""
    authorized = screened.authorized
    valid = authorized.valid
    return ApprovalRequest(
        session=session,
        role=authorized.role,
        tool=valid.declaration.name,
        arguments=valid.arguments,
        canonical=json.dumps(json.loads(valid.canonical), ensure_ascii=True, sort_keys=True),
        files=tuple(item.name for item in valid.call.files),
        resources=authorized.resources,
        rule=authorized.decision.rule,
        digest=digest,
        files_sha256=tuple(hashlib.sha256(item.content).hexdigest() for item in valid.call.files),
    )


def _needed(message: str, operator: str | None = None) -> Refused:
    return Refused(
        Refusal(
            status="approval_required", code="approval.required", message=message,
            hint="Ask the user to approve it, or find another way.", operator=operator, retryable=True,
        )
    )  # fmt: skip
