"""What the host learned about one call in a cage, as plain data, before anybody judges it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from toolcage.cage.portals import Portal
from toolcage.types import InputFile

MIB: Final = 1024 * 1024
LIMITS: Final = ("wall", "output", "result", "portal")
Broken = Literal["closed", "malformed", "host_deadline", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOrder:
    """One call for a cage: the payload document, attached files, and limits in seconds and bytes.

    `output_bytes` caps stdout and stderr each; a program that writes more is ended. `result_bytes` caps what a tool's
    body returns. `portals` are the ways out that it has, and they are there for this call alone.
    """

    payload: Mapping[str, object]
    files: tuple[InputFile, ...] = ()
    wall_s: float
    output_bytes: int = 8 * MIB
    result_bytes: int = 4 * MIB
    portals: tuple[Portal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedFile:
    """A file that the cage sent, with the name that it gave it. Both untrusted."""

    name: bytes
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CageReport:
    """What came through the door for one call.

    `status` is a wait status, None = unknown. `limit` is the warden's word for what it ended the call for. `broken`
    says that the door ended before the warden's closing report, and how; then the counters are zero. Counters are
    differences over the call. `again` says that the cage is fit for another. All is the cage's word, hence untrusted,
    except `broken`, and `wall_s` when broken.
    """

    stdout: bytes = b""
    stderr: bytes = b""
    result: bytes = b""
    files: tuple[CollectedFile, ...] = ()
    files_found: int = 0
    status: int | None = None
    limit: str | None = None
    written: Mapping[int, int] = field(default_factory=dict)
    oom_kills: int = 0
    pids_refused: int = 0
    memory_peak_bytes: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    again: bool = False
    broken: Broken | None = None
    last_words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineState:
    """What the engine says of the container after a call whose door broke. `found` False = it does not know it."""

    reachable: bool
    found: bool = False
    running: bool = False
    oom_killed: bool = False
    exit_code: int | None = None
