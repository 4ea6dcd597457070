"""What breaks around a call: the engine, the image, the disk, the host process, whoever waits. A typed status or a
clear error each time, nothing run elsewhere, nothing left running, the audit chain intact (the installation checks)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest
from benchmarks.soak.faults import Wire

from toolcage import CancelToken, PoolTerms, RuntimeClosedError, UsageError
from toolcage.audit.report import verify
from toolcage.cage import pool
from toolcage.cage.sweep import alive, host_id

pytestmark = pytest.mark.docker

FOREVER = "print('started', flush=True)\nwhile True: pass"
LONG = """
version: 1
role: coder
tools:
  execute_python:
    allow: [{}]
    sandbox: {wall: 60s}
"""


# The engine's client leaves a socket that could not connect to the garbage collector.
unanswered = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture
def no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    address = f"unix://{tmp_path}/nowhere.sock"
    monkeypatch.setenv("DOCKER_HOST", address)
    yield address
    gc.collect()


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """The way to the engine, which can be cut, as when the engine stops, and opened again."""
    target = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    assert target.startswith("unix://"), "this test needs the engine on a unix socket"
    made = Wire(tmp_path / "engine.sock", Path(target.removeprefix("unix://")))
    monkeypatch.setenv("DOCKER_HOST", made.address)
    yield made
    made.cut()
    gc.collect()


class Running:
    """A call that is under way in another thread: `started` once its program has printed something."""

    def __init__(self, session: Any, code: str = FOREVER, **options: Any) -> None:
        self._begun = threading.Event()
        self._threads = ThreadPoolExecutor(1)
        self.result: Future[Any] = self._threads.submit(
            session.call, "execute_python", {"code": code}, on_output=lambda *_: self._begun.set(), **options
        )
        self._threads.shutdown(wait=False)
        assert self._begun.wait(30), self.result


# --- the engine and its images -------------------------------------------------------------------------------------


@pytest.mark.threat("P58")
@unanswered
def test_without_an_engine_every_call_is_unavailable_and_nothing_runs(
    installation: Any, tmp_path: Path, no_engine: str
) -> None:
    session = installation.session(pool=PoolTerms(min_idle=1))
    mark = tmp_path / "ran"
    for tool, arguments in (
        ("execute_python", {"code": f"open({str(mark)!r}, 'w')"}),
        ("calculate_expression", {"expression": "1+1"}),
    ):
        result = session.call(tool, arguments)
        assert (result.status, result.code, result.retryable) == ("unavailable", "engine.unavailable", True)
        assert "sock" not in f"{result.error}{result.hint}"
    assert not mark.exists()
    assert installation.closings() == [("unavailable", "engine.unavailable")] * 2


@pytest.mark.threat("P58")
def test_without_an_engine_the_command_exits_with_3(installation: Any, no_engine: str) -> None:
    policy = installation.policy()
    ended = installation.command(
        "call", "execute_python", "--policy", str(policy), "--args", '{"code":"print(1)"}', "--json",
    )  # fmt: skip
    assert ended.returncode == 3, ended.stderr
    assert json.loads(ended.stdout)["status"] == "unavailable"


@pytest.mark.threat("P58")
@unanswered
def test_an_engine_that_stops_during_a_call_is_unreachable_and_heals(
    installation: Any, wire: Wire, engine: docker.DockerClient, eventually: Callable[..., bool]
) -> None:
    runtime = installation.runtime(LONG, pool=PoolTerms(min_idle=1))
    session = runtime.session()
    call = Running(session)
    wire.cut()
    result = call.result.result(30)
    assert (result.status, result.code, result.retryable) == ("unavailable", "engine.unreachable", True)
    assert result.stdout == "started\n"

    # The engine lives on behind the cut; the cage ended by itself, because its stdin is closed.
    def running() -> list[Any]:
        return [item for item in installation.containers() if item.status == "running"]

    assert eventually(lambda: not running())
    assert session.call("execute_python", {"code": "1"}).code == "engine.unavailable"
    wire.open()
    healed = session.call("execute_python", {"code": "6*7"})
    assert (healed.status, healed.data) == ("ok", 42)
    runtime.close()
    assert installation.gone()


@pytest.mark.threat("P58")
@unanswered
@pytest.mark.parametrize("sent", [b'"HostConfig": {', b"/attach", b"/start"])
def test_a_container_whose_making_the_engine_could_not_report_is_removed_once_it_answers_again(
    installation: Any, wire: Wire, engine: docker.DockerClient, eventually: Callable[..., bool], sent: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(pool, "REMOVE_AGAIN_S", 0.2)
    runtime = installation.runtime(pool=PoolTerms(min_idle=0))
    session = runtime.session()
    wire.cut_after = sent
    assert session.call("execute_python", {"code": "1"}).code == "engine.unavailable"
    assert eventually(lambda: len(installation.containers()) == 1)  # the engine itself lives on, and made it
    wire.open()
    assert installation.gone()  # while the runtime lives, and although nobody calls it
    assert session.call("execute_python", {"code": "6*7"}).data == 42
    stats = runtime.stats()
    assert stats["created"] == 1
    runtime.close()


@pytest.mark.threat("P59")
def test_an_image_that_was_never_built_is_missing_and_nothing_is_pulled(
    installation: Any, engine: docker.DockerClient
) -> None:
    (installation.state / "images.lock").unlink()
    before = {image.id for image in engine.images.list()}
    result = installation.session().call("execute_python", {"code": "1"})
    assert (result.status, result.code) == ("unavailable", "image.missing")
    note = next(str(item["note"]) for item in installation.records() if item["type"] == "closing")
    assert "toolcage images build python" in note
    assert {image.id for image in engine.images.list()} == before
    ended = installation.command(
        "call", "execute_python", "--policy", str(installation.policy()), "--args", '{"code":"1"}'
    )
    assert ended.returncode == 3


@pytest.mark.threat("P59")
@pytest.mark.parametrize("part", ["image_id", "layers", "recipe_digest", "nonsense"])
def test_an_image_with_another_digest_than_recorded_is_not_run(installation: Any, part: str) -> None:
    path = installation.state / "images.lock"
    lock = json.loads(path.read_text())
    other = "sha256:" + "0" * 64
    python = lock["images"]["python"]
    if part == "image_id":
        python["image_id"], python["accepted_ids"] = other, [other]
    elif part == "layers":
        python["diff_ids"] = [other]
    elif part == "recipe_digest":
        python["recipe_digest"] = other
    path.write_text("{}" if part == "nonsense" else json.dumps(lock))
    runtime = installation.runtime()
    result = runtime.session().call("execute_python", {"code": "1"})
    assert (result.status, result.code) == ("unavailable", "image.missing")
    assert runtime.stats().get("created", 0) == 0


def test_an_image_lock_that_others_may_write_is_not_trusted(installation: Any) -> None:
    (installation.state / "images.lock").chmod(0o666)
    result = installation.session().call("execute_python", {"code": "1"})
    assert (result.status, result.code) == ("unavailable", "image.missing")


# --- the cage ------------------------------------------------------------------------------------------------------


def test_a_cage_killed_from_outside_is_lost_and_the_next_call_is_served(installation: Any) -> None:
    session = installation.session(LONG)
    call = Running(session)
    installation.kill_all()
    result = call.result.result(30)
    assert (result.status, result.code, result.retryable) == ("unavailable", "cage.lost", True)
    assert result.stdout == "started\n"
    assert session.call("execute_python", {"code": "6*7"}).data == 42


def test_an_idle_cage_killed_from_outside_costs_no_call(installation: Any, eventually: Callable[..., bool]) -> None:
    runtime = installation.runtime(pool=PoolTerms(min_idle=2))
    session = runtime.session()
    assert session.call("execute_python", {"code": "1"}).success
    assert eventually(lambda: runtime.stats()["idle"] >= 2)
    installation.kill_all()
    assert session.call("execute_python", {"code": "6*7"}).data == 42


# --- the host process ----------------------------------------------------------------------------------------------

CALLER = """
import signal, sys
from toolcage import Runtime, PoolTerms
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
with Runtime.from_files(sys.argv[1], pool=PoolTerms(min_idle=1)) as runtime, runtime.session() as session:
    session.call("execute_python", {"code": "print('started', flush=True)\\nwhile True: pass"},
                 on_output=lambda *_: print("started", flush=True))
"""


def _calling(installation: Any) -> subprocess.Popen[str]:
    process: subprocess.Popen[str] = installation.program(CALLER, str(installation.policy(LONG)))
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n", process.communicate(timeout=30)
    return process


@pytest.mark.threat("P56")
def test_a_host_process_killed_during_a_call_leaves_nothing_running_and_an_honest_log(
    installation: Any, eventually: Callable[..., bool]
) -> None:
    process = _calling(installation)
    process.kill()
    process.communicate(timeout=30)
    assert eventually(lambda: all(item.status != "running" for item in installation.containers()))

    report = verify(installation.state / "audit")
    assert report.ok
    assert {warning.problem for warning in report.warnings} == {"intent.open", "runtime.no_end"}

    assert installation.session().call("execute_python", {"code": "6*7"}).data == 42
    notes = [str(item.get("note", "")) for item in installation.records() if item["type"] == "pool"]
    assert any("a runtime that is gone left behind" in note for note in notes)


def test_an_interrupt_from_the_keyboard_ends_the_call_before_it_is_raised(installation: Any) -> None:
    process = _calling(installation)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in err
    assert installation.containers() == []
    assert installation.closings() == [("cancelled", "call.cancelled")]
    assert verify(installation.state / "audit").warnings == ()


@pytest.mark.threat("P56")
def test_only_containers_that_nobody_alive_owns_are_swept(installation: Any, engine: docker.DockerClient) -> None:
    host = host_id(installation.state)
    lock = json.loads((installation.state / "images.lock").read_text())
    image = lock["images"]["python"]["image_id"]
    made: dict[str, Any] = {}

    def container(name: str, owner: str, of_host: str, lease: str) -> None:
        labels = {"toolcage.host": of_host, "toolcage.runtime": owner, "toolcage.lease-until": lease}
        made[name] = engine.containers.create(image, ["/usr/bin/python3", "-c", "0"], labels=labels)

    later, earlier = str(int(time.time()) + 900), str(int(time.time()) - 900)
    living, dead = "a" * 32, "d" * 32
    try:
        container("orphan", dead, host, later)
        container("with a living owner", living, host, later)
        container("of another host", dead, "e" * 32, later)
        container("of another host, expired", dead, "e" * 32, earlier)
        container("of a living owner, expired", living, host, earlier)
        container("with a nonsense owner", "../../etc/passwd", host, later)
        with alive(installation.state, living):
            assert installation.session().call("execute_python", {"code": "1"}).success
        ours = {item.id for item in engine.containers.list(all=True, ignore_removed=True)}
        assert sorted(name for name, item in made.items() if item.id in ours) == [
            "of another host", "with a living owner", "with a nonsense owner",
        ]  # fmt: skip
    finally:
        for item in made.values():
            with contextlib.suppress(docker.errors.NotFound):
                item.remove(force=True)


def test_closing_one_runtime_leaves_the_cages_of_another_alone(installation: Any) -> None:
    first, second = installation.runtime(LONG), installation.runtime(LONG)
    assert first.session().call("execute_python", {"code": "1"}).success
    stop = CancelToken()
    call = Running(second.session(), cancel=stop)
    first.close()
    assert not call.result.done()
    assert [item.status for item in installation.containers()] == ["running"]
    third = installation.runtime()  # its sweep at the first call sees a living owner
    assert third.session().call("execute_python", {"code": "1"}).success
    assert not call.result.done()
    stop.cancel()
    assert call.result.result(30).status == "cancelled"


# --- the disk ------------------------------------------------------------------------------------------------------


def _fill(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as handle:
        while handle.write(bytes(4096)):
            pass


def test_a_full_disk_runs_nothing_and_heals(installation: Any) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    lock = (installation.state / "images.lock").read_bytes()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k,mode=0700", "tmpfs", str(installation.state)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("this machine does not let root mount a file system")
    try:
        (installation.state / "images.lock").write_bytes(lock)
        (installation.state / "images.lock").chmod(0o600)
        runtime = installation.runtime()
        session = runtime.session()
        filler = installation.state / "filler"
        _fill(filler)
        for _ in range(2):
            result = session.call("execute_python", {"code": "x" * 5000})
            assert (result.status, result.code, result.retryable) == ("unavailable", "audit.unwritable", True)
            assert str(installation.state) not in f"{result.error}{result.hint}"
        assert runtime.stats().get("created", 0) == 0
        filler.unlink()
        assert session.call("execute_python", {"code": "6*7"}).data == 42
        runtime.close()
        assert installation.containers() == []
        assert verify(installation.state / "audit").ok
    finally:
        installation.end()
        subprocess.run(["umount", str(installation.state)], check=True)


@pytest.mark.parametrize("tool", ["execute_python", "no_such_tool"])
def test_an_audit_log_that_is_moved_away_stops_the_line(installation: Any, tool: str) -> None:
    """A refusal that would leave no trace is not told either."""
    runtime = installation.runtime()
    session, path = runtime.session(), runtime.audit_path
    kept = path.rename(installation.folder / "kept")
    result = session.call(tool, {"code": "1"})
    assert (result.status, result.code) == ("unavailable", "audit.unwritable")
    assert "nothing was run" in str(result.error)
    assert runtime.stats().get("created", 0) == 0
    kept.rename(path)


# --- whoever waits -------------------------------------------------------------------------------------------------


def test_closing_the_runtime_ends_its_calls_and_their_record_stands_before_the_end(installation: Any) -> None:
    runtime = installation.runtime(LONG)
    call = Running(runtime.session())
    runtime.close()
    with pytest.raises(RuntimeClosedError):
        call.result.result(30)
    assert installation.containers() == []
    assert [item["type"] for item in installation.records()] == ["runtime_start", "intent", "closing", "runtime_end"]
    assert installation.closings() == [("cancelled", "call.cancelled")]
    assert verify(installation.state / "audit").warnings == ()


def test_closing_the_runtime_is_told_to_awaiting_and_mapping_callers_alike(installation: Any) -> None:
    runtime = installation.runtime(LONG)
    session = runtime.session()
    begun = threading.Event()

    async def awaiting() -> None:
        await session.acall("execute_python", {"code": FOREVER}, on_output=lambda *_: begun.set())

    with ThreadPoolExecutor(2) as threads:
        awaited = threads.submit(asyncio.run, awaiting())
        mapped = threads.submit(session.map, [("execute_python", {"code": FOREVER})] * 2)
        assert begun.wait(30)
        runtime.close()
        for waiting in (awaited, mapped):
            with pytest.raises(RuntimeClosedError):
                waiting.result(30)
    with pytest.raises(RuntimeClosedError):
        session.call("execute_python", {"code": "1"})
    with pytest.raises(RuntimeClosedError):
        runtime.session()
    runtime.close()


def test_cancelling_the_task_kills_the_cage(installation: Any) -> None:
    session = installation.session(LONG)

    async def scene() -> None:
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(
            session.acall(
                "execute_python", {"code": FOREVER}, on_output=lambda *_: loop.call_soon_threadsafe(begun.set)
            )
        )
        await asyncio.wait_for(begun.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert installation.gone()
    assert _until_closed(installation) == [("cancelled", "call.cancelled")]


def _until_closed(installation: Any) -> list[tuple[str, str]]:
    end = time.monotonic() + 20
    while not installation.closings() and time.monotonic() < end:
        time.sleep(0.02)
    closings: list[tuple[str, str]] = installation.closings()
    return closings


def test_a_token_cancels_from_another_thread_now_and_later(installation: Any) -> None:
    runtime = installation.runtime(LONG)
    session = runtime.session()
    token = CancelToken()
    call = Running(session, cancel=token)
    token.cancel()
    result = call.result.result(30)
    assert (result.status, result.code, result.data) == ("cancelled", "call.cancelled", None)
    created = runtime.stats()["created"]
    assert session.call("execute_python", {"code": "1"}, cancel=token).status == "cancelled"
    assert runtime.stats()["created"] == created
    assert installation.closings() == [("cancelled", "call.cancelled")] * 2


def test_a_token_may_be_cancelled_after_its_runtime_is_gone(installation: Any) -> None:
    token = CancelToken()
    runtime = installation.runtime()
    assert runtime.session().call("execute_python", {"code": "1"}, cancel=token).success
    runtime.close()
    token.cancel()


def test_a_callback_that_raises_loses_its_view_and_not_the_call(
    installation: Any, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    def bad(_name: str, text: str) -> None:
        seen.append(text)
        raise ZeroDivisionError("odd")

    result = installation.session().call(
        "execute_python", {"code": "for i in range(50): print(i, flush=True)\n'done'"}, on_output=bad
    )
    assert (result.status, result.data) == ("ok", "done")
    assert result.stdout.splitlines() == [str(number) for number in range(50)]
    assert len(seen) == 1
    told = [record.getMessage() for record in caplog.records]
    assert told == ["on_output raised ZeroDivisionError: odd; the live view ends"]


def test_a_callback_that_blocks_holds_neither_the_deadline_nor_the_result(installation: Any) -> None:
    policy = LONG.replace("60s", "2s")
    released = threading.Event()
    try:
        result = installation.session(policy).call(
            "execute_python", {"code": "print('x' * 60000, flush=True)\nwhile True: pass"},
            on_output=lambda *_: released.wait(60),
        )  # fmt: skip
        assert (result.status, result.code) == ("timeout", "limit.wall")
        assert not released.is_set()
    finally:
        released.set()


def test_a_waiting_call_inside_the_runtimes_own_loop_is_refused_instead_of_hanging(installation: Any) -> None:
    policy = LONG.replace("allow:", "ask:")
    raised: list[BaseException] = []

    async def approver(_request: Any) -> bool:
        try:
            session.call("execute_python", {"code": "1"})
        except UsageError as error:
            raised.append(error)
        return False

    session = installation.session(policy, approver=approver)
    assert session.call("execute_python", {"code": "1"}).status == "rejected"
    assert len(raised) == 1
