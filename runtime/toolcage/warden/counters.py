"""What the kernel counted for this cage: cgroup v1 and v2, read from inside. Missing files read as zero.

The files are opened once, by the warden alone: they are read at both ends of every call. The host classifies outcomes
from differences of these counters, never from an exit code.
"""

from __future__ import annotations

import os

_V1 = {
    "oom_kills": ("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill"),
    "pids_refused": ("/sys/fs/cgroup/pids/pids.events", "max"),
    "memory_peak": ("/sys/fs/cgroup/memory/memory.max_usage_in_bytes", None),
    "cpu_ns": ("/sys/fs/cgroup/cpuacct/cpuacct.usage", None),
}
_V2 = {
    "oom_kills": ("/sys/fs/cgroup/memory.events", "oom_kill"),
    "pids_refused": ("/sys/fs/cgroup/pids.events", "max"),
    "memory_peak": ("/sys/fs/cgroup/memory.peak", None),
    "cpu_us": ("/sys/fs/cgroup/cpu.stat", "usage_usec"),
}


def read() -> dict[str, int]:
    """Counts since the cage began: `oom_kills`, `pids_refused`, `memory_peak` in bytes, `cpu_us` in microseconds."""
    if _open(_V2["cpu_us"][0]) is not None:
        return {name: _value(*place) for name, place in _V2.items()}
    found = {name: _value(*place) for name, place in _V1.items()}
    found["cpu_us"] = found.pop("cpu_ns") // 1000
    return found


def held_bytes() -> int:
    """Memory that processes and temporary files of this cage hold now: anonymous and shared, no page cache."""
    for path, names in (("/sys/fs/cgroup/memory.stat", ("anon", "shmem")),
                        ("/sys/fs/cgroup/memory/memory.stat", ("rss", "shmem"))):  # fmt: skip
        found = sum(_value(path, name) for name in names)
        if found:
            return found
    return 0


def _value(path: str, key: str | None) -> int:
    descriptor = _open(path)
    if descriptor is None:
        return 0
    try:
        text = os.pread(descriptor, 4096, 0).decode("ascii", "replace")
    except OSError:
        return 0
    if key is None:
        return _number(text)
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return _number(value)
    return 0


_opened: dict[str, int | None] = {}


def _open(path: str) -> int | None:
    if path not in _opened:
        try:
            _opened[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            _opened[path] = None
    return _opened[path]


def _number(text: str) -> int:
    stripped = text.strip()
    return int(stripped) if stripped.isdigit() else 0
