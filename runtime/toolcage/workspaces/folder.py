"""One host folder as a workspace: every file is opened beneath its descriptor, and no link is ever followed.

The folder itself is the operator's word and opened as it stands at each call; what lies in it is not trusted:
anybody may change it at any moment. A file is read only if it is regular and has one name (a second may lie
outside). It is written under a temporary name in its own folder, made durable, and renamed over the old one: a
reader sees the old content or the new one, a link that somebody puts there is replaced and not followed, a second
name keeps the old content. From `stage` to `commit` a lock on the folder (flock) keeps every other call of toolcage
out, of other processes too, so that quotas and comparisons hold; a program that ignores the lock can still write
between the last comparison and the rename. New files are for this user alone; a replaced one keeps its permissions,
without execution.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from toolcage.errors import Refused
from toolcage.facts.beneath import make_folders_beneath, open_beneath, open_folder_beneath
from toolcage.workspaces import store
from toolcage.workspaces.store import Entry, Listing, Quota, Seen, Staged, refused

LOCK_WAIT_S: Final = 3.0
MOST_COUNTED: Final = 100_000
_READ_ATTEMPTS: Final = 3
_PERMISSIONS: Final = 0o666
_LEFTOVER: Final = re.compile(re.escape(store.TEMPORARY) + "[0-9a-f]{16}")


class FolderStore:
    """A workspace in a folder of the host. Holds nothing open between calls."""

    def __init__(self, folder: Path, quota: Quota) -> None:
        self._folder = folder
        self._quota = quota

    def read(self, names: Sequence[str]) -> bytes | None:
        """The content of a regular file, None where there is none. Raises Refused."""
        with self._root() as root, _told():
            return _read(root, names)

    def listing(self, names: Sequence[str]) -> Listing:
        """What lies beneath a folder, nearest first, links named and not followed. Raises Refused."""
        with self._root() as root, _told():
            return _walk(root, tuple(names), store.MAX_LISTED, store.MAX_DEPTH)

    def stage(self, names: Sequence[str], content: bytes, before: Seen | None) -> Staged:
        """The file under a temporary name beside its place, the folder locked. Raises Refused."""
        store.check_names(names)
        store.check_size(len(content))
        with contextlib.ExitStack() as undo:
            root = undo.enter_context(self._root())
            with _told():
                _lock(root)
                old = _status(root, names)
                if before is not None and store.seen(_read(root, names)) != before:
                    raise store.conflict()
                self._check_quota(root, None if old is None else old.st_size, len(content))
                parent, made = make_folders_beneath(root, names[:-1])
                undo.callback(os.close, parent)
                if made:
                    undo.callback(_remove_folders, root, tuple(names[:-1]), made)
                temporary = f"{store.TEMPORARY}{secrets.token_hex(8)}"
                mode = 0o600 if old is None else old.st_mode & _PERMISSIONS
                _clear_leftovers(parent)
                undo.callback(_unlink, parent, temporary)
                _write(parent, temporary, content, mode)
            return _StagedFile(root, parent, tuple(names), temporary, before, undo.pop_all())

    @contextlib.contextmanager
    def _root(self) -> Iterator[int]:
        try:
            root = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise refused(
                "workspace.unusable",
                "the workspace cannot be used now",
                "Nothing is wrong with the call.",
                "unavailable",
                operator=f"{self._folder}: {error}",
                retryable=True,
            ) from error
        try:
            yield root
        finally:
            os.close(root)

    def _check_quota(self, root: int, old: int | None, new: int) -> None:
        if self._quota.size is None and self._quota.files is None:
            return
        held = _walk(root, (), MOST_COUNTED, MOST_COUNTED)
        if not held.complete:
            raise refused(
                "workspace.quota",
                "the workspace holds more than can be counted",
                "Ask the operator to clear it.",
                "limit_exceeded",
            )
        files = [entry.size for entry in held.entries if entry.kind == "file"]
        store.check_quota(self._quota, sum(files), len(files), old=old, new=new)


class _StagedFile:
    """A temporary file beside its place. `undo` closes and removes all that `stage` opened and made."""

    def __init__(
        self,
        root: int,
        parent: int,
        names: tuple[str, ...],
        temporary: str,
        before: Seen | None,
        undo: contextlib.ExitStack,
    ) -> None:
        self._root, self._parent, self._names = root, parent, names
        self._temporary, self._before, self._undo = temporary, before, undo
        self._once = threading.Lock()

    def commit(self) -> None:
        """Renames it into place. Raises Refused; then everything is as it was."""
        if not self._once.acquire(blocking=False):
            return
        with self._undo, _told():
            _status(self._root, self._names)
            if self._before is not None and store.seen(_read(self._root, self._names)) != self._before:
                raise store.conflict()
            _check_same_folder(self._root, self._names[:-1], self._parent)
            os.rename(self._temporary, self._names[-1], src_dir_fd=self._parent, dst_dir_fd=self._parent)
            os.fsync(self._parent)

    def discard(self) -> None:
        """Removes it, and the folders that were made for it. Never raises."""
        if self._once.acquire(blocking=False):
            with contextlib.suppress(OSError):
                self._undo.close()


# --- beneath the root ------------------------------------------------------------------------------------------------


def _read(root: int, names: Sequence[str]) -> bytes | None:
    for _ in range(_READ_ATTEMPTS):
        try:
            opened = open_beneath(root, names)
        except FileNotFoundError:
            return None
        with os.fdopen(opened, "rb") as handle:
            before = os.fstat(handle.fileno())
            if before.st_nlink > 1:
                raise refused(
                    "workspace.hard_link",
                    "the file has a second name, which may lie outside the workspace",
                    "Work on another file.",
                    "blocked",
                )
            store.check_size(before.st_size)
            content = handle.read(store.FILE_BYTES + 1)
            after = os.fstat(handle.fileno())
        store.check_size(len(content))
        if _state(before) == _state(after) and len(content) == after.st_size:
            return content
    raise store.conflict()


def _state(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _status(root: int, names: Sequence[str]) -> os.stat_result | None:
    """The file at `names`, None where there is none. Raises Refused for what is no regular file."""
    try:
        parent = open_folder_beneath(root, names[:-1])
    except FileNotFoundError:
        return None
    try:
        found = os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    finally:
        os.close(parent)
    if stat.S_ISLNK(found.st_mode):
        raise _link()
    if not stat.S_ISREG(found.st_mode):
        raise store.not_a_file()
    return found


def _check_same_folder(root: int, names: Sequence[str], parent: int) -> None:
    """The folder may have been moved away, out of the workspace even, since it was opened."""
    now = open_folder_beneath(root, names)
    try:
        if not os.path.samestat(os.fstat(now), os.fstat(parent)):
            raise store.conflict()
    finally:
        os.close(now)


def _write(parent: int, name: str, content: bytes, mode: int) -> None:
    opened = open_beneath(parent, (name,), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(opened, "wb") as handle:
        handle.write(content)
        handle.flush()
        os.fchmod(handle.fileno(), mode)
        os.fsync(handle.fileno())


def _walk(root: int, start: tuple[str, ...], most: int, depth: int) -> Listing:
    found: list[Entry] = []
    pending, looked_at, skipped, complete = [start], 0, 0, True
    while pending:
        names = pending.pop(0)
        try:
            folder = open_folder_beneath(root, names)
        except OSError:
            if names == start:
                raise
            continue  # gone, or closed to this user
        try:
            with os.scandir(folder) as entries:
                here = []
                for entry in entries:
                    looked_at += 1
                    if looked_at > most:
                        complete = False
                        break
                    made = _entry(names, entry)
                    if made is not None:
                        here.append(made)
                    elif not entry.name.startswith(store.TEMPORARY):
                        skipped += 1
        finally:
            os.close(folder)
        found += sorted(here, key=lambda entry: entry.names)
        folders = [entry.names for entry in found[len(found) - len(here) :] if entry.kind == "folder"]
        if len(names) - len(start) + 1 < depth:
            pending += folders
        elif folders:
            complete = False
        if looked_at > most:
            break
    return Listing(entries=tuple(found), complete=complete, skipped=skipped)


def _entry(names: tuple[str, ...], entry: os.DirEntry[str]) -> Entry | None:
    try:
        entry.name.encode("utf-8")
        status = entry.stat(follow_symlinks=False)
    except (UnicodeEncodeError, OSError):
        return None
    mode = status.st_mode
    kinds = (("file", stat.S_ISREG), ("folder", stat.S_ISDIR), ("link", stat.S_ISLNK))
    kind = next((kind for kind, holds in kinds if holds(mode)), None)
    if kind is None or entry.name.startswith(store.TEMPORARY):
        return None
    size = status.st_size if kind == "file" else 0
    return Entry(names=(*names, entry.name), kind=kind, size=size, modified=status.st_mtime)  # type: ignore[arg-type]


def _lock(root: int) -> None:
    """Holds the folder until its descriptor is closed. Raises Refused when somebody else keeps it."""
    until = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise store.busy() from None
        time.sleep(0.002)


def _clear_leftovers(parent: int) -> None:
    """Removes what a host that died in the middle left here. With the folder locked, nobody else's is on its way."""
    with os.scandir(parent) as entries:
        left = [entry.name for entry in entries if _LEFTOVER.fullmatch(entry.name)]
    for name in left:
        _unlink(parent, name)


def _unlink(parent: int, name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=parent)


def _remove_folders(root: int, names: tuple[str, ...], made: int) -> None:
    """Those that were made for a file, as far as they are empty: innermost first."""
    for length in range(len(names), len(names) - made, -1):
        with contextlib.suppress(OSError):
            parent = open_folder_beneath(root, names[: length - 1])
            try:
                os.rmdir(names[length - 1], dir_fd=parent)
            finally:
                os.close(parent)


# --- what the system refuses -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """The system's refusals, as a model may read them."""
    try:
        yield
    except OSError as error:
        raise _refusal(error) from error


def _refusal(error: OSError) -> Refused:
    match error.errno:
        case errno.ELOOP:
            return _link()
        case errno.EXDEV:
            return refused(
                "workspace.other_device", "the path leads into another file system", "Use a path without it.", "blocked"
            )
        case errno.ENOENT | errno.ENOTDIR | errno.ENAMETOOLONG:
            return store.not_found()
        case errno.EINVAL | errno.EISDIR | errno.ENXIO | errno.EEXIST:
            return store.not_a_file()
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return refused(
                "workspace.no_access",
                "the host may not do that with this path",
                "Ask the operator.",
                operator=str(error),
            )
        case errno.ENOSPC | errno.EDQUOT:
            return refused(
                "workspace.disk_full",
                "the disk of the workspace is full",
                "Ask the operator.",
                "limit_exceeded",
                operator=str(error),
            )
        case _:
            return refused(
                "workspace.unusable",
                "the workspace cannot be used now",
                "Nothing is wrong with the call.",
                "unavailable",
                operator=str(error),
                retryable=True,
            )


def _link() -> Refused:
    return refused(
        "workspace.link",
        "the path goes through a link, and links are not followed",
        "Use the file's own path.",
        "blocked",
    )
