"""`namespace` isolation: many calls in one container, and nothing of one visible, alive or reachable in the next."""

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolcage.cage.engine import Engine
from toolcage.cage.images import ImageLock
from toolcage.cage.live import CageRecipe, LiveCage, Owner, _wait_status
from toolcage.cage.report import CageReport, CallOrder
from toolcage.cage.seccomp import FORBIDDEN, load_profile
from toolcage.cage.spec import FIRST_UID, CageSpec, DataFile
from toolcage.state import default_state_dir
from toolcage.types import InputFile

pytestmark = pytest.mark.docker
MIB = 1024 * 1024
RUNNER = """
from toolcage import Tool

class Runs(Tool):
    name = "runs_code"
    description = "Runs code."
    parameters = {"code": {"type": "string"}}

    def execute(self, code):
        names = {"__name__": "__main__"}
        exec(code, names)
        return names.get("found")
"""
NUMBERS = json.loads((Path(__file__).parents[1] / "data" / "syscall_numbers.json").read_text())
COLUMN = {"x86_64": 0, "aarch64": 1}[os.uname().machine]


class Cage:
    """One live cage of the mode, and calls in it."""

    def __init__(self, engine: Engine, data: dict[str, bytes]) -> None:
        locked = ImageLock.load(default_state_dir()).resolve("python")
        spec = CageSpec(
            image_id=locked.image_id, isolation="namespace", memory_bytes=128 * MIB, cpus=1, pids=32,
            tmp_bytes=16 * MIB,
            data=tuple(DataFile(name=name, size=len(item), sha256="0" * 64) for name, item in data.items()),
        )  # fmt: skip
        recipe = CageRecipe(
            spec=spec, accepted_ids=frozenset(locked.accepted_ids), seccomp=load_profile("namespace").text, modules=(),
            preload=(), data=data,
        )  # fmt: skip
        owner = Owner(host=secrets.token_hex(16), runtime=secrets.token_hex(16))
        uid = FIRST_UID + secrets.randbelow(1 << 20)
        self.live = LiveCage.create(engine, recipe, uid=uid, owner=owner)

    def call(self, code: str, *, wall_s: float = 10, files: tuple[InputFile, ...] = ()) -> CageReport:
        tool = {"module": "runner", "attribute": "Runs", "how": "class", "init": None, "modules": {"runner": RUNNER}}
        payload = {"action": "call", "tool": tool, "arguments": {"code": code}, "context": {}}
        return self.live.call(CallOrder(payload=payload, files=files, wall_s=wall_s))

    def found(self, code: str) -> Any:
        """What the code leaves in `found`, from a call that ended well."""
        report = self.call(code)
        assert report.status == 0, report.stderr.decode()
        return json.loads(report.result)["data"]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = Engine.connect()
    yield made
    made.close()


@pytest.fixture
def cage(engine: Engine) -> Iterator[Cage]:
    made = Cage(engine, {"shop.txt": b"granted"})
    yield made
    made.live.destroy()


KINDS = ("user", "mnt", "pid", "net", "uts", "ipc", "cgroup")


def test_many_calls_share_a_container_and_each_is_the_first_process_of_its_own_namespaces(
    cage: Cage, engine: Engine
) -> None:
    """Told apart from the container's: two calls' may bear one number, since the kernel gives freed numbers again."""
    warden = (engine.inspect(cage.live.container) or {})["State"]["Pid"]
    outer = {os.readlink(f"/proc/{warden}/ns/{kind}") for kind in KINDS}
    look = (
        "import os\n"
        "found = [os.getpid(), sorted(name for name in os.listdir('/proc') if name.isdigit()),"
        f" [os.readlink('/proc/self/ns/' + kind) for kind in {KINDS}]]"
    )
    (pid, visible, first), (_, _, second) = cage.found(look), cage.found(look)
    assert (pid, visible) == (1, ["1"])
    assert len(first) == len(second) == len(outer)
    assert not outer & {*first, *second}
    assert cage.live.calls == 2


@pytest.mark.threat("P02")
def test_a_call_has_no_capability_no_new_privileges_and_the_container_s_filter_on_top(cage: Cage) -> None:
    status = dict(line.split(":\t", 1) for line in cage.found("found = open('/proc/self/status').read()").splitlines())
    assert {status[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"], status["Seccomp_filters"]) == ("1", "2", "2")


REFUSALS = (1, 38, 95)
"""EPERM, ENOSYS and, for extended attributes, ENOTSUP. The kernel itself would answer such arguments with others."""


@pytest.mark.threat("P10")
def test_every_refused_system_call_is_refused_inside_a_call_too(cage: Cage) -> None:
    names = {name: NUMBERS[name][COLUMN] for name in FORBIDDEN if NUMBERS.get(name, [None, None])[COLUMN] is not None}
    answers = cage.found(
        "import ctypes, json\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"numbers = json.loads({json.dumps(json.dumps(names))})\n"
        "found = {}\n"
        "for name, number in numbers.items():\n"
        "    ctypes.set_errno(0)\n"
        "    answer = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)\n"
        "    found[name] = [answer, ctypes.get_errno()]\n"
    )
    assert len(answers) > 100
    assert {name for name, (answer, errno) in answers.items() if answer != -1 or errno not in REFUSALS} == set()


LEAVE = """
import os, socket, subprocess, sys
for folder in ('/tmp', '/workspace', '/dev/shm'):
    open(folder + '/left-behind', 'w').write('canary-5b2d')
os.environ['LEFT'] = 'canary-5b2d'
sys.modules['left'] = sys
import builtins; builtins.left = 'canary-5b2d'
os.umask(0o777)
left = socket.socket(socket.AF_UNIX); left.bind('\\0left-behind'); left.listen()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import time
        time.sleep(600)
    os._exit(0)
found = True
"""
LOOK = """
import os, socket, sys, builtins
found = {
    'files': [name for folder in ('/tmp', '/workspace', '/dev/shm', '/dev/mqueue') for name in os.listdir(folder)],
    'environment': 'LEFT' in os.environ,
    'modules': 'left' in sys.modules or hasattr(builtins, 'left'),
    'umask': os.umask(0o022),
    'processes': [name for name in os.listdir('/proc') if name.isdigit()],
    'descriptors': sorted(int(name) for name in os.listdir('/proc/self/fd')),
}
try:
    socket.socket(socket.AF_UNIX).connect('\\0left-behind')
    found['socket'] = True
except OSError:
    found['socket'] = False
"""


@pytest.mark.threat("P33")
def test_nothing_that_a_call_leaves_behind_is_there_in_the_next(cage: Cage) -> None:
    before = cage.found(LOOK)
    assert cage.found(LEAVE) is True
    assert cage.found(LOOK) == before
    assert before["files"] == []
    assert before["processes"] == ["1"]
    assert before["socket"] is False


SCAN = """
needle = '{reversed}'[::-1].encode()
found = 0
with open('/proc/self/mem', 'rb', 0) as memory:
    for line in open('/proc/self/maps'):
        start, end = (int(part, 16) for part in line.split()[0].split('-'))
        try:
            memory.seek(start)
            found += memory.read(end - start).count(needle)
        except (OSError, ValueError, OverflowError):
            continue
"""


@pytest.mark.threat("P33")
def test_no_argument_of_an_earlier_call_is_in_the_memory_of_a_later_one(cage: Cage) -> None:
    canaries = [secrets.token_hex(16) for _ in range(5)]
    for canary in canaries:
        assert cage.found(f"found = len('{canary}')") == 32
    never_sent = cage.found(SCAN.format(reversed=secrets.token_hex(16)))
    assert {cage.found(SCAN.format(reversed=canary[::-1])) for canary in canaries} == {never_sent}


def test_the_data_of_the_cage_can_be_read_and_not_changed(cage: Cage) -> None:
    assert cage.found("found = open('/data/shop.txt').read()") == "granted"
    attempts = (
        "import os\n"
        "found = []\n"
        "for attempt in (lambda: open('/data/shop.txt', 'a'), lambda: os.remove('/data/shop.txt'),\n"
        "                lambda: os.chmod('/data/shop.txt', 0o666), lambda: open('/data/new', 'w')):\n"
        "    try:\n"
        "        attempt(); found.append('changed')\n"
        "    except OSError as error:\n"
        "        found.append(error.errno)\n"
    )
    assert cage.found(attempts) == [13, 30, 30, 30]
    assert cage.found("import os; found = os.listdir('/data')") == ["shop.txt"]


def test_files_go_in_and_come_out_of_the_call_that_they_belong_to(cage: Cage) -> None:
    given = (InputFile(name="in.txt", content=b"ab"),)
    report = cage.call("open('out.txt', 'w').write(open('in.txt').read() * 2)", files=given)
    assert [(item.name, item.content) for item in report.files] == [(b"out.txt", b"abab")]
    assert cage.call("found = 1").files == ()


@pytest.mark.parametrize(
    ("code", "limit", "status"),
    [
        ("while True: pass", "wall", 9),
        ("import os\nwhile True: os.write(1, b'x' * 65536)", "output", 9),
        ("raise SystemExit(3)", None, 3 << 8),
        ("held = []\nwhile True: held.append(bytearray(10**7))", None, 9),
    ],
)
def test_after_an_error_or_a_limit_the_cage_serves_no_more(
    cage: Cage, code: str, limit: str | None, status: int
) -> None:
    report = cage.call(code, wall_s=1.5)
    assert (report.limit, report.status, report.broken) == (limit, status, None)
    assert not cage.live.reusable
    with pytest.raises(RuntimeError, match="may not be used again"):
        cage.call("found = 1")


def test_a_background_process_does_not_delay_the_end_of_a_call(cage: Cage) -> None:
    report = cage.call("import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(600)\nfound = 1", wall_s=30)
    assert report.status == 0
    assert report.wall_s < 15


def test_the_supervisor_and_the_warden_cannot_be_seen_or_signalled(cage: Cage) -> None:
    tried = (
        "import os, signal\n"
        "found = []\n"
        "for pid in range(2, 400):\n"
        "    try:\n"
        "        os.kill(pid, 0); found.append(pid)\n"
        "    except ProcessLookupError:\n"
        "        pass\n"
    )
    assert cage.found(tried) == []
    kill_all = "import os\ntry:\n    os.kill(-1, 9)\nexcept ProcessLookupError:\n    pass\nfound = 'alive'"
    assert cage.found(kill_all) == "alive"


def test_a_call_that_leaves_memory_behind_ends_the_cage_rather_than_the_next_call(cage: Cage) -> None:
    report = cage.call(
        "import os, socket\n"
        "descriptor = os.open('/workspace/ballast', os.O_RDWR | os.O_CREAT)\n"
        "os.write(descriptor, bytes(1 << 20) * 7); os.posix_fallocate(descriptor, 0, 7 << 20)\n"
        "other = os.open('/tmp/ballast', os.O_RDWR | os.O_CREAT); os.posix_fallocate(other, 0, 7 << 20)\n"
        "left, right = socket.socketpair()\n"
        "for end in (left, right):\n"
        "    socket.send_fds(end, [b'x'], [left.fileno(), right.fileno(), descriptor, other])\n"
        "found = 1"
    )
    assert report.status == 0
    assert report.again is cage.live.reusable
    if cage.live.reusable:  # the kernel collected the cycle already: then nothing is held, and the next call is whole
        assert cage.call("found = len(bytearray(64 << 20))").status == 0


def test_a_call_does_not_see_what_others_used(cage: Cage) -> None:
    assert cage.call("found = len(bytearray(60 << 20))").memory_peak_bytes > 60 * MIB
    assert cage.call("found = 1").memory_peak_bytes < 50 * MIB
    assert cage.found("import os; found = os.listdir('/sys/fs/cgroup')") == []


def test_a_folder_that_may_not_be_entered_costs_its_files_and_nothing_else(cage: Cage) -> None:
    report = cage.call(
        "import os\nos.mkdir('d'); open('d/inside', 'w').write('x'); open('out', 'w').write('y')\n"
        "os.chmod('d', 0o444); found = 1"
    )
    assert (report.status, report.broken) == (0, None)
    assert b"out" in [item.name for item in report.files]
    assert cage.call("import os; os.chmod('/workspace', 0o444); found = 1").broken is None


@pytest.mark.parametrize("status", [-1, 1 << 16, 1 << 80, 0x137F, 0xFFFF, True, "0", None, 0.0])
def test_a_wait_status_that_means_nothing_is_no_status(status: object) -> None:
    assert _wait_status(status) is None


def test_the_wait_statuses_of_exits_and_signals_are_taken() -> None:
    assert [_wait_status(status) for status in (0, 3 << 8, 9, 11 | 0x80)] == [0, 3 << 8, 9, 11 | 0x80]
