"""The property list of the threat model (P01 to P60, as far as it can be seen from inside), measured by one program in
one real cage of the shipped hardening. Every assertion is about what that program saw or managed to do."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import docker
import pytest

from toolcage import CancelToken
from toolcage.cage.images import ImageLock
from toolcage.cage.properties.measure import probe_source
from toolcage.cage.properties.syscalls import BY_PROPERTY
from toolcage.state import default_state_dir

pytestmark = pytest.mark.docker

REFUSED = {"EPERM", "ENOSYS", "EACCES"}
CANARY = "toolcage-host-canary-51d5"


@pytest.fixture(scope="module")
def host_ends() -> Iterator[tuple[int, str]]:
    """A TCP port on every address of the host, and an abstract unix socket."""
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as abstract:
        tcp.bind(("0.0.0.0", 0))
        tcp.listen()
        name = f"toolcage-test-{tcp.getsockname()[1]}"
        abstract.bind("\0" + name)
        abstract.listen()
        with socket.socket(socket.AF_UNIX) as one:
            one.connect("\0" + name)  # from the host it can be reached
        yield tcp.getsockname()[1], name


@pytest.fixture(scope="module")
def seen(lasting: Any, host_ends: tuple[int, str]) -> Any:
    """What the probe found out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLCAGE_CANARY", CANARY)
        session = lasting.session("version: 1\nrole: r\ntools: {execute_python: {allow: [{}], sandbox: {wall: 60s}}}\n")
        port, name = host_ends
        answer = probe_source().replace("observe([], \"toolcage-nobody\")", f"observe([{port}], {name!r})")
        result = session.call("execute_python", {"code": answer})
    assert result.success, result.stderr
    return json.loads(result.raw.stdout)


@pytest.fixture
def inspected(installation: Any) -> Any:
    """What the engine says of a live cage."""
    session, token = installation.session(), CancelToken()
    begun = threading.Event()
    thread = threading.Thread(
        target=session.call,
        args=("execute_python", {"code": "print('up', flush=True)\nwhile True: pass"}),
        kwargs={"on_output": lambda *_: begun.set(), "cancel": token},
    )
    thread.start()
    assert begun.wait(30)
    (container,) = installation.containers()
    found = container.attrs
    token.cancel()
    thread.join(30)
    return found


# --- identity and privilege ----------------------------------------------------------------------------------------


@pytest.mark.threat("P01")
def test_it_is_neither_root_nor_nobody_and_in_no_other_group(seen: Any) -> None:
    uids, gids, groups = seen["ids"]
    assert len({*uids, *gids}) == 1
    assert uids[0] >= 100_000
    assert set(groups) <= {gids[0]}
    assert seen["setuid_0"] in REFUSED


@pytest.mark.threat("P01")
def test_every_cage_has_its_own_user(run: Any) -> None:
    users = [run("import os; os.getuid()").data for _ in range(3)]
    assert len(set(users)) == 3


@pytest.mark.threat("P02")
def test_every_capability_set_is_empty(seen: Any) -> None:
    assert {name: int(seen["status"][name], 16) for name in seen["status"] if name.startswith("Cap")} == {
        "CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapBnd": 0, "CapAmb": 0,
    }  # fmt: skip


@pytest.mark.threat("P03")
@pytest.mark.threat("P04")
def test_no_new_privileges_and_a_seccomp_filter_hold(seen: Any) -> None:
    assert (seen["status"]["NoNewPrivs"], seen["status"]["Seccomp"]) == ("1", "2")


@pytest.mark.threat("P05")
def test_a_security_module_confines_it_where_the_host_has_one(seen: Any, engine: docker.DockerClient) -> None:
    options = " ".join(engine.info()["SecurityOptions"])
    if "apparmor" not in options and "selinux" not in options:
        assert seen["lsm"] in ("", "unconfined", "kernel", "EINVAL", "ENOENT", "EACCES")  # nothing to be had here
    else:
        assert "unconfined" not in str(seen["lsm"])


@pytest.mark.threat("P06")
def test_no_file_of_the_image_gives_privileges(seen: Any) -> None:
    assert seen["privileged_files"] == []
    assert seen["setuid"] == "EPERM" or seen["ids"][0][0] != 0  # a file of its own may be marked: nosuid, no caps


@pytest.mark.threat("P07")
def test_there_is_no_shell_and_no_program_that_changes_identity(seen: Any) -> None:
    assert not set(seen["programs"]) & {
        "sh", "bash", "dash", "busybox", "sudo", "su", "mount", "umount", "chroot", "unshare", "nsenter", "apt",
        "apt-get", "dpkg", "pip", "pip3", "perl", "gcc", "cc", "curl", "wget", "nc", "ssh", "ldd", "passwd", "newgrp",
    }  # fmt: skip
    assert seen["chroot"] in REFUSED


# --- system calls --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(
    ("threat", "name"),
    [
        pytest.param(threat, name, marks=pytest.mark.threat(threat))
        for threat, names in [*BY_PROPERTY.items(), ("P08", ("unshare user", "clone user"))]
        for name in names
    ],
)
def test_a_dangerous_system_call_is_refused(seen: Any, threat: str, name: str) -> None:
    assert seen["syscalls"][name] in REFUSED


def test_calls_that_share_something_between_cages_are_refused(seen: Any) -> None:
    """Watches, System V memory and queues are counted per user or kept after their maker."""
    for name in ("inotify_init1", "fanotify_init", "shmget", "msgget", "mq_open", "vmsplice"):
        assert seen["syscalls"][name] in REFUSED, name


@pytest.mark.threat("P19")
def test_only_plain_sockets_can_be_made(seen: Any) -> None:
    allowed = {name: answer for name, answer in seen["sockets"].items() if answer is True}
    assert allowed == {}


# --- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.threat("P23")
def test_nothing_outside_the_small_file_systems_can_be_written(seen: Any) -> None:
    assert {path: answer for path, answer in seen["root_writes"].items() if answer is True} == {}
    places = ("/tmp", "/workspace", "/dev/shm", "/dev/mqueue")
    assert [path for path in seen["writable"] if not path.startswith(places)] == []


@pytest.mark.threat("P24")
def test_the_small_file_systems_run_nothing_and_honour_no_owner(seen: Any) -> None:
    options = {mount[4]: set(mount[5].split(",")) for mount in seen["mounts"]}
    sizes = {mount[4]: mount[-1] for mount in seen["mounts"]}
    for place in ("/tmp", "/workspace"):
        assert {"nosuid", "nodev", "noexec"} <= options[place]
        assert "size=32768k" in sizes[place]
    assert {"nosuid", "nodev", "noexec"} <= options["/dev/shm"]
    assert set(seen["executes"].values()) == {"EACCES"}
    assert "ro" in options["/"]


@pytest.mark.threat("P25")
def test_inodes_are_bounded(seen: Any) -> None:
    assert seen["inode_error"] == "ENOSPC"
    assert seen["inodes"] <= 16 * 1024


@pytest.mark.threat("P26")
def test_no_path_of_the_host_is_mounted_and_nothing_propagates(seen: Any) -> None:
    for mount in seen["mounts"]:
        assert not any(word.startswith("shared:") for word in mount), mount
        kind = mount[mount.index("-") + 1]
        assert kind in ("overlay", "proc", "tmpfs", "sysfs", "cgroup", "cgroup2", "mqueue") or (
            mount[4] in ("/etc/resolv.conf", "/etc/hostname", "/etc/hosts")
        ), mount
        assert not mount[4].endswith(".sock")


@pytest.mark.threat("P27")
def test_no_password_is_there_to_be_read(seen: Any) -> None:
    assert "$" not in str(seen["shadow"])
    assert [line.split(":")[0] for line in seen["passwd"].splitlines()] == ["root", "nobody"]
    assert seen["key_of_root"] in ("ENOENT", "EACCES")


@pytest.mark.threat("P28")
@pytest.mark.threat("P29")
def test_no_setting_of_the_kernel_or_the_cgroup_can_be_written(seen: Any) -> None:
    assert {path: answer for path, answer in seen["kernel_writes"].items() if not isinstance(answer, str)} == {}


@pytest.mark.threat("P28")
def test_the_kernels_own_secrets_are_masked(seen: Any) -> None:
    readable = {path for path, answer in seen["secret_reads"].items() if isinstance(answer, int) and answer > 0}
    assert readable == set()
    assert {name: seen["devices"][name] for name in ("null", "zero", "full", "random", "urandom", "tty")} == {
        "null": "1:3", "zero": "1:5", "full": "1:7", "random": "1:8", "urandom": "1:9", "tty": "5:0",
    }  # fmt: skip
    assert set(seen["devices"]) <= {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}
    assert set(seen["mknod"].values()) <= REFUSED


@pytest.mark.threat("P30")
def test_there_are_no_core_dumps(seen: Any) -> None:
    assert seen["core_limit"] == [0, 0]


@pytest.mark.threat("P31")
def test_only_the_calls_own_descriptors_are_open(seen: Any) -> None:
    held = {name: target for name, target in seen["descriptors"].items() if target != "ENOENT"}  # the listing itself
    assert set(held) <= {"0", "1", "2", "3", "4"}
    assert held["0"] == "/dev/null"
    assert all(target.startswith("pipe:") for name, target in held.items() if name != "0")
    assert seen["cwd"] == "/workspace"


# --- information ---------------------------------------------------------------------------------------------------


@pytest.mark.threat("P35")
def test_the_environment_is_exactly_the_constant_one(seen: Any) -> None:
    assert set(seen["environment"]) == {
        "HOME", "TMPDIR", "LANG", "PATH", "MPLCONFIGDIR", "MPLBACKEND", "PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS", "POLARS_MAX_THREADS",
    }  # fmt: skip
    names = {item.split("=")[0] for item in seen["initial_environment"] if item}
    assert names <= {"HOME", "TMPDIR", "LANG", "PATH", "HOSTNAME"}


@pytest.mark.threat("P36")
def test_nothing_of_the_hosts_environment_is_anywhere(seen: Any, lasting: Any) -> None:
    everything = json.dumps(seen)
    assert CANARY not in everything
    assert str(lasting.folder) not in everything


@pytest.mark.threat("P36")
def test_the_images_history_and_settings_hold_no_secret_and_no_place_of_the_host(engine: docker.DockerClient) -> None:
    image = ImageLock.load(default_state_dir()).resolve("python")
    details = engine.api.inspect_image(image.image_id)
    assert details["Config"]["Env"] == ["PATH=/usr/bin"]
    told = json.dumps([details["Config"], engine.api.history(image.image_id)]).lower()
    for word in ("token", "password", "secret", "index-url", "http://", "https://", "/home/", "/root"):
        assert word not in told


@pytest.mark.threat("P37")
def test_the_hosts_name_is_not_to_be_seen(seen: Any) -> None:
    assert seen["hostname"] == "cage"
    assert socket.gethostname() not in json.dumps(
        [seen["environment"], seen["passwd"], seen["proc_environ_and_cmdline"]]
    )


@pytest.mark.threat("P38")
def test_no_credential_of_a_cloud_or_a_cluster_can_be_had(seen: Any) -> None:
    assert seen["secret_reads"]["/var/run/secrets/kubernetes.io/serviceaccount/token"] == "ENOENT"
    assert not isinstance(seen["names"]["metadata.google.internal"], list)
    assert all(isinstance(answer, str) for target, answer in seen["reached"].items() if target.startswith("169.254"))


@pytest.mark.threat("P39")
def test_only_the_cages_own_processes_are_visible(seen: Any) -> None:
    assert set(seen["processes"]) == {"1", *map(str, sorted(map(int, seen["processes"]))[1:])}
    assert len(seen["processes"]) == 2  # the warden and itself
    assert str(seen["me"]) in seen["processes"]


# --- network -------------------------------------------------------------------------------------------------------


@pytest.mark.threat("P41")
def test_there_is_no_network(seen: Any) -> None:
    assert seen["interfaces"] == ["lo"]
    assert seen["routes"] in ([], "ENOENT")
    for name in ("udp", "ipv6", "ipv6 metadata"):
        assert isinstance(seen["reached_other"][name], str), name


@pytest.mark.threat("P41")
def test_names_do_not_resolve_and_fail_at_once(seen: Any) -> None:
    assert all(isinstance(answer, str) for answer in seen["names"].values())
    assert seen["names_s"] < 5  # four names; a resolver that waits for an answer takes five seconds for each


@pytest.mark.threat("P42")
@pytest.mark.threat("P43")
def test_neither_the_host_nor_the_engine_nor_a_neighbour_can_be_reached(seen: Any) -> None:
    assert {target: answer for target, answer in seen["reached"].items() if not isinstance(answer, str)} == {}


@pytest.mark.threat("P44")
def test_the_kernel_does_not_route_to_loopback(seen: Any) -> None:
    assert set(seen["route_localnet"]) == {"0"}


@pytest.mark.threat("P45")
def test_abstract_sockets_of_the_host_are_out_of_reach(seen: Any) -> None:
    assert seen["reached_other"]["abstract"] == "ECONNREFUSED"
    assert seen["reached_other"]["abstract containerd"] == "ECONNREFUSED"


# --- what the engine was asked for ---------------------------------------------------------------------------------


@pytest.mark.threat("P60")
def test_the_engine_made_what_the_constants_ask_for(inspected: Any) -> None:
    host, config = inspected["HostConfig"], inspected["Config"]
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert host["Privileged"] is False
    assert host["ReadonlyRootfs"] is True
    assert "no-new-privileges" in host["SecurityOpt"]
    assert any(item.startswith("seccomp={") for item in host["SecurityOpt"])
    assert host["Memory"] == host["MemorySwap"] == 256 * 1024 * 1024
    assert host["PidsLimit"] == 64
    assert host["NanoCpus"] == 1_000_000_000
    assert (host["IpcMode"], host["CgroupnsMode"]) == ("private", "private")
    assert (host["PidMode"], host["UTSMode"], host["UsernsMode"]) == ("", "", "")
    assert host["RestartPolicy"]["Name"] in ("", "no")
    assert host["LogConfig"]["Type"] == "none"
    for name in ("Binds", "Devices", "PortBindings", "VolumesFrom", "Mounts", "ExtraHosts", "Links", "GroupAdd"):
        assert not host.get(name), name
    assert not inspected["Mounts"]
    assert config["StdinOnce"] is config["OpenStdin"] is True
    assert config["User"] not in ("", "0", "0:0", "root")
    assert not config.get("Entrypoint")
    assert not config.get("ExposedPorts")
    assert not config.get("Healthcheck")


@pytest.mark.threat("P59")
def test_the_container_is_made_from_the_recorded_id(inspected: Any) -> None:
    image = ImageLock.load(default_state_dir()).resolve("python")
    assert inspected["Image"] in image.accepted_ids
    assert inspected["Config"]["Image"].startswith("sha256:")


@pytest.mark.threat("P57")
def test_no_word_of_the_call_is_in_the_containers_configuration(inspected: Any) -> None:
    assert "while True" not in json.dumps(inspected)
    assert "execute_python" not in json.dumps(inspected)
