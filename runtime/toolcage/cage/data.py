"""What a cage is given to read: consistent snapshots of databases, taken by the host, never the live file.

A snapshot is taken with the backup API, so a writer beside it is no problem and a write-ahead log is included; its
header is then set to the journal mode that a read-only folder can open. One connection per database stays open, because
`PRAGMA data_version` on it tells exactly whether anybody has written since: an unchanged database costs no copy.

A writer that died leaves a journal, and only who may write can roll it back. So a database that calls may change is
opened as one that may be written (`mends`); nothing but the engine's own recovery writes through that connection.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from toolcage.cage.spec import MIB, DataFile
from toolcage.errors import ResourceError

MAX_BYTES: Final = 64 * MIB
LOCKED_S: Final = 5.0
"""How long a copy waits for a writer that locked the file after the copy was begun."""
_HEADER: Final = b"SQLite format 3\x00"
_READ_WRITE_VERSION: Final = slice(18, 20)
_ROLLBACK_JOURNAL: Final = b"\x01\x01"
_UNREADABLE: Final = (OSError, sqlite3.Error, UnicodeDecodeError)
"""The last where the engine's message names something of a broken schema that is no text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A database as it was at one moment. `file` names it below /data."""

    file: DataFile
    content: bytes = field(repr=False)


@dataclass(slots=True, kw_only=True)
class _Open:
    connection: sqlite3.Connection
    identity: tuple[int, int]
    version: int
    snapshot: Snapshot


class Snapshots:
    """The current snapshot of each named database. Thread-safe; `close` releases the files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, _Open] = {}

    def current(self, name: str, path: Path, *, mends: bool = False) -> Snapshot:
        """A snapshot no older than this call. `mends`: what a writer that died has left half done may be undone in the
        file. Raises ResourceError that names the resource, not its path."""
        with self._lock:
            try:
                return self._current(name, path, "rw" if mends else "ro")
            except _UNREADABLE as error:
                self._forget(name)
                raise ResourceError(f"database {name} could not be read: {error}") from error

    def unchanged(self, name: str, path: Path, sha256: str) -> bool:
        """Whether the database still is what the snapshot of that digest holds. Told under the caller's write lock, it
        stays so. False where nobody can tell."""
        with self._lock:
            held = self._open.get(name)
            try:
                return (
                    held is not None
                    and held.snapshot.file.sha256 == sha256
                    and held.identity == _identity(path)
                    and _data_version(held.connection) == held.version
                )
            except _UNREADABLE:
                return False

    def close(self) -> None:
        with self._lock:
            for name in list(self._open):
                self._forget(name)

    def _current(self, name: str, path: Path, mode: str) -> Snapshot:
        identity = _identity(path)
        held = self._open.get(name)
        if held is not None and held.identity == identity:
            if _data_version(held.connection) == held.version:
                return held.snapshot
        else:
            self._forget(name)
            connection = sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, check_same_thread=False)
            connection.execute("PRAGMA query_only=ON")
            held = None
        source = held.connection if held is not None else connection
        version = _data_version(source)
        snapshot = _take(name, source)
        self._open[name] = _Open(connection=source, identity=identity, version=version, snapshot=snapshot)
        return snapshot

    def _forget(self, name: str) -> None:
        held = self._open.pop(name, None)
        if held is not None:
            held.connection.close()


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode: a file that was replaced is another database."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _take(name: str, source: sqlite3.Connection) -> Snapshot:
    pages = source.execute("PRAGMA page_count").fetchone()[0] * source.execute("PRAGMA page_size").fetchone()[0]
    if pages > MAX_BYTES:
        raise ResourceError(f"database {name} is larger than {MAX_BYTES} bytes, the most that is sent into a cage")
    with sqlite3.connect(":memory:") as copy:
        source.backup(copy, progress=_patience(time.monotonic() + LOCKED_S))
        content = bytearray(copy.serialize())
    copy.close()
    if content[:16] == _HEADER:
        content[_READ_WRITE_VERSION] = _ROLLBACK_JOURNAL
    file = DataFile(name=f"{name}.sqlite", size=len(content), sha256=hashlib.sha256(content).hexdigest())
    return Snapshot(file=file, content=bytes(content))


def _patience(until: float) -> Callable[[int, int, int], None]:
    """Left to itself, a backup tries for ever."""

    def progress(status: int, _remaining: int, _total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() >= until:
            raise sqlite3.OperationalError("database is locked")

    return progress
