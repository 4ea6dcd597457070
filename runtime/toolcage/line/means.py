"""What execution needs on this host: the engine, the images, warm cages, database snapshots, and each tool's source.

Connected when first needed, so a runtime starts without an engine and a call then says `unavailable`; later requests
ask the engine anew, so that heals. It decides nothing about a call: recipes follow from the terms that the policy
fixed. Where the host cannot give `namespace` isolation, `container` is used, the next stronger; never a weaker one.
A cage with `session` isolation belongs to one session and one tool, and is kept for their next call.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from toolcage.broker.broker import Broker, OnRecord, Passage
from toolcage.cage import sweep
from toolcage.cage.compiled import CompiledModules
from toolcage.cage.data import Snapshot, Snapshots
from toolcage.cage.engine import Engine
from toolcage.cage.images import ImageLock, verify
from toolcage.cage.live import CageRecipe, LiveCage, Owner
from toolcage.cage.outcome import classify
from toolcage.cage.pool import GivenUp, OnProblem, Pool, PoolClosed, PoolTerms, lease_for
from toolcage.cage.report import CageReport, CallOrder
from toolcage.cage.seccomp import load_profile
from toolcage.cage.session_cages import Holder, SessionCages, session_lease_for
from toolcage.cage.spec import CageSpec
from toolcage.cage.wire import NO_NAMESPACES
from toolcage.errors import DeclarationError, EngineError, ResourceError
from toolcage.line.changing import Changing, changing, told_of_change
from toolcage.line.mail_portals import addresses_of
from toolcage.line.portal_memory import Memory
from toolcage.line.portals import PROXY, Opened, open_portals
from toolcage.line.resource_secrets import secrets_of
from toolcage.line.workers import Workers
from toolcage.line.workspace import Workspaces
from toolcage.resources import Resources, SqliteDatabase
from toolcage.tools.registry import RegisteredTool, ToolRegistry, builtin_tools
from toolcage.tools.shipping import Shipment
from toolcage.tools.source import BASE_MODULES
from toolcage.types import AuthorizedCall, Isolation, SandboxTerms

DESCRIBE: Final = SandboxTerms(wall_s=10.0)
_IMPORTS: Final = (
    f"a file comes alone and is described in the image {DESCRIBE.image}, without a runtime: what another image holds"
    " (`sandbox: {image: …}` of the grant) is to be imported in the tool's body, and `Runtime` not at all"
)
PRELOAD: Final[Mapping[Isolation, tuple[str, ...]]] = {
    "container": (),  # used once: importing ahead what most calls never use would cost each of them
    "namespace": ("RestrictedPython", "sqlite3"),
    "session": (),
}
PRELOAD_OF_IMAGE: Final[Mapping[tuple[Isolation, str], tuple[str, ...]]] = {
    # A search imports these for longer than it waits for its answer. None of them draws random numbers of its own.
    ("namespace", "web"): ("bs4", "requests", "tavily", "wikipedia"),
}


class Means:
    """Thread-safe. `close` ends every cage and connection."""

    def __init__(
        self,
        *,
        registry: ToolRegistry,
        resources: Resources,
        state_dir: Path,
        owner: Owner,
        terms: PoolTerms,
        on_problem: OnProblem,
    ) -> None:
        self._registry = registry
        self._resources = resources
        self._state_dir = state_dir
        self._owner = owner
        self._terms = terms
        self._on_problem = on_problem
        self._lock = threading.RLock()
        self._engine: Engine | None = None
        self._pool: Pool | None = None
        self._sessions: SessionCages | None = None
        self._closed = False
        self._namespaces = True
        self._images: dict[str, tuple[str, frozenset[str], tuple[str, ...]]] = {}
        self._compiled = CompiledModules(state_dir)
        self._snapshots = Snapshots()
        self._broker = Broker()
        self._memory = Memory()
        self.workers: Final = Workers()
        self.workspaces: Final = Workspaces(resources)
        self._latest: dict[tuple[str, ...], CageRecipe] = {}

    def pool(self) -> Pool:
        """The pool on a connected engine, orphans of dead runtimes swept. Raises EngineError or PoolClosed."""
        with self._lock:
            if self._closed:
                raise PoolClosed
            if self._pool is None:
                engine = Engine.connect()
                try:
                    self._sweep(engine)
                except BaseException:
                    engine.close()
                    raise
                self._engine = engine
                self._pool = Pool(engine, self._owner, self._terms, self._on_problem)
                self._sessions = SessionCages(self._pool, self._terms)
            return self._pool

    def _sweep(self, engine: Engine) -> None:
        for container in sweep.sweep(engine, self._state_dir, self._owner):
            self._on_problem(f"removed container {container[:12]}, which a runtime that is gone left behind")

    def take(
        self,
        authorized: AuthorizedCall,
        session: str,
        given_up: GivenUp = lambda: False,
        *,
        internet: bool = False,
    ) -> tuple[LiveCage, bool]:
        """A cage for this call of that session, and whether it replaces one whose variables the session has lost. Who
        has given up while waiting, and says so with `look_again`, leaves the queue. `internet`: the call has portals.

        Raises PoolBusy, PoolClosed, ImageError, ResourceError or EngineError. Where the host cannot give `namespace`
        isolation, this and every later call gets `container`, the next stronger.
        """
        recipe = self.recipe(authorized, internet=internet)
        if recipe.spec.isolation == "session":
            name = authorized.valid.declaration.name
            assert self._sessions is not None
            source = self._tool(name).shipment.digest
            return self._sessions.take(Holder(session=session, tool=name), recipe, source, given_up)
        return self._take(authorized, recipe, given_up), False

    def _take(self, authorized: AuthorizedCall, recipe: CageRecipe, given_up: GivenUp) -> LiveCage:
        try:
            return self.pool().take(recipe, given_up)
        except EngineError as error:
            if recipe.spec.isolation != "namespace" or NO_NAMESPACES not in str(error):
                raise
        self._namespaces = False
        self._on_problem("this host does not give namespace isolation: container is used instead")
        return self.pool().take(self.recipe(authorized, internet=recipe.spec.internet), given_up)

    def look_again(self) -> None:
        """Somebody who may be waiting for a cage has given up."""
        with self._lock:
            pool, sessions = self._pool, self._sessions
        if pool is not None and sessions is not None:
            pool.look_again()
            sessions.look_again()

    def give_back(self, cage: LiveCage) -> None:
        """Takes a cage off a call's hands; also while closing."""
        assert self._pool is not None
        assert self._sessions is not None
        if not self._sessions.give_back(cage):
            self._pool.give_back(cage)

    def end_session(self, session: str) -> None:
        """Ends what the session keeps between its calls."""
        self.workspaces.end(session)
        self._memory.answers.end_session(session)
        with self._lock:
            sessions = self._sessions
        if sessions is not None:
            sessions.end(session)

    def end_session_soon(self, session: str) -> None:
        """The same for a session that nobody holds any more. Safe in a finalizer."""
        self.workspaces.end(session)
        self._memory.answers.end_session_soon(session)
        if self._sessions is not None:
            self._sessions.end_soon(session)

    def recipe(self, authorized: AuthorizedCall, *, internet: bool = False) -> CageRecipe:
        """How the cage of this call is made. May take snapshots. Raises ImageError, ResourceError or EngineError."""
        snapshots = [
            self._snapshot(name)
            for argument, name in sorted(authorized.resources.items())
            if authorized.valid.declaration.resources.get(argument) == "database"
            and self._resources.dialect(name) == "sqlite"
        ]
        tool = self._tool(authorized.valid.declaration.name)
        terms = authorized.sandbox
        if snapshots and authorized.valid.declaration.changes_databases:
            # The host acts on what this cage says: nothing that ran in it before may have a part in that.
            terms = replace(terms, isolation="container")
        recipe = self._recipe(terms, tool, snapshots, internet=internet)
        self._retire_older(authorized, recipe)
        return recipe

    def changing(self, authorized: AuthorizedCall, given_up: GivenUp) -> Changing | None:
        """What makes the call's change of a SQLite database once a cage has worked it out; None for every other call.
        Raises Refused for a database that is only read."""
        return changing(authorized, self._resources, self._snapshots, given_up)

    def tool(self, authorized: AuthorizedCall, recipe: CageRecipe) -> Mapping[str, object]:
        """The payload's part that says which tool to run, with the sources that the cage does not have yet."""
        return _without_known(self._tool(authorized.valid.declaration.name).shipment, recipe)

    def portals(self, authorized: AuthorizedCall, session: str) -> tuple[Opened, ...]:
        """The ways out that this call has. Raises ResourceError, for a secret that is not there too."""
        key = call_key(authorized, session)
        own = self._tool(authorized.valid.declaration.name).declaration.effects
        return open_portals(authorized, self._resources, self._memory, own=own, session=session, key=key)

    def secrets(self, authorized: AuthorizedCall) -> tuple[str, ...]:
        """What the results of this call must not show. Raises ResourceError."""
        return secrets_of(authorized, self._resources)

    def passage(self, opened: tuple[Opened, ...], on_record: OnRecord) -> Passage:
        """What serves the connections through these portals until the call ends. Raises PoolClosed."""
        try:
            return self._broker.passage({item.portal.name: item.way for item in opened}, on_record)
        except RuntimeError:
            raise PoolClosed from None

    def context(
        self, authorized: AuthorizedCall, session: str, opened: tuple[Opened, ...] = ()
    ) -> Mapping[str, object]:
        """What the tool's body may know besides its arguments: resources, what its grant leaves open, limits, the
        addresses in its arguments as the host reads them, a key that the same call has again, where its portals are."""
        sql = authorized.decision.sql
        return {
            "resources": {
                argument: self._told_of_database(name)
                for argument, name in authorized.resources.items()
                if authorized.valid.declaration.resources.get(argument) == "database"
            },
            "sql": None
            if sql is None
            else {
                "tables": None if sql.tables is None else sorted(sql.tables),
                "columns_except": sorted(sql.columns_except),
                "max_rows": sql.max_rows,
                "operations": None if sql.operations is None else sorted(sql.operations),
            },
            "change": told_of_change(authorized),
            "addresses": {name: list(found) for name, found in addresses_of(authorized).items()},
            "key": call_key(authorized, session),
            "portals": {item.portal.name: item.told() for item in opened if item.portal.name != PROXY},
            "proxy": next((item.told() for item in opened if item.portal.name == PROXY), None),
            "session": authorized.sandbox.isolation == "session",
            "limits": {"max_bytes": authorized.output.max_bytes, "wall_s": authorized.sandbox.wall_s},
        }

    def _told_of_database(self, name: str) -> dict[str, str]:
        dialect = self._resources.dialect(name)
        return {"name": name, "kind": dialect, **({"path": f"/data/{name}.sqlite"} if dialect == "sqlite" else {})}

    def warm(self, terms: SandboxTerms, *, internet: bool = False) -> None:
        """Asks for idle cages of these terms, quietly: a call that needs one will say what is wrong."""
        if terms.isolation == "session":
            return
        with contextlib.suppress(EngineError, PoolClosed):
            self.pool().warm(self._recipe(terms, None, [], internet=internet))

    def describe(self, shipment: Shipment) -> Mapping[str, Any]:
        """Imports a stranger's file in a cage and returns what it says of itself: hostile data.

        Raises DeclarationError when it says nothing readable, EngineError, ImageError, PoolBusy or PoolClosed.
        """
        recipe = self._recipe(DESCRIBE, None, [])
        cage = self.pool().take(recipe)
        payload = {
            "action": "describe",
            "tool": _without_known(shipment, recipe),
            "arguments": {},
            "context": {},
        }
        try:
            report = cage.call(CallOrder(payload=payload, wall_s=DESCRIBE.wall_s))
        finally:
            cage.kill()
            self.give_back(cage)
        try:
            answer = json.loads(report.result)
        except (ValueError, RecursionError):
            answer = None
        data = answer.get("data") if isinstance(answer, dict) and answer.get("success") is True else None
        if not isinstance(data, dict):
            said = answer.get("error") if isinstance(answer, dict) else None
            raise DeclarationError(f"it could not be described in a cage: {_why_not(report, said)}")
        return data

    def stats(self) -> Mapping[str, int]:
        """The pool's counts, and how many cages wait for their session's next call; nothing before the first cage."""
        with self._lock:
            pool, sessions = self._pool, self._sessions
        if pool is None or sessions is None:
            return {}
        return {**pool.stats(), "sessions": sessions.count()}

    def close(self) -> None:
        """Ends every cage and connection. Returns when that is done, within a bound."""
        with self._lock:
            self._closed = True
            pool, sessions, engine = self._pool, self._sessions, self._engine
        if sessions is not None:
            sessions.close()
        if pool is not None:
            pool.close()
        self._broker.close()
        self.workers.close()
        if engine is not None:
            engine.close()
        self._snapshots.close()

    def _tool(self, name: str) -> RegisteredTool:
        found = self._registry.get_tool(name) or builtin_tools().get(name)
        if found is None:
            raise ResourceError(f"the tool {name} is no longer registered")
        return found

    def _snapshot(self, name: str) -> Snapshot:
        database = self._resources.database(name)
        if not isinstance(database, SqliteDatabase):
            raise ResourceError(f"the database `{name}` is no file, so there is no snapshot of it")
        return self._snapshots.current(name, database.path, mends=database.access == "rw")

    def _recipe(
        self,
        terms: SandboxTerms,
        tool: RegisteredTool | None,
        snapshots: list[Snapshot],
        *,
        internet: bool = False,
    ) -> CageRecipe:
        image_id, accepted, of_image = self._image(terms.image)
        isolation: Isolation = terms.isolation
        if isolation == "namespace" and not self._namespaces:
            isolation = "container"
        spec = CageSpec(
            image_id=image_id,
            isolation=isolation,
            memory_bytes=terms.memory_bytes,
            cpus=terms.cpus,
            pids=terms.pids,
            tmp_bytes=terms.tmp_bytes,
            runtime=terms.runtime,
            data=tuple(snapshot.file for snapshot in snapshots),
            internet=internet,
        )
        # Calls that were forked from one numpy would share its generator: only for cages that are used once.
        ahead = of_image if isolation == "container" else PRELOAD_OF_IMAGE.get((isolation, terms.image), ())
        warm = self._terms.min_idle > 0 or tool is None
        return CageRecipe(
            spec=spec,
            accepted_ids=accepted,
            seccomp=_seccomp(spec),
            modules=_modules_at_home(isolation) if warm or tool is None else _our_modules([tool]),
            preload=(*PRELOAD[isolation], *ahead) if warm else (),
            data={snapshot.file.name: snapshot.content for snapshot in snapshots},
            compiled=self._compiled,
            lease_s=session_lease_for(terms.wall_s) if isolation == "session" else lease_for(terms.wall_s),
        )

    def _image(self, name: str) -> tuple[str, frozenset[str], tuple[str, ...]]:
        """The image's id, found in images.lock and proven to be in the engine, once per runtime; beside it the other
        forms of the id, and the modules that its warm cages import ahead."""
        with self._lock:
            if name not in self._images:
                self.pool()
                assert self._engine is not None
                lock = ImageLock.load(self._state_dir)
                locked = lock.resolve(name)
                image_id = verify(self._engine, locked)
                self._images[name] = (image_id, frozenset(locked.accepted_ids), lock.recipe(name).preload)
            return self._images[name]

    def _retire_older(self, authorized: AuthorizedCall, recipe: CageRecipe) -> None:
        """Cages with an older snapshot of the same data will not be asked for again."""
        if not recipe.spec.data:
            return
        key = (authorized.role, authorized.valid.declaration.name, *sorted(authorized.resources.values()))
        with self._lock:
            older, self._latest[key] = self._latest.get(key), recipe
        if older is not None and older.spec != recipe.spec:
            self.pool().retire(older)


def call_key(authorized: AuthorizedCall, session: str) -> str:
    """The same when a session makes the same call again, files included; tells nothing of either."""
    parts = (session, authorized.role, authorized.valid.declaration.name, authorized.valid.digest)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


def _why_not(report: CageReport, said: object) -> str:
    """For the operator: what the cage said, or how it ended without saying anything."""
    if said is not None:
        told = repr(str(said)[:500])
        return f"{told}; {_IMPORTS}" if "ImportError" in told or "ModuleNotFoundError" in told else told
    if report.limit == "wall" or report.broken == "host_deadline":
        return f"importing it took longer than {DESCRIBE.wall_s:g} s"
    refusal = classify(report, None, wall_s=DESCRIBE.wall_s) if report.broken is None else None
    return "no answer" if refusal is None else refusal.message


def _seccomp(spec: CageSpec) -> str:
    """The container's own profile. With `namespace` isolation it holds the warden and what prepares a call; the call's
    processes load a narrower one on themselves."""
    if spec.isolation == "namespace":
        return load_profile("namespace").text
    return load_profile("container", internet=spec.internet).text


@functools.cache
def _modules_at_home(isolation: Isolation) -> tuple[str, ...]:
    """Those of every tool of ours whose calls have this isolation by default."""
    return _our_modules([found for found in builtin_tools().values() if found.declaration.isolation == isolation])


def _our_modules(tools: Any) -> tuple[str, ...]:
    """The modules of our own tools, which every cage gets ahead of the call. Nobody else's."""
    names = {name for tool in tools for name in tool.shipment.modules if name.startswith("toolcage.")}
    return tuple(sorted(names - set(BASE_MODULES)))


def _without_known(shipment: Shipment, recipe: CageRecipe) -> dict[str, object]:
    known = {*BASE_MODULES, *recipe.modules}
    payload = shipment.payload()
    payload["modules"] = {name: source for name, source in payload["modules"].items() if name not in known}
    return payload
