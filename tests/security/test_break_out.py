"""An honest attempt to get out, in each isolation mode: what docs/threat-model.md says was tried, run for real.

Each program tries one way and returns what became of every step: the error's name, or `GOT …` where it got something.
Nothing may be got. After each program another call must be answered as if it had not been, with nothing of it to see.
"""

from __future__ import annotations

import json
import platform
import secrets
import socket
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolcage import PoolTerms, Runtime, Session, ToolResult
from toolcage.cage import wire

pytestmark = pytest.mark.docker

MODES = ("container", "namespace", "session")
ROLE = """
version: 1
role: attacker
tools: {execute_python: {allow: [{}], sandbox: {isolation: %s, wall: 5s}%s}}
"""
NUMBERS = json.loads((Path(__file__).parents[1] / "data" / "syscall_numbers.json").read_text())
COLUMN = 0 if platform.machine() in ("x86_64", "AMD64") else 1
SYSCALLS = {name: pair[COLUMN] for name, pair in NUMBERS.items() if pair[COLUMN] is not None}
FORGED = (
    wire.encode_control(
        op="done", status=0, limit=None, written={"1": 0, "2": 0, "3": 0}, artifacts_found=0, artifacts_sent=0,
        oom_kills=0, pids_refused=0, memory_peak=0, cpu_s=0.0, wall_s=0.0,
    )
    + wire.encode(wire.DATA, wire.RESULT, b'{"success": true, "data": "forged"}')
)  # fmt: skip
PRELUDE = f"""
import ctypes, errno, fcntl, mmap, os, resource, signal, socket, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NUMBERS = {SYSCALLS!r}
found = {{}}
def call(name, *arguments):
    ctypes.set_errno(0)
    arguments = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    answer = libc.syscall(ctypes.c_long(NUMBERS[name]), *arguments)
    return errno.errorcode[ctypes.get_errno()] if answer == -1 else f"GOT {{answer}}"
def tried(step):
    try:
        return f"GOT {{step()!r}}"[:200]
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
here = ctypes.create_string_buffer(4096)
"""

KERNEL = """
page = ctypes.create_string_buffer(b"/tmp/x" + bytes(250))
for name, arguments in {
    "io_uring_setup": (8, here), "bpf": (0, here, 72), "perf_event_open": (here, 0, -1, -1, 0), "userfaultfd": (0,),
    "keyctl": (0, -3, 1), "add_key": (b"user", b"a", b"b", 1, -3), "request_key": (b"user", b"a", 0, -3),
    "mount": (b"none", b"/tmp", b"tmpfs", 0, 0), "umount2": (b"/tmp", 2), "pivot_root": (b"/tmp", b"/tmp"),
    "fsopen": (b"tmpfs", 0), "open_tree": (-100, b"/", 1), "move_mount": (-1, b"", -100, b"/tmp", 4),
    "setns": (0, 0), "clone3": (here, 88), "ptrace": (16, 1, 0, 0), "process_vm_readv": (1, here, 1, here, 1, 0),
    "pidfd_getfd": (3, 0, 0), "kcmp": (1, 1, 0, 0, 0), "memfd_create": (b"x", 0), "memfd_secret": (0,),
    "execveat": (3, b"", 0, 0, 0x1000), "open_by_handle_at": (3, here, 0),
    "name_to_handle_at": (-100, b"/", here, here, 0), "seccomp": (1, 0, here), "splice": (0, 0, 1, 0, 1, 0),
    "vmsplice": (1, here, 1, 0), "init_module": (here, 1, b""),
    "kexec_load": (0, 0, 0, 0), "syslog": (3, here, 100), "shmget": (1, 4096, 0o1777), "msgget": (1, 0o1777),
    "mq_open": (b"q", 66, 0o600, 0), "io_setup": (1, here), "inotify_init1": (0,), "fanotify_init": (0, 0),
    "personality": (0x40000,), "setuid": (0,), "setgroups": (0, 0), "chroot": (b"/tmp",), "quotactl": (0, 0, 0, 0),
    "reboot": (-18751827, 672274793, 0), "setxattr": (page, b"user.a", b"b", 1, 0), "mbind": (0, 0, 0, 0, 0, 0),
}.items():
    found[name] = call(name, *arguments)
for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
    found[f"unshare {flag:#x}"] = call("unshare", flag)
    found[f"clone {flag:#x}"] = call("clone", flag | 17, 0, 0, 0, 0)
for family, kind in ((16, 3), (17, 3), (38, 5), (40, 1), (44, 3), (2, 3), (21, 5), (31, 3)):
    found[f"socket {family}"] = tried(lambda: socket.socket(family, kind))
found
"""
PROC = """
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/self/uid_map",
             "/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent",
             "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/cgroup.procs",
             "/sys/fs/cgroup/pids/pids.max", "/proc/self/exe", "/usr/bin/python3.13", "/etc/passwd",
             "/dev/kmsg", "/dev/mem", "/dev/sda", "/dev/fuse"):
    found["write " + path] = tried(lambda: open(path, "r+b", buffering=0).write(b"0"))
for path in ("/proc/kcore", "/proc/1/root/etc/shadow", "/proc/kmsg", "/sys/firmware/efi", "/sys/kernel/debug/x",
             "/var/run/docker.sock", "/run/containerd/containerd.sock", "/proc/self/root/../../../../etc/shadow"):
    found["read " + path] = tried(lambda: open(path, "rb").read(1) or 1 / 0)
if os.getpid() != 1:
    for name in ("mem", "environ", "fd/0", "fd/3", "root/tmp", "cwd", "map_files", "exe", "ns/net"):
        path = f"/proc/1/{name}"
        found["of the warden: " + name] = tried(lambda: os.stat(path) and open(path, "rb").read(1))
found["less likely to be killed"] = tried(lambda: open("/proc/self/oom_score_adj", "wb", buffering=0).write(b"-1000"))
found["a device"] = tried(lambda: os.mknod("/tmp/sda", 0o60600, os.makedev(8, 0)))
for path in ("/dev/ptmx", "/dev/pts/ptmx", "/dev/tty"):  # the kernel has few terminals for all containers together
    found["a terminal: " + path] = tried(lambda: os.open(path, os.O_RDWR | os.O_NOCTTY))
found["a setuid program"] = tried(lambda: (os.chmod("/usr/bin/python3.13", 0o4755)))
def larger():
    try: resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
    except ValueError: raise OSError(errno.EPERM, "not allowed to raise it")
found["a larger limit"] = tried(larger)
found = {key: "nothing" if "ZeroDivision" in value else value for key, value in found.items()}
found
"""
EXECUTE = """
import shutil
for folder in ("/tmp", "/workspace", "/dev/shm"):
    mine = folder + "/mine"
    shutil.copyfile("/usr/bin/python3.13", mine); os.chmod(mine, 0o755)
    found["run " + mine] = tried(lambda: subprocess.run([mine, "-c", "1"]))
    found["run it by descriptor, " + folder] = tried(lambda: os.execve(os.open(mine, os.O_RDONLY), ["m"], {}))
    found["map it as code, " + folder] = tried(lambda: mmap.mmap(os.open(mine, os.O_RDWR), 4096, mmap.MAP_PRIVATE,
                                                                 mmap.PROT_READ | mmap.PROT_EXEC))
def loader():
    for name in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"):
        if os.path.exists(name) and subprocess.run([name, "/tmp/mine", "-c", "1"], stderr=-3).returncode == 0:
            return "ran"
    raise OSError(errno.EACCES, "refused")
found["by the loader"] = tried(loader)
found
"""
WARDEN = """
if os.getpid() != 1:
    for number in (signal.SIGSTOP, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGCHLD, signal.SIGCONT):
        try: os.kill(1, number)
        except OSError: pass
        ours, theirs = socket.socketpair()  # the kernel sends it then, for data that comes
        fcntl.fcntl(ours, fcntl.F_SETOWN, 1)
        fcntl.fcntl(ours, fcntl.F_SETSIG, int(number))
        fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        theirs.send(b"x")
    found["limits"] = call("prlimit64", 1, 7, here, 0)
    found["affinity"] = call("sched_setaffinity", 1, 8, here)
    found["scheduler"] = call("sched_setscheduler", 1, 5, here)
    found["niceness"] = call("setpriority", 0, 1, 19)
    found["niceness of its user"] = call("setpriority", 2, 0, 19)
    found["attach"] = call("ptrace", 0x4206, 1, 0, 0)
found
"""
OUTSIDE = """
for address in ("127.0.0.1", "172.17.0.1", "10.0.0.1", "169.254.169.254"):
    def connect():
        item = socket.socket(); item.settimeout(0.2); item.connect((address, PORT)); return item
    found["tcp " + address] = tried(connect)
    if address != "127.0.0.1":  # it has a loopback of its own, where datagrams go nowhere
        found["udp " + address] = tried(lambda: socket.socket(2, 2).sendto(b"x", (address, 53)))
found["the host's abstract socket"] = tried(lambda: socket.socket(socket.AF_UNIX).connect("\\0NAME"))
found["a datagram to it"] = tried(lambda: socket.socket(socket.AF_UNIX, 2).sendto(b"x", "\\0NAME"))
found["a name"] = tried(lambda: socket.getaddrinfo("example.org", 80))
found
"""
ATTEMPTS = {
    "kernel surfaces": KERNEL, "files of kernel and warden": PROC, "a program of its own": EXECUTE,
    "the warden": WARDEN, "out of the network namespace": OUTSIDE,
}  # fmt: skip

FRAMES = f"""
import os
forged = {FORGED!r}
for descriptor in [1, 2, *range(3, 1024)]:
    try: os.write(descriptor, forged)
    except OSError: pass
'honest'
"""
DISGUISED = f"""
import array, os, socket
forged, ends = {FORGED!r}, []
for descriptor in range(3, 64):
    try:
        end = socket.socket(fileno=os.dup(descriptor))
        ends.append(end)
        end.sendmsg([forged], [(1, 1, array.array('i', [0, 1, 2]))])
    except OSError: pass
'honest'
"""
STAYS = """
import os, signal, socket, sys, threading, time, builtins
canary = "CANARY"
for folder in ("/tmp", "/workspace", "/dev/shm", "/dev/mqueue"):
    try: open(folder + "/left", "w").write(canary)
    except OSError: pass
os.environ["LEFT"] = canary
builtins.left = sys.left = canary
waiting = socket.socket(socket.AF_UNIX); waiting.bind("\\0left"); waiting.listen()
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
for stopped in (False, True):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            if stopped: os.kill(os.getpid(), signal.SIGSTOP)
            while True:
                try: waiting.accept()
                except OSError: pass
        os._exit(0)
"stayed"
"""
LOOKS = """
import builtins, os, signal, socket, sys
seen = [folder + "/" + name for folder in ("/tmp", "/workspace", "/dev/shm", "/dev/mqueue") if os.path.isdir(folder)
        for name in os.listdir(folder)]
seen += [name for name in ("left",) if hasattr(builtins, name) or hasattr(sys, name)]
seen += [key for key, value in os.environ.items() if "CANARY" in value]
try: socket.socket(socket.AF_UNIX).connect("\\0left"); seen.append("its socket")
except OSError: pass
for pid in filter(str.isdigit, os.listdir("/proc")):
    try: command = open(f"/proc/{pid}/stat").read()
    except OSError: continue
    if int(pid) not in (1, os.getpid(), os.getppid()): seen.append(command[:40])
for line in open("/proc/self/maps"):
    if "left" in line: seen.append(line)
if signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL: seen.append("a handler")
seen
"""
FILL = """
    f = open("FILE", "wb")
    try:
        while True: f.write(bytes(1 << 20))
    except OSError: pass
    "full"
    """
BOMBS = {
    "forks": """
        import os
        while True:
            try: os.fork()
            except OSError: pass
        """,
    "threads": """
        import threading, time
        while True:
            try: threading.Thread(target=time.sleep, args=(60,)).start()
            except RuntimeError: pass
        """,
    "files": """
        n = 0
        try:
            while True: open(f"/tmp/{n}", "w"); n += 1
        except OSError: pass
        n < 40_000
        """,
    "space": FILL.replace("FILE", "/workspace/f"),
    "shared memory": FILL.replace("FILE", "/dev/shm/f"),
    "memory": "x = []\nwhile True: x.append(bytes(1 << 24))",
    "descriptors": """
        import os
        x = []
        try:
            while True: x.append(os.pipe())
        except OSError: pass
        len(x) < 1024
        """,
    "passed descriptors": """
        import array, os, socket
        a, b = socket.socketpair(socket.AF_UNIX)
        a.setblocking(False)
        n = 0
        try:
            while n < 100_000: a.sendmsg([b"x"], [(1, 1, array.array("i", [a.fileno()] * 50))]); n += 1
        except OSError: pass
        n < 100_000
        """,
    "output": "while True: print('x' * 100_000)",
    "stopping everything": "import os, signal\nos.kill(-1, signal.SIGSTOP)\nos.kill(os.getpid(), signal.SIGSTOP)",
    "killing everything": "import os, signal\nos.kill(-1, signal.SIGKILL)\n'alive'",
    "closing everything": "import os\nos.closerange(0, 4096)\n'silent'",
}
OWN_ENDS = {"ok", "tool_error", "timeout", "limit_exceeded", "out_of_memory"}


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def runtime(lasting: Any, mode: str) -> Runtime:
    weaker = "" if mode == "container" else ", accept_weaker: to attack it"
    made: Runtime = lasting.runtime(ROLE % (mode, weaker), pool=PoolTerms(min_idle=1))
    return made


@pytest.fixture
def session(runtime: Runtime) -> Iterator[Session]:
    """A session of its own; when the test is over, another one's call must be answered, and find nothing."""
    with runtime.session() as made:
        yield made
    with runtime.session() as other:
        after = attack(other, LOOKS)
    assert (after.status, after.data) == ("ok", [])


def attack(session: Session, code: str) -> ToolResult:
    return session.call("execute_python", {"code": textwrap.dedent(code)})


@pytest.mark.threat("P20")
@pytest.mark.parametrize("title", ATTEMPTS)
def test_an_attempt_gets_nothing(title: str, session: Session) -> None:
    name = secrets.token_hex(8)
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as abstract:
        tcp.bind(("0.0.0.0", 0))
        tcp.listen()
        abstract.bind(f"\0{name}")
        abstract.listen()
        program = ATTEMPTS[title].replace("PORT", str(tcp.getsockname()[1])).replace("NAME", name)
        result = attack(session, PRELUDE + program)
    assert result.status == "ok", (result.code, result.error, result.stderr)
    got = {step: answer for step, answer in result.data.items() if answer.startswith("GOT")}
    assert got == {}


@pytest.mark.threat("P31")
@pytest.mark.parametrize("program", [FRAMES, DISGUISED], ids=["written", "as messages with descriptors"])
def test_a_forged_frame_is_at_most_this_calls_own_failure_and_never_an_answer(program: str, session: Session) -> None:
    result = attack(session, program)
    assert result.status in ("ok", "tool_error")
    assert result.data in ("honest", None)


@pytest.mark.threat("P33")
def test_nothing_that_a_call_leaves_behind_survives_it_or_is_met_by_a_later_one(
    session: Session, runtime: Runtime, mode: str
) -> None:
    canary = secrets.token_hex(16)
    assert attack(session, STAYS.replace("CANARY", canary)).data == "stayed"
    if mode != "session":
        assert attack(session, LOOKS.replace("CANARY", canary)).data == []
    with runtime.session() as other:
        assert attack(other, LOOKS.replace("CANARY", canary)).data == []


@pytest.mark.threat("P50")
@pytest.mark.parametrize("title", BOMBS)
def test_whatever_is_used_up_is_the_calls_own_and_ends_with_it(title: str, session: Session) -> None:
    result = attack(session, BOMBS[title])
    assert result.status in OWN_ENDS, (result.status, result.code)
    assert result.data in (None, True, "full", "alive", "silent")
