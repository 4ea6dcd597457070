"""What a program in a cage can see and do, tried one thing after the other and told as one JSON value.

This text is sent through a cage's door and runs inside only, as the body of an ordinary call; the security tests
send it too, and run it alone in containers that were weakened on purpose. Each attempt is reported, never judged here:
a value where it worked, the name of the error where it did not. Standard library only, and nothing of toolcage.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import json
import os
import platform
import resource
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from typing import Any, Final

SYSCALLS: Final = {
    "acct": (163, 89), "add_key": (248, 217), "bpf": (321, 280), "clock_settime": (227, 112), "clone": (56, 220),
    "clone3": (435, 435), "execveat": (322, 281), "fanotify_init": (300, 262), "finit_module": (313, 273),
    "fsopen": (430, 430), "init_module": (175, 105), "inotify_init1": (294, 26), "io_uring_setup": (425, 425),
    "kcmp": (312, 272), "kexec_load": (246, 104), "keyctl": (250, 219), "memfd_create": (319, 279),
    "mount": (165, 40), "move_mount": (429, 429), "move_pages": (279, 239), "mq_open": (240, 180),
    "msgget": (68, 186), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "open_tree": (428, 428),
    "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": (438, 438), "pivot_root": (155, 41),
    "process_madvise": (440, 440), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "ptrace": (101, 117), "quotactl": (179, 60), "reboot": (169, 142), "request_key": (249, 218),
    "sethostname": (170, 161), "setns": (308, 268), "settimeofday": (164, 170), "shmget": (29, 194),
    "swapon": (167, 224), "syslog": (103, 116), "umount2": (166, 39), "unshare": (272, 97), "userfaultfd": (323, 282),
    "vmsplice": (278, 75),
}  # fmt: skip
"""Numbers on x86_64 and aarch64 of the calls that are tried."""
NEW_NAMESPACES: Final = {
    "user": 0x10000000, "mount": 0x20000, "net": 0x40000000, "pid": 0x20000000, "ipc": 0x8000000, "uts": 0x4000000,
    "cgroup": 0x2000000, "time": 0x80,
}  # fmt: skip
KERNEL_FILES: Final = (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory",
    "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger", "/proc/self/setgroups", "/sys/kernel/uevent_helper",
    "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent",
    "/sys/fs/cgroup/memory/notify_on_release", "/dev/kmsg", "/dev/mem", "/proc/kcore", "/proc/irq/0/smp_affinity",
    "/proc/self/uid_map", "/proc/self/gid_map",
)  # fmt: skip
HOME_OF_ROOT: Final = os.path.join("/", "root")
SECRET_FILES: Final = (
    "/etc/shadow", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug",
    "/sys/firmware/dmi/tables/DMI", "/dev/mem", "/dev/sda", "/dev/vda", "/dev/kmsg", "/dev/fuse",
    "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock",
    "/var/run/secrets/kubernetes.io/serviceaccount/token", "/proc/kmsg",
)  # fmt: skip
OUTSIDE: Final = (
    "/x", "/etc/x", "/usr/x", "/usr/lib/x", f"{HOME_OF_ROOT}/x", "/home/x", "/var/x", "/run/x", "/data/x", "/dev/x",
    "/proc/x", "/sys/x", "/opt/x", "/mnt/x", "/var/tmp/x",  # noqa: S108 - all of them are tried
)  # fmt: skip
IDENTITY_PROGRAMS: Final = {
    "sudo": ["-n", "true"], "su": ["root", "-c", "true"], "mount": ["-t", "tmpfs", "x", "/mnt"],
    "chroot": ["/", "/usr/bin/true"], "unshare": ["-U", "true"], "nsenter": ["-t", "1", "-m", "true"],
}  # fmt: skip
ADDRESSES: Final = (
    "1.1.1.1", "169.254.169.254", "100.100.100.200", "192.0.0.192", "172.17.0.1", "192.168.65.7", "10.0.0.1",
    "127.0.0.1",
)  # fmt: skip
INODES_TRIED: Final = 100_000
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long
_SPACE: Final = ctypes.create_string_buffer(4096)
_COLUMN: Final = 0 if platform.machine() in ("x86_64", "AMD64") else 1


def observe(targets: list[int], abstract: str) -> dict[str, Any]:
    """Everything. `targets` are open TCP ports of the host, `abstract` the name of an abstract socket of the host."""
    return {
        **identity(), **places(), **kernel_files(), **privileges(), **small_limits(), **system_calls(), **sockets(),
        **network(targets, abstract),
    }  # fmt: skip


def tried(action: Callable[..., Any], *arguments: Any) -> Any:
    """What `action` returned, or the name of the error that stopped it."""
    try:
        return action(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__) if error.errno else type(error).__name__
    except Exception as error:  # noqa: BLE001 - whatever stopped it is the answer
        return type(error).__name__


def call(name: str, *arguments: Any) -> Any:
    """A bare system call: its result, or the name of its error."""
    number = SYSCALLS[name][_COLUMN]
    ctypes.set_errno(0)
    plain: list[Any] = [ctypes.c_char_p(item) if isinstance(item, bytes) else ctypes.c_long(item) for item in arguments]
    plain += [ctypes.c_long(0)] * (6 - len(plain))
    own = os.getpid()
    result = _LIBC.syscall(ctypes.c_long(number), *plain)
    if os.getpid() != own:
        os._exit(0)  # it was allowed, and this is the new process
    return errno.errorcode[ctypes.get_errno()] if result == -1 else result


def read(path: str, size: int = 65536) -> str:
    with open(path, "rb") as handle:
        return handle.read(size).decode("utf-8", "replace")


def line_of(path: str) -> str:
    return read(path).strip()


def length_of(path: str) -> int:
    return len(read(path))


def write(path: str, text: bytes = b"1") -> int:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        return os.write(descriptor, text)
    finally:
        os.close(descriptor)


def made(path: str) -> bool:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
    return True


# --- identity and information --------------------------------------------------------------------------------------


def identity() -> dict[str, Any]:
    status = dict(line.split(":\t", 1) for line in read("/proc/self/status").splitlines() if ":\t" in line)
    wanted = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
    pids = [name for name in os.listdir("/proc") if name.isdigit()]
    return {
        "ids": [os.getresuid(), os.getresgid(), os.getgroups()],
        "status": {name: status[name].strip() for name in wanted},
        "seccomp_filters": status.get("Seccomp_filters", "?").strip(),
        "lsm": tried(lambda: read("/proc/self/attr/current").strip("\0\n")),
        "uid_map": tried(lambda: read("/proc/self/uid_map").split()),
        "hostname": os.uname().nodename,
        "kernel": os.uname().release,
        "environment": dict(os.environ),
        "initial_environment": sorted(read("/proc/self/environ").split("\0")),
        "cwd": os.getcwd(),
        "descriptors": {
            name: tried(os.readlink, f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")
        },
        "processes": {name: tried(line_of, f"/proc/{name}/comm") for name in pids},
        "owners": sorted({str(tried(_owner, name)) for name in pids}),
        "me": os.getpid(),
        "shadow": tried(lambda: read("/etc/shadow")),
        "passwd": tried(lambda: read("/etc/passwd")),
        "proc_environ_and_cmdline": "".join(
            tried(read, path)
            for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline")
        ),
    }


def _owner(pid: str) -> str:
    (line,) = (line for line in read(f"/proc/{pid}/status").splitlines() if line.startswith("Uid:"))
    return line.split()[1]


# --- files ---------------------------------------------------------------------------------------------------------


def places() -> dict[str, Any]:
    found: dict[str, Any] = {"privileged_files": [], "writable": [], "programs": []}
    for folder, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if folder != "/" or name not in ("proc", "sys")]
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            if stat.S_ISREG(info.st_mode) and (info.st_mode & (stat.S_ISUID | stat.S_ISGID) or _marked(path)):
                found["privileged_files"].append(path)
            if not stat.S_ISLNK(info.st_mode) and not path.startswith("/dev/") and os.access(path, os.W_OK):
                found["writable"].append(path)
    for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"):
        if os.path.isdir(folder):
            found["programs"] += [name for name in os.listdir(folder) if os.access(f"{folder}/{name}", os.X_OK)]
    found["mounts"] = [line.split() for line in read("/proc/self/mountinfo").splitlines()]
    found["root_writes"] = {path: tried(made, path) for path in OUTSIDE}
    found["devices"] = {
        name: f"{os.major(info.st_rdev)}:{os.minor(info.st_rdev)}"
        for name, info in ((name, os.lstat(f"/dev/{name}")) for name in os.listdir("/dev"))
        if stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode)
    }
    return found


def _marked(path: str) -> bool:
    """Whether the file has capabilities of its own."""
    return tried(lambda: os.getxattr(path, "security.capability")) not in ("ENODATA", "EOPNOTSUPP", "ENOTSUP")


def kernel_files() -> dict[str, Any]:
    return {
        "kernel_writes": {path: tried(write, path) for path in KERNEL_FILES},
        "secret_reads": {path: tried(length_of, path) for path in SECRET_FILES},
        "key_of_root": tried(length_of, f"{HOME_OF_ROOT}/.ssh/id_rsa"),
        "core_limit": list(resource.getrlimit(resource.RLIMIT_CORE)),
    }


def privileges() -> dict[str, Any]:
    folders = ("/tmp", "/workspace", "/dev/shm")  # noqa: S108 - the cage's own
    return {
        "executes": {folder: tried(_executes, folder) for folder in folders},
        "mknod": {
            kind: tried(_made_node, mode)
            for kind, mode in (("character", stat.S_IFCHR), ("block", stat.S_IFBLK))
        },
        "setuid": tried(_marks_setuid),
        "setuid_0": tried(lambda: os.setuid(0)),
        "chroot": tried(os.chroot, "/"),  # harmless where it is allowed
        "identity_programs": {name: _ran(name, arguments) for name, arguments in IDENTITY_PROGRAMS.items()},
    }


def _made_node(kind: int) -> bool:
    os.mknod(f"/tmp/{kind}", kind | 0o600, os.makedev(1, 1))  # noqa: S108
    return True


def _executes(folder: str) -> Any:
    path = f"{folder}/program"
    with open(path, "wb") as copy:
        copy.write(b"#!/usr/bin/python3\nprint(1)\n")
    os.chmod(path, 0o700)
    pid = os.fork()
    if pid == 0:
        try:
            os.execv(path, [path])  # noqa: S606 - what is tried
        except OSError as error:
            os._exit(error.errno or 255)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.unlink(path)
    return errno.errorcode.get(code, code)


def _marks_setuid() -> str:
    path = "/tmp/marked"  # noqa: S108
    made(path)
    os.chmod(path, 0o6755)  # noqa: S103 - what is tried
    mode = oct(os.stat(path).st_mode)
    os.unlink(path)
    return mode


def _ran(name: str, arguments: list[str]) -> str:
    for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        if os.access(f"{folder}/{name}", os.X_OK):
            command = [f"{folder}/{name}", *arguments]
            done = subprocess.run(command, capture_output=True, check=False, timeout=10)  # noqa: S603
            return "ran" if done.returncode == 0 else f"exit code {done.returncode}"
    return "not there"


def small_limits() -> dict[str, Any]:
    """Fills what is bounded, one thing after the other, and gives it back."""
    return {
        **_inodes(),
        "descriptors_opened": _descriptors(),
        "file_size": tried(_beyond_the_file_size),
        "tmp_filled": _filled("/tmp/full"),  # noqa: S108
        "shm_filled": _filled("/dev/shm/full"),  # noqa: S108
    }


def _inodes() -> dict[str, Any]:
    folder, count, error_name = "/tmp/many", 0, None  # noqa: S108
    os.mkdir(folder)
    try:
        for count in range(INODES_TRIED):
            made(f"{folder}/{count}")
    except OSError as error:
        error_name = errno.errorcode[error.errno or 0]
    for name in os.listdir(folder):
        os.unlink(f"{folder}/{name}")
    os.rmdir(folder)
    return {"inodes": count, "inode_error": error_name}


def _descriptors() -> list[Any]:
    held: list[int] = []
    try:
        for _ in range(100_000):
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        return [len(held), errno.errorcode[error.errno or 0]]
    finally:
        for descriptor in held:
            os.close(descriptor)
    return [len(held), None]


def _beyond_the_file_size() -> str:
    path = "/tmp/long"  # noqa: S108
    with open(path, "wb") as handle:
        try:
            os.ftruncate(handle.fileno(), 1 << 40)
        finally:
            os.unlink(path)
    return "1 TiB"


def _filled(path: str) -> list[Any]:
    """How many bytes could be written, and what stopped it."""
    total, block = 0, bytes(1 << 20)
    try:
        with open(path, "wb", buffering=0) as handle:
            while total < 128 << 20:
                total += handle.write(block)
        return [total, None]
    except OSError as error:
        return [total, errno.errorcode[error.errno or 0]]
    finally:
        os.unlink(path)


# --- system calls --------------------------------------------------------------------------------------------------


def system_calls() -> dict[str, Any]:
    here = ctypes.addressof(_SPACE)
    answers: dict[str, Any] = {
        "mount": call("mount", b"none", b"/tmp", b"tmpfs", 0, 0),
        "umount2": call("umount2", b"/tmp", 2),
        "pivot_root": call("pivot_root", b"/tmp", b"/tmp"),
        "fsopen": call("fsopen", b"tmpfs", 0),
        "move_mount": call("move_mount", -100, b"/tmp", -100, b"/workspace", 0),
        "open_tree": call("open_tree", -100, b"/", 1),
        "bpf": call("bpf", 5, here, 120),
        "perf_event_open": call("perf_event_open", here, 0, -1, -1, 0),
        "keyctl": call("keyctl", 0, -3, 0),
        "add_key": call("add_key", b"user", b"x", here, 1, -3),
        "request_key": call("request_key", b"user", b"x", 0, -3),
        "ptrace": call("ptrace", 16, 1, 0, 0),
        "process_vm_readv": call("process_vm_readv", 1, here, 1, here, 1, 0),
        "process_vm_writev": call("process_vm_writev", 1, here, 1, here, 1, 0),
        "init_module": call("init_module", here, 1, b""),
        "finit_module": call("finit_module", 0, b"", 0),
        "kexec_load": call("kexec_load", 0, 0, 0, 0),
        "userfaultfd": call("userfaultfd", 0),
        "io_uring_setup": call("io_uring_setup", 4, here),
        "open_by_handle_at": call("open_by_handle_at", -100, here, 0),
        "name_to_handle_at": call("name_to_handle_at", -100, b"/", here, here + 512, 0),
        "setns": call("setns", 0, 0),
        "clone3": call("clone3", here, 88),
        "personality": call("personality", 0xFFFFFFFF),
        "swapon": call("swapon", b"/tmp/x", 0),
        "reboot": call("reboot", 0xFEE1DEAD, 672274793, 0x89ABCDEF),
        "settimeofday": call("settimeofday", here, 0),
        "clock_settime": call("clock_settime", 0, here),
        "sethostname": call("sethostname", b"x", 1),
        "quotactl": call("quotactl", 0x80000100, b"/dev/sda", 0, here),
        "memfd_create": call("memfd_create", b"x", 0),
        "execveat": call("execveat", -100, b"/nonexistent", 0, 0, 0),
        "syslog": call("syslog", 3, here, 100),
        "acct": call("acct", b"/tmp/x"),
        "kcmp": call("kcmp", 1, os.getpid(), 2, 0, 0),
        "pidfd_getfd": call("pidfd_getfd", 0, 0, 0),
        "process_madvise": call("process_madvise", 0, here, 1, 4, 0),
        "move_pages": call("move_pages", 1, 0, 0, 0, 0, 0),
        "fanotify_init": call("fanotify_init", 0, 0),
        "inotify_init1": call("inotify_init1", 0),
        "vmsplice": call("vmsplice", 1, here, 1, 0),
        "shmget": call("shmget", 1, 4096, 0o1777),
        "msgget": call("msgget", 1, 0o1777),
        "mq_open": call("mq_open", b"x", 0o102, 0o777, 0),
    } | {f"unshare {name}": call("unshare", flag) for name, flag in NEW_NAMESPACES.items()}  # fmt: skip
    for name, flag in NEW_NAMESPACES.items():
        if name == "time":
            continue  # of clone3 only
        pid = answers[f"clone {name}"] = call("clone", flag | 17, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)  # in a new process namespace it may have this one's number
    return {"syscalls": answers}


SOCKETS: Final = (
    ("packet", 17, socket.SOCK_RAW, 0x300), ("netlink", 16, socket.SOCK_RAW, 0), ("vsock", 40, socket.SOCK_STREAM, 0),
    ("alg", 38, socket.SOCK_SEQPACKET, 0), ("raw", 2, socket.SOCK_RAW, 1), ("icmp", 2, socket.SOCK_DGRAM, 1),
    ("icmp6", 10, socket.SOCK_DGRAM, 58), ("can", 29, socket.SOCK_RAW, 1), ("bluetooth", 31, socket.SOCK_RAW, 1),
    ("sctp", 2, socket.SOCK_STREAM, 132), ("xdp", 44, socket.SOCK_RAW, 0), ("tipc", 30, socket.SOCK_SEQPACKET, 0),
    ("mptcp", 2, socket.SOCK_STREAM, 262), ("key", 15, socket.SOCK_RAW, 2),
)  # fmt: skip


def sockets() -> dict[str, Any]:
    return {
        "sockets": {
            name: tried(_opened, family, kind, number)
            for name, family, kind, number in SOCKETS
        }
    }


def _opened(family: int, kind: int, number: int) -> bool:
    socket.socket(family, kind, number).close()
    return True


# --- network -------------------------------------------------------------------------------------------------------


def network(targets: list[int], abstract: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "interfaces": sorted(name for _, name in socket.if_nameindex()) if not os.path.isdir("/sys/class/net")
        else sorted(os.listdir("/sys/class/net")),
        "routes": tried(lambda: read("/proc/self/net/route").splitlines()[1:]),
        "route_localnet": [
            tried(line_of, path) for path in glob.glob("/proc/sys/net/ipv4/conf/*/route_localnet")
        ],
        "reached": {
            f"{address} {port}": tried(_reaches, (address, port))
            for address in ADDRESSES
            for port in (*targets, 80, 2375, 2376)
        },
        "reached_other": {
            "udp": tried(lambda: _reaches(("1.1.1.1", 53), kind=socket.SOCK_DGRAM)),
            "ipv6": tried(lambda: _reaches(("2606:4700:4700::1111", 53), socket.AF_INET6)),
            "ipv6 metadata": tried(lambda: _reaches(("fd00:ec2::254", 80), socket.AF_INET6)),
            "abstract": tried(lambda: _reaches("\0" + abstract, socket.AF_UNIX)),
            "abstract containerd": tried(lambda: _reaches("\0/containerd-shim/moby", socket.AF_UNIX)),
        },
    }  # fmt: skip
    before = time.monotonic()
    found["names"] = {
        name: tried(socket.getaddrinfo, name, 80)
        for name in ("example.com", "metadata.google.internal", "host.docker.internal", "gateway.docker.internal")
    }
    found["names_s"] = time.monotonic() - before
    return found


def _reaches(address: Any, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM) -> int:
    with socket.socket(family, kind) as one:
        one.settimeout(2)
        one.connect(address)
        return one.send(b"x")


if __name__ == "__main__":
    print(json.dumps(observe([], "toolcage-nobody")))
