"""`on_injection: ask` → a person decides whether output that speaks to the model is shown to it. Nothing runs here.

The output stays withheld unless the approver, who is shown exactly the cleaned text that the model would read, answers
with an `Approval` that says both `approved` and `show_output`. A plain yes is not enough: an approver that was written
to approve calls has not looked at an output. No approver, a late answer or an exception withholds.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
from typing import Final

from toolcage.errors import Refused
from toolcage.line.approve import Approval, ApprovalRequest, Approver, ask, request_for
from toolcage.line.clean import clean
from toolcage.types import CleanOutput, thaw

MOST_NAME_CHARS: Final = 100


async def release(cleaned: CleanOutput, *, session: str, approver: Approver | None) -> tuple[CleanOutput, str | None]:
    """The same output, still withheld, or the output as the model may read it and the name of who released it."""
    approved = cleaned.output.approved
    if approver is None or "withheld" not in cleaned.labels:
        return cleaned, None
    if approved.screened.authorized.output.on_injection != "ask":
        return cleaned, None
    shown = await asyncio.to_thread(clean, cleaned.output, released=True)
    text = readable(shown)
    digest = hashlib.sha256(f"{approved.approval_digest} {text}".encode("utf-8", "surrogatepass")).hexdigest()
    request = dataclasses.replace(request_for(approved.screened, session, digest), output=text)
    answer = await _answer(approver, request)
    if answer is None or answer.approved is not True or answer.show_output is not True:
        return cleaned, None
    return shown, answer.approver[:MOST_NAME_CHARS]


async def _answer(approver: Approver, request: ApprovalRequest) -> Approval | None:
    try:
        return await ask(approver, request)
    except Refused:  # nobody answered, or not with an answer
        return None


def readable(shown: CleanOutput) -> str:
    """Every part that a model could read, each under its name."""
    data = thaw(shown.data)
    parts = {
        "data": data if isinstance(data, str) else "" if data is None else json.dumps(data, ensure_ascii=False),
        "stdout": shown.stdout,
        "stderr": shown.stderr,
        "error": shown.error or "",
        "hint": shown.hint or "",
        "files": ", ".join(item.name for item in shown.artifacts),
    }
    return "\n".join(f"{name}:\n{text}" for name, text in parts.items() if text)
