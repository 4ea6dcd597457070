"""`toolcage attest`: every property holds of the shipped cages, and fails of containers that were weakened on purpose.

A measurement that could not fail would prove nothing, so the same probe runs alone in containers without one protection
after the other, and the same judges must say so.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Iterator
from typing import Any, get_args

import docker
import pytest

from toolcage.cage.engine import Engine
from toolcage.cage.images import ImageLock
from toolcage.cage.properties import control_plane
from toolcage.cage.properties.measure import JUDGES, PROPERTIES, measure, probe_source
from toolcage.cage.properties.model import Seen
from toolcage.cage.seccomp import load_profile
from toolcage.cage.spec import MIB, CageSpec
from toolcage.state import default_state_dir
from toolcage.types import Isolation

pytestmark = pytest.mark.docker
CANARY = secrets.token_hex(16)
SEES_ALL = {"user": "123456:123456", "pid_mode": "host", "network_mode": "host", "environment": {"SECRET": CANARY}}
ROOT = {
    "user": "0:0", "cap_add": ["SYS_ADMIN", "SYS_PTRACE", "SYS_CHROOT", "NET_RAW", "NET_ADMIN"],
    "security_opt": ["seccomp=unconfined"], "network_mode": "none",
    "ulimits": [docker.types.Ulimit(name="core", soft=-1, hard=-1)],
}  # fmt: skip


@pytest.fixture(scope="module")
def host() -> Iterator[Engine]:
    made = Engine.connect()
    yield made
    made.close()


@pytest.mark.parametrize("isolation", get_args(Isolation))
def test_no_property_fails_of_a_shipped_cage(host: Engine, isolation: Isolation) -> None:
    steps: list[str] = []
    found = measure(host, ImageLock.load(default_state_dir()).resolve("python"), isolation, steps.append)
    assert [item.id for item in found] == list(PROPERTIES)
    assert [item for item in found if item.verdict == "fails"] == []
    assert all(item.evidence for item in found)
    spared = {item.id for item in found if item.verdict == "not_applicable"}
    assert spared <= {"P05", "P09", "P46", "P33"}
    assert ("P33" in spared) is (isolation == "session")
    assert steps


def weakened(engine: docker.DockerClient, host: Engine, **options: Any) -> dict[str, str]:
    """Verdicts of what the probe saw in a container with these options."""
    locked = ImageLock.load(default_state_dir()).resolve("python")
    name = f"toolcage-weak-{secrets.token_hex(6)}"
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as abstract:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        abstract.bind("\0" + name)
        abstract.listen()
        port = tcp.getsockname()[1]
        program = probe_source().replace('observe([], "toolcage-nobody")', f"observe([{port}], {name!r})")
        container = engine.containers.create(locked.image_id, ["/usr/bin/python3", "-I", "-c", program], **options)
        try:
            container.start()
            assert container.wait(timeout=120)["StatusCode"] == 0, container.logs()
            inside = json.loads(container.logs(stderr=False).splitlines()[-1])
            inspected = host.inspect(container.id)
        finally:
            container.remove(force=True)
    assert inspected is not None
    spec = CageSpec(
        image_id=locked.image_id, isolation="container", memory_bytes=256 * MIB, cpus=1, pids=64, tmp_bytes=64 * MIB
    )
    seen = Seen(
        spec=spec, accepted_ids=frozenset(locked.accepted_ids), inside=inside, container=inspected,
        image=host.image_inspect(locked.image_id) or {}, history=host.image_history(locked.image_id),
        engine=host.info(), host_name=socket.gethostname(), canary=CANARY,
    )  # fmt: skip
    found = [item for judge in JUDGES for item in judge(seen)]
    found += control_plane.judge(seen, load_profile("container").text, (name,))
    return {item.id: item.verdict for item in found}


def failing(verdicts: dict[str, str]) -> set[str]:
    return {number for number, verdict in verdicts.items() if verdict == "fails"}


def test_a_root_with_capabilities_and_no_filter_is_told(engine: docker.DockerClient, host: Engine) -> None:
    failed = failing(weakened(engine, host, **ROOT))
    assert failed >= {
        "P01", "P02", "P03", "P04", "P07", "P08", "P10", "P19", "P20", "P21", "P22", "P23", "P24", "P25", "P30", "P53",
        "P54", "P57", "P60",
    }  # fmt: skip


def test_a_container_that_shares_the_host_s_processes_network_and_secrets_is_told(
    engine: docker.DockerClient, host: Engine
) -> None:
    failed = failing(weakened(engine, host, **SEES_ALL))
    assert failed >= {"P35", "P36", "P37", "P39", "P41", "P42", "P43", "P45", "P57", "P60"}
    assert not failed & {"P01", "P06"}


@pytest.mark.parametrize(
    ("option", "number"),
    [
        ({"security_opt": ["seccomp=unconfined", "no-new-privileges"]}, "P04"),
        ({"read_only": False}, "P23"),
        ({"tmpfs": {"/tmp": "rw,exec,size=1m,mode=1777", "/workspace": "rw,noexec,mode=1777"}}, "P24"),
        ({"shm_size": 64 * MIB}, "P54"),
        ({"cap_drop": []}, "P02"),
        ({"security_opt": []}, "P03"),
    ],
    ids=["no filter", "a root that can be written", "tmpfs that runs programs", "a large shm", "capabilities",
         "new privileges"],
)  # fmt: skip
def test_one_protection_left_out_is_told(
    engine: docker.DockerClient, host: Engine, option: dict[str, Any], number: str
) -> None:
    strong = {
        "user": "123456:123456", "cap_drop": ["ALL"], "security_opt": ["no-new-privileges"], "read_only": True,
        "network_mode": "none", "shm_size": 8 * MIB, "working_dir": "/workspace",
        "tmpfs": dict.fromkeys(("/tmp", "/workspace"), "rw,nosuid,nodev,noexec,size=32m,nr_inodes=16384,mode=1777"),
    }  # fmt: skip
    assert number in failing(weakened(engine, host, **{**strong, **option}))
    if number != "P04":
        assert number not in failing(weakened(engine, host, **strong))


def test_the_command_tells_each_property_as_json(installation: Any) -> None:
    done = installation.command("attest", "--image", "python", "--isolation", "container", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["properties"]
    assert [item["id"] for item in found] == list(PROPERTIES)
    assert all(item.keys() == {"id", "image", "isolation", "verdict", "evidence"} for item in found)
    assert {(item["image"], item["isolation"]) for item in found} == {("python", "container")}


@pytest.mark.parametrize(
    ("arguments", "environment", "code"),
    [
        (["--isolation", "none"], {}, 2),
        (["--image", "nothing"], {}, 3),
        ([], {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}, 3),
    ],
)
def test_what_cannot_be_measured_is_no_success(
    installation: Any, arguments: list[str], environment: dict[str, str], code: int
) -> None:
    done = installation.command("attest", *arguments, **environment)
    assert done.returncode == code, done.stderr
    assert os.linesep in done.stderr
