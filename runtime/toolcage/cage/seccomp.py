"""The seccomp profile of a cage: loaded from data, checked before it is ever handed to an engine.

Decides whether `sandbox_images/seccomp/NAME.json` is an allowlist that keeps its promises: refuse by default, native
calls only, nothing of `FORBIDDEN` allowed, no rule that another one makes void. Trusts nothing in the file, although it
ships with the package. It does not enforce: the kernel does, and the tests call every refused system call from inside a
cage. The why of each rule is in `sandbox_images/seccomp/README.md`.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from toolcage.errors import ImageError
from toolcage.shipped import shipped_dir

Action = Literal["SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"]

FORBIDDEN: Final = frozenset(
    """
    _sysctl acct add_key adjtimex afs_syscall bpf cachestat capset chroot clock_adjtime clock_settime clone3
    create_module delete_module execveat fanotify_init fanotify_mark finit_module fremovexattr fsconfig fsetxattr
    fsmount fsopen fspick get_kernel_syms get_mempolicy getpmsg init_module inotify_add_watch inotify_init
    inotify_init1 io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit io_uring_enter
    io_uring_register io_uring_setup ioperm iopl ioprio_get ioprio_set kcmp kexec_file_load kexec_load keyctl
    listmount lookup_dcookie lremovexattr lsetxattr lsm_get_self_attr lsm_list_modules lsm_set_self_attr mbind
    memfd_create memfd_secret migrate_pages mincore modify_ldt mount mount_setattr move_mount move_pages
    mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd
    name_to_handle_at nfsservctl open_by_handle_at open_tree open_tree_attr perf_event_open personality pidfd_getfd
    pivot_root process_madvise process_mrelease process_vm_readv process_vm_writev ptrace putpmsg query_module
    quotactl quotactl_fd reboot remap_file_pages removexattr removexattrat request_key sched_setattr seccomp
    security semctl semget semop semtimedop set_mempolicy set_mempolicy_home_node setdomainname setfsgid setfsuid
    setgid setgroups sethostname setns setregid setresgid setresuid setreuid settimeofday setuid setxattr setxattrat
    shmat shmctl shmdt shmget splice statmount swapoff swapon sync syncfs sysfs syslog tee tuxcall umount umount2
    unshare uselib userfaultfd ustat vhangup vmsplice vserver
    """.split()  # noqa: SIM905 - a page of names reads better than a page of quotes
)
"""System calls that no profile of a cage may allow, on no condition."""

CONDITIONAL: Final = frozenset(
    """
    arch_prctl clone ioctl mknod mknodat prctl prlimit64 sched_setaffinity sched_setparam sched_setscheduler setpriority
    setsockopt socket socketpair
    """.split()  # noqa: SIM905 - a page of names reads better than a page of quotes
)
"""System calls that may be allowed only with a condition on their arguments."""


_AF_INET, _AF_INET6 = 2, 10

NAMESPACE_ADDITIONS: Final = frozenset({"capset", "ioctl", "mount", "prctl", "unshare"})
"""System calls that the `namespace` profile may add for the warden's own use."""


class _Condition(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    index: Annotated[int, Field(ge=0, le=5)]
    value: Annotated[int, Field(ge=0, lt=2**64)]
    valueTwo: Annotated[int, Field(ge=0, lt=2**64)] = 0  # noqa: N815 - the format's own spelling
    op: Literal["SCMP_CMP_EQ", "SCMP_CMP_LT", "SCMP_CMP_MASKED_EQ"]


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    names: Annotated[list[Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")]], Field(min_length=1)]
    action: Action
    args: list[_Condition] = []
    errnoRet: Annotated[int, Field(gt=0, lt=4096)] | None = None  # noqa: N815

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        indexes = [condition.index for condition in self.args]
        if len(set(indexes)) != len(indexes):
            # runc turns such a rule into alternatives, so that the wider condition alone would let a call pass
            raise ValueError(f"two conditions on one argument of {self.names[0]}")
        if self.action == "SCMP_ACT_ERRNO" and (self.args or self.errnoRet is None):
            raise ValueError(f"a refusal of {self.names[0]} takes an errnoRet and no conditions")
        return self


class _Architecture(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    architecture: Literal["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"]
    subArchitectures: Annotated[list[str], Field(max_length=0)]  # noqa: N815 - none: no i386, no x32, no 32-bit ARM


class _Profile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    defaultAction: Literal["SCMP_ACT_ERRNO"]  # noqa: N815
    defaultErrnoRet: Literal[1]  # noqa: N815
    archMap: Annotated[list[_Architecture], Field(min_length=1)]  # noqa: N815
    syscalls: list[_Rule]

    @model_validator(mode="after")
    def _keeps_its_promises(self) -> Self:
        always: set[str] = set()
        sometimes: set[str] = set()
        refused: set[str] = set()
        for rule in self.syscalls:
            target = refused if rule.action == "SCMP_ACT_ERRNO" else sometimes if rule.args else always
            repeated = sorted(name for name in rule.names if name in target and target is not sometimes)
            if repeated or len(set(rule.names)) != len(rule.names):
                raise ValueError(f"named twice: {repeated or rule.names}")
            target.update(rule.names)
        _refuse("allowed although forbidden", (always | sometimes) & FORBIDDEN)
        _refuse("allowed without a condition", always & CONDITIONAL)
        _refuse("allowed by one rule and bounded or refused by another", always & (sometimes | refused))
        _refuse("both allowed and refused", sometimes & refused)
        return self


class _Additions(BaseModel):
    """What `namespace` isolation adds: the whole list of what it may be."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    syscalls: list[_Rule]

    @model_validator(mode="after")
    def _are_the_known_ones(self) -> Self:
        for rule in self.syscalls:
            _refuse("not among what namespaces need", set(rule.names) - NAMESPACE_ADDITIONS)
            if not rule.args:
                _refuse("allowed without a condition", set(rule.names) & CONDITIONAL)
        return self


def _refuse(why: str, names: set[str]) -> None:
    if names:
        raise ValueError(f"{why}: {', '.join(sorted(names))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeccompProfile:
    """A checked profile: `text` is its JSON as the engine takes it, `digest` the `sha256:…` of that."""

    name: str
    text: str
    digest: str
    allowed: frozenset[str]


@cache
def load_profile(
    name: Literal["container", "namespace"] = "container", *, internet: bool = True
) -> SeccompProfile:
    """The shipped profile `name`. Raises ImageError when it is missing or breaks one of its promises.

    `namespace` is `container` plus what the warden of a cage that serves many calls needs to isolate each; the calls
    themselves run under `container`, loaded by each on itself. With `internet` the one socket that reaches a portal can
    be made, IPv4 with TCP. Every other Internet family is an unknown one: no call has a use for it, and some kernels
    count its buffers to nobody.
    """
    folder = shipped_dir("sandbox_images") / "seccomp"
    container = _with_unknown_families(read_profile(folder / "container.json"), internet)
    if name == "container":
        return container
    return _widened(container, folder / "namespace_additions.json")


def _with_unknown_families(profile: SeccompProfile, internet: bool) -> SeccompProfile:
    """The refusals that programs know how to go on after. Without `internet` IPv4 is unknown too."""
    document = json.loads(profile.text)
    if not internet:
        document["syscalls"] = [rule for rule in document["syscalls"] if not _allows(rule, _AF_INET)]
    document["syscalls"] += [
        {"names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.EAFNOSUPPORT,
         "args": [{"index": 0, "value": family, "op": "SCMP_CMP_EQ"}]}
        for family in ((_AF_INET6,) if internet else (_AF_INET, _AF_INET6))
    ]  # fmt: skip
    return _profile(profile.name, document, profile.allowed)


def _allows(rule: Mapping[str, Any], family: int) -> bool:
    return "socket" in rule["names"] and any(
        condition["index"] == 0 and condition["value"] == family for condition in rule.get("args", ())
    )


def _widened(container: SeccompProfile, path: Path) -> SeccompProfile:
    try:
        additions = _Additions.model_validate_json(path.read_bytes())
    except OSError as cause:
        raise ImageError(f"{path}: cannot be read: {cause.strerror}; reinstall toolcage") from cause
    except ValidationError as cause:
        raise ImageError(f"{path}: {cause.errors()[0]['msg']}; restore the shipped file") from None
    document = json.loads(container.text)
    document["syscalls"] += [rule.model_dump(exclude_unset=True) for rule in additions.syscalls]
    added = frozenset(name for rule in additions.syscalls for name in rule.names)
    return _profile("namespace", document, container.allowed | added)


def read_profile(path: Path) -> SeccompProfile:
    """The profile in the file `path`. Raises ImageError when it is not there, not of the format, or too wide."""
    try:
        raw = path.read_bytes()
        model = _Profile.model_validate_json(raw)
    except OSError as cause:
        raise ImageError(f"{path}: cannot be read: {cause.strerror}; reinstall toolcage") from cause
    except ValidationError as cause:
        first = cause.errors()[0]
        place = ".".join(map(str, first["loc"])) or "profile"
        raise ImageError(f"{path}: {place}: {first['msg']}; restore the shipped file") from None
    allowed = frozenset(name for rule in model.syscalls if rule.action == "SCMP_ACT_ALLOW" for name in rule.names)
    return _profile(path.stem, json.loads(raw), allowed)


def _profile(name: str, document: object, allowed: frozenset[str]) -> SeccompProfile:
    text = json.dumps(document, separators=(",", ":"), sort_keys=True)
    return SeccompProfile(
        name=name,
        text=text,
        digest=f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
        allowed=allowed,
    )
