"""Each limit, attacked by a program that crosses it: its own status and code, output so far kept, the host unharmed."""

from __future__ import annotations

import errno
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from toolcage import CancelToken, PoolTerms, Runtime, ToolResult
from toolcage.cage.pool import MAX_AGE_S

pytestmark = pytest.mark.docker
MIB = 1024 * 1024
SMALL = """
version: 1
role: small
tools:
  execute_python:
    allow: [{}]
    sandbox: {memory: 64MiB, wall: 1s, pids: 16, tmp: 8MiB, cpus: 0.5}
    output: {max_bytes: 4KiB}
"""

WAITING = """
version: 1
role: coder
tools: {execute_python: {allow: [{}], sandbox: {isolation: %s, wall: 60s}%s}}
"""


@pytest.fixture(scope="module")
def hurried(lasting: Any) -> Callable[[str], ToolResult]:
    """A program in a small cage that has one second."""
    session = lasting.session(SMALL)
    return lambda code: session.call("execute_python", {"code": code})  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def small(lasting: Any) -> Callable[[str], ToolResult]:
    """The same with time enough to reach another limit, however busy the machine is."""
    session = lasting.session(SMALL.replace("1s", "60s"))
    return lambda code: session.call("execute_python", {"code": code})  # type: ignore[no-any-return]


@pytest.mark.threat("P49")
@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\nwhile True: time.sleep(9)",
        "import signal\nfor n in signal.valid_signals() - {9, 19}: signal.signal(n, 1)\nwhile True: pass",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        "10 ** 10 ** 8",
        "import re; re.match('(a+)+$', 'a' * 64 + 'b')",
        "import threading; threading.Event().wait()",
        "import os\nwhile True: os.wait() if os.fork() else os._exit(0)",
    ],
)  # fmt: skip
def test_the_wall_clock_ends_what_does_not_end_itself(hurried: Callable[[str], ToolResult], code: str) -> None:
    result = hurried(f"print('before', flush=True)\n{code}")
    assert (result.status, result.code) == ("timeout", "limit.wall")
    assert result.stdout == "before\n"
    assert result.usage.wall_s >= 1.0
    assert result.hint


@pytest.mark.threat("P47")
@pytest.mark.parametrize(
    "code",
    [
        "x = bytearray(10**9)",
        "x = []\nwhile True: x.append('x' * 100_000)",
        "import mmap\nm = mmap.mmap(-1, 512 << 20)\nfor i in range(0, 512 << 20, 4096): m[i] = 1",
    ],
)
def test_the_memory_limit_ends_the_program_and_not_the_runtime(small: Callable[[str], ToolResult], code: str) -> None:
    result = small(f"print('before', flush=True)\n{code}")
    assert (result.status, result.code) == ("out_of_memory", "limit.memory")
    assert result.stdout == "before\n"
    assert result.usage.memory_peak_bytes <= 64 * MIB


@pytest.mark.threat("P47")
def test_a_child_that_fills_the_memory_does_not_take_the_answer_with_it(small: Callable[[str], ToolResult]) -> None:
    result = small(
        "import os\npid = os.fork()\nif pid == 0:\n    x = bytearray(10**9)\n    os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n'the parent lives'"
    )
    assert (result.status, result.data, result.stdout) == ("ok", "the parent lives", "-9\n")


@pytest.mark.threat("P47")
def test_memory_that_was_given_back_is_no_fault(small: Callable[[str], ToolResult]) -> None:
    result = small("for _ in range(20):\n    x = bytearray(25_000_000)\n    del x\n'fine'")
    assert (result.status, result.data) == ("ok", "fine")


@pytest.mark.threat("P50")
@pytest.mark.parametrize(
    "code",
    [
        "import os\nwhile True: os.fork()",
        "import os, signal\nwhile True:\n    if os.fork() == 0:\n        while True: signal.pause()",
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(99,)).start()",
    ],
)
def test_a_fork_bomb_stops_at_the_process_limit(hurried: Callable[[str], ToolResult], code: str) -> None:
    result = hurried(code)
    assert result.status in ("limit_exceeded", "timeout")
    assert result.code in ("limit.pids", "limit.wall")


@pytest.mark.threat("P50")
def test_the_process_limit_is_the_grants(small: Callable[[str], ToolResult]) -> None:
    result = small(
        "import os, signal\nmade = []\ntry:\n    while True:\n        pid = os.fork()\n"
        "        if pid == 0: signal.pause()\n        made.append(pid)\n"
        "except BlockingIOError as error: print(type(error).__name__)\nlen(made)"
    )
    assert (result.status, result.stdout) == ("ok", "BlockingIOError\n")
    assert 10 <= result.data <= 14  # 16 with the warden and the program


@pytest.mark.threat("P48")
def test_the_processor_quota_is_the_grants(hurried: Callable[[str], ToolResult]) -> None:
    result = hurried("import os\nfor _ in range(3): os.fork()\nwhile True: pass")
    assert result.code == "limit.wall"
    assert result.usage.cpu_s < result.usage.wall_s * 0.5 + 0.3  # eight busy processes, half a processor


@pytest.mark.threat("P51")
@pytest.mark.parametrize("descriptor", [1, 2])
def test_a_gigabyte_of_output_is_ended_and_the_hosts_memory_stays_flat(
    small: Callable[[str], ToolResult], descriptor: int
) -> None:
    def peak(word: str) -> int:
        found = re.search(rf"{word}:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert found
        return int(found[1]) * 1024

    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = peak("VmRSS")
    result = small(f"import os\nfor _ in range(16384): os.write({descriptor}, b'x' * 65536)")
    assert (result.status, result.code) == ("limit_exceeded", "limit.output")
    assert peak("VmHWM") - before < 64 * MIB
    (cut,) = result.truncated
    assert (cut.part, cut.kept) == ("stdout" if descriptor == 1 else "stderr", 4096)
    assert cut.dropped is not None
    assert cut.dropped > 8 * MIB - 70_000
    assert len(result.stdout + result.stderr) < 5000


@pytest.mark.threat("P51")
def test_output_up_to_the_flood_is_kept_to_the_grants_cap_and_is_no_failure(
    small: Callable[[str], ToolResult],
) -> None:
    result = small("print('begin'); print('x y ' * 20_000); print('end')")
    assert result.status == "ok"
    assert result.stdout.startswith("begin\n")
    assert result.stdout.endswith("end\n")
    assert len(result.stdout.encode()) < 4096 + 200
    assert "truncated" in result.labels


def test_a_result_above_its_limit_is_ended(small: Callable[[str], ToolResult]) -> None:
    result = small("import os\nwhile True: os.write(4, b'[' * 65536)")
    assert (result.status, result.code) == ("limit_exceeded", "limit.result")


SOCKETS = """
import socket
def made(family, kind):
    try:
        socket.socket(family, kind).close()
    except OSError as refused:
        return refused.errno
    return 0
found = [made(family, kind) for family in (socket.AF_INET, socket.AF_INET6)
         for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
socket.socketpair()
found
"""


@pytest.mark.parametrize("isolation", ["container", "namespace", "session"])
def test_a_call_without_a_portal_makes_no_internet_socket_whose_buffers_nobody_would_count(
    lasting: Any, isolation: str
) -> None:
    """Control groups v1 count loopback buffers to nobody: a small cage held gigabytes of the host with them."""
    grant = f"allow: [{{}}], sandbox: {{isolation: {isolation}}}"
    if isolation != "container":
        grant += ", accept_weaker: to see it in every isolation"
    without = lasting.session(f"version: 1\nrole: r\ntools:\n  execute_python: {{{grant}}}\n")
    assert without.call("execute_python", {"code": SOCKETS}).data == [errno.EAFNOSUPPORT] * 4
    egress = f"{grant}, egress: ['api.example.com:443']"
    portal = lasting.session(f"version: 1\nrole: r\ntools:\n  execute_python: {{{egress}}}\n")
    assert portal.call("execute_python", {"code": SOCKETS}).data == [
        0, errno.EPERM, errno.EAFNOSUPPORT, errno.EAFNOSUPPORT,
    ]  # fmt: skip
    assert without.call("execute_python", {"code": SOCKETS}).data == [errno.EAFNOSUPPORT] * 4


@pytest.mark.threat("P24")
@pytest.mark.parametrize("folder", ["/tmp", "/workspace"])
def test_filling_the_disk_of_a_cage_is_the_programs_own_error(small: Callable[[str], ToolResult], folder: str) -> None:
    result = small(
        f"import errno, os\nhandle = open('{folder}/big', 'wb', buffering=0)\nsize = 0\n"
        "try:\n    while True: size += handle.write(bytes(65536))\n"
        "except OSError as error: print(errno.errorcode[error.errno])\n"
        f"handle.close(); os.unlink('{folder}/big')\nsize"
    )
    assert (result.status, result.stdout) == ("ok", "ENOSPC\n")
    assert result.data <= 4 * MIB  # the two share 8 MiB


@pytest.mark.threat("P53")
def test_no_file_grows_beyond_the_limit_wherever_it_is(small: Callable[[str], ToolResult]) -> None:
    """A sparse file takes no space, so only the limit on a file's size stops it. Python ignores the signal."""
    grow = "import os, signal\nhandle = os.open('s', os.O_RDWR | os.O_CREAT)\nos.ftruncate(handle, {})\nos.unlink('s')"
    assert small(grow.format("8 << 20")).status == "ok"
    beyond = small(grow.format("(8 << 20) + 1"))
    assert beyond.code == "program.exit"
    assert "File too large" in beyond.stderr
    signalled = small("import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n" + grow.format("1 << 40"))
    assert (signalled.status, signalled.code) == ("limit_exceeded", "limit.file_size")


@pytest.mark.threat("P54")
def test_shared_memory_is_bounded(small: Callable[[str], ToolResult]) -> None:
    result = small(
        "size = 0\nhandle = open('/dev/shm/big', 'wb', buffering=0)\n"
        "try:\n    while True: size += handle.write(bytes(65536))\nexcept OSError as error: print(error.strerror)\nsize"
    )
    assert result.status == "ok", result.stderr
    assert result.data <= 8 * MIB
    assert "File too large" in result.stdout or "No space" in result.stdout


@pytest.mark.threat("P52")
def test_open_files_are_bounded(small: Callable[[str], ToolResult]) -> None:
    result = small(
        "import errno, os, resource\nheld = []\ntry:\n    while True: held.append(os.open('/dev/null', 0))\n"
        "except OSError as error: print(errno.errorcode[error.errno])\n"
        "try: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))\n"
        "except (ValueError, OSError) as error: print('kept')\nlen(held)"
    )
    assert (result.status, result.stdout) == ("ok", "EMFILE\nkept\n")
    assert result.data < 1024


@pytest.mark.threat("P55")
def test_more_calls_than_cages_wait_and_more_than_may_wait_are_busy(installation: Any) -> None:
    runtime = installation.runtime(
        SMALL.replace("1s", "30s"), pool=PoolTerms(min_idle=0, max_cages=1, max_waiting=1, max_wait_s=60)
    )
    session = runtime.session()
    results = session.map([("execute_python", {"code": "import time; time.sleep(1)"})] * 4, max_concurrent=4)
    assert sorted(item.status for item in results) == ["busy", "busy", "ok", "ok"]
    busy = next(item for item in results if item.status == "busy")
    assert (busy.code, busy.retryable) == ("pool.busy", True)
    assert runtime.stats()["created"] == 2
    waited = max(item.usage.queue_s for item in results)
    assert waited > 0.5  # `wall` counts running only: both calls had their whole second


@pytest.mark.threat("P55")
@pytest.mark.parametrize("isolation", ["container", "session"])
def test_a_call_that_is_cancelled_while_it_waits_leaves_its_place_to_others(
    installation: Any, eventually: Any, isolation: str
) -> None:
    """In `container` the queue is the pool's, in `session` the session's own."""
    weaker = "" if isolation == "container" else ", accept_weaker: to wait for a turn"
    text = WAITING % (isolation, weaker)
    runtime = installation.runtime(text, pool=PoolTerms(min_idle=0, max_cages=1, max_waiting=1, max_wait_s=60))
    session = runtime.session()
    begun = threading.Event()
    ends = {name: CancelToken() for name in ("running", "waiting", "next")}
    sleeping = "import time\nprint(1, flush=True)\ntime.sleep(50)"
    with ThreadPoolExecutor(3) as threads:
        def call(name: str) -> Future[ToolResult]:
            return threads.submit(
                session.call, "execute_python", {"code": sleeping}, cancel=ends[name],
                on_output=lambda _stream, _text: begun.set(),
            )  # fmt: skip

        running = call("running")
        assert begun.wait(30)
        for name in ("waiting", "next"):
            waiting = call(name)
            assert eventually(lambda: _waiting(runtime) == 1)
            ends[name].cancel()
            assert waiting.result(30).status == "cancelled"
            assert eventually(lambda: _waiting(runtime) == 0)
        assert not running.done()
        ends["running"].cancel()
        assert running.result(30).status == "cancelled"


def _waiting(runtime: Runtime) -> int:
    sessions = runtime._means._sessions
    assert sessions is not None
    return runtime.stats()["waiting"] + sum(max(0, len(slot.turns) - 1) for slot in sessions._slots.values())


@pytest.mark.parametrize("wall_s", [10, 600])
def test_the_lease_of_a_cage_outlasts_its_call_at_whatever_age_it_is_lent(installation: Any, wall_s: int) -> None:
    token = CancelToken()
    found: list[float] = []

    def look(_stream: str, _text: object) -> None:
        found.extend(float(item.labels["toolcage.lease-until"]) for item in installation.containers())
        token.cancel()

    before = time.time()
    session = installation.session(SMALL.replace("1s", f"{wall_s}s"))
    session.call("execute_python", {"code": "import time\nprint(1, flush=True)\ntime.sleep(9)"}, cancel=token,
                 on_output=look)  # fmt: skip
    (lease,) = found
    assert lease - before > MAX_AGE_S + wall_s


@pytest.mark.parametrize("how", ["arguments", "bytes", "text", "file"])
def test_fifty_megabytes_are_refused_before_anything_runs(installation: Any, how: str) -> None:
    runtime = installation.runtime()
    session = runtime.session()
    big = "x" * (50 * MIB)
    raw = f'{{"tool":"execute_python","arguments":{{"code":"{big}"}}}}'
    result = {
        "arguments": lambda: session.call("execute_python", {"code": big}),
        "bytes": lambda: session.call_raw(raw.encode()),
        "text": lambda: session.call_raw(raw),
        "file": lambda: session.call("execute_python", {"code": "1"}, files={"f": big.encode()}),
    }[how]()
    assert result.status == "malformed"
    assert result.code in ("call.too_large", "file.too_large")
    assert runtime.stats().get("created", 0) == 0
    assert runtime.audit_path.stat().st_size < 10_000
