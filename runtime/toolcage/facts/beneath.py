"""Opens a file or folder beneath a directory's descriptor, for host-side use: no link is followed, nothing outside is
reached.

One `openat2` with RESOLVE_BENEATH, NO_MAGICLINKS, NO_SYMLINKS and NO_XDEV where the kernel has it (Linux 5.6), else one
`openat` with O_NOFOLLOW per component. Either way the check *is* the open, so nothing can be swapped in between; what
came back is a regular file or it is closed again.

Takes components, not a text: whoever calls has read the path (`facts/path.py`) and acts on exactly what was checked.
Not covered: hard links that somebody with rights outside made inside.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Sequence
from typing import Final

_OPENAT2: Final = 437  # the same number on every architecture
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_RESOLVE: Final = _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
_FIXED: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(directory_fd: int, names: Sequence[str], flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """A descriptor of the regular file at `names` beneath `directory_fd`. The caller closes it.

    `flags` as for `os.open`; O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK and O_NOCTTY are added. Parent folders must exist.

    Raises:
        ValueError: a component is empty, `.`, `..`, or holds a slash or NUL.
        OSError: as the system says: ELOOP or EXDEV for what would leave, ENOENT, EACCES; EINVAL for what is not a
            regular file.
    """
    if not names or any(name in ("", ".", "..") or "/" in name or "\x00" in name for name in names):
        raise ValueError("a path beneath a directory is one or more plain names")
    opened = _openat2(directory_fd, "/".join(names), flags | _FIXED, mode)
    if opened is None:
        opened = _openat_each(directory_fd, names, flags | _FIXED, mode)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return opened


def open_folder_beneath(directory_fd: int, names: Sequence[str]) -> int:
    """A descriptor of the folder at `names` beneath `directory_fd`; no names are the directory itself. The caller
    closes it. Raises as `open_beneath` does; ENOTDIR for what is no folder."""
    if any(name in ("", ".", "..") or "/" in name or "\x00" in name for name in names):
        raise ValueError("a path beneath a directory is one or more plain names")
    if not names:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory_fd)
    opened = _openat2(directory_fd, "/".join(names), os.O_RDONLY | os.O_DIRECTORY | _FIXED, 0)
    return _openat_each(directory_fd, names, os.O_RDONLY | os.O_DIRECTORY | _FIXED, 0) if opened is None else opened


def make_folders_beneath(directory_fd: int, names: Sequence[str], mode: int = 0o700) -> tuple[int, int]:
    """A descriptor of the folder at `names`, made where it was missing, and how many of the last names were made.

    Each name is made in, and opened from, the descriptor of the one before. Raises as `open_folder_beneath` does.
    """
    current, made = open_folder_beneath(directory_fd, ()), 0
    try:
        for name in names:
            try:
                inner = open_folder_beneath(current, (name,))
            except FileNotFoundError:
                os.mkdir(name, mode, dir_fd=current)
                made += 1
                inner = open_folder_beneath(current, (name,))
            os.close(current)
            current = inner
    except BaseException:
        os.close(current)
        raise
    return current, made


def _openat2(directory_fd: int, path: str, flags: int, mode: int) -> int | None:
    """The descriptor, or None where this system has no openat2."""
    if not os.uname().sysname.startswith("Linux"):
        return None
    how = _OpenHow(flags=flags, mode=mode if flags & os.O_CREAT else 0, resolve=_RESOLVE)
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    opened: int = syscall(_OPENAT2, directory_fd, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    if opened >= 0:
        return opened
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EPERM):  # a filter in front of the kernel answers EPERM for what it does not know
        return None
    raise OSError(number, os.strerror(number))


def _openat_each(directory_fd: int, names: Sequence[str], flags: int, mode: int) -> int:
    *parents, last = names
    current = os.dup(directory_fd)
    try:
        device = os.fstat(directory_fd).st_dev
        for name in parents:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current)
            os.close(current)
            current = inner
            if os.fstat(current).st_dev != device:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return os.open(last, flags, mode, dir_fd=current)
    finally:
        os.close(current)
