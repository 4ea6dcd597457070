"""Approve: exactly this call, by a plain yes, until an expiry; everything else does not run."""

import asyncio
import hashlib
from types import MappingProxyType
from typing import Any

import pytest

from toolcage.errors import Refused
from toolcage.line import approve as stage
from toolcage.line.approve import Approval, ApprovalRequest, approval_digest, approve
from toolcage.line.authorize import authorize
from toolcage.line.parse import parse
from toolcage.line.screen import screen
from toolcage.line.validate import compile_schema, validate
from toolcage.policy.load import load_role_text
from toolcage.types import ApprovedCall, ScreenedCall, ToolDeclaration, freeze

PARAMETERS = freeze(
    {
        "type": "object",
        "properties": {"text": {"type": "string"}, "place": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    }
)
assert isinstance(PARAMETERS, MappingProxyType)
TOOL = ToolDeclaration(name="note_text", description="", parameters=PARAMETERS, accepts_files=True)
POLICY = """
version: 1
role: {role}
description: Notes.
tools:
  note_text:
    {effect}: [{{}}]
"""


def screened(
    effect: str = "ask", role: str = "noter", files: dict[str, bytes] | None = None, **arguments: Any
) -> ScreenedCall:
    loaded = load_role_text(POLICY.format(role=role, effect=effect), "noter.yaml", {"note_text": TOOL})
    call = parse({"tool": "note_text", "arguments": {"text": "hi", **arguments}}, files=files)
    valid = validate(call, view={"note_text": TOOL}, validator=compile_schema, dialect=lambda _name: "sqlite")
    return screen(authorize(valid, role=loaded))


def decide(answer: Any, call: ScreenedCall | None = None) -> ApprovedCall:
    return asyncio.run(approve(call or screened(), session="s", approver=answer))


def refused_with(answer: Any) -> tuple[str, str]:
    with pytest.raises(Refused) as caught:
        decide(answer)
    return caught.value.refusal.status, caught.value.refusal.message


def test_an_allowed_call_asks_nobody() -> None:
    made = decide(None, screened("allow"))
    assert (made.approver, made.expires_at) == (None, None)


def test_a_yes_approves_this_call_with_a_name_and_an_expiry() -> None:
    made = decide(lambda request: Approval(approved=True, approver="mia"))
    assert made.approver == "mia"
    assert made.expires_at is not None


def test_an_async_approver_is_awaited() -> None:
    async def yes(request: ApprovalRequest) -> bool:
        await asyncio.sleep(0)
        return True

    assert decide(yes).approver == "approver"


def test_nobody_to_ask_is_approval_required() -> None:
    assert refused_with(None)[0] == "approval_required"


def test_a_no_is_rejected_and_its_reason_reaches_the_model() -> None:
    assert refused_with(lambda request: False)[0] == "rejected"
    status, message = refused_with(lambda request: Approval(approved=False, reason="not on a Sunday"))
    assert status == "rejected"
    assert "not on a Sunday" in message


@pytest.mark.parametrize("answer", ["yes", 1, None, object(), [True]])
def test_an_answer_that_is_not_a_plain_yes_does_not_run(answer: Any) -> None:
    assert refused_with(lambda request: answer)[0] == "approval_required"


def test_an_approver_that_raises_does_not_run_and_its_error_stays_with_the_operator() -> None:
    def fails(request: ApprovalRequest) -> bool:
        raise ValueError("secret detail")

    with pytest.raises(Refused) as caught:
        decide(fails)
    assert caught.value.refusal.status == "approval_required"
    assert "secret detail" not in f"{caught.value.refusal.message}{caught.value.refusal.hint}"
    assert "secret detail" in (caught.value.refusal.operator or "")


def test_nobody_answering_in_time_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "ANSWER_WITHIN_S", 0.01)

    async def never(request: ApprovalRequest) -> bool:
        await asyncio.Event().wait()
        return True

    assert refused_with(never)[0] == "approval_required"


def test_the_approver_sees_the_very_arguments_that_run_with_nothing_hidden() -> None:
    seen: list[ApprovalRequest] = []
    text = "ok\u2067\x1b[2K\r"
    made = decide(lambda request: seen.append(request) or True, screened(text=text, files={"a.txt": b"1"}))
    assert seen[0].arguments is made.screened.authorized.valid.arguments
    assert seen[0].canonical == '{"text": "ok\\u2067\\u001b[2K\\r"}'
    assert seen[0].files == ("a.txt",)
    assert seen[0].files_sha256 == (hashlib.sha256(b"1").hexdigest(),)
    assert seen[0].digest == made.approval_digest


def test_the_digest_changes_with_everything_that_it_is_bound_to() -> None:
    digests = {
        approval_digest(screened(), "s"),
        approval_digest(screened(), "another session"),
        approval_digest(screened(text="other"), "s"),
        approval_digest(screened(place="x"), "s"),
        approval_digest(screened(files={"a": b"1"}), "s"),
        approval_digest(screened(files={"a": b"2"}), "s"),
        approval_digest(screened(role="other"), "s"),
        approval_digest(screened("allow"), "s"),
    }
    assert len(digests) == 8
    assert approval_digest(screened(), "s") in digests
