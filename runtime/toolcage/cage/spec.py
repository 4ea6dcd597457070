"""What a cage is to be: a pure description, and the engine's configuration that follows from it.

Every hardening setting is a constant of this module. Nothing here is taken from a tool's argument; what a grant may
choose (image, sizes, processors, runtime) are the fields of `CageSpec`. `weakenings` says in words what makes a cage
weaker than the strongest one; `attest.py` compares the configuration with what the engine made of it.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from toolcage.types import Isolation, SandboxTerms

MIB: Final = 1024 * 1024
SHM_BYTES: Final = 8 * MIB
TMP_INODES: Final = 16 * 1024
NOFILE: Final = 1024
HOSTNAME: Final = "cage"
LABEL_HOST, LABEL_RUNTIME, LABEL_LEASE = "toolcage.host", "toolcage.runtime", "toolcage.lease-until"
FIRST_UID: Final = 100_000
USERS: Final = range(FIRST_UID, 1 << 30)
"""The user numbers of cages: above those of people and programs, so that a cage's user owns nothing on the host."""
MAPPED_USERS: Final = range(20_000, 65_000)
"""The same where the engine maps users (userns-remap, rootless): to 65,536 others of the host, and no more exist."""

ENVIRONMENT: Final = ("HOME=/workspace", "LANG=C.UTF-8", "PATH=/usr/bin:/bin", "TMPDIR=/tmp")
MASKED_PATHS: Final = (
    "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
    "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",
)  # fmt: skip
NO_TERMINALS: Final = "ro,nosuid,nodev,noexec,mode=0555,size=4096,nr_inodes=1"
"""In the place of the terminals' file system: the kernel has few of them for all containers together, and nothing in a
cage could use one."""
READONLY_PATHS: Final = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file that every call in the cage may read below /data: its name there, size in bytes and SHA-256 in hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CageSpec:
    """One kind of cage. Two calls may use cages of one pool exactly when their specs are equal.

    `image_id` is a digest, never a tag. Sizes in bytes. `tmp_bytes` is shared out between /tmp and /workspace.
    `internet`: its calls may make sockets of the Internet families, to reach the portals on their loopback.
    """

    image_id: str
    isolation: Isolation
    memory_bytes: int
    cpus: float
    pids: int
    tmp_bytes: int
    runtime: str | None = None
    data: tuple[DataFile, ...] = ()
    internet: bool = False

    def __post_init__(self) -> None:
        if self.tmp_bytes + SHM_BYTES >= self.memory_bytes:
            raise ValueError("tmp and shm sizes must sum to less than the memory limit")

    @property
    def digest(self) -> str:
        """The pool's key: SHA-256 over every field."""
        return _digest(self)

    @property
    def data_bytes(self) -> int:
        return sum(item.size for item in self.data)


def users_under(info: Mapping[str, Any]) -> range:
    """The numbers that users of cages may have on the engine that says `info` of itself."""
    options = map(str, info.get("SecurityOptions") or ())
    mapped = any(word in option for option in options for word in ("userns", "rootless"))
    return MAPPED_USERS if mapped else USERS


@functools.lru_cache(maxsize=256)
def _digest(spec: CageSpec) -> str:
    """Asked for several times in each call."""
    return hashlib.sha256(json.dumps(asdict(spec), sort_keys=True).encode()).hexdigest()


def container_config(
    spec: CageSpec, *, uid: int, command: tuple[str, ...], labels: Mapping[str, str], seccomp: str
) -> dict[str, Any]:
    """The body of the engine's create request, complete: no default of the engine is relied upon."""
    if uid not in USERS and uid not in MAPPED_USERS:
        raise ValueError("a cage needs a user id of its own")
    return {
        "Image": spec.image_id,
        "Entrypoint": [],
        "Cmd": list(command),
        "User": f"{uid}:{uid}",
        "WorkingDir": "/workspace",
        "Hostname": HOSTNAME,
        "Env": list(ENVIRONMENT),
        "Labels": dict(labels),
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": False,
        "NetworkDisabled": True,
        "StopSignal": "SIGKILL",
        "HostConfig": host_config(spec, uid=uid, seccomp=seccomp),
    }


def host_config(spec: CageSpec, *, uid: int, seccomp: str) -> dict[str, Any]:
    """The hardening. The data files' own tmpfs is added on top of the memory that the grant gives to the tool."""
    memory = spec.memory_bytes + spec.data_bytes
    config: dict[str, Any] = {
        "NetworkMode": "none",
        "CapDrop": ["ALL"],
        "CapAdd": [],
        "Privileged": False,
        "SecurityOpt": ["no-new-privileges", f"seccomp={seccomp}"],
        "ReadonlyRootfs": True,
        "Tmpfs": _tmpfs(spec, uid),
        "ShmSize": SHM_BYTES,
        "Memory": memory,
        "MemorySwap": memory,
        "NanoCpus": int(spec.cpus * 1e9),
        "PidsLimit": spec.pids,
        "OomKillDisable": False,
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "fsize", "Soft": spec.tmp_bytes + spec.data_bytes, "Hard": spec.tmp_bytes + spec.data_bytes},
            {"Name": "memlock", "Soft": 0, "Hard": 0},
            {"Name": "nofile", "Soft": NOFILE, "Hard": NOFILE},
        ],
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "PidMode": "",
        "UTSMode": "",
        "UsernsMode": "",
        "LogConfig": {"Type": "none", "Config": {}},
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "AutoRemove": False,
        "Init": False,
        "Binds": [],
        "Devices": [],
        "PortBindings": {},
        "PublishAllPorts": False,
        **_hidden_paths(spec),
    }
    if spec.runtime is not None:
        config["Runtime"] = spec.runtime
    return config


def _hidden_paths(spec: CageSpec) -> dict[str, list[str]]:
    """The kernel refuses a fresh /proc in a user namespace while parts of the visible one are masked; with `namespace`
    isolation a call never sees the container's /proc, only its own with nothing but processes in it."""
    if spec.isolation == "namespace":
        return {"MaskedPaths": [path for path in MASKED_PATHS if path.startswith("/sys/")], "ReadonlyPaths": []}
    return {"MaskedPaths": list(MASKED_PATHS), "ReadonlyPaths": list(READONLY_PATHS)}


def _tmpfs(spec: CageSpec, uid: int) -> dict[str, str]:
    half = spec.tmp_bytes // 2
    own = f"rw,nosuid,nodev,noexec,mode=0700,uid={uid},gid={uid},nr_inodes={TMP_INODES}"
    mounts = {"/tmp": f"{own},size={half}", "/workspace": f"{own},size={half}"}  # noqa: S108 - the cage's own tmpfs
    if spec.data:
        mounts["/data"] = f"{own},size={spec.data_bytes + MIB}"
    return {**mounts, "/dev/pts": NO_TERMINALS}


def weakenings(spec: CageSpec | SandboxTerms) -> list[str]:
    """One sentence for each choice that makes this cage weaker than the strongest one. Empty = nothing to report."""
    found = []
    if spec.isolation == "namespace":
        found.append("isolation namespace: calls share one container, each in namespaces of its own")
    elif spec.isolation == "session":
        found.append("isolation session: the calls of one session share one container and interpreter; whatever one of"
                     " them leaves behind, the next ones meet")  # fmt: skip
    if spec.runtime is None:
        found.append("the engine's default runtime: the tool shares the host's kernel; runtime runsc (gVisor) does not")
    return found
