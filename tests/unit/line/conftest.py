"""Genuine outputs of earlier stages, built with the seals of the stages themselves."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from toolcage import types
from toolcage.types import (
    JSON,
    Artifact,
    CageOutput,
    Decision,
    OutputTerms,
    Refusal,
    SandboxTerms,
    ToolDeclaration,
    Truncation,
    Usage,
    freeze,
)

_STAGES = {
    types.ToolCall: "parse",
    types.ValidCall: "validate",
    types.AuthorizedCall: "authorize",
    types.ScreenedCall: "screen",
    types.ApprovedCall: "approve",
    types.CageOutput: "execute",
}


def _mint(cls: type[Any]) -> Callable[..., Any]:
    """The seal of a stage, which its module holds."""
    seal: Callable[..., Any] = importlib.import_module(f"toolcage.line.{_STAGES[cls]}")._mint
    return seal


@pytest.fixture
def cage_output() -> Callable[..., CageOutput]:
    """Builds what execute would hand on for a call under the given output terms."""

    def build(
        *,
        data: JSON | Any = None,
        stdout: bytes = b"",
        stderr: bytes = b"",
        refusal: Refusal | None = None,
        artifacts: tuple[Artifact, ...] = (),
        truncated: tuple[Truncation, ...] = (),
        private: bool = False,
        egress_denied: int = 0,
        terms: OutputTerms | None = None,
    ) -> CageOutput:
        call = _mint(types.ToolCall)(
            call_id="call-1", tool="run", arguments=freeze({}), files=(), canonical=b"{}", digest="0" * 64
        )
        valid = _mint(types.ValidCall)(
            call=call,
            declaration=ToolDeclaration(name="run", description="runs", parameters={}),
            arguments=call.arguments,
            canonical=b"{}",
            digest="0" * 64,
            facts={},
        )
        authorized = _mint(types.AuthorizedCall)(
            valid=valid,
            role="analyst",
            policy_digest="0" * 64,
            decision=Decision(effect="allow", code="allowed"),
            resources={},
            egress=(),
            sandbox=SandboxTerms(),
            output=terms or OutputTerms(),
        )
        screened = _mint(types.ScreenedCall)(authorized=authorized)
        approved = _mint(types.ApprovedCall)(
            screened=screened, approver=None, approval_digest="0" * 64, expires_at=None
        )
        made: CageOutput = _mint(types.CageOutput)(
            approved=approved,
            refusal=refusal,
            data=freeze(data),
            stdout=stdout,
            stderr=stderr,
            exit_code=0,
            artifacts=artifacts,
            truncated=truncated,
            usage=Usage(wall_s=0.5),
            private=private,
            egress_denied=egress_denied,
        )
        return made

    return build
