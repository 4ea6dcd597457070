"""What the kernel counted for this cage: cgroup v1 and v2, read from inside. Missing files read as zero.

The host classifies outcomes from differences of these counters, never from an exit code.
"""

from __future__ import annotations

import os

_V1 = {
    "oom_kills": ("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill"),
    "pids_refused": ("/sys/fs/cgroup/pids/pids.events", "max"),
    "memory_peak": ("/sys/fs/cgroup/memory/memory.max_usage_in_bytes", None),
}
_V2 = {
    "oom_kills": ("/sys/fs/cgroup/memory.events", "oom_kill"),
    "pids_refused": ("/sys/fs/cgroup/pids.events", "max"),
    "memory_peak": ("/sys/fs/cgroup/memory.peak", None),
}


def read() -> dict[str, int]:
    """`oom_kills` and `pids_refused` as counts since the cage began, `memory_peak` in bytes."""
    return {name: _value(*_V2[name]) or _value(*_V1[name]) for name in _V2}


def _value(path: str, key: str | None) -> int:
    try:
        with open(path, encoding="ascii") as handle:
            text = handle.read(4096)
    except OSError:
        return 0
    if key is None:
        return _number(text)
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return _number(value)
    return 0


def _number(text: str) -> int:
    stripped = text.strip()
    return int(stripped) if stripped.isdigit() else 0


def children_cpu_s() -> float:
    """Processor seconds, user and system, of every process that the warden has reaped."""
    times = os.times()
    return times.children_user + times.children_system
