"""P35 to P40: what a program can learn of the host, of secrets and of others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from toolcage.cage.properties.model import Finding, Seen, found
from toolcage.cage.spec import ENVIRONMENT

_CONSTANT: Final = frozenset({
    "HOME", "TMPDIR", "LANG", "PATH", "MPLCONFIGDIR", "MPLBACKEND", "PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS", "POLARS_MAX_THREADS",
})  # fmt: skip
_WORDS: Final = ("token", "password", "secret", "index-url", "http://", "https://", "/home/", "/root")
_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - where one would be
_METADATA: Final = ("169.254.169.254", "100.100.100.200", "192.0.0.192")
_MOST_PROCESSES: Final = 3
"""Warden, zygote and the program itself; in a cage that is used once the last two are one."""


def judge(seen: Seen) -> Iterator[Finding]:
    inside = seen.inside
    first = {item.split("=")[0] for item in inside["initial_environment"] if item}
    extra = sorted(set(inside["environment"]) - _CONSTANT) + sorted(first - {*_names(), "HOSTNAME"})
    yield found("P35", extra, f"exactly {sorted(inside['environment'])}")
    yield _credentials(seen)
    yield _host(seen)
    yield _cloud(seen)
    pids, own = inside["processes"], str(inside["ids"][0][0])
    strangers = [owner for owner in inside["owners"] if owner != own]
    problems = strangers or (sorted(pids) if len(pids) > _MOST_PROCESSES or str(inside["me"]) not in pids else [])
    yield found("P39", problems, f"{len(pids)} visible, all of user {own}: {sorted(map(int, pids))}")
    yield found("P40", "", f"accepted residue: the kernel's version is visible ({inside['kernel']}); gVisor changes it")


def _names() -> list[str]:
    return [item.split("=")[0] for item in ENVIRONMENT]


def _credentials(seen: Seen) -> Finding:
    told = json.dumps([seen.image.get("Config"), seen.history]).lower()
    problems = [f"the image's configuration or history says {word}" for word in _WORDS if word in told]
    if seen.canary in json.dumps(seen.inside):
        problems.append("the host process's environment shows")
    return found("P36", problems, "no credential in environments, command lines, mounts or the image's history")


def _host(seen: Seen) -> Finding:
    inside = seen.inside
    open_places = json.dumps([inside["hostname"], inside["environment"], inside["passwd"],
                              inside["proc_environ_and_cmdline"]])  # fmt: skip
    problems = [f"host name {seen.host_name}"] if seen.host_name in open_places else []
    layers = sum(mount[mount.index("-") + 1] == "overlay" for mount in inside["mounts"])
    told = f"host name {inside['hostname']!r}, users of the image only; accepted residue: "
    return found("P37", problems, f"{told}paths of the engine's storage in mountinfo ({layers} overlay)")


def _cloud(seen: Seen) -> Finding:
    inside = seen.inside
    problems = [target for target, answer in inside["reached"].items()
                if target.startswith(_METADATA) and not isinstance(answer, str)]  # fmt: skip
    problems += [name for name in ("metadata.google.internal",) if not isinstance(inside["names"][name], str)]
    problems += [] if isinstance(inside["reached_other"]["ipv6 metadata"], str) else ["fd00:ec2::254"]
    token = inside["secret_reads"][_TOKEN]
    problems += [] if isinstance(token, str) else [_TOKEN]
    return found("P38", problems, f"metadata services out of reach; service-account token: {token}")
