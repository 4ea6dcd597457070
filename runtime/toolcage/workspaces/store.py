"""What every workspace promises, and the words in which it refuses.

Names are components beneath the workspace's root, as `facts/path.py` read them, never a text. A file is written in two
steps: `stage` checks everything and has the content ready, holding the workspace so that no other call of toolcage
writes there; `commit` puts it in place in one step; `discard` leaves everything as it was. Refusals are for the model
and name no host path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from toolcage.errors import Refused
from toolcage.types import Refusal, Status

FILE_BYTES: Final = 16 * 1024 * 1024
MAX_NAMES: Final = 8
MAX_PATH_BYTES: Final = 200
MAX_LISTED: Final = 5000
MAX_DEPTH: Final = 8
TEMPORARY: Final = ".toolcage-"
"""How the names begin of files that are not in place yet. Neither read, listed nor written by that name."""

_AGAIN: Final = "Read the file again, then repeat the call on what it holds now."


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The most that a workspace may hold: bytes of all files together, and files. None = no bound."""

    size: int | None = None
    files: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a file was when it was read: the SHA-256 of its content, None where there was none."""

    digest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name of a listing, its components from the root. `size` is that of a file, `modified` seconds since 1970."""

    names: tuple[str, ...]
    kind: Literal["file", "folder", "link"]
    size: int
    modified: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What lies beneath a folder, nearest first. `skipped` counts special files and names that are no text."""

    entries: tuple[Entry, ...]
    complete: bool
    skipped: int


class Staged(Protocol):
    """A file that is ready. Exactly one of the two is called, from any thread; a second call does nothing."""

    def commit(self) -> None:
        """Puts it in place in one step. Raises Refused: the file changed meanwhile, or the system refuses."""

    def discard(self) -> None:
        """Leaves everything as it was. Never raises."""


class Store(Protocol):
    """One workspace. Thread-safe. Every method raises Refused."""

    def read(self, names: Sequence[str]) -> bytes | None:
        """The content of a regular file, None where there is none."""

    def listing(self, names: Sequence[str]) -> Listing:
        """What lies beneath a folder, bounded."""

    def stage(self, names: Sequence[str], content: bytes, before: Seen | None) -> Staged:
        """The file with this content, ready to be put in place. `before`: only if it is still what was seen."""


def seen(content: bytes | None) -> Seen:
    """What to compare with later."""
    return Seen(digest=None if content is None else hashlib.sha256(content).hexdigest())


def check_names(names: Sequence[str]) -> None:
    """Returns nothing when a file of these names can go through the door. Raises Refused; ValueError for what is no
    list of plain names."""
    if not names or any(name in ("", ".", "..") or "/" in name or "\0" in name for name in names):
        raise ValueError("a path beneath a workspace is one or more plain names")
    size = sum(len(name.encode("utf-8", "surrogatepass")) + 1 for name in names)
    if len(names) > MAX_NAMES or size > MAX_PATH_BYTES:
        raise refused(
            "workspace.path_too_long",
            f"the path has more than {MAX_NAMES} names or {MAX_PATH_BYTES} bytes",
            "Use a shorter path.",
            "blocked",
        )
    if any(name.startswith(TEMPORARY) for name in names):
        raise refused(
            "workspace.reserved_name",
            f"names that begin with {TEMPORARY} are reserved",
            "Choose another name.",
            "blocked",
        )


def check_size(content_bytes: int) -> None:
    """Raises Refused for more than one file may hold."""
    if content_bytes > FILE_BYTES:
        raise refused(
            "workspace.file_too_large", f"the file is larger than {FILE_BYTES} bytes", "Work on a smaller file."
        )


def check_quota(quota: Quota, held_bytes: int, held_files: int, *, old: int | None, new: int) -> None:
    """Raises Refused when a file of `new` bytes, in place of one of `old` (None = none), does not fit."""
    files = held_files + (1 if old is None else 0)
    if quota.files is not None and files > quota.files:
        text = f"the workspace may hold {quota.files} files"
        raise refused("workspace.quota", text, "Write to a file that is there already.", "limit_exceeded")
    total = held_bytes - (old or 0) + new
    if quota.size is not None and total > quota.size:
        left = max(0, quota.size - held_bytes + (old or 0))
        raise refused(
            "workspace.quota",
            f"the workspace may hold {quota.size} bytes",
            f"At most {left} bytes fit here.",
            "limit_exceeded",
        )


def not_found() -> Refused:
    return refused("workspace.not_found", "there is no such file or folder in the workspace", "List the files first.")


def not_a_file() -> Refused:
    return refused("workspace.not_a_file", "the path does not name a plain file", "List the files first.")


def conflict() -> Refused:
    return refused("workspace.conflict", "the file was changed by somebody else meanwhile", _AGAIN, retryable=True)


def busy() -> Refused:
    text = "another call is writing to the workspace"
    return refused("workspace.busy", text, "Try again in a moment.", "busy", retryable=True)


def refused(
    code: str,
    message: str,
    hint: str,
    status: Status = "tool_error",
    *,
    operator: str | None = None,
    retryable: bool = False,
) -> Refused:
    """A refusal, on its way to the result."""
    return Refused(
        Refusal(status=status, code=code, message=message, hint=hint, operator=operator, retryable=retryable)
    )
