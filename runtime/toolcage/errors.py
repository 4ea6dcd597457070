"""The exceptions of toolcage, and who reads each.

A refused or failed call is never an exception: it is a `ToolResult` with a status. Exceptions are for the developer's
and the operator's mistakes, and for a runtime that can no longer answer.

    ToolcageError
    ├── DeclarationError      developer: a tool's declaration or source cannot be used
    ├── PolicyError           operator:  a policy file cannot be loaded (names file, line and what to write instead)
    ├── ResourceError         operator:  resources.yaml, or what it names, cannot be used
    ├── ImageError            operator:  a sandbox image is missing, unknown, or not the one that was built
    ├── EngineError           operator:  no container engine answers, or it refused what was asked
    │   └── EngineUnfitError  operator:  the engine answers and cannot confine a cage as it must
    ├── AuditError            operator:  the audit log cannot be written, read or verified
    ├── RuntimeClosedError    developer: the runtime or session was used after it was closed
    └── UsageError            developer: the library was called with something it cannot accept

`Refused` is not in the tree: it carries a refusal from the stage that decided it to the one place that turns it into a
result, and never leaves the line.

Message grammar: what was refused or failed, on which object, why; what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcage.types import Refusal


class ToolcageError(Exception):
    """The root of everything that toolcage raises on purpose."""


class DeclarationError(ToolcageError):
    """For the developer: a tool's declaration or source cannot be used as it is."""


class PolicyError(ToolcageError):
    """For the operator: a policy file was not loaded. The message holds `file:line` and what to write instead."""


class ResourceError(ToolcageError):
    """For the operator: a resource is not usable as configured."""


class ImageError(ToolcageError):
    """For the operator: a sandbox image is missing or is not the one recorded in images.lock."""


class EngineError(ToolcageError):
    """For the operator: the container engine is absent, stopped, or refused a request.

    `code` is what the call that met it is answered with.
    """

    code: str = "engine.unavailable"


class EngineUnfitError(EngineError):
    """For the operator: the engine answers, and cannot confine a cage as it must or as a grant asks."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class AuditError(ToolcageError):
    """For the operator: the audit log could not be written or does not verify."""


class RuntimeClosedError(ToolcageError):
    """For the developer: the runtime was used after `close()`."""


class UsageError(ToolcageError):
    """For the developer: an argument of a library call cannot be accepted."""


class Refused(Exception):
    """A stage's refusal on its way to the result. Internal to the line."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal
