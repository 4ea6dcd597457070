"""The workspace of one session: files that are on no disk, visible to nobody else, and gone with the session.

What a role is granted as the workspace `session`. Names are components as in a folder; a folder is there while a file
lies in it. Bounded per session and for all sessions of a runtime together, because it is the host's memory. There are
no links and no special files here, so nothing of that kind is left to refuse.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from toolcage.workspaces import store
from toolcage.workspaces.store import Entry, Listing, Quota, Seen, Staged, refused

SESSION_QUOTA: Final = Quota(size=16 * 1024 * 1024, files=200)
ALL_BYTES: Final = 256 * 1024 * 1024
LOCK_WAIT_S: Final = 3.0
_Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    content: bytes = field(repr=False)
    modified: float


class SessionStores:
    """The workspaces of a runtime's sessions. Thread-safe."""

    def __init__(self) -> None:
        self._stores: dict[str, MemoryStore] = {}

    def of(self, session: str) -> MemoryStore:
        """The session's own, empty at first."""
        return self._stores.setdefault(session, MemoryStore(self._held))

    def end(self, session: str) -> None:
        """Forgets its files. Safe in a finalizer."""
        self._stores.pop(session, None)

    def _held(self) -> int:
        return sum(one.held_bytes for one in list(self._stores.values()))


class MemoryStore:
    """See `Store`. `everything` is what all of them hold."""

    def __init__(self, everything: Callable[[], int]) -> None:
        self._everything = everything
        self._files: dict[_Names, _File] = {}
        self._writing = threading.Lock()

    @property
    def held_bytes(self) -> int:
        """The sizes of all files together."""
        return sum(len(file.content) for file in list(self._files.values()))

    def read(self, names: Sequence[str]) -> bytes | None:
        """The content of a file, None where there is none. Raises Refused for a folder."""
        wanted = tuple(names)
        found = self._files.get(wanted)
        if found is None and (not wanted or self._is_folder(wanted)):
            raise store.not_a_file()
        return None if found is None else found.content

    def listing(self, names: Sequence[str]) -> Listing:
        """What lies beneath a folder. Raises Refused where there is none."""
        start = tuple(names)
        if start and not self._is_folder(start):
            raise store.not_found()
        entries: dict[_Names, Entry] = {}
        for path, file in sorted(self._files.items()):
            if path[: len(start)] != start:
                continue
            for length in range(len(start) + 1, len(path)):
                folder = path[:length]
                entries[folder] = Entry(names=folder, kind="folder", size=0, modified=file.modified)
            entries[path] = Entry(names=path, kind="file", size=len(file.content), modified=file.modified)
        ordered = sorted(entries.values(), key=lambda entry: (len(entry.names), entry.names))
        return Listing(entries=tuple(ordered), complete=True, skipped=0)

    def stage(self, names: Sequence[str], content: bytes, before: Seen | None) -> Staged:
        """The file ready, the workspace held. Raises Refused."""
        store.check_names(names)
        store.check_size(len(content))
        if not self._writing.acquire(timeout=LOCK_WAIT_S):
            raise store.busy()
        try:
            wanted = tuple(names)
            now = self.read(wanted)
            if before is not None and store.seen(now) != before:
                raise store.conflict()
            if any(wanted[:length] in self._files for length in range(1, len(wanted))):
                raise store.not_found()
            old = None if now is None else len(now)
            store.check_quota(SESSION_QUOTA, self.held_bytes, len(self._files), old=old, new=len(content))
            if self._everything() - (old or 0) + len(content) > ALL_BYTES:
                raise refused(
                    "workspace.quota",
                    "the workspaces of all sessions are full",
                    "Try again later.",
                    "limit_exceeded",
                    retryable=True,
                )
        except BaseException:
            self._writing.release()
            raise
        return _StagedContent(self, wanted, content)

    def _is_folder(self, names: _Names) -> bool:
        return any(path[: len(names)] == names and len(path) > len(names) for path in list(self._files))


class _StagedContent:
    def __init__(self, home: MemoryStore, names: _Names, content: bytes) -> None:
        self._home, self._names, self._content = home, names, content
        self._once = threading.Lock()

    def commit(self) -> None:
        if self._once.acquire(blocking=False):
            self._home._files[self._names] = _File(content=self._content, modified=time.time())
            self._home._writing.release()

    def discard(self) -> None:
        if self._once.acquire(blocking=False):
            self._home._writing.release()
