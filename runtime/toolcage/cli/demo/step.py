"""What a step of the demo is: one call as data, how it must end, and what it may build on.

A step passes when the result has exactly its status and code and its demands hold. `demand` looks at the result alone.
`witness` looks past it, at what somebody else has of the call: the letters that the receiver got, the records of the
audit log. Both return the words for the table and raise `Unmet`; a witness's words are the ones that are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from toolcage.cli.demo.letterbox import Letter
from toolcage.line.result import ToolResult
from toolcage.types import Status

RoleName = Literal["analyst", "coder", "researcher"]


class Unmet(Exception):
    """What a step was to show did not show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a step may build on: the results so far by step name, the file of the host that holds the canary, the
    letters that have arrived, and the audit log's records of one call."""

    results: Mapping[str, ToolResult]
    host_file: Path
    letters: Callable[[], Sequence[Letter]]
    records: Callable[[ToolResult], Sequence[Mapping[str, str | int]]]


Arguments = Mapping[str, object] | Callable[[Scene], Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call. `raw` is sent as it stands, for calls that no mapping can express. `status` and `code` are what it must
    end with; `demand` and `witness` are what must show besides."""

    name: str
    role: RoleName
    tool: str
    tried: str
    kind: Literal["work", "attack"] = "attack"
    arguments: Arguments = field(default_factory=dict)
    raw: bytes | None = None
    files: Callable[[Scene], Mapping[str, bytes]] | None = None
    status: Status = "ok"
    code: str | None = None
    demand: Callable[[ToolResult], str] | None = None
    witness: Callable[[Scene, ToolResult], str] | None = None


def need(holds: bool, otherwise: str) -> None:
    """Raises Unmet with `otherwise` unless it holds."""
    if not holds:
        raise Unmet(otherwise)
