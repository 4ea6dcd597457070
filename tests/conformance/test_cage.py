"""One list of behaviours of a cage, for every image: what the host's end of the door promises, whatever is behind it.

The cages here are made below the line, from a recipe, because that is where the promises are; the second half replaces
the warden with a program that speaks the protocol as an attacker would.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import docker
import pytest
from benchmarks.soak.faults import Wire

from toolcage.cage import live
from toolcage.cage.bundle import encode_bundle, sources
from toolcage.cage.compiled import CompiledModules
from toolcage.cage.door import Door
from toolcage.cage.engine import REQUEST_TIMEOUT_S, Engine
from toolcage.cage.images import ImageLock, build, verify
from toolcage.cage.live import CageRecipe, LiveCage, Owner
from toolcage.cage.outcome import classify, exit_code
from toolcage.cage.pool import MAX_AGE_S, Pool, PoolTerms, lease_for
from toolcage.cage.recipe import known_images
from toolcage.cage.report import MIB, CageReport, CallOrder
from toolcage.cage.seccomp import load_profile
from toolcage.cage.spec import CageSpec, DataFile, container_config
from toolcage.errors import EngineError
from toolcage.state import default_state_dir
from toolcage.tools.registry import builtin_tools
from toolcage.types import InputFile

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def host_engine() -> Iterator[Engine]:
    made = Engine.connect()
    yield made
    made.close()


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.long] if name == "web" else []) for name in known_images()],
)
def image(request: pytest.FixtureRequest, host_engine: Engine) -> tuple[str, frozenset[str]]:
    build([request.param], host_engine, default_state_dir())  # set-up builds only those of the built-in tools
    locked = ImageLock.load(default_state_dir()).resolve(request.param)
    return verify(host_engine, locked), frozenset(locked.accepted_ids)


class Maker:
    """Makes cages of one image and takes them away again."""

    def __init__(self, engine: Engine, image: tuple[str, frozenset[str]]) -> None:
        self.engine = engine
        self.image_id, self.accepted = image
        self.owner = Owner(host=secrets.token_hex(16), runtime=secrets.token_hex(16))
        self.made: list[LiveCage] = []

    def recipe(
        self,
        *,
        data: Mapping[str, bytes] | None = None,
        lease_s: float = 120.0,
        compiled: CompiledModules | None = None,
        **spec: Any,
    ) -> CageRecipe:
        terms = {
            "isolation": "container", "memory_bytes": 128 * MIB, "cpus": 1.0, "pids": 32, "tmp_bytes": 16 * MIB, **spec,
        }  # fmt: skip
        contents = data or {}
        files = tuple(DataFile(name=name, size=len(content), sha256="0" * 64) for name, content in contents.items())
        return CageRecipe(
            spec=CageSpec(image_id=self.image_id, data=files, **terms),
            accepted_ids=self.accepted,
            seccomp=load_profile("namespace" if terms["isolation"] == "namespace" else "container").text,
            modules=(),
            preload=(),
            data=contents,
            lease_s=lease_s,
            compiled=compiled,
        )

    def cage(self, **terms: Any) -> LiveCage:
        made = LiveCage.create(self.engine, self.recipe(**terms), uid=123_456, owner=self.owner)
        self.made.append(made)
        return made

    def impostor(self, program: str, **terms: Any) -> LiveCage:
        """A cage whose PID 1 is `program` instead of the warden."""
        recipe = self.recipe(**terms)
        config = container_config(
            recipe.spec, uid=123_456, command=("/usr/bin/python3", "-I", "-c", program),
            labels={"toolcage.host": self.owner.host, "toolcage.runtime": self.owner.runtime}, seccomp=recipe.seccomp,
        )  # fmt: skip
        container = self.engine.create(config, f"toolcage-impostor-{secrets.token_hex(6)}")
        door = Door(self.engine.attach(container))
        self.engine.start(container)
        made = LiveCage(self.engine, recipe, container, door)
        self.made.append(made)
        return made


@pytest.fixture
def maker(image: tuple[str, frozenset[str]], host_engine: Engine, engine: docker.DockerClient) -> Iterator[Maker]:
    """A maker for each image."""
    yield from _maker(image, host_engine, engine)


@pytest.fixture
def speaker(host_engine: Engine, engine: docker.DockerClient) -> Iterator[Maker]:
    """A maker for what no image makes a difference to."""
    locked = ImageLock.load(default_state_dir()).resolve("python")
    yield from _maker((verify(host_engine, locked), frozenset(locked.accepted_ids)), host_engine, engine)


def _maker(image: tuple[str, frozenset[str]], host_engine: Engine, engine: docker.DockerClient) -> Iterator[Maker]:
    made = Maker(host_engine, image)
    yield made
    for cage in made.made:
        cage.destroy()
    label = f"toolcage.host={made.owner.host}"
    assert engine.containers.list(all=True, filters={"label": label}, ignore_removed=True) == []


def order(code: str, **terms: Any) -> CallOrder:
    tool = builtin_tools()["execute_python"].shipment.payload()
    payload = {"action": "call", "tool": tool, "arguments": {"code": code}, "context": {}}
    return CallOrder(payload=payload, **{"wall_s": 20.0, **terms})


def judged(report: CageReport, cage: LiveCage, wall_s: float = 20.0) -> str:
    refusal = classify(report, cage.state() if report.broken else None, wall_s=wall_s)
    return "ok" if refusal is None else refusal.code


# --- what a cage does ----------------------------------------------------------------------------------------------


def test_a_call_comes_back_whole(maker: Maker) -> None:
    seen: list[tuple[str, bytes]] = []
    code = "import os\nos.write(1, bytes(range(256)))\nos.write(2, b'err')\nopen('made', 'wb').write(b'file')\n6*7"
    cage = maker.cage()
    report = cage.call(order(code), lambda name, piece: seen.append((name, piece)))
    assert (report.broken, report.limit, exit_code(report), judged(report, cage)) == (None, None, 0, "ok")
    assert report.stdout == bytes(range(256))
    assert report.stderr == b"err"
    assert report.result == b'{"success":true,"data":42}'
    assert [(item.name, item.content) for item in report.files] == [(b"made", b"file")]
    assert b"".join(piece for name, piece in seen if name == "stdout") == report.stdout


def test_a_cage_serves_one_call_and_leaves_no_second(maker: Maker) -> None:
    cage = maker.cage()
    assert cage.ping()
    assert cage.looks_alive()
    assert judged(cage.call(order("1")), cage) == "ok"
    with pytest.raises(RuntimeError):
        cage.call(order("2"))


def test_megabytes_go_in_and_come_out_intact(maker: Maker) -> None:
    content = secrets.token_bytes(12 * MIB)
    cage = maker.cage(tmp_bytes=64 * MIB)
    code = "content = open('in.bin', 'rb').read()\nopen('out.bin', 'wb').write(content[::-1])\nlen(content)"
    report = cage.call(order(code, files=(InputFile(name="in.bin", content=content),)))
    assert judged(report, cage) == "ok"
    assert {item.name: item.content for item in report.files} == {b"out.bin": content[::-1]}


@pytest.mark.parametrize(
    ("code", "terms", "outcome"),
    [
        ("while True: pass", {"wall_s": 0.5}, "limit.wall"),
        ("while True: print('x' * 10_000)", {"output_bytes": 100_000}, "limit.output"),
        ("import os\nwhile True: os.write(4, b'x' * 10_000)", {"result_bytes": 100_000}, "limit.result"),
        ("bytearray(1 << 30)", {}, "limit.memory"),
        ("import os\nwhile True: os.fork()", {"wall_s": 5.0}, "limit.pids"),
        ("raise SystemExit(3)", {}, "program.exit"),
        ("import os; os.kill(os.getpid(), 9)", {}, "program.signal"),
    ],
)
def test_an_outcome_is_told_from_what_happened(maker: Maker, code: str, terms: dict[str, Any], outcome: str) -> None:
    cage = maker.cage()
    report = cage.call(order(code, **terms))
    assert report.broken is None
    assert judged(report, cage) in (outcome, "limit.wall" if "fork" in code else outcome)
    assert len(report.stdout) <= terms.get("output_bytes", 8 * MIB)
    assert len(report.result) <= terms.get("result_bytes", 4 * MIB)


def test_killing_it_from_another_thread_ends_the_wait(maker: Maker) -> None:
    cage = maker.cage()
    begun = threading.Event()
    killer = threading.Thread(target=lambda: (begun.wait(30), cage.kill()))
    killer.start()
    report = cage.call(order("print('up', flush=True)\nwhile True: pass"), lambda *_: begun.set())
    killer.join()
    assert (report.broken, judged(report, cage)) == ("cancelled", "call.cancelled")


def test_a_frozen_cage_is_given_up_at_the_deadline(maker: Maker, engine: docker.DockerClient) -> None:
    """The warden is stopped and cannot answer: the host's own clock ends it."""
    cage = maker.cage()
    engine.api.kill(cage.container, "SIGSTOP")
    report = cage.call(order("1", wall_s=0.5))
    assert (report.broken, judged(report, cage, 0.5)) == ("host_deadline", "limit.wall")


@pytest.mark.threat("P49")
def test_a_cage_ends_by_itself_with_its_lease_and_with_its_door(
    maker: Maker, engine: docker.DockerClient, eventually: Callable[..., bool]
) -> None:
    leased, left = maker.cage(lease_s=1.0), maker.cage()
    left._door.close()

    def ended(cage: LiveCage) -> bool:
        return not cage.state().running

    assert eventually(lambda: ended(leased))
    assert eventually(lambda: ended(left))
    assert not leased.looks_alive()


@pytest.mark.threat("P60")
def test_what_the_engine_did_not_make_as_asked_is_refused_and_removed(maker: Maker) -> None:
    wrong = dataclasses.replace(maker.recipe(), accepted_ids=frozenset({"sha256:" + "0" * 64}))
    with pytest.raises(EngineError, match="not make the cage that was asked for: Image is"):
        LiveCage.create(maker.engine, wrong, uid=123_456, owner=maker.owner)


@pytest.mark.threat("P01")
@pytest.mark.parametrize("uid", [0, 1000, 65534])
def test_a_cage_is_never_made_for_a_user_of_the_host(maker: Maker, uid: int) -> None:
    with pytest.raises(ValueError, match="user id of its own"):
        LiveCage.create(maker.engine, maker.recipe(), uid=uid, owner=maker.owner)


def test_data_can_be_read_and_not_changed_and_is_in_no_memory_of_the_tool(maker: Maker) -> None:
    canary = b"canary-" + secrets.token_hex(8).encode()
    code = f"""
import os
first, second = {canary[:9]!r}, {canary[9:]!r}
info = os.stat('/data/shop.sqlite')
try:
    open('/data/shop.sqlite', 'wb')
    print('written')
except OSError as error:
    print(type(error).__name__)
found = 0
with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb', 0) as memory:
    for line in maps:
        span, mode = line.split()[:2]
        start, end = (int(part, 16) for part in span.split('-'))
        if 'r' in mode and '[v' not in line:
            memory.seek(start)
            try:
                piece = memory.read(end - start) or b''
            except OSError:
                continue
            place = piece.find(first)
            while place >= 0:
                found += piece[place + len(first):place + len(first) + len(second)] == second
                place = piece.find(first, place + 1)
            del piece
print(found)
print(open('/data/shop.sqlite', 'rb').read().count(first + second))
"""
    cage = maker.cage(data={"shop.sqlite": canary * 10_000})
    report = cage.call(order(code))
    assert report.stdout.split() == [b"PermissionError", b"0", b"10000"], report.stderr


def test_warm_and_cold_cages_behave_alike(maker: Maker, eventually: Callable[..., bool]) -> None:
    problems: list[str] = []
    pool = Pool(maker.engine, maker.owner, PoolTerms(min_idle=1), problems.append)
    answers = []
    try:
        recipe = maker.recipe()
        for warm in (False, True):
            if warm:
                assert eventually(lambda: pool.stats()["idle"] > 0)
            cage = pool.take(recipe)
            report = cage.call(order("import os, sys\nprint(sorted(os.environ), sys.flags, os.getcwd())\n1"))
            answers.append((report.stdout, report.result, report.status))
            pool.give_back(cage)
    finally:
        pool.close()
    assert answers[0] == answers[1]
    assert problems == []
    stats = pool.stats()
    assert stats["created"] == stats["removed"]


def test_after_calls_at_once_as_many_cages_wait_for_the_next_ones(
    speaker: Maker, eventually: Callable[..., bool]
) -> None:
    pool = Pool(speaker.engine, speaker.owner, PoolTerms(min_idle=1, max_cages=8), lambda _text: None)
    try:
        recipe = speaker.recipe()
        pool.give_back(pool.take(recipe))
        assert eventually(lambda: pool.stats()["coming"] == 0 and pool.stats()["idle"] == 1)
        for cage in [pool.take(recipe) for _ in range(3)]:
            assert cage.call(order("1")).status == 0  # an unused one would go back to the shelf
            pool.give_back(cage)
        assert eventually(lambda: pool.stats()["coming"] == 0 and pool.stats()["idle"] == 3)
    finally:
        pool.close()


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # one that did not answer
def test_a_pool_closes_in_time_and_ends_what_runs_although_the_engine_answers_nobody(
    speaker: Maker, tmp_path: Path, eventually: Callable[..., bool]
) -> None:
    socket = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    wire = Wire(tmp_path / "engine.sock", Path(socket))
    engine = Engine(wire.address)
    pool = Pool(engine, speaker.owner, PoolTerms(min_idle=0), lambda _text: None)
    cages = [pool.take(speaker.recipe()) for _ in range(3)]
    wire.delay_s = 10_000.0
    closing = threading.Thread(target=pool.close, args=(1.0,), daemon=True)
    closing.start()
    closing.join(REQUEST_TIMEOUT_S)  # what a single answer of the engine may take
    assert not closing.is_alive()

    def running() -> list[str]:
        return [cage.container for cage in cages if speaker.engine.inspect(cage.container)["State"]["Running"]]

    assert eventually(lambda: not running())  # a cage ends with its door
    wire.cut()
    engine.close()
    for cage in cages:
        speaker.engine.remove(cage.container)


# --- what is behind the door when it is not the warden -------------------------------------------------------------

SPEAK = """
import json, os, struct, sys, time
def frame(kind, stream, payload): return struct.pack('!IBI', len(payload), kind, stream) + payload
def control(**fields): return frame(1, 0, json.dumps(fields).encode())
def say(data):
    while data: data = data[os.write(1, data):]
DONE = dict(op='done', status=0, limit=None, written={'1': 0}, artifacts_found=0, oom_kills=0)
os.read(0, 1)
"""
HOSTILE = {
    "garbage": "say(os.urandom(4096))",
    "a length beyond the cap": "say(struct.pack('!IBI', 2**32 - 1, 2, 1))",
    "a control frame beyond the cap": "say(struct.pack('!IBI', 65537, 1, 0))",
    "an unknown type": "say(frame(9, 0, b''))",
    "a stream beyond the cap": "say(struct.pack('!IBI', 0, 2, 2**31))",
    "control that is not JSON": "say(frame(1, 0, b'{'))",
    "control that is a list": "say(frame(1, 0, b'[]'))",
    "control without an op": "say(control(a=1))",
    "deep control": "say(frame(1, 0, b'[' * 60000))",
    "an unknown op": "say(control(op='exec'))",
    "a second ready": "say(control(op='ready'))",
    "data on a stream nobody opened": "say(frame(2, 99, b'x'))",
    "payload sent back": "say(frame(2, 4, b'x'))",
    "an end nobody asked for": "say(frame(3, 1, b''))",
    "more output than the cap": "[say(frame(2, 1, bytes(200000))) for _ in range(60)]",
    "more result than the cap": "[say(frame(2, 3, bytes(200000))) for _ in range(60)]",
    "an artifact below the first stream": "say(control(op='artifact', stream=1, name='61'))",
    "an artifact twice": "say(control(op='artifact', stream=16, name='61') * 2)",
    "an artifact name that is no hex": "say(control(op='artifact', stream=16, name='../x'))",
    "too many artifacts": "[say(control(op='artifact', stream=16 + n, name='61')) for n in range(40)]",
    "more file bytes than the cap": "say(control(op='artifact', stream=16, name='61')); "
                                    "[say(frame(2, 16, bytes(200000))) for _ in range(100)]",
}  # fmt: skip


@pytest.mark.threat("P51")
@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_protocol_ends_the_cage_and_is_never_a_success(speaker: Maker, name: str) -> None:
    cage = speaker.impostor(SPEAK + HOSTILE[name] + "\nsay(control(**DONE))\ntime.sleep(60)")
    report = cage.call(order("1"))
    assert report.broken == "malformed"
    assert judged(report, cage) == "cage.door_malformed"
    assert len(report.stdout) <= 8 * MIB


NEVER_ENDS = {
    "pings": "while True: say(frame(4, 0, b'') * 1000)",
    "empty output": "while True: say(frame(2, 1, b'') * 1000)",
    "its last words": "while True: os.write(2, b'x' * 60000)",
    "half a frame": "say(struct.pack('!IBI', 1000, 2, 1) + b'x'); time.sleep(60)",
    "nothing": "time.sleep(60)",
}


@pytest.mark.threat("P49")
@pytest.mark.parametrize("name", NEVER_ENDS)
def test_a_cage_that_never_stops_talking_is_given_up_at_the_deadline(speaker: Maker, name: str) -> None:
    cage = speaker.impostor(SPEAK + NEVER_ENDS[name])
    before = time.monotonic()
    report = cage.call(order("1", wall_s=0.3))
    assert report.broken == "host_deadline"
    assert time.monotonic() - before < 30  # the deadline is 2.3 s; without one this would never end
    assert len(cage.last_words()) <= 16 * 1024


LIES = {
    "nothing but done": ("{}", "ok"),
    "wild numbers": (
        "{'written': {'1': 10**30, '2': -5, '3': 'x'}, 'oom_kills': -1, 'memory_peak': 1e308, 'cpu_s': -1, "
        "'wall_s': float(10**9), 'artifacts_found': True}", "ok",
    ),
    "an unknown limit": ("{'limit': 'moon'}", "cage.unknown_limit"),
    "a limit that is no text": ("{'limit': {'a': 1}}", "ok"),
    "a status that is no number": ("{'status': '0'}", "program.unknown_end"),
    "no status": ("{'status': None}", "program.unknown_end"),
    "a status of a signal": ("{'status': 11}", "program.signal"),
    "a killed status and a claimed kill": ("{'status': 9, 'oom_kills': 1}", "limit.memory"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_a_closing_report_that_lies_is_read_as_far_as_it_makes_sense(speaker: Maker, name: str) -> None:
    fields, outcome = LIES[name]
    cage = speaker.impostor(SPEAK + f"say(control(**{{**DONE, **{fields}}}))\ntime.sleep(60)")
    report = cage.call(order("1"))
    assert judged(report, cage) == outcome
    for number in (*report.written.values(), report.oom_kills, report.memory_peak_bytes, report.files_found):
        assert 0 <= number < 2**53
    assert 0 <= report.cpu_s < 1e6
    assert 0 <= report.wall_s < 60


def test_a_cage_that_ends_without_a_word_is_lost_and_its_last_words_are_for_the_operator(speaker: Maker) -> None:
    cage = speaker.impostor(SPEAK + "os.write(2, b'why it ended')\nos._exit(137)")
    report = cage.call(order("1"))
    refusal = classify(report, cage.state(), wall_s=20)
    assert refusal is not None
    assert (refusal.status, refusal.code) == ("unavailable", "cage.lost")
    assert refusal.operator == "why it ended"
    assert "why it ended" not in f"{refusal.message}{refusal.hint}"


def test_a_new_cage_that_does_not_come_up_is_an_error_and_is_removed(
    speaker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle that cannot start: the warden's own source is not there."""
    monkeypatch.setattr(live, "encode_bundle", lambda *_, **__: b"\x00\x00\x00\x02{}")
    with pytest.raises(EngineError, match="did not come up"):
        speaker.cage()


def test_a_cage_is_lent_only_while_its_lease_outlasts_the_call(
    speaker: Maker, eventually: Callable[..., bool]
) -> None:
    pool = Pool(speaker.engine, speaker.owner, PoolTerms(min_idle=1), lambda _text: None)
    try:
        short = speaker.recipe(lease_s=lease_for(1))
        pool.warm(short)
        assert eventually(lambda: pool.stats()["idle"] == 1)
        (waiting,) = pool._shelves[short.spec.digest].idle
        cage = pool.take(speaker.recipe(lease_s=lease_for(900)))
        assert cage is not waiting
        assert cage.recipe.lease_s - MAX_AGE_S > 900 + live.GRACE_S
        pool.give_back(cage)
        assert eventually(lambda: pool.stats()["coming"] == 0 and pool.stats()["idle"] == 1)
        (waiting,) = pool._shelves[short.spec.digest].idle
        assert pool.take(short) is waiting  # a longer lease serves a shorter call
        pool.give_back(waiting)
        assert eventually(lambda: pool.stats()["coming"] == 0 and pool.stats()["idle"] == 1)
        (waiting,) = pool._shelves[short.spec.digest].idle
        waiting.born -= MAX_AGE_S
        cage = pool.take(short)
        assert cage is not waiting
        pool.give_back(cage)
    finally:
        pool.close()
    speaker.cage()


@pytest.mark.parametrize("aged", [False, True])
def test_a_cage_that_serves_many_calls_comes_back_until_it_is_too_old(speaker: Maker, aged: bool) -> None:
    pool = Pool(speaker.engine, speaker.owner, PoolTerms(min_idle=0), lambda _text: None)
    try:
        cage = pool.take(speaker.recipe(isolation="namespace"))
        assert cage.call(order("1")).again
        cage.born -= MAX_AGE_S if aged else 0
        pool.give_back(cage)
        assert pool.stats()["idle"] == (0 if aged else 1)
    finally:
        pool.close()
    speaker.cage()


def test_a_place_that_somebody_waits_for_is_theirs_and_is_not_refilled(
    speaker: Maker, eventually: Callable[..., bool]
) -> None:
    pool = Pool(speaker.engine, speaker.owner, PoolTerms(min_idle=1, max_cages=2), lambda _text: None)
    first, second = speaker.recipe(), speaker.recipe(pids=33)
    try:
        held = [pool.take(first), pool.take(first)]
        given: list[LiveCage] = []
        waiting = threading.Thread(target=lambda: given.append(pool.take(second)))
        waiting.start()
        assert eventually(lambda: pool.stats()["waiting"] == 1)
        with pool._changed:
            shelf = pool._shelves[first.spec.digest]
            shelf.not_before, shelf.last_used = 0.0, time.monotonic() + 1  # the one that a refill would choose
            pool._running.discard(held[0])
            shelf.running -= 1
            assert shelf.short
            assert pool._lacking() is None
            pool._changed.notify_all()
        waiting.join(30)
        assert [cage.recipe.spec for cage in given] == [second.spec]
        assert pool.stats()["created"] == 3
        for cage in (*held, *given):
            pool.give_back(cage)
    finally:
        pool.close()
    speaker.cage()


@pytest.mark.parametrize("isolation", ["container", "namespace", "session"])
def test_a_cage_whose_waiting_process_is_gone_closes_its_door_before_a_call_is_lost_on_it(
    speaker: Maker, engine: docker.DockerClient, eventually: Callable[..., bool], isolation: str
) -> None:
    cage = speaker.cage(isolation=isolation)
    assert cage.looks_alive()
    program = "import os, signal; os.kill(-1, signal.SIGKILL)"  # all but process 1
    engine.containers.get(cage.container).exec_run(["/usr/bin/python3", "-I", "-c", program])
    assert eventually(lambda: not cage.looks_alive())


# --- our own modules, compiled once for an image -------------------------------------------------------------------


def test_the_first_cage_of_an_image_tells_what_it_compiled_and_later_ones_are_sent_that(
    maker: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []

    def watched(*given: Any, **named: Any) -> bytes:
        sent.append((named["compiled"] is not None, named["tell"]))
        return encode_bundle(*given, **named)

    monkeypatch.setattr(live, "encode_bundle", watched)
    for _ in range(2):
        cage = maker.cage(compiled=CompiledModules(tmp_path))
        assert cage.call(order("6 * 7")).result == b'{"success":true,"data":42}'
    assert sent == [(False, True), (True, False)]


@pytest.mark.threat("P49")
def test_a_call_cannot_change_what_later_cages_run(speaker: Maker, tmp_path: Path) -> None:
    """Code is told ahead of the first call only: later it ends the cage, and what was kept stays as it was."""
    store = CompiledModules(tmp_path)
    assert speaker.cage(compiled=store).call(order("1")).broken is None
    recipe = speaker.recipe()
    texts = sources(recipe.spec, recipe.modules)
    kept = store.get(speaker.image_id, texts)
    assert kept is not None
    planted = "say(control(op='compiled', sizes=[1] * 30) + frame(2, 5, b'x' * 30) + frame(3, 5, b''))\n"
    cage = speaker.impostor(SPEAK + planted + "say(control(**DONE))\ntime.sleep(60)", compiled=store)
    assert judged(cage.call(order("1")), cage) == "cage.door_malformed"
    assert CompiledModules(tmp_path).get(speaker.image_id, texts) == store.get(speaker.image_id, texts) == kept
