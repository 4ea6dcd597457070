"""The description of a cage: the hardening is there whatever the grant says, and every field changes the pool's key."""

import dataclasses
from typing import Any

import pytest

from toolcage.cage.spec import CageSpec, DataFile, container_config, weakenings

MIB = 1024 * 1024
SPEC = CageSpec(
    image_id="sha256:" + "a" * 64, isolation="container", memory_bytes=256 * MIB, cpus=1.0, pids=64, tmp_bytes=64 * MIB
)
OTHER: dict[str, Any] = {
    "image_id": "sha256:" + "b" * 64,
    "isolation": "namespace",
    "memory_bytes": 512 * MIB,
    "cpus": 2.0,
    "pids": 65,
    "tmp_bytes": 32 * MIB,
    "runtime": "runsc", "internet": True,
    "data": (DataFile(name="shop.sqlite", size=3, sha256="c" * 64),),
}


def config(spec: CageSpec = SPEC, uid: int = 100_000) -> dict[str, Any]:
    return container_config(spec, uid=uid, command=("python3",), labels={"a": "b"}, seccomp="{}")


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(CageSpec)])
def test_two_specs_that_differ_in_one_field_never_share_a_pool(name: str) -> None:
    assert dataclasses.replace(SPEC, **{name: OTHER[name]}).digest != SPEC.digest


def test_the_strongest_settings_are_constants() -> None:
    host = config()["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert host["CapAdd"] == []
    assert host["Privileged"] is False
    assert host["ReadonlyRootfs"] is True
    assert host["SecurityOpt"] == ["no-new-privileges", "seccomp={}"]
    assert host["Memory"] == host["MemorySwap"] == 256 * MIB
    assert host["PidsLimit"] == 64
    assert host["NanoCpus"] == 10**9
    assert (host["IpcMode"], host["CgroupnsMode"], host["LogConfig"]["Type"]) == ("private", "private", "none")
    assert host["Binds"] == []
    assert host["Devices"] == []
    assert host["Init"] is False
    assert {item["Name"] for item in host["Ulimits"]} == {"core", "fsize", "memlock", "nofile"}


def test_stdin_closes_with_the_host_and_nothing_is_a_terminal() -> None:
    made = config()
    assert (made["OpenStdin"], made["StdinOnce"], made["Tty"]) == (True, True, False)


def test_every_temporary_folder_is_bounded_and_holds_no_program_or_device() -> None:
    folders = dict(config(dataclasses.replace(SPEC, data=OTHER["data"]))["HostConfig"]["Tmpfs"])
    assert set(folders.pop("/dev/pts").split(",")) >= {"ro", "nosuid", "nodev", "noexec", "nr_inodes=1"}
    for options in folders.values():
        words = options.split(",")
        assert {"noexec", "nosuid", "nodev", "mode=0700"} <= set(words)
        assert any(word.startswith("size=") for word in words)
        assert any(word.startswith("nr_inodes=") for word in words)


@pytest.mark.parametrize("uid", [0, 1000, 19_999, 65_000, 65534, 65_536, 99_999, 1 << 30])
def test_a_user_id_that_something_else_may_have_is_refused(uid: int) -> None:
    with pytest.raises(ValueError, match="user id"):
        config(uid=uid)


def test_temporary_folders_that_could_fill_the_memory_are_refused() -> None:
    with pytest.raises(ValueError, match="less than the memory limit"):
        dataclasses.replace(SPEC, tmp_bytes=250 * MIB)


def test_a_weaker_choice_is_said_in_words_and_the_strongest_is_not() -> None:
    assert weakenings(dataclasses.replace(SPEC, runtime="runsc")) == []
    assert any("kernel" in line for line in weakenings(SPEC))
    assert any("namespace" in line for line in weakenings(dataclasses.replace(SPEC, isolation="namespace")))
