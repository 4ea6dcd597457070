"""toolcage: a secure tool runtime for AI agents.

One policy file per role; every call is validated, authorized, screened, run in a hardened container and cleaned.

Importing this is light: what a name needs is loaded when the name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcage.cage.pool import PoolTerms
    from toolcage.cli.terminal_approver import TerminalApprover
    from toolcage.errors import (
        AuditError,
        DeclarationError,
        EngineError,
        ImageError,
        PolicyError,
        ResourceError,
        RuntimeClosedError,
        ToolcageError,
        UsageError,
    )
    from toolcage.line.approve import Approval, ApprovalRequest
    from toolcage.line.result import ToolResult
    from toolcage.runtime import Runtime
    from toolcage.session import CancelToken, Session
    from toolcage.tools.base import StandardTool, Tool, ToolFailure, tool

__version__ = "0.1.0"

_HOME = {
    "Approval": "toolcage.line.approve",
    "ApprovalRequest": "toolcage.line.approve",
    "AuditError": "toolcage.errors",
    "CancelToken": "toolcage.session",
    "DeclarationError": "toolcage.errors",
    "EngineError": "toolcage.errors",
    "ImageError": "toolcage.errors",
    "PolicyError": "toolcage.errors",
    "PoolTerms": "toolcage.cage.pool",
    "ResourceError": "toolcage.errors",
    "Runtime": "toolcage.runtime",
    "RuntimeClosedError": "toolcage.errors",
    "Session": "toolcage.session",
    "StandardTool": "toolcage.tools.base",
    "TerminalApprover": "toolcage.cli.terminal_approver",
    "Tool": "toolcage.tools.base",
    "ToolFailure": "toolcage.tools.base",
    "ToolResult": "toolcage.line.result",
    "ToolcageError": "toolcage.errors",
    "UsageError": "toolcage.errors",
    "tool": "toolcage.tools.base",
}

__all__ = [
    "Approval",
    "ApprovalRequest",
    "AuditError",
    "CancelToken",
    "DeclarationError",
    "EngineError",
    "ImageError",
    "PolicyError",
    "PoolTerms",
    "ResourceError",
    "Runtime",
    "RuntimeClosedError",
    "Session",
    "StandardTool",
    "TerminalApprover",
    "Tool",
    "ToolFailure",
    "ToolResult",
    "ToolcageError",
    "UsageError",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'toolcage' has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
