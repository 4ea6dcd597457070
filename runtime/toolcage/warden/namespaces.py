"""New namespaces for one call inside a cage that serves many: enter, furnish, lock down, in this order.

`enter` is for the supervisor, which stays outside the new process namespace; `furnish` and `lock_down` are for the
first process of the call. Nothing here is optional: a step that the kernel refuses raises OSError and no tool code
runs. The container's own profile permits what these steps need; `lock_down` loads the `container` profile, which does
not.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from typing import Any

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, SECCOMP_MODE_FILTER = 4, 22, 24, 2
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
NEW_NAMESPACES = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x04000000 | 0x08000000 | 0x02000000
"""User, mount, process, network, host name, IPC and cgroup: CLONE_NEW… of clone(2)."""
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
CAPABILITY_VERSION_3 = 0x20080522
LAST_CAPABILITY = 63
_INERT = MS_NOSUID | MS_NODEV | MS_NOEXEC

_LIBC = ctypes.CDLL(None, use_errno=True)


def enter() -> None:
    """The calling process gets new user, mount, process, network, host name, IPC and cgroup namespaces of its own."""
    uid, gid = os.getuid(), os.getgid()
    _prctl(PR_SET_DUMPABLE, 1)  # a process that is not dumpable may not write its own uid_map
    if _LIBC.unshare(NEW_NAMESPACES) != 0:
        raise OSError(ctypes.get_errno(), "new namespaces refused")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as handle:
            handle.write(text)
    _prctl(PR_SET_DUMPABLE, 0)
    _loopback_up()
    _mount(None, "/", None, MS_REC | MS_PRIVATE)


def furnish(limits: dict[str, int]) -> None:
    """Fresh temporary folders, message queues and process table; the cage's data read-only. Sizes from `limits`."""
    own = f"mode=0700,nr_inodes={limits['tmp_inodes']},size={limits['file_bytes'] // 2}"
    _mount("tmpfs", "/tmp", "tmpfs", _INERT, own)  # noqa: S108 - the call's own tmpfs
    _mount("tmpfs", "/workspace", "tmpfs", _INERT, own)
    _mount("tmpfs", "/dev/shm", "tmpfs", _INERT, f"mode=1777,size={limits['shm_bytes']}")  # noqa: S108
    _mount("mqueue", "/dev/mqueue", "mqueue", _INERT)
    if os.path.ismount("/data"):
        _mount("/data", "/data", None, MS_BIND)
        _mount(None, "/data", None, MS_BIND | MS_REMOUNT | MS_RDONLY | _INERT)
    _mount("tmpfs", "/sys/fs/cgroup", "tmpfs", _INERT | MS_RDONLY, "size=4096")  # counts of all calls of the cage
    _mount("proc", "/proc", "proc", _INERT, "subset=pid")
    os.chdir("/workspace")


def lock_down(filters: dict[str, bytes]) -> None:
    """No capability in any set and the `container` profile loaded: from here on, this process is the tool's."""
    for capability in range(LAST_CAPABILITY + 1):
        if _LIBC.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) != 0:
            break  # the kernel knows no capability from here on; the sets below are emptied whole
    header = struct.pack("=II", CAPABILITY_VERSION_3, 0)
    if _LIBC.capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capabilities could not be dropped")
    program = filters[os.uname().machine]
    held = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    loaded = Program(len(program) // 8, ctypes.cast(held, ctypes.c_void_p))
    if _LIBC.prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(loaded), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the seccomp filter could not be loaded")


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl refused")


def _loopback_up() -> None:
    """A new network namespace has only `lo`, and that is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack("16xH14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    arguments: list[Any] = [None if text is None else text.encode() for text in (source, target, kind)]
    if _LIBC.mount(*arguments, ctypes.c_ulong(flags), options.encode() or None) != 0:
        raise OSError(ctypes.get_errno(), f"mount of {target} refused")
