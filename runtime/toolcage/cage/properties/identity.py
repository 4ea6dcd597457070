"""P01 to P09: who the program is, and what it could become."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolcage.cage.properties.model import Finding, Seen, allowed_of, found, not_applicable
from toolcage.cage.spec import users_under

_CAPABILITY_SETS: Final = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
_NO_MODULE: Final = "the host has neither AppArmor nor SELinux for containers; `toolcage doctor` says how to get one"
_NO_REMAP: Final = (
    "neither userns-remap nor rootless on this engine: users of a cage are users of the host, though each with a number"
    " of its own; `toolcage doctor` says how to change that"
)


def judge(seen: Seen) -> Iterator[Finding]:
    inside = seen.inside
    users, groups, others = inside["ids"]
    allowed = users_under(seen.engine)
    strange = [number for number in (*users, *groups) if number not in allowed]
    yield found("P01", strange or sorted(set(others) - set(groups)), f"user {users[0]}, group {groups[0]}, no others")
    held = {name: inside["status"][name] for name in _CAPABILITY_SETS if int(inside["status"][name], 16)}
    yield found("P02", held, "all five sets are zero")
    flags = inside["status"]["NoNewPrivs"]
    yield found("P03", "" if flags == "1" else f"NoNewPrivs: {flags}", "NoNewPrivs: 1")
    mode, filters = inside["status"]["Seccomp"], inside["seccomp_filters"]
    yield found("P04", "" if mode == "2" else f"Seccomp: {mode}", f"Seccomp: 2, {filters} filters")
    yield _security_module(seen)
    yield found("P06", inside["privileged_files"], "no file is setuid, setgid or has capabilities")
    ran = {name: answer for name, answer in inside["identity_programs"].items() if answer == "ran"}
    became = allowed_of({"chroot": inside["chroot"], "setuid(0)": inside["setuid_0"]})
    there = [f"{name}: {answer}" for name, answer in inside["identity_programs"].items() if answer != "not there"]
    yield found("P07", {**ran, **became}, f"chroot and setuid(0) refused; programs that are there: {there or 'none'}")
    calls = ("unshare user", "clone user", "clone3")
    refused = {name: inside["syscalls"][name] for name in calls}
    yield found("P08", allowed_of(inside["syscalls"], calls), f"{refused}")
    yield _mapped_users(seen)


def _security_module(seen: Seen) -> Finding:
    options = " ".join(map(str, seen.engine.get("SecurityOptions") or ()))
    label = str(seen.inside["lsm"])
    if "apparmor" not in options and "selinux" not in options:
        return not_applicable("P05", _NO_MODULE)
    return found("P05", "unconfined" if not label or "unconfined" in label else "", f"confined as {label}")


def _mapped_users(seen: Seen) -> Finding:
    options = " ".join(map(str, seen.engine.get("SecurityOptions") or ()))
    if "userns" not in options and "rootless" not in options:
        return not_applicable("P09", _NO_REMAP)
    mapped = list(seen.inside["uid_map"])
    whole = mapped[:2] == ["0", "0"]
    return found("P09", f"uid_map {mapped}" if whole else "", f"uid_map {mapped}")
