"""Whether the engine made the cage that was asked for. Pure, but for raising.

Every field of the requested configuration is compared with what `inspect` reports; an engine that drops, weakens or
rewrites one is not used. Differences of spelling that mean the same are listed here, one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcage.errors import EngineError

_EMPTY: Final[tuple[Any, ...]] = (None, "", 0, False, [], {})
_CONFIG_FIELDS: Final = (
    "Cmd", "User", "WorkingDir", "Hostname", "OpenStdin", "StdinOnce", "AttachStdin", "AttachStdout", "AttachStderr",
    "Tty", "StopSignal", "NetworkDisabled",
)  # fmt: skip
_ALSO_EMPTY: Final = (
    "GroupAdd", "VolumesFrom", "Mounts", "ExtraHosts", "Dns", "Sysctls", "DeviceRequests", "Links",
    "DeviceCgroupRules", "ContainerIDFile",
)  # fmt: skip
"""HostConfig fields that the request leaves out and that must not have been filled in."""


def check(requested: Mapping[str, Any], inspected: Mapping[str, Any] | None, accepted_ids: frozenset[str]) -> None:
    """Raises EngineError that names every difference."""
    if inspected is None:
        raise EngineError("a new cage is gone before it was started")
    found = differences(requested, inspected, accepted_ids)
    if found:
        raise EngineError("the engine did not make the cage that was asked for: " + "; ".join(found))


def differences(requested: Mapping[str, Any], inspected: Mapping[str, Any], accepted_ids: frozenset[str]) -> list[str]:
    """One line for each field that differs. Empty = the cage is as asked for."""
    found = []
    if inspected.get("Image") not in accepted_ids:
        found.append(f"Image is {inspected.get('Image')}")
    config, host = inspected.get("Config") or {}, inspected.get("HostConfig") or {}
    for name in _CONFIG_FIELDS:
        if not _same(requested[name], config.get(name)):
            found.append(f"Config.{name} is {config.get(name)!r}")
    if sorted(requested["Env"]) != sorted(config.get("Env") or ()):
        found.append(f"Config.Env is {config.get('Env')!r}")
    if not requested["Labels"].items() <= (config.get("Labels") or {}).items():  # an image's own labels are harmless
        found.append(f"Config.Labels is {config.get('Labels')!r}")
    if config.get("Entrypoint") or config.get("Volumes"):
        found.append("Config has an entry point or volumes")
    for name, wanted in requested["HostConfig"].items():
        if not _same(_normal(name, wanted), _normal(name, host.get(name))):
            found.append(f"HostConfig.{name} is {host.get(name)!r}")
    found += [f"HostConfig.{name} is {host[name]!r}" for name in _ALSO_EMPTY if host.get(name) not in _EMPTY]
    if inspected.get("Mounts"):
        found.append("it has mounts")
    return found


def _normal(name: str, value: Any) -> Any:
    if name in ("MaskedPaths", "ReadonlyPaths", "CapDrop", "SecurityOpt") and isinstance(value, list):
        return sorted(value)
    if name == "Ulimits" and isinstance(value, list):
        return sorted((item["Name"], item["Soft"], item["Hard"]) for item in value)
    if name == "RestartPolicy" and isinstance(value, Mapping):
        return (value.get("Name") or "no", value.get("MaximumRetryCount") or 0)
    if name == "LogConfig" and isinstance(value, Mapping):
        return (value.get("Type"), tuple(sorted((value.get("Config") or {}).items())))
    return value


def _same(wanted: Any, got: Any) -> bool:
    """Equal, or both of the kinds of nothing that the engine uses for each other."""
    return bool(wanted == got) or (wanted in _EMPTY and got in _EMPTY)
