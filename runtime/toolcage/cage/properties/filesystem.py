"""P23 to P31: what can be read, written, filled and executed. P32 to P34 are trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from toolcage.cage.properties.model import Finding, Seen, found
from toolcage.cage.spec import MIB, NOFILE, SHM_BYTES, TMP_INODES

_PLACES: Final = ("/tmp", "/workspace", "/dev/shm", "/dev/mqueue")  # noqa: S108 - the cage's own
_KINDS: Final = frozenset({"overlay", "proc", "tmpfs", "sysfs", "cgroup", "cgroup2", "mqueue"})
_ENGINE_FILES: Final = frozenset({"/etc/resolv.conf", "/etc/hostname", "/etc/hosts"})
_DEVICES: Final = {
    "null": "1:3", "zero": "1:5", "full": "1:7", "random": "1:8", "urandom": "1:9", "tty": "5:0",
}  # fmt: skip
_INERT: Final = frozenset({"nosuid", "nodev", "noexec"})


def judge(seen: Seen) -> Iterator[Finding]:
    inside = seen.inside
    written = [path for path, answer in inside["root_writes"].items() if answer is True]
    elsewhere = [path for path in inside["writable"] if not path.startswith(_PLACES)]
    root = _options(inside)["/"]
    yield found("P23", written + elsewhere + ([] if "ro" in root else ["/ is mounted rw"]), "/ is ro; nothing outside"
                f" {', '.join(_PLACES)} can be written")  # fmt: skip
    yield _small_mounts(seen)
    bounded = inside["inode_error"] in ("ENOSPC", "EDQUOT") and inside["inodes"] <= TMP_INODES
    told = f"{inside['inodes']} files, then {inside['inode_error']}"
    yield found("P25", "" if bounded else told, told)
    yield _mounts(inside)
    yield _passwords(inside)
    yield _kernel(inside)
    release = {path: answer for path, answer in inside["kernel_writes"].items() if "release" in path}
    yield found("P29", {path: answer for path, answer in release.items() if not isinstance(answer, str)}, release)
    core = inside["core_limit"]
    yield found("P30", "" if core == [0, 0] else f"core limit {core}", "core limit 0")
    yield _descriptors(inside)


def bounds(seen: Seen) -> Iterator[Finding]:
    """P52 to P54: what one call can hold or fill."""
    inside, half = seen.inside, seen.spec.tmp_bytes // 2
    opened, stopped = inside["descriptors_opened"]
    told = f"{opened} more could be opened, then {stopped}"
    yield found("P52", "" if stopped == "EMFILE" and opened <= NOFILE else told, told)
    filled, why = inside["tmp_filled"]
    size = inside["file_size"]
    told = f"a file of 1 TiB: {size}; /tmp took {filled} bytes, then {why}"
    yield found("P53", "" if size == "EFBIG" and why in ("ENOSPC", "EFBIG") and filled <= half else told, told)
    filled, why = inside["shm_filled"]
    told = f"took {filled} bytes, then {why}"
    yield found("P54", "" if why in ("ENOSPC", "EFBIG") and filled <= SHM_BYTES else told, told)


def _options(inside: Mapping[str, Any]) -> dict[str, set[str]]:
    """Mount options by place; the last mount on a place is the one that is seen."""
    return {mount[4]: set(mount[5].split(",")) for mount in inside["mounts"]}


def _small_mounts(seen: Seen) -> Finding:
    inside, options = seen.inside, _options(seen.inside)
    sizes = {mount[4]: mount[-1] for mount in inside["mounts"]}
    problems = [f"{place} lacks {sorted(_INERT - options.get(place, set()))}" for place in _PLACES[:3]
                if _INERT - options.get(place, set())]  # fmt: skip
    problems += [f"{place} has no size" for place in _PLACES[:2] if "size=" not in sizes.get(place, "")]
    problems += [f"{folder} runs programs" for folder, answer in inside["executes"].items() if answer != "EACCES"]
    filled, why = inside["tmp_filled"]
    if why != "ENOSPC" or filled > seen.spec.tmp_bytes // 2:
        problems.append(f"took {filled} bytes, then {why}")
    return found("P24", problems, f"noexec, nosuid, nodev and a size; full after {filled // MIB} MiB")


def _mounts(inside: Mapping[str, Any]) -> Finding:
    """In a user namespace an engine can make no device: it mounts the same six of the host's, one
    by one, and the host's `null` to hide a path."""
    problems = []
    for mount in inside["mounts"]:
        kind = mount[mount.index("-") + 1]
        if any(word.startswith("shared:") for word in mount):
            problems.append(f"{mount[4]} propagates")
        device = mount[3] == "/null" or (mount[3][1:] in _DEVICES and mount[4] == f"/dev{mount[3]}")
        if kind not in _KINDS and mount[4] not in _ENGINE_FILES and not (kind == "devtmpfs" and device):
            problems.append(f"{mount[4]} is {kind}")
        if mount[4].endswith(".sock") or (kind == "tmpfs" and mount[3] != "/" and not device):
            problems.append(f"{mount[4]} shows {mount[3]}")
    return found("P26", problems, f"{len(inside['mounts'])} mounts, all of the cage's own kinds, none shared")


def _passwords(inside: Mapping[str, Any]) -> Finding:
    problems = ["a password hash in /etc/shadow"] if "$" in str(inside["shadow"]) else []
    key = inside["key_of_root"]
    problems += [] if key in ("ENOENT", "EACCES") else [f"the superuser's ssh key: {key}"]
    users = [line.split(":")[0] for line in str(inside["passwd"]).splitlines()]
    return found("P27", problems, f"/etc/shadow: {str(inside['shadow'])[:40]}; users {users}; superuser's key: {key}")


def _kernel(inside: Mapping[str, Any]) -> Finding:
    problems = [f"wrote {path}" for path, answer in inside["kernel_writes"].items() if not isinstance(answer, str)]
    problems += [f"read {answer} of {path}" for path, answer in inside["secret_reads"].items()
                 if isinstance(answer, int) and answer > 0]  # fmt: skip
    problems += [f"/dev/{name} is {inside['devices'].get(name)}" for name, number in _DEVICES.items()
                 if inside["devices"].get(name) != number]  # fmt: skip
    problems += [f"/dev/{name} is there" for name in inside["devices"] if name not in (*_DEVICES, "ptmx", "console")]
    problems += [f"made a {kind} device" for kind, answer in inside["mknod"].items() if answer is True]
    written, read = len(inside["kernel_writes"]), len(inside["secret_reads"])
    told = f"{written} kernel files refuse writing, {read} secret ones reading; /dev holds {sorted(inside['devices'])}"
    return found("P28", problems, told)


def _descriptors(inside: Mapping[str, Any]) -> Finding:
    held = {name: target for name, target in inside["descriptors"].items() if target != "ENOENT"}  # the listing itself
    strange = {name: target for name, target in held.items()
               if not (target == "/dev/null" or target.startswith(("pipe:", "socket:")))}  # fmt: skip
    problems = [f"{name}: {target}" for name, target in strange.items()]
    problems += [] if inside["cwd"] == "/workspace" else [f"cwd {inside['cwd']}"]
    return found("P31", problems, f"{held}; cwd /workspace")
