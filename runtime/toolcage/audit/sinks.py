"""The files of one runtime's log: opened exclusively, written in whole groups, rotated by size.

Decides when a group of lines is durable: one write, one fdatasync. Trusts the folder's owner and nobody else: a folder
that others can write to is refused, and no symbolic link is followed to a file. Does not know what a line means. After
a failed write the file is cut back to its last good length; while that is not possible nothing more is written
anywhere, because two files would then hold two successors of one record.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Final

from toolcage.errors import AuditError

_CREATE: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def file_name(runtime_id: str, index: int) -> str:
    """The name of a runtime's file number `index`, so that names sort in the order of the chain."""
    return f"{runtime_id}.{index:06d}.jsonl"


class FileSink:
    """Where lines become durable. One thread writes; `reopen` and `close` are for when no write is under way."""

    def __init__(self, directory: Path, runtime_id: str, max_file_bytes: int) -> None:
        self._directory = directory
        self._runtime_id = runtime_id
        self._max_file_bytes = max_file_bytes
        self._index = 0
        self._path = directory / file_name(runtime_id, 0)
        self._fd = -1
        self._size = 0
        self._torn = False
        _prepare(directory)
        self._open_next()

    @property
    def path(self) -> Path:
        """The file that is written to now."""
        return self._path

    def write(self, lines: bytes) -> None:
        """Returns when `lines` are durable, all of them.

        Raises:
            OSError: they are not, and the file holds none of them unless `reopen` says otherwise.
        """
        if self._size and self._size + len(lines) > self._max_file_bytes:
            self._open_next()
        self._check_present()
        try:
            _write_all(self._fd, lines)
            os.fdatasync(self._fd)
        except OSError:
            self._cut_back()
            raise
        self._size += len(lines)

    def reopen(self) -> None:
        """After a failure: a new file to go on in.

        Raises:
            OSError: there is none to be had, or the old one still holds lines that were never durable.
        """
        if self._torn:
            self._cut_back()
            if self._torn:
                raise OSError(errno.EIO, "the last audit file cannot be cut back to its last good record")
        self._open_next()

    def close(self) -> None:
        """Closes the file; a file without any record is removed."""
        if self._fd < 0:
            return
        os.close(self._fd)
        self._fd = -1
        if self._size == 0 and not self._torn:
            with contextlib.suppress(OSError):
                self.path.unlink()

    def _open_next(self) -> None:
        path = self._directory / file_name(self._runtime_id, self._index + 1)
        fd = os.open(path, _CREATE, 0o600)
        try:
            _sync_directory(self._directory)
        except OSError:
            os.close(fd)
            with contextlib.suppress(OSError):
                path.unlink()
            raise
        self.close()
        self._index += 1
        self._path = path
        self._fd, self._size, self._torn = fd, 0, False

    def _check_present(self) -> None:
        """A log that was deleted or replaced under us must stop the line, not swallow its records."""
        ours = os.fstat(self._fd)
        there = os.lstat(self.path)
        if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
            raise OSError(errno.ESTALE, "the audit file was replaced by another")
        if ours.st_size != self._size:
            raise OSError(errno.ESTALE, "the audit file was changed by someone else")

    def _cut_back(self) -> None:
        self._torn = True
        try:
            os.ftruncate(self._fd, self._size)
            os.fdatasync(self._fd)
        except OSError:
            return
        self._torn = False


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        written = os.write(fd, view)
        view = view[written:]


def _prepare(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.stat()
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
        raise AuditError(
            f"audit folder refused: {directory} belongs to someone else or others can write to it; "
            f"use a folder of your own with mode 0700"
        )


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
