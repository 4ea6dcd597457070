"""Makes cages of one image and isolation mode, and measures every property of them, from inside and beside.

Trusts the engine's words about containers and nothing that a cage says beyond what it would say against itself: an
answer that is missing or unreadable is a failure, never a property that holds. Everything made here is removed.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from typing import Final

from toolcage.cage.engine import Engine
from toolcage.cage.images import LockedImage, verify
from toolcage.cage.live import CageRecipe, LiveCage, Owner
from toolcage.cage.properties import control_plane, filesystem, identity, information, network, syscalls, trials
from toolcage.cage.properties.model import Finding, Judge, Seen, not_applicable
from toolcage.cage.report import CageReport, CallOrder, EngineState
from toolcage.cage.seccomp import load_profile
from toolcage.cage.spec import CageSpec, users_under
from toolcage.cage.wire import NO_NAMESPACES
from toolcage.errors import EngineError
from toolcage.types import Isolation, SandboxTerms

PROPERTIES: Final = tuple(f"P{number:02}" for number in range(1, 61))
JUDGES: Final[tuple[Judge, ...]] = (
    identity.judge, syscalls.judge, filesystem.judge, filesystem.bounds, information.judge, network.judge,
)  # fmt: skip
PROBE_S: Final = 60.0
_RUNNER: Final = """
import toolcage_probe
from toolcage import Tool

class Observes(Tool):
    name = "observes_its_cage"
    description = "Tells what can be seen and done here."
    parameters = {"type": "object", "properties": {"targets": {}, "abstract": {}}}

    def execute(self, targets, abstract):
        return toolcage_probe.observe(targets, abstract)

class Runs(Tool):
    name = "runs_a_trial"
    description = "Runs a program."
    parameters = {"type": "object", "properties": {"code": {}}}

    def execute(self, code):
        names = {"__name__": "__main__"}
        exec(code, names)
        return names.get("found")
"""
OnStep = Callable[[str], None]


def probe_source() -> str:
    """The program that a cage is asked with."""
    return resources.files("toolcage.cage.properties").joinpath("probe.py").read_text(encoding="utf-8")


def measure(engine: Engine, locked: LockedImage, isolation: Isolation, on_step: OnStep) -> list[Finding]:
    """One finding for each of PROPERTIES, in order. Raises EngineError and ImageError when no cage can be made."""
    verify(engine, locked)
    try:
        found = list(_findings(_Cages(engine, locked, isolation), on_step))
    except EngineError as error:
        if isolation != "namespace" or NO_NAMESPACES not in str(error):
            raise
        why = "this host does not give namespace isolation; such calls get container isolation, which is stronger"
        return [not_applicable(number, why) for number in PROPERTIES]
    by_number = {item.id: item for item in found if item.verdict != "fails"}
    by_number |= {item.id: item for item in found if item.verdict == "fails"}
    return [by_number.get(number, _unmeasured(number)) for number in PROPERTIES]


def _unmeasured(number: str) -> Finding:
    return Finding(id=number, verdict="fails", evidence="it was not measured")


class _Cages:
    """Makes cages of one recipe, one at a time."""

    def __init__(self, engine: Engine, locked: LockedImage, isolation: Isolation) -> None:
        self.engine = engine
        self.locked = locked
        terms = SandboxTerms()
        spec = CageSpec(
            image_id=locked.image_id, isolation=isolation, memory_bytes=terms.memory_bytes, cpus=terms.cpus,
            pids=terms.pids, tmp_bytes=terms.tmp_bytes,
        )  # fmt: skip
        namespace = isolation == "namespace"
        profile = load_profile("namespace") if namespace else load_profile("container", internet=spec.internet)
        self.recipe = CageRecipe(
            spec=spec, accepted_ids=frozenset(locked.accepted_ids), seccomp=profile.text, modules=(), preload=(),
            data={},
        )  # fmt: skip
        self.owner = Owner(host=secrets.token_hex(16), runtime=secrets.token_hex(16))

    @contextmanager
    def one(self) -> Iterator[LiveCage]:
        uid = secrets.choice(users_under(self.engine.recent_info()))
        cage = LiveCage.create(self.engine, self.recipe, uid=uid, owner=self.owner)
        try:
            yield cage
        finally:
            cage.destroy()


def _findings(cages: _Cages, on_step: OnStep) -> Iterator[Finding]:
    on_step("looking from inside")
    yield from _look(cages)
    on_step("what a call leaves behind")
    yield _reset(cages)
    for trial in trials.TRIALS:
        on_step(f"trial: {trial.name}")
        with cages.one() as cage:
            report = _run(cage, trial.code, trial.wall_s)
            yield from trial.judge(report, _state(cage, report), cages.recipe.spec)
    on_step("the way to the engine")
    yield control_plane.crowd(cages.engine, cages.recipe, cages.owner)
    yield control_plane.orphan(cages.engine, cages.recipe)
    yield from control_plane.absent(cages.engine)


def _look(cages: _Cages) -> Iterator[Finding]:
    canary, name = secrets.token_hex(16), f"toolcage-attest-{secrets.token_hex(8)}"
    with _host_ends(name) as port, cages.one() as cage:
        os.environ["TOOLCAGE_ATTEST_CANARY"] = canary
        try:
            report = _call(cage, "Observes", {"targets": [port], "abstract": name}, PROBE_S)
        finally:
            del os.environ["TOOLCAGE_ATTEST_CANARY"]
        inside = trials.answer(report)
        if not isinstance(inside, dict):
            said = report.stderr[-400:].decode("utf-8", "replace")
            raise EngineError(f"the probe gave no answer: {report.broken or report.limit or report.status} {said}")
        seen = Seen(
            spec=cages.recipe.spec,
            accepted_ids=cages.recipe.accepted_ids,
            inside=inside,
            container=cages.engine.inspect(cage.container) or {},
            image=cages.engine.image_inspect(cages.locked.image_id) or {},
            history=cages.engine.image_history(cages.locked.image_id),
            engine=cages.engine.info(),
            host_name=socket.gethostname(),
            canary=canary,
        )
    for judge in JUDGES:
        yield from judge(seen)
    yield from control_plane.judge(seen, cages.recipe.seccomp, (name, "observes_its_cage"))


def _reset(cages: _Cages) -> Finding:
    with cages.one() as cage:
        left = _run(cage, trials.LEAVE, 20.0)
        if cages.recipe.spec.isolation == "namespace" and cage.reusable:
            return trials.reset(_run(cage, trials.LOOK, 20.0), "the next call of the same container found nothing")
        if cages.recipe.spec.isolation == "namespace":
            return trials.reset(left, "")
        with cages.one() as other:
            seen = trials.reset(_run(other, trials.LOOK, 20.0), "the next call has another container and found nothing")
    if cages.recipe.spec.isolation == "session" and seen.verdict == "holds":
        why = "one session's calls share everything by intent; another session has another container, and found nothing"
        return not_applicable("P33", why)
    return seen


@contextmanager
def _host_ends(name: str) -> Iterator[int]:
    """A TCP port on every address of the host, and an abstract unix socket, while the block runs."""
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as abstract:
        tcp.bind(("0.0.0.0", 0))  # noqa: S104 - to see that a cage reaches none of them
        tcp.listen()
        abstract.bind("\0" + name)
        abstract.listen()
        yield tcp.getsockname()[1]


def _run(cage: LiveCage, code: str, wall_s: float) -> CageReport:
    return _call(cage, "Runs", {"code": code}, wall_s)


def _call(cage: LiveCage, attribute: str, arguments: Mapping[str, object], wall_s: float) -> CageReport:
    modules = {"toolcage_attest": _RUNNER, "toolcage_probe": probe_source()}
    tool = {"module": "toolcage_attest", "attribute": attribute, "how": "class", "init": None, "modules": modules}
    payload = {"action": "call", "tool": tool, "arguments": arguments, "context": {}}
    return cage.call(CallOrder(payload=payload, wall_s=wall_s, output_bytes=trials.OUTPUT_BYTES))


def _state(cage: LiveCage, report: CageReport) -> EngineState | None:
    return cage.state() if report.broken is not None else None
