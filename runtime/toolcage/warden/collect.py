"""Which files a call left in its workspace. What the call started is dead by then, or stopped where a session goes on.

Regular files only; no link is followed, neither as the file nor on the way to it, whoever changes the tree meanwhile:
every folder and file is opened one component at a time and judged by its descriptor. Count, size, depth and name
length are capped while walking. An attached file is written with the time ATTACHED_MTIME_NS; one that still has it was
not changed and is left out, and so is one that an earlier call of the session brought already.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator

from toolcage.cage import wire

MAX_DEPTH = 8
MAX_NAME_BYTES = 240
MAX_ENTRIES = 4096
ATTACHED_MTIME_NS = 0
FILE_COUNT = 32
FILE_BYTES = 16 * 1024 * 1024
Known = dict[str, tuple[int, int, int]]
"""Files as they were when last looked at: name to inode, size and time of change, which a tool cannot set."""


def send_produced(root: str, send: Callable[[bytes], None], known: Known | None = None) -> tuple[int, int]:
    """Sends what the call left below `root` as encoded frames, under caps on count and on bytes together. Returns how
    many files were found and how many were sent. Files as in `known` are left out, and it is brought up to date."""
    found = produced(root, known)
    sent, left = 0, FILE_BYTES
    for name, size in found[:FILE_COUNT]:
        content = read_file(root, name, size) if size <= left else None
        if content is None:
            continue
        stream = wire.FIRST_FREE_STREAM + sent
        send(wire.encode_control(op="artifact", stream=stream, name=os.fsencode(name).hex()))
        for start in range(0, len(content), wire.MAX_DATA_BYTES):
            send(wire.encode(wire.DATA, stream, content[start : start + wire.MAX_DATA_BYTES]))
        sent, left = sent + 1, left - len(content)
    return len(found), sent


def produced(root: str, known: Known | None = None) -> list[tuple[str, int]]:
    """(name, size) of the regular files below `root` that were written or changed by the call, sorted by name."""
    known = {} if known is None else known
    now = {name: info for name, info in _walk(root) if info.st_mtime_ns != ATTACHED_MTIME_NS}
    seen = {name: (info.st_ino, info.st_size, info.st_ctime_ns) for name, info in now.items()}
    found = sorted((name, info.st_size) for name, info in now.items() if known.get(name) != seen[name])
    known.clear()
    known.update(seen)
    return found


def read_file(root: str, name: str, cap: int) -> bytes | None:
    """Up to `cap` bytes of one collected file, opened one component at a time without following links; None if it is
    not a regular file any more."""
    *parents, leaf = name.split("/")
    try:
        folder = _folder(root, parents)
    except OSError:
        return None
    try:
        descriptor = os.open(leaf, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as handle:
            return handle.read(cap) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(folder)


def _folder(root: str, parts: list[str]) -> int:
    """A descriptor of the folder, reached without following a link. Raises OSError where that is not possible."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for part in parts:
        try:
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        finally:
            os.close(folder)
        folder = deeper
    return folder


def _walk(root: str) -> Iterator[tuple[str, os.stat_result]]:
    seen = 0
    pending: list[list[str]] = [[]]
    while pending:
        parts = pending.pop()
        try:
            folder = _folder(root, parts)
        except OSError:
            continue
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MAX_ENTRIES:
                        return
                    name = "/".join([*parts, entry.name])
                    if len(os.fsencode(name)) > MAX_NAME_BYTES:
                        continue
                    try:
                        info = entry.stat(follow_symlinks=False)
                    except OSError:  # gone, or in a folder that may be listed and not entered
                        continue
                    if stat.S_ISDIR(info.st_mode):
                        if len(parts) + 1 < MAX_DEPTH:
                            pending.append([*parts, entry.name])
                    elif stat.S_ISREG(info.st_mode):
                        yield name, info
        finally:
            os.close(folder)
