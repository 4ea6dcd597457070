"""Attestation: a cage whose inspection differs from the request in any one field is refused."""

import copy
from typing import Any

import pytest

from toolcage.cage import attest
from toolcage.cage.spec import CageSpec, container_config
from toolcage.errors import EngineError

MIB = 1024 * 1024
IMAGE = "sha256:" + "a" * 64
REQUEST = container_config(
    CageSpec(image_id=IMAGE, isolation="container", memory_bytes=256 * MIB, cpus=1, pids=64, tmp_bytes=64 * MIB),
    uid=100_001,
    command=("/usr/bin/python3", "-c", "x"),
    labels={"toolcage.runtime": "r"},
    seccomp="{}",
)


def faithful() -> dict[str, Any]:
    """What an engine that does as asked reports."""
    config = {name: value for name, value in copy.deepcopy(REQUEST).items() if name != "HostConfig"}
    config["Entrypoint"] = None
    return {"Image": IMAGE, "Config": config, "HostConfig": copy.deepcopy(REQUEST["HostConfig"]), "Mounts": []}


def test_a_faithful_engine_passes() -> None:
    assert attest.differences(REQUEST, faithful(), frozenset({IMAGE})) == []


def test_kinds_of_nothing_and_order_do_not_count() -> None:
    report = faithful()
    report["HostConfig"]["CapAdd"] = None
    report["HostConfig"]["Binds"] = None
    report["HostConfig"]["MaskedPaths"].reverse()
    report["HostConfig"]["Ulimits"].reverse()
    assert attest.differences(REQUEST, report, frozenset({IMAGE})) == []


def changed(value: Any) -> Any:
    """Another value of the same kind, as an engine that ignores or widens a setting would report."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, list):
        return [*value, "extra"] if not value or isinstance(value[0], str) else value[:-1]
    if not value:
        return {"/extra": "rw"}
    first = next(iter(value))
    return {**value, first: changed(value[first])}


@pytest.mark.parametrize("name", sorted(REQUEST["HostConfig"]))
def test_any_changed_host_setting_is_found(name: str) -> None:
    report = faithful()
    report["HostConfig"][name] = changed(report["HostConfig"][name])
    assert any(name in line for line in attest.differences(REQUEST, report, frozenset({IMAGE})))


@pytest.mark.parametrize("name", sorted(REQUEST["HostConfig"]))
def test_any_missing_host_setting_that_matters_is_found(name: str) -> None:
    report = faithful()
    del report["HostConfig"][name]
    closed_by_default = REQUEST["HostConfig"][name] in (None, "", 0, False, [], {})
    assert bool(attest.differences(REQUEST, report, frozenset({IMAGE}))) is not closed_by_default


@pytest.mark.parametrize("name", ["Cmd", "User", "Env", "StdinOnce", "Tty", "Hostname", "WorkingDir"])
def test_any_changed_container_setting_is_found(name: str) -> None:
    report = faithful()
    report["Config"][name] = changed(report["Config"][name])
    assert any(name in line for line in attest.differences(REQUEST, report, frozenset({IMAGE})))


def test_another_image_mounts_groups_and_devices_are_found() -> None:
    for change in (
        {"Image": "sha256:" + "b" * 64},
        {"Mounts": [{"Source": "/"}]},
        {"HostConfig": {**faithful()["HostConfig"], "GroupAdd": ["0"]}},
        {"HostConfig": {**faithful()["HostConfig"], "DeviceRequests": [{"Count": 1}]}},
    ):
        with pytest.raises(EngineError, match="did not make the cage"):
            attest.check(REQUEST, {**faithful(), **change}, frozenset({IMAGE}))


def test_a_container_that_is_gone_is_refused() -> None:
    with pytest.raises(EngineError, match="gone"):
        attest.check(REQUEST, None, frozenset({IMAGE}))
