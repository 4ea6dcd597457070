"""Our own modules as an image's Python compiled them, kept so that its next cages need not compile them again.

The code comes from a cage that had received nothing but our sources when it told it: no tool, no call. It is used for
cages of exactly the same image and the same sources only, so whoever could have tampered with it there, which is the
image's own interpreter, runs in each of those cages anyway. For this side it is opaque: capped, hashed, never
unmarshalled. On disk it lies in the state directory, and is believed only where nobody but its owner can write and the
content's digest is right; otherwise, and where the disk takes nothing, cages compile the sources as they always could.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import struct
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

CODE_BYTES: Final = 4 * 1024 * 1024
KEPT_FILES: Final = 32
_FORMAT: Final = b"toolcage compiled 1"
_LENGTH: Final = struct.Struct("!I")
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


class CompiledModules:
    """Compiled modules by image and sources, in memory and below `state_dir`. Thread-safe."""

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / "compiled"
        self._lock = threading.Lock()
        self._held: dict[str, Mapping[str, bytes]] = {}

    def get(self, image_id: str, sources: Mapping[str, bytes]) -> Mapping[str, bytes] | None:
        """The code of every module in `sources`, None where no cage of that image has told it."""
        key = _key(image_id, sources)
        with self._lock:
            if key not in self._held:
                found = self._read(key)
                if found is None or list(found) != list(sources):
                    return None
                self._held[key] = found
            return self._held[key]

    def keep(self, image_id: str, sources: Mapping[str, bytes], code: Mapping[str, bytes]) -> None:
        """For the next cages of that image. What is kept already stays."""
        key = _key(image_id, sources)
        with self._lock:
            if key in self._held:
                return
            self._held[key] = code
            with contextlib.suppress(OSError):  # a full or read-only disk costs the next process time, nothing else
                self._write(key, code)

    def _read(self, key: str) -> dict[str, bytes] | None:
        try:
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        try:  # by descriptor: what was looked at is what is opened, whatever takes its name meanwhile
            _check_ours(os.fstat(folder), stat.S_ISDIR)
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(key, flags, dir_fd=folder), "rb") as file:
                _check_ours(os.fstat(file.fileno()), stat.S_ISREG)
                return _opened(key, file.read(2 * CODE_BYTES))
        except (OSError, ValueError):
            return None
        finally:
            os.close(folder)

    def _write(self, key: str, code: Mapping[str, bytes]) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_ours(os.lstat(self._folder), stat.S_ISDIR)
        descriptor, name = tempfile.mkstemp(dir=self._folder, prefix=".new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_sealed(key, code))
            os.replace(name, self._folder / key)
        except BaseException:
            os.unlink(name)
            raise
        self._forget_old()

    def _forget_old(self) -> None:
        """Images and versions that were used longest ago: each key is a handful of files in a lifetime."""
        files = sorted(self._folder.iterdir(), key=lambda path: path.lstat().st_mtime_ns, reverse=True)
        for path in files[KEPT_FILES:]:
            path.unlink(missing_ok=True)


def _key(image_id: str, sources: Mapping[str, bytes]) -> str:
    total = hashlib.sha256(_FORMAT + b"\0" + image_id.encode())
    for name, text in sources.items():
        total.update(f"\0{name}\0{hashlib.sha256(text).hexdigest()}".encode())
    return total.hexdigest()


def _sealed(key: str, code: Mapping[str, bytes]) -> bytes:
    head = json.dumps({"key": key, "pieces": [(name, len(piece)) for name, piece in code.items()]}).encode()
    body = b"".join((_LENGTH.pack(len(head)), head, *code.values()))
    return hashlib.sha256(body).digest() + body


def _opened(key: str, content: bytes) -> dict[str, bytes]:
    """Raises ValueError for what was torn, swapped with another file, or is no such file."""
    digest, body = content[:32], content[32:]
    if len(body) < _LENGTH.size or hashlib.sha256(body).digest() != digest:
        raise ValueError("not what was written")
    start = _LENGTH.size + _LENGTH.unpack_from(body)[0]
    head = json.loads(body[_LENGTH.size : start])  # ours: its digest is right, and only we can write there
    if head["key"] != key:
        raise ValueError("for another image or other sources")
    found = {}
    for name, size in head["pieces"]:
        found[name] = body[start : start + size]
        start += size
    return found


def _check_ours(status: os.stat_result, is_kind: Callable[[int], bool]) -> None:
    """Raises OSError where another user could have put it there."""
    if not is_kind(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & _WRITABLE_BY_OTHERS:
        raise PermissionError("another user could have written it")
