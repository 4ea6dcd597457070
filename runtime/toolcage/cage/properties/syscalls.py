"""P10 to P22: system calls that nothing in a cage needs and that breakouts are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolcage.cage.properties.model import Finding, Seen, allowed_of, found

_KINDS: Final = ("user", "mount", "net", "pid", "ipc", "uts", "cgroup")
BY_PROPERTY: Final = {
    "P10": ("mount", "umount2", "pivot_root", "fsopen", "move_mount", "open_tree"),
    "P11": ("bpf",),
    "P12": ("perf_event_open",),
    "P13": ("keyctl", "add_key", "request_key"),
    "P14": ("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "move_pages", "kcmp", "pidfd_getfd"),
    "P15": ("init_module", "finit_module", "kexec_load"),
    "P16": ("userfaultfd",),
    "P17": ("io_uring_setup",),
    "P18": ("open_by_handle_at", "name_to_handle_at"),
    "P20": ("setns", "clone3", *(f"{how} {kind}" for how in ("unshare", "clone") for kind in _KINDS), "unshare time"),
    "P21": (
        "personality", "swapon", "reboot", "settimeofday", "clock_settime", "sethostname", "quotactl", "syslog", "acct",
    ),
    "P22": ("memfd_create", "execveat"),
}  # fmt: skip
"""Names as the probe has them; each must be refused."""
_SHARED: Final = ("inotify_init1", "fanotify_init", "shmget", "msgget", "mq_open", "vmsplice")


def judge(seen: Seen) -> Iterator[Finding]:
    answers = seen.inside["syscalls"]
    for number, names in BY_PROPERTY.items():
        also = _SHARED if number == "P21" else ()
        told = ", ".join(f"{name} {answers[name]}" for name in (*names, *also))
        yield found(number, allowed_of(answers, (*names, *also)), told)
    opened = [name for name, answer in seen.inside["sockets"].items() if answer is True]
    yield found("P19", opened, f"none could be made of: {', '.join(seen.inside['sockets'])}")
