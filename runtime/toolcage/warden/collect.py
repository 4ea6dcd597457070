"""Which files a call left in its workspace. Runs only after everything that the call started is dead.

Regular files only; no link is followed, neither as the file nor on the way to it; count, size, depth and name length
are capped while walking. An attached file is written with the time ATTACHED_MTIME_NS; one that still has it was not
changed and is left out.
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


def send_produced(root: str, send: Callable[[bytes], None]) -> tuple[int, int]:
    """Sends what the call left below `root` as encoded frames, under caps on count and on bytes together. Returns how
    many files were found and how many were sent."""
    found = produced(root)
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


def produced(root: str) -> list[tuple[str, int]]:
    """(name, size) of the regular files below `root` that were written or changed by the call, sorted by name."""
    found = ((name, info) for name, info in _walk(root) if info.st_mtime_ns != ATTACHED_MTIME_NS)
    return sorted((name, info.st_size) for name, info in found)


def read_file(root: str, name: str, cap: int) -> bytes | None:
    """Up to `cap` bytes of one collected file, opened one component at a time without following links; None if it is
    not a regular file any more."""
    folder = -1
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        *parents, leaf = name.split("/")
        for part in parents:
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = deeper
        descriptor = os.open(leaf, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as handle:
            return handle.read(cap) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except OSError:
        return None
    finally:
        if folder >= 0:
            os.close(folder)


def _walk(root: str) -> Iterator[tuple[str, os.stat_result]]:
    seen = 0
    pending = [("", 0)]
    while pending:
        prefix, depth = pending.pop()
        try:
            entries = os.scandir(os.path.join(root, prefix))
        except OSError:
            continue
        with entries:
            for entry in entries:
                seen += 1
                if seen > MAX_ENTRIES:
                    return
                name = f"{prefix}/{entry.name}" if prefix else entry.name
                if len(os.fsencode(name)) > MAX_NAME_BYTES:
                    continue
                try:
                    info = entry.stat(follow_symlinks=False)
                except OSError:  # a folder that may be listed and not entered: its files stay where they are
                    continue
                if stat.S_ISDIR(info.st_mode):
                    if depth + 1 < MAX_DEPTH:
                        pending.append((name, depth + 1))
                elif stat.S_ISREG(info.st_mode):
                    yield name, info
