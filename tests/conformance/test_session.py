"""`session` isolation: an interpreter that keeps what one session's programs leave, for that session and nobody else.

Each promise is tried through the whole line. What the session's cages do by the clock is tried with a clock in the
test's hand.
"""

from __future__ import annotations

import gc
import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Any

import docker
import pytest

from toolcage import CancelToken, PoolTerms, Session, ToolResult
from toolcage.cage.engine import Engine
from toolcage.cage.images import ImageLock
from toolcage.cage.live import CageRecipe, Owner
from toolcage.cage.pool import Pool, PoolBusy, PoolClosed
from toolcage.cage.report import CallOrder
from toolcage.cage.seccomp import load_profile
from toolcage.cage.session_cages import IDLE_S, Holder, SessionCages, session_lease_for
from toolcage.cage.spec import MIB, CageSpec, weakenings
from toolcage.errors import PolicyError, RuntimeClosedError
from toolcage.state import default_state_dir
from toolcage.tools.registry import builtin_tools

pytestmark = pytest.mark.docker
NOTEBOOK = """
version: 1
role: notebook
tools:
  execute_python:
    allow: [{}]
    sandbox: {isolation: session, wall: 5s, pids: 24}
    accept_weaker: the programs of one session build on each other
  calculate_expression:
    allow: [{}]
    sandbox: {isolation: session}
    accept_weaker: to see that tools do not meet
"""
RESTARTED = "session_restarted"


def run(session: Session, code: str, **options: Any) -> ToolResult:
    return session.call("execute_python", {"code": code}, **options)


@pytest.fixture(scope="module")
def notebook(lasting: Any) -> Session:
    """One session for what leaves it usable."""
    return lasting.session(NOTEBOOK)


@pytest.fixture
def session(installation: Any) -> Session:
    return installation.session(NOTEBOOK)


# --- what is kept --------------------------------------------------------------------------------------------------


def test_variables_imports_functions_and_the_current_folder_are_there_in_the_next_call(notebook: Session) -> None:
    run(notebook, "import os, math\nx = 41\ndef more(n): return n + 1\nos.makedirs('deep', exist_ok=True)")
    run(notebook, "os.chdir('deep')")
    result = run(notebook, "[more(x), math.sqrt(4), os.getcwd()]")
    assert result.data == [42, 2.0, "/workspace/deep"]
    assert RESTARTED not in result.labels
    run(notebook, "os.chdir('/workspace')")


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("1/0", 1), ("import sys; sys.exit(4)", 4), ("this is no Python", 1), ("raise KeyboardInterrupt", 1),
     ("raise BaseException('x')", 1)],
)  # fmt: skip
def test_a_program_that_fails_in_an_ordinary_way_leaves_the_session_as_it_was(
    notebook: Session, code: str, exit_code: int
) -> None:
    run(notebook, "kept = 7")
    failed = run(notebook, code)
    assert (failed.status, failed.exit_code) == ("tool_error", exit_code)
    after = run(notebook, "kept")
    assert (after.data, RESTARTED in after.labels) == (7, False)


def test_a_traceback_shows_the_lines_of_the_program_that_it_came_from(notebook: Session) -> None:
    run(notebook, "def fails():\n    raise ValueError('the earlier one')  # written here")
    assert "# written here" in run(notebook, "fails()").stderr


def test_one_event_loop_serves_every_program(notebook: Session) -> None:
    run(notebook, "import asyncio\nloop = asyncio.get_event_loop_policy() and None\nawait asyncio.sleep(0)\n"
                  "loop = asyncio.get_running_loop()")  # fmt: skip
    assert run(notebook, "await asyncio.sleep(0)\nloop is asyncio.get_running_loop()").data is True


def test_each_call_has_its_own_output_and_its_own_artifacts(notebook: Session) -> None:
    first = run(notebook, "print('one')\nopen('first.txt', 'w').write('1')")
    second = run(notebook, "import sys\nprint('two', file=sys.stderr)\nopen('second.txt', 'w').write('2')")
    third = run(notebook, "open('first.txt', 'a').write('more')\n'quiet'")
    assert (first.stdout, first.stderr, [item.name for item in first.artifacts]) == ("one\n", "", ["first.txt"])
    assert (second.stdout, second.stderr, [item.name for item in second.artifacts]) == ("", "two\n", ["second.txt"])
    assert [(item.name, item.content) for item in third.artifacts] == [("first.txt", b"1more")]


def test_files_that_are_attached_stay_and_do_not_come_back(notebook: Session) -> None:
    assert run(notebook, "open('given.txt').read()", files={"given.txt": b"abc"}).artifacts == ()
    later = run(notebook, "open('/workspace/given.txt').read()")
    assert (later.data, later.artifacts) == ("abc", ())


def test_a_shell_s_files_stay_between_commands(installation: Any) -> None:
    session = installation.session(
        "version: 1\nrole: r\ntools: {run_shell: {allow: [{}], sandbox: {isolation: session, image: shell},"
        " accept_weaker: files stay}}\n"
    )
    assert session.call("run_shell", {"command": "echo kept > file; exit 3"}).exit_code == 3
    result = session.call("run_shell", {"command": "cat file; kill -9 $$"})
    assert (result.stdout, result.exit_code, RESTARTED in result.labels) == ("kept\n", 137, False)


# --- between calls -------------------------------------------------------------------------------------------------


def test_nothing_runs_between_calls_and_background_output_belongs_to_the_call_that_runs(
    session: Session, engine: docker.DockerClient
) -> None:
    run(session, "import threading, time, os\nticks = 0\ndef tick():\n    global ticks\n    while True:\n"
                 "        ticks += 1; os.write(1, b'tick\\n'); time.sleep(0.01)\n"
                 "threading.Thread(target=tick, daemon=True).start()")  # fmt: skip
    (cage,) = session._runtime._means.pool()._running
    report = engine.api.top(cage.container, ps_args="-eo pid,stat")
    column = report["Titles"].index("STAT")
    states = [row[column][0] for row in report["Processes"]]
    assert sorted(states) == ["S", "T"]  # the warden waits, the interpreter is stopped
    result = run(session, "before = ticks\nwhile ticks < before + 3: time.sleep(0.01)\nbefore, ticks")
    assert result.status == "ok"
    assert result.stdout.count("tick\n") >= 3


def test_a_background_process_goes_on_in_the_next_call_and_ends_with_the_session(installation: Any) -> None:
    session = installation.session(NOTEBOOK)
    run(session, "import os, time\npid = os.fork()\nif pid == 0:\n    while True:\n        time.sleep(0.01)")
    assert run(session, "os.kill(pid, 0); 'alive'").data == "alive"
    session.close()
    assert installation.gone()


def test_a_fork_that_a_program_forgot_to_end_does_not_answer_in_its_place(session: Session) -> None:
    run(session, "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)")
    assert [run(session, f"{number}").data for number in range(4)] == [0, 1, 2, 3]


def test_calls_of_one_session_take_turns(session: Session) -> None:
    run(session, "seen, running = [], 0")
    code = ("import time\nrunning += 1\nassert running == 1\nprint({n})\ntime.sleep(0.05)\nseen.append({n})\n"
            "running -= 1\n{n}")  # fmt: skip
    calls = [("execute_python", {"code": code.replace("{n}", str(number))}) for number in range(6)]
    results = session.map(calls, max_concurrent=6)
    assert [(item.data, item.stdout) for item in results] == [(number, f"{number}\n") for number in range(6)]
    assert sorted(run(session, "seen").data) == list(range(6))


# --- what ends it --------------------------------------------------------------------------------------------------

ENDS = {
    "a timeout": ("while True: pass", "timeout"),
    "a full memory": ("held = []\nwhile True: held.append(bytearray(10**7))", "out_of_memory"),
    "a flood of output": ("import os\nwhile True: os.write(1, b'x' * 65536)", "limit_exceeded"),
    "too many processes": (
        "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(600)", "limit_exceeded",
    ),
    "an interpreter that is gone": ("import os; os._exit(0)", "ok"),
    "an interpreter that crashed": ("import os; os.kill(os.getpid(), 11)", "tool_error"),
    "a closed control": ("import os; os.close(3)", "ok"),
    "a forged word": ("import os; os.write(3, b'nonsense'); import time; time.sleep(60)", "tool_error"),
}  # fmt: skip


@pytest.mark.parametrize("what", sorted(ENDS))
def test_after_a_limit_or_a_crash_the_next_call_starts_anew_and_says_so(session: Session, what: str) -> None:
    code, status = ENDS[what]
    run(session, "kept = 7")
    ended = run(session, code)
    assert ended.status == status, ended
    after = run(session, "'kept' in globals()")
    assert (after.status, after.data, RESTARTED in after.labels) == ("ok", False, True)
    assert [item.part for item in after.truncated] == ["session"]
    assert RESTARTED not in run(session, "1").labels


def test_a_cancelled_call_ends_it_too(session: Session) -> None:
    token, begun = CancelToken(), threading.Event()
    run(session, "kept = 7")
    thread = threading.Thread(target=lambda: begun.wait(20) and token.cancel())
    thread.start()
    result = run(session, "print('up', flush=True)\nwhile True: pass", cancel=token, on_output=lambda *_: begun.set())
    thread.join()
    assert result.status == "cancelled"
    assert RESTARTED in run(session, "1").labels


WAKES_ITSELF = """
import ctypes, signal, struct, threading, time
signal.signal(signal.SIGCONT, lambda *_: None)  # a kernel from 6.13 on parks a timer whose signal is ignored
libc = ctypes.CDLL(None, use_errno=True)
event = ctypes.create_string_buffer(struct.pack("Pii", 0, 18, 0), 64)  # SIGCONT, by signal
timer = ctypes.c_void_p()
assert libc.timer_create(1, event, ctypes.byref(timer)) == 0
assert libc.timer_settime(timer, 0, struct.pack("4l", 0, 100_000, 0, 100_000), None) == 0
def tick():
    while True:
        print("woken", flush=True); time.sleep(0.005)
threading.Thread(target=tick, daemon=True).start()
"""


def test_a_program_that_undoes_the_stop_takes_nothing_from_the_next_call(session: Session) -> None:
    assert run(session, WAKES_ITSELF).status == "ok"
    for number in range(5):
        after = run(session, f"print('mine'); {number}")
        assert (after.status, after.data, after.stderr) == ("ok", number, "")
        assert "mine" in after.stdout
        assert after.stdout.replace("mine", "").replace("woken", "").split() == []


@pytest.mark.threat("P32")
def test_a_link_in_the_workspace_brings_nothing_out_while_its_maker_lives(session: Session) -> None:
    result = run(session, "import os, threading\n"
                          "os.mkdir('d'); open('d/a', 'w').write('mine'); os.symlink('/etc', 'e')\n"
                          "def swap():\n    while True:\n        try:\n"
                          "            os.rename('d', 'x'); os.rename('e', 'd')\n"
                          "            os.rename('d', 'e'); os.rename('x', 'd')\n"
                          "        except OSError: pass\n"
                          "threading.Thread(target=swap, daemon=True).start()\n"
                          "os.symlink('/etc/passwd', 'link'); os.mkfifo('fifo')")  # fmt: skip
    for _ in range(5):
        assert {item.content for item in result.artifacts} <= {b"mine"}
        result = run(session, "import time; time.sleep(0.02); open('a', 'w').write('mine')")


# --- whose it is ---------------------------------------------------------------------------------------------------


@pytest.mark.threat("P33")
def test_sessions_roles_and_tools_never_meet(installation: Any) -> None:
    runtime = installation.runtime(NOTEBOOK)
    first, second = runtime.session(), runtime.session()
    third = first.delegate("notebook")
    run(first, "kept = 7\nopen('/tmp/mine', 'w').write('x')")
    for other in (second, third):
        assert run(other, "import os; ['kept' in globals(), os.path.exists('/tmp/mine')]").data == [False, False]
    first.call("calculate_expression", {"expression": "1+1"})
    assert len(installation.containers()) == 4
    assert len({run(one, "import os; os.getuid()").data for one in (first, second, third)}) == 3
    assert run(first, "kept").data == 7


def test_leaving_a_with_block_ends_what_was_kept(installation: Any) -> None:
    runtime = installation.runtime(NOTEBOOK)
    with runtime.session() as session:
        run(session, "kept = 7")
        with session:
            pass
        assert run(session, "kept").data == 7
    assert installation.gone()
    with pytest.raises(RuntimeClosedError):
        run(session, "1")


def test_a_closed_session_refuses_calls_and_leaves_nothing(installation: Any) -> None:
    session = installation.session(NOTEBOOK)
    run(session, "1")
    session.close()
    session.close()
    assert installation.gone()
    with pytest.raises(RuntimeClosedError, match="the session ended"):
        run(session, "1")


def test_closing_a_session_ends_its_running_call(installation: Any) -> None:
    session, begun = installation.session(NOTEBOOK), threading.Event()
    threading.Thread(target=lambda: begun.wait(20) and session.close()).start()
    result = run(session, "print('up', flush=True)\nwhile True: pass", on_output=lambda *_: begun.set())
    assert result.status == "cancelled"
    assert installation.gone()


def test_a_session_that_nobody_holds_any_more_is_ended(installation: Any) -> None:
    runtime = installation.runtime(NOTEBOOK)
    session = runtime.session()
    run(session, "1")
    assert len(installation.containers()) == 1
    del session
    gc.collect()
    assert installation.gone()


def test_the_mode_is_an_explicit_grant_and_is_named_as_weaker(installation: Any) -> None:
    with pytest.raises(PolicyError, match="weaker"):
        installation.runtime(
            "version: 1\nrole: r\ntools: {execute_python: {allow: [{}], sandbox: {isolation: session}}}\n"
        )
    spec = CageSpec(image_id="sha256:0", isolation="session", memory_bytes=64 * MIB, cpus=1, pids=8, tmp_bytes=MIB)
    assert any("isolation session" in sentence for sentence in weakenings(spec))


# --- by the clock --------------------------------------------------------------------------------------------------


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Kept:
    """The cages of sessions over a pool of their own."""

    def __init__(self, engine: Engine, **terms: Any) -> None:
        locked = ImageLock.load(default_state_dir()).resolve("python")
        self.problems: list[str] = []
        terms = {"min_idle": 0, "max_wait_s": 5.0, **terms}
        self.owner = Owner(host=secrets.token_hex(16), runtime=secrets.token_hex(16))
        self.pool = Pool(engine, self.owner, PoolTerms(**terms), self.problems.append)
        self.clock = Clock()
        self.cages = SessionCages(self.pool, PoolTerms(**terms), self.clock)
        self.spec = CageSpec(
            image_id=locked.image_id, isolation="session", memory_bytes=64 * MIB, cpus=1, pids=16, tmp_bytes=8 * MIB
        )
        self.accepted = frozenset(locked.accepted_ids)

    def recipe(self) -> CageRecipe:
        return CageRecipe(
            spec=self.spec, accepted_ids=self.accepted, seccomp=load_profile("container").text, modules=(), preload=(),
            data={}, lease_s=session_lease_for(10),
        )  # fmt: skip

    def use(self, session: str = "s", code: str = "1", source: str = "x") -> tuple[str, bool]:
        """One call; which container it was in, and whether that replaced a lost one."""
        cage, lost = self.cages.take(Holder(session=session, tool="execute_python"), self.recipe(), source)
        tool = builtin_tools()["execute_python"].shipment.payload()
        payload = {"action": "call", "tool": tool, "arguments": {"code": code}, "context": {"session": True}}
        assert cage.call(CallOrder(payload=payload, wall_s=10)).broken is None
        assert self.cages.give_back(cage)
        return cage.container, lost


@pytest.fixture
def kept(engine: docker.DockerClient) -> Iterator[Callable[..., Kept]]:
    connected, made = Engine.connect(), []

    def build(**terms: Any) -> Kept:
        made.append(Kept(connected, **terms))
        return made[-1]

    yield build
    for one in made:
        one.cages.close()
        one.pool.close()
        label = f"toolcage.host={one.owner.host}"
        assert engine.containers.list(all=True, filters={"label": label}) == []
        assert one.problems == []
    connected.close()


@pytest.mark.parametrize(
    ("steps", "same"),
    [([IDLE_S - 1], True), ([IDLE_S], False), ([IDLE_S - 1] * 2, True), ([IDLE_S - 1] * 20, False)],
    ids=["idle for less", "idle for long", "used in between", "alive for long"],
)  # fmt: skip
def test_a_cage_ends_when_it_was_idle_or_alive_for_too_long(
    kept: Callable[..., Kept], steps: list[float], same: bool
) -> None:
    one = kept()
    first, lost = one.use()
    assert lost is False
    found = []
    for step in steps:
        one.clock.now += step
        found.append(one.use())
    assert all(item == (first, False) for item in found) is same
    assert any(lost for _, lost in found) is not same


def test_an_idle_cage_is_ended_without_a_call_and_a_young_one_is_kept_alive(kept: Callable[..., Kept]) -> None:
    one = kept()
    one.use()
    one.cages.look_after()
    assert (one.cages.count(), one.pool.stats()["running"]) == (1, 1)
    one.clock.now += IDLE_S
    one.cages.look_after()
    assert (one.cages.count(), one.pool.stats()["running"]) == (0, 0)
    assert one.use()[1] is True


def test_another_source_of_the_tool_gets_another_cage(kept: Callable[..., Kept]) -> None:
    one = kept()
    first, _ = one.use(source="x")
    assert one.use(source="x") == (first, False)
    second, lost = one.use(source="y")
    assert (second != first, lost) == (True, True)


def test_sessions_hold_at_most_half_of_the_places_and_the_longest_idle_one_makes_room(
    kept: Callable[..., Kept]
) -> None:
    one = kept(max_cages=4)
    for number, session in enumerate("abc"):
        one.clock.now += number + 1
        one.use(session)
    assert one.pool.stats()["running"] == 2
    assert one.use("c")[1] is False
    assert one.use("a")[1] is True


def test_waiting_for_a_turn_is_bounded(kept: Callable[..., Kept]) -> None:
    one = kept(max_wait_s=0.05)
    cage, _ = one.cages.take(Holder(session="s", tool="t"), one.recipe(), "x")
    with pytest.raises(PoolBusy):
        one.cages.take(Holder(session="s", tool="t"), one.recipe(), "x")
    one.cages.give_back(cage)
    one.cages.close()
    with pytest.raises(PoolClosed):
        one.cages.take(Holder(session="s", tool="t"), one.recipe(), "x")


def test_a_cage_that_somebody_else_ended_is_replaced(kept: Callable[..., Kept], engine: docker.DockerClient) -> None:
    one = kept()
    container, _ = one.use()
    engine.containers.get(container).kill()
    (cage,) = one.pool._running
    while cage.looks_alive():
        pass
    assert one.use()[1] is True
