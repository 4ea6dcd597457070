"""tools.lock: what a stranger's file was when it was accepted, so that a later change is noticed before it is used.

One JSON document in a folder that the operator owns: per file, the SHA-256 of its source and of what its tools said of
themselves. The first load records; a later difference is refused until it is accepted. A tool that changes its own
description after review is a known attack, and so is a file that is swapped.

Trusts the folder. A lock file that cannot be read is an error, never an empty lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from toolcage.errors import DeclarationError

FILE_NAME: Final = "tools.lock"
_Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Entry(BaseModel):
    """One accepted file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    source_sha256: _Digest
    description_sha256: _Digest


class _Document(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    version: Literal[1]
    files: dict[str, Entry]


class ToolsLock:
    """The lock of one folder. Safe between threads and processes: each change holds the folder's file lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / FILE_NAME

    @property
    def path(self) -> Path:
        """The lock's file."""
        return self._path

    def entry(self, file: str) -> Entry | None:
        """What was accepted for `file`, None where it was never loaded. Raises: DeclarationError for a broken lock."""
        return self._read().get(file)

    def record(self, file: str, entry: Entry) -> None:
        """Writes the entry, whole or not at all. Raises: DeclarationError when the folder cannot be written."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._alone():
                files = self._read() | {file: entry}
                document = _Document(version=1, files=dict(sorted(files.items())))
                self._replace(document.model_dump_json(indent=1) + "\n")
        except OSError as error:
            raise DeclarationError(f"{FILE_NAME} cannot be written, so nothing was loaded: {error.strerror}") from error

    def _read(self) -> dict[str, Entry]:
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise DeclarationError(f"{FILE_NAME} cannot be read: {error.strerror}") from error
        try:
            return dict(_Document.model_validate(json.loads(text)).files)
        except (ValueError, ValidationError):
            raise DeclarationError(
                f"{FILE_NAME} is damaged; restore it, or remove it and review every file again"
            ) from None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _replace(self, text: str) -> None:
        with tempfile.NamedTemporaryFile(
            "w", dir=self._folder, prefix=".tools-", delete=False, encoding="utf-8"
        ) as handle:
            try:
                handle.write(text)
                handle.flush()
                os.fsync(handle.fileno())
                os.replace(handle.name, self._path)
            except BaseException:
                os.unlink(handle.name)
                raise
