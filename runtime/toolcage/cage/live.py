"""One live cage: created, attested, started, prepared, used, removed.

Blocking; runs in a worker thread. Every wait is bounded. Whatever the cage sends is checked here against what the
protocol allows at that point: an unexpected frame, a stream nobody opened, a byte above a cap, all end the cage.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never

from toolcage.cage import attest, wire
from toolcage.cage.bundle import COMMAND, encode_bundle, sources
from toolcage.cage.compiled import CODE_BYTES, CompiledModules
from toolcage.cage.door import Door, DoorClosed, DoorMalformed, DoorTimeout
from toolcage.cage.engine import Engine
from toolcage.cage.portals import OnConnection, Switch
from toolcage.cage.remains import OnRemains, clear
from toolcage.cage.report import MIB, Broken, CageReport, CallOrder, CollectedFile, EngineState
from toolcage.cage.spec import LABEL_HOST, LABEL_LEASE, LABEL_RUNTIME, CageSpec, container_config
from toolcage.errors import EngineError
from toolcage.types import Isolation

START_S: Final = 30.0
GRACE_S: Final = 2.0
PING_EVERY_S: Final = 5.0
MAX_CALLS: Final = 1000
ARTIFACT_COUNT: Final = 32
ARTIFACT_BYTES: Final = 16 * MIB
OnOutput = Callable[[str, bytes], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who a cage belongs to: the host's installation and the runtime, for labels and sweeping."""

    host: str
    runtime: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CageRecipe:
    """Everything that a new cage of one spec is made from. `data` maps a name below /data to the content. `compiled`
    spares it compiling our modules; without it, it gets their sources."""

    spec: CageSpec
    accepted_ids: frozenset[str]
    seccomp: str
    modules: tuple[str, ...]
    preload: tuple[str, ...]
    data: Mapping[str, bytes] = field(repr=False)
    lease_s: float = 900.0
    compiled: CompiledModules | None = field(default=None, repr=False, compare=False)


class LiveCage:
    """A running container with its door open. Any thread may call `kill`; the rest is for one thread at a time."""

    def __init__(self, engine: Engine, recipe: CageRecipe, container: str, door: Door) -> None:
        self._engine = engine
        self.recipe = recipe
        self.container = container
        self._door = door
        self._cancelled = threading.Event()
        self.born = time.monotonic()
        self.calls = 0
        self.reusable = True

    @classmethod
    def create(
        cls, engine: Engine, recipe: CageRecipe, *, uid: int, owner: Owner, on_remains: OnRemains | None = None
    ) -> LiveCage:
        """A cage that answered, was attested, and holds its data. Raises EngineError; nothing is left behind then, but
        for what an engine that no longer answers keeps: that is told to `on_remains`."""
        labels = {
            LABEL_HOST: owner.host,
            LABEL_RUNTIME: owner.runtime,
            LABEL_LEASE: str(int(time.time() + recipe.lease_s)),
        }
        config = container_config(recipe.spec, uid=uid, command=COMMAND, labels=labels, seccomp=recipe.seccomp)
        container = f"toolcage-{owner.runtime[:8]}-{secrets.token_hex(6)}"
        made, door = False, None
        try:
            container = engine.create(config, container)
            made = True
            attest.check(config, engine.inspect(container), recipe.accepted_ids)
            door = Door(engine.attach(container))
            engine.start(container)
            cage = cls(engine, recipe, container, door)
            cage._prepare()
        except BaseException as error:
            if door is not None:
                door.close()
            clear(engine, container, made, error, on_remains)
            raise
        return cage

    def _prepare(self) -> None:
        deadline = time.monotonic() + START_S
        spec, recipe = self.recipe.spec, self.recipe
        try:
            self._send_bundle(deadline)
            self._expect("ready", deadline)
            for number, item in enumerate(spec.data):
                stream = wire.FIRST_FREE_STREAM + number
                self._door.send(wire.encode_control(op="put", stream=stream, name=item.name), deadline)
                self._door.send(wire.encode_stream(stream, recipe.data[item.name]), deadline)
                self._expect("stored", deadline)
        except (DoorClosed, DoorTimeout, DoorMalformed, wire.WireError) as error:
            words = self.last_words() or "no word from it"
            raise EngineError(f"a new cage did not come up ({type(error).__name__}): {words}") from error

    def _send_bundle(self, deadline: float) -> None:
        """Our modules, compiled where an earlier cage of the image told how; else this cage is asked to tell, here,
        where it has received nothing else yet."""
        spec, recipe, store = self.recipe.spec, self.recipe, self.recipe.compiled
        texts = sources(spec, recipe.modules)
        code = None if store is None else store.get(spec.image_id, texts)
        tell = store is not None and code is None
        bundle = encode_bundle(
            spec, lease_s=recipe.lease_s, modules=recipe.modules, preload=recipe.preload, compiled=code, tell=tell
        )
        self._door.send(bundle, deadline)
        if store is not None and tell:
            store.keep(spec.image_id, texts, self._receive_code(tuple(texts), deadline))

    def _receive_code(self, names: tuple[str, ...], deadline: float) -> Mapping[str, bytes]:
        """Exactly the modules that were sent, in that order, under a cap."""
        sizes = self._expect("compiled", deadline).get("sizes")
        if not isinstance(sizes, list) or len(sizes) != len(names) or not all(map(_is_positive, sizes)):
            raise DoorMalformed("compiled modules that nobody asked for")
        if sum(sizes) > CODE_BYTES:
            raise DoorMalformed("more code than the cap")
        content = bytearray()
        while (frame := self._door.receive(deadline)).type == wire.DATA and frame.stream == wire.CODE:
            content += frame.payload
            if len(content) > sum(sizes):
                raise DoorMalformed("more code than announced")
        if frame.type != wire.END or frame.stream != wire.CODE or len(content) != sum(sizes):
            raise DoorMalformed("code that ends before its end")
        ends = itertools.accumulate(sizes)
        return {name: bytes(content[end - size : end]) for name, size, end in zip(names, sizes, ends, strict=True)}

    def _expect(self, op: str, deadline: float) -> dict[str, object]:
        frame = self._door.receive(deadline)
        message = frame.control() if frame.type == wire.CONTROL else {}
        if message.get("op") != op:
            raise DoorMalformed(f"expected {op}")
        return message

    def ping(self, timeout_s: float = 2.0) -> bool:
        """Whether an idle cage still answers. Also what keeps it alive."""
        deadline = time.monotonic() + timeout_s
        try:
            self._door.send(wire.encode(wire.PING), deadline)
            return self._door.receive(deadline).type == wire.PING
        except (DoorClosed, DoorTimeout, DoorMalformed):
            return False

    def looks_alive(self) -> bool:
        """Whether an idle cage's door is still open. Costs nothing, and tells one that died on the shelf."""
        return self._door.silent()

    def call(
        self, order: CallOrder, on_output: OnOutput | None = None, on_connection: OnConnection | None = None
    ) -> CageReport:
        """Runs one call. Never raises for what the cage does: the report says it. `on_connection` is given each
        connection that is made through a portal of the order.

        A cage is used once; with `namespace` isolation it stays `reusable` after a call that ended well, with `session`
        isolation also after one whose program failed in an ordinary way.
        """
        if not self.reusable:
            raise RuntimeError("this cage may not be used again")
        self.reusable = False
        self.calls += 1
        intake = _Intake(order, on_output)
        started = time.monotonic()
        deadline = started + order.wall_s + GRACE_S
        broken: Broken | None = None
        switch = Switch(order.portals, on_connection) if order.portals and on_connection is not None else None
        try:
            self._send_order(order, deadline)
            self._listen(intake, deadline, switch)
        except DoorTimeout:
            broken = "host_deadline"
        except DoorClosed:
            broken = "closed"
        except (DoorMalformed, wire.WireError):
            broken = "malformed"
        finally:
            if switch is not None:
                switch.close()
        if self._cancelled.is_set():
            broken = "cancelled"
        report = intake.report(broken, time.monotonic() - started, self.last_words())
        self.reusable = self.calls < MAX_CALLS and _may_go_on(self.recipe.spec.isolation, report)
        return report

    def _send_order(self, order: CallOrder, deadline: float) -> None:
        document = dict(order.payload)
        document["files"] = [{"name": item.name, "size": len(item.content)} for item in order.files]
        payload = json.dumps(document, ensure_ascii=True, allow_nan=False).encode()
        content = b"".join([struct.pack("!I", len(payload)), payload, *(item.content for item in order.files)])
        control = wire.encode_control(
            op="call", wall_s=order.wall_s, output_bytes=order.output_bytes, result_bytes=order.result_bytes,
            portals=[portal.port for portal in order.portals],
        )  # fmt: skip
        self._door.send(control + wire.encode_stream(wire.PAYLOAD, content), deadline)

    def _listen(self, intake: _Intake, deadline: float, switch: Switch | None) -> None:
        ping_due = time.monotonic() + PING_EVERY_S
        while not intake.done:
            if time.monotonic() >= ping_due:  # also for a cage that never stops talking: it must hear from us
                self._door.send(wire.encode(wire.PING), deadline)
                ping_due = time.monotonic() + PING_EVERY_S
            try:
                frame = self._door.receive(min(deadline, ping_due), switch)
            except DoorTimeout:
                if time.monotonic() >= deadline:
                    raise
                continue
            if switch is not None and wire.is_portal(frame):
                switch.take(frame)
            else:
                intake.take(frame)

    def kill(self) -> None:
        """Ends whatever runs in it, from any thread; a waiting `call` returns a `cancelled` report."""
        self._cancelled.set()
        self._door.shut()
        with contextlib.suppress(EngineError):
            self._engine.kill(self.container)

    def state(self) -> EngineState:
        """What the engine says about the container now."""
        try:
            found = self._engine.inspect(self.container)
        except EngineError:
            return EngineState(reachable=False)
        if found is None:
            return EngineState(reachable=True)
        state = found["State"]
        return EngineState(
            reachable=True,
            found=True,
            running=bool(state.get("Running")),
            oom_killed=bool(state.get("OOMKilled")),
            exit_code=state.get("ExitCode"),
        )

    def destroy(self) -> bool:
        """Closes the door and removes the container: true. Raises EngineError when the engine does not do it."""
        self._door.close()
        self._engine.remove(self.container)
        return True

    def last_words(self) -> str:
        """What the warden wrote to its stderr, for the operator."""
        return self._door.last_words.decode("utf-8", "replace")


def _may_go_on(isolation: Isolation, report: CageReport) -> bool:
    """Whether another call may follow in the same cage. After a limit never; after an error only where the mode's very
    point is that the program goes on."""
    within = report.again and report.broken is None and report.limit is None and report.oom_kills == 0
    match isolation:
        case "container":
            return False
        case "namespace":
            return within and report.status == 0
        case "session":
            return within and report.pids_refused == 0
    assert_never(isolation)


class _Intake:
    """Collects one call's frames under caps."""

    def __init__(self, order: CallOrder, on_output: OnOutput | None) -> None:
        self._on_output = on_output
        self._caps = {wire.STDOUT: order.output_bytes, wire.STDERR: order.output_bytes, wire.RESULT: order.result_bytes}
        self._streams = {stream: bytearray() for stream in self._caps}
        self._open: dict[int, tuple[bytes, bytearray]] = {}
        self._file_bytes = 0
        self._report: dict[str, object] | None = None

    @property
    def done(self) -> bool:
        return self._report is not None

    def take(self, frame: wire.Frame) -> None:
        if frame.type == wire.CONTROL:
            self._control(frame.control())
        elif frame.type == wire.DATA and frame.stream in self._streams:
            self._output(frame.stream, frame.payload)
        elif frame.type == wire.DATA and frame.stream in self._open:
            self._file_bytes += len(frame.payload)
            if self._file_bytes > ARTIFACT_BYTES:
                raise DoorMalformed("more artifact bytes than the cap")
            self._open[frame.stream][1].extend(frame.payload)
        elif frame.type != wire.PING:
            raise DoorMalformed("a frame that nobody asked for")

    def _output(self, stream: int, piece: bytes) -> None:
        buffer = self._streams[stream]
        if len(buffer) + len(piece) > self._caps[stream]:
            raise DoorMalformed("more output than the cap")
        buffer.extend(piece)
        if self._on_output is not None and stream != wire.RESULT:
            self._on_output("stdout" if stream == wire.STDOUT else "stderr", piece)

    def _control(self, message: dict[str, object]) -> None:
        op, stream, name = message["op"], message.get("stream"), message.get("name")
        if op == "done":
            self._report = message
        elif op == "artifact" and isinstance(stream, int) and isinstance(name, str):
            known = wire.FIRST_FREE_STREAM <= stream < wire.FIRST_PORTAL_STREAM and stream not in self._open
            if len(self._open) >= ARTIFACT_COUNT or not known:
                raise DoorMalformed("an artifact that may not be sent")
            try:
                self._open[stream] = (bytes.fromhex(name)[:512], bytearray())
            except ValueError as error:
                raise DoorMalformed("an artifact name that is not hex") from error
        else:
            raise DoorMalformed("an unknown control message")

    def report(self, broken: Broken | None, wall_s: float, last_words: str) -> CageReport:
        done = self._report or {}
        streams = {name: bytes(self._streams[stream]) for name, stream in _STREAM_NAMES}
        files = tuple(CollectedFile(name=name, content=bytes(content)) for name, content in self._open.values())
        limit = done.get("limit")
        return CageReport(
            **streams,
            files=files,
            files_found=_count(done.get("artifacts_found")),
            status=_wait_status(done.get("status")),
            again=done.get("again") is True,
            limit=limit if isinstance(limit, str) else None,
            written={stream: _written(done, stream) for stream in self._caps},
            oom_kills=_count(done.get("oom_kills")),
            pids_refused=_count(done.get("pids_refused")),
            memory_peak_bytes=_count(done.get("memory_peak")),
            cpu_s=_seconds(done.get("cpu_s")),
            wall_s=min(_seconds(done.get("wall_s")), wall_s) if done else wall_s,
            broken=broken,
            last_words=last_words,
        )


_STREAM_NAMES: Final = (("stdout", wire.STDOUT), ("stderr", wire.STDERR), ("result", wire.RESULT))


def _written(done: Mapping[str, object], stream: int) -> int:
    written = done.get("written")
    return _count(written.get(str(stream))) if isinstance(written, dict) else 0


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _wait_status(value: object) -> int | None:
    """A wait status from the cage: one that says exited or signalled, else None."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 0xFFFF:
        return None
    return value if os.WIFEXITED(value) or os.WIFSIGNALED(value) else None


def _count(value: object) -> int:
    """A counter from the cage: a whole number within the range of sense, else zero."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else 0


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6 else 0.0
