"""Every system call that the profile refuses is really refused, inside a container of the built image.

The probes are generated from the profile and from a table of the kernel's system call numbers, so that a call which
somebody adds to the profile, or forgets to refuse, shows here. Each probe runs in a forked child with an alarm; the
results come back as one JSON line.
"""

from __future__ import annotations

import errno
import json
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import docker
import pytest

from toolcage.cage.images import ImageLock
from toolcage.cage.seccomp import load_profile
from toolcage.state import default_state_dir

pytestmark = pytest.mark.docker

NUMBERS: dict[str, list[int | None]] = json.loads(
    (Path(__file__).parents[1] / "data" / "syscall_numbers.json").read_text()
)
COLUMN = 0 if platform.machine() in ("x86_64", "AMD64") else 1
NATIVE = {name: numbers[COLUMN] for name, numbers in NUMBERS.items() if numbers[COLUMN] is not None}

ANSWERS: dict[str, int] = {
    name: rule["errnoRet"]
    for rule in json.loads(load_profile().text)["syscalls"]
    if "errnoRet" in rule
    for name in rule["names"]
}
"""What the profile's own refusals answer; every other call that it does not allow answers EPERM."""
OLDEST_UNKNOWN = 450  # an engine's libseccomp may not know newer numbers by name; those end in EPERM or ENOSYS
REFUSED = sorted(set(NATIVE) - load_profile().allowed)
CANNOT_BE_PROBED = {"exit", "exit_group", "fork", "vfork", "clone", "rt_sigreturn", "pause"}

GUARDING = [
    "DAC_READ_SEARCH", "IPC_OWNER", "NET_ADMIN", "SETGID", "SETUID", "SYSLOG",
    "SYS_ADMIN", "SYS_BOOT", "SYS_CHROOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_TIME",
    "SYS_TTY_CONFIG",
]  # fmt: skip
"""The capabilities that guard refused calls. Not simply all: an engine cannot give one that it lacks itself."""

PROBE = r"""
import ctypes, json, mmap, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def value(item):
    if isinstance(item, str):
        return ctypes.create_string_buffer(item.encode() + bytes(256))
    return ctypes.c_long(item if item < 2**63 else item - 2**64)

def native(number, arguments):
    pid = os.getpid()
    result = libc.syscall(ctypes.c_long(number), *[value(item) for item in arguments])
    code = ctypes.get_errno()
    if os.getpid() != pid:
        os._exit(0)
    return [result, code if result == -1 else 0]

def i386():
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))  # mov eax, 20 (getpid); int 0x80; ret
    return [ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))(), 0]

def run(probe):
    number, arguments = probe
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        os.write(writer, json.dumps(i386() if number == "i386" else native(number, arguments)).encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    answer = os.read(reader, 1000)
    os.close(reader)
    return json.loads(answer) if answer else [-1, 0, os.waitstatus_to_exitcode(status)]

print(json.dumps({name: run(probe) for name, probe in json.loads(sys.argv[1]).items()}))
"""

CLONE_FLAGS = {
    "NEWNS": 0x20000, "NEWCGROUP": 0x2000000, "NEWUTS": 0x4000000, "NEWIPC": 0x8000000, "NEWUSER": 0x10000000,
    "NEWPID": 0x20000000, "NEWNET": 0x40000000, "PARENT": 0x8000,
}  # fmt: skip
SIGCHLD, AT_FDCWD, HIGH = 17, -100, 1 << 32
FIFO, CHARACTER, BLOCK = 0o010600, 0o020600, 0o060600

PASSES: dict[str, tuple[str, list[int | str]]] = {
    "a plain fork": ("clone", [SIGCHLD, 0, 0, 0, 0]),
    "a unix socket": ("socket", [1, 1, 0]),
    "a unix socket pair": ("socketpair", [1, 1, 0, ""]),
    "a TCP socket": ("socket", [2, 1, 0]),
    "a TCP socket by protocol": ("socket", [2, 1 | 0o2000000, 6]),
    "own limits": ("prlimit64", [0, 7, 0, ""]),
    "own scheduler": ("sched_setscheduler", [0, 0, ""]),
    "own niceness": ("setpriority", [0, 0, 5]),
    "a named pipe": ("mknodat", [AT_FDCWD, "/tmp/pipe", FIFO, 0]),
    "how much can be read": ("ioctl", [0, 0x541B, ""]),
    "is it a terminal": ("ioctl", [0, 0x5401, ""]),
    "not dumpable": ("prctl", [4, 0, 0, 0, 0]),
    "a thread's name": ("prctl", [15, "name", 0, 0, 0]),
    "no new privileges": ("prctl", [38, 1, 0, 0, 0]),
    "SO_REUSEADDR": ("setsockopt", [-1, 1, 2, "", 4]),
    "TCP_NODELAY": ("setsockopt", [-1, 6, 1, "", 4]),
    "a signal to oneself": ("kill", [0, 0]),
    "randomness": ("getrandom", ["", 16, 0]),
}
IS_REFUSED: dict[str, tuple[str, list[int | str]]] = {
    **{f"clone with {name}": ("clone", [flag | SIGCHLD, 0, 0, 0, 0]) for name, flag in CLONE_FLAGS.items()},
    **{
        f"address family {number}": ("socket", [number, kind, 0])
        for number in (*range(2, 46), 0)
        for kind in (1, 2, 3)
        if (number, kind) != (2, 1) and number != 10
    },
    "a raw IPv4 socket": ("socket", [2, 3, 1]),
    "a UDP socket": ("socket", [2, 2, 17]),
    "SCTP": ("socket", [2, 1, 132]),
    "MPTCP": ("socket", [2, 1, 262]),
    "DCCP": ("socket", [2, 6, 33]),
    "UDP-Lite": ("socket", [2, 2, 136]),
    "AF_PACKET behind high bits": ("socket", [HIGH | 17, 3, 0]),
    "AF_NETLINK behind high bits": ("socket", [HIGH | 16, 3, 0]),
    "an AF_INET socket pair": ("socketpair", [2, 1, 0, ""]),
    "the limits of pid 1": ("prlimit64", [1, 7, 0, ""]),
    "the limits of pid 1 behind high bits": ("prlimit64", [HIGH | 1, 7, 0, ""]),
    "the affinity of pid 1": ("sched_setaffinity", [1, 8, "\x01"]),
    "the scheduler of pid 1": ("sched_setscheduler", [1, 0, ""]),
    "the parameters of pid 1": ("sched_setparam", [1, ""]),
    "the niceness of pid 1": ("setpriority", [0, 1, 19]),
    "the niceness of a process group": ("setpriority", [1, 0, 19]),
    "the niceness of a whole user": ("setpriority", [2, 0, 19]),
    "a character device": ("mknodat", [AT_FDCWD, "/tmp/mem", CHARACTER, 0x101]),
    "a character device behind high bits": ("mknodat", [AT_FDCWD, "/tmp/mem", HIGH | CHARACTER, 0x101]),
    "a block device": ("mknodat", [AT_FDCWD, "/tmp/disk", BLOCK, 0x800]),
    "TIOCSTI": ("ioctl", [0, 0x5412, "x"]),
    "TIOCSTI behind high bits": ("ioctl", [0, HIGH | 0x5412, "x"]),
    "TIOCLINUX": ("ioctl", [0, 0x541C, "x"]),
    "TIOCSCTTY": ("ioctl", [0, 0x540E, 0]),
    "SIOCSIFFLAGS": ("ioctl", [0, 0x8914, ""]),
    "PR_SET_SECCOMP": ("prctl", [22, 2, 0, 0, 0]),
    "PR_SET_KEEPCAPS": ("prctl", [8, 1, 0, 0, 0]),
    "PR_CAPBSET_DROP": ("prctl", [24, 0, 0, 0, 0]),
    "PR_SET_MM": ("prctl", [35, 1, 0, 0, 0]),
    "PR_CAP_AMBIENT": ("prctl", [47, 4, 0, 0, 0]),
    "PR_SET_PTRACER": ("prctl", [0x59616D61, -1, 0, 0, 0]),
    "PR_SET_MM behind high bits": ("prctl", [HIGH | 35, 1, 0, 0, 0]),
    "TCP_ULP": ("setsockopt", [-1, 6, 31, "tls", 3]),
    "TCP_ULP behind high bits": ("setsockopt", [-1, 6, HIGH | 31, "tls", 3]),
    "SO_ATTACH_FILTER": ("setsockopt", [-1, 1, 26, "", 16]),
    "SO_ATTACH_BPF": ("setsockopt", [-1, 1, 50, "", 4]),
    "IPT_SO_SET_REPLACE": ("setsockopt", [-1, 0, 64, "", 4]),
    "SOL_IPV6": ("setsockopt", [-1, 41, 26, "", 4]),
    "SOL_UDP": ("setsockopt", [-1, 17, 100, "", 4]),
}
if COLUMN == 0:
    PASSES["the thread pointer"] = ("arch_prctl", [0x1003, ""])
    PASSES["a named pipe, older call"] = ("mknod", ["/tmp/pipe2", FIFO, 0])
    IS_REFUSED["ARCH_SET_GS"] = ("arch_prctl", [0x1001, 0])
    IS_REFUSED["a character device, older call"] = ("mknod", ["/tmp/mem2", CHARACTER, 0x101])

IS_UNKNOWN: dict[str, tuple[str, list[int | str]]] = {
    "TCP over IPv6": ("socket", [10, 1, 0]),
    "UDP over IPv6": ("socket", [10, 2, 17]),
    "a raw IPv6 socket": ("socket", [10, 3, 58]),
    "SCTP over IPv6": ("socket", [10, 5, 132]),
}

Answers = Mapping[str, list[int]]
"""By the probe's name: result, errno, and the negated signal when the probe was killed."""


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


def run_in_container(
    client: docker.DockerClient, program: str, *arguments: str, seccomp: str | None, **options: Any
) -> str:
    image = ImageLock.load(default_state_dir()).resolve("python")
    settings: dict[str, Any] = {
        "security_opt": ["no-new-privileges", *([f"seccomp={seccomp}"] if seccomp else [])],
        "cap_drop": ["ALL"],
        "read_only": True,
        "network_mode": "none",
        "user": "23456:23456",
        "pids_limit": 64,
        "mem_limit": "256m",
        "tmpfs": {"/tmp": "size=8m,noexec,nosuid,nodev,mode=1777"},
    }
    container = client.containers.create(
        image.image_id, ["/usr/bin/python3", "-I", "-c", program, *arguments], **(settings | options)
    )
    try:
        container.start()
        status = container.wait(timeout=120)
        out = container.logs(stderr=False).decode()
        assert status["StatusCode"] == 0, container.logs().decode(errors="replace")
        return out
    finally:
        container.remove(force=True)


def ask(client: docker.DockerClient, probes: Mapping[str, Any], *, seccomp: str | None, **options: Any) -> Answers:
    answers: Answers = json.loads(
        run_in_container(client, PROBE, json.dumps(probes), seccomp=seccomp, **options).splitlines()[-1]
    )
    assert answers.keys() == probes.keys()
    return answers


def by_name(cases: Mapping[str, tuple[str, list[int | str]]]) -> dict[str, Any]:
    return {title: [NATIVE[name], arguments] for title, (name, arguments) in cases.items()}


def garbage(names: Any) -> dict[str, Any]:
    return {name: [NATIVE[name], [-1] * 6] for name in names}


@pytest.fixture(scope="module")
def refused(client: docker.DockerClient) -> Answers:
    """Asked as root with the guarding capabilities: no other layer's EPERM may stand in for seccomp's."""
    probes = garbage(REFUSED) | by_name(IS_REFUSED | IS_UNKNOWN)
    return ask(client, probes, seccomp=load_profile().text, user="0:0", cap_drop=[], cap_add=GUARDING)


@pytest.fixture(scope="module")
def in_cage(client: docker.DockerClient) -> Answers:
    return ask(client, by_name(PASSES), seccomp=load_profile().text)


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_that_the_profile_does_not_allow_is_refused_even_to_a_capable_root(name: str, refused: Answers) -> None:
    result, code = refused[name][:2]
    number = NATIVE[name] or 0
    expected = {ANSWERS.get(name, errno.EPERM)}
    if number >= OLDEST_UNKNOWN:
        expected |= {errno.EPERM, errno.ENOSYS}
    assert (result, code) in {(-1, item) for item in expected}


@pytest.mark.parametrize("title", PASSES)
def test_a_call_that_programs_need_reaches_the_kernel(title: str, in_cage: Answers) -> None:
    result, code = in_cage[title][:2]
    assert result >= 0 or code not in (0, errno.EPERM, errno.ENOSYS), in_cage[title]


@pytest.mark.parametrize("title", IS_REFUSED)
def test_the_neighbour_of_an_allowed_call_is_refused_even_to_a_capable_root(title: str, refused: Answers) -> None:
    assert refused[title] == [-1, errno.EPERM]


@pytest.mark.parametrize("title", IS_UNKNOWN)
def test_a_program_is_told_that_there_is_no_ipv6(title: str, refused: Answers) -> None:
    assert refused[title] == [-1, errno.EAFNOSUPPORT]


def test_nothing_that_the_engines_own_profile_refuses_gets_through_ours(client: docker.DockerClient) -> None:
    probes = garbage(sorted(set(NATIVE) - CANNOT_BE_PROBED))
    theirs = ask(client, probes, seccomp=None)
    ours = ask(client, probes, seccomp=load_profile().text)
    refused_by_default = {name for name, answer in theirs.items() if answer[:2] == [-1, errno.EPERM]}
    assert {"mount", "bpf", "keyctl", "userfaultfd"} <= refused_by_default  # the comparison compares something
    through = {name for name in refused_by_default if ours[name][1] not in (errno.EPERM, errno.ENOSYS)}
    assert not through


@pytest.mark.skipif(COLUMN != 0, reason="other architectures have no i386 and x32 entry")
@pytest.mark.parametrize("probe", [["i386", []], [0x40000000 + 39, []]], ids=["i386", "x32"])
def test_a_call_by_another_architectures_entry_does_not_run(client: docker.DockerClient, probe: list[Any]) -> None:
    answer = ask(client, {"foreign": probe}, seccomp=load_profile().text)["foreign"]
    killed = len(answer) == 3 and answer[2] < 0
    assert killed or answer == [-1, errno.ENOSYS]


@pytest.mark.parametrize("number", [470, 511, 100_000])
def test_a_call_newer_than_the_profile_is_refused(client: docker.DockerClient, number: int) -> None:
    answer = ask(client, {"new": [number, [-1] * 6]}, seccomp=load_profile().text)["new"]
    assert answer[0] == -1
    assert answer[1] in (errno.EPERM, errno.ENOSYS)


@pytest.mark.threat("P22")
def test_a_program_of_ones_own_cannot_be_executed_by_any_route(client: docker.DockerClient) -> None:
    program = """
import ctypes, os, shutil
shutil.copyfile("/usr/bin/python3.13", "/tmp/mine"); os.chmod("/tmp/mine", 0o755)
def attempt(what):
    try:
        what()
    except OSError as error:
        print(error.errno)
attempt(lambda: os.execv("/tmp/mine", ["mine"]))
attempt(lambda: os.memfd_create("mine"))
fd = os.open("/tmp/mine", os.O_RDONLY)
attempt(lambda: os.execve(fd, ["mine"], {}))
attempt(lambda: os.execv("/lib64/ld-linux-x86-64.so.2" if os.path.exists("/lib64/ld-linux-x86-64.so.2")
                         else "/lib/ld-linux-aarch64.so.1", ["ld.so", "/tmp/mine", "-c", "print('ran')"])
        if os.fork() == 0 else os.wait())
"""
    lines = run_in_container(client, program, seccomp=load_profile().text).split()
    assert lines == [str(errno.EACCES), str(errno.ENOSYS), str(errno.EACCES)]


def test_programs_that_people_write_run_under_the_profile(client: docker.DockerClient) -> None:
    program = """
import asyncio, concurrent.futures, multiprocessing, os, shutil, socket, sqlite3, subprocess, threading, zoneinfo
import pydantic, RestrictedPython
thread = threading.Thread(target=lambda: print("thread")); thread.start(); thread.join()
print(subprocess.run(["/usr/bin/python3", "-c", "print('child')"], capture_output=True, text=True).stdout.strip())
async def child():
    process = await asyncio.create_subprocess_exec("/usr/bin/python3", "-c", "print('async')", stdout=-1)
    return (await process.communicate())[0].decode().strip()
print(asyncio.run(child()))
with concurrent.futures.ProcessPoolExecutor(2) as pool:
    print(list(pool.map(abs, [-1, -2])))
server = socket.create_server(("127.0.0.1", 0)); client = socket.create_connection(server.getsockname())
client.sendall(b"loopback"); print(server.accept()[0].recv(100).decode())
os.mkdir("/tmp/a"); open("/tmp/a/b", "w").write("copied"); shutil.copytree("/tmp/a", "/tmp/c")
print(open("/tmp/c/b").read())
base = sqlite3.connect("/tmp/base.db"); print(base.execute("pragma journal_mode=wal").fetchone()[0])
os.nice(1); print(zoneinfo.ZoneInfo("Europe/Berlin"), os.getuid())
"""
    out = run_in_container(client, program, seccomp=load_profile().text, shm_size="16m")
    assert out.splitlines() == [
        "thread", "child", "async", "[1, 2]", "loopback", "copied", "wal", "Europe/Berlin 23456",
    ]  # fmt: skip
