"""Warm cages. The pool's key is the digest of the whole spec: no cage ever serves another kind of call.

A cage is used once; one with `namespace` isolation comes back to its shelf after a call that ended well. Taking a cage
that is idle never waits behind a creation. What was taken is replaced in the background; a creation that fails is tried
again only after a growing pause. Used cages end by themselves and are removed off the caller's path, a moment after
their call, which would otherwise share the processor with its own cage's removal; `close` waits for that. A cap holds
for running and idle cages together; at the cap, idle cages of other kinds make room, then callers wait in a bounded
queue, then the answer is `busy`; a caller whose call was given up meanwhile leaves the queue. No place is refilled
while somebody waits for one. A cage is lent only at an age at which its lease outlasts the call (`lease_for`).
"""

from __future__ import annotations

import itertools
import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from toolcage.cage import fitness
from toolcage.cage.engine import Engine
from toolcage.cage.live import CageRecipe, LiveCage, Owner
from toolcage.cage.remains import Remains
from toolcage.cage.spec import users_under
from toolcage.errors import EngineError

PING_IDLE_S: Final = 8.0
MAX_AGE_S: Final = 600.0
"""The age from which a cage is lent no more, and how long after its last use a kind of cage is kept ready."""
LEASE_MARGIN_S: Final = 60.0
BACKOFF_S: Final = (0.5, 30.0)
REFILL_DELAY_S: Final = 0.03
REMOVE_DELAY_S: Final = 0.1
REMOVE_AGAIN_S: Final = 5.0
"""How long after what the engine did not remove it is asked again, when nothing else is to be removed meanwhile."""
WORKERS: Final = 2
OnProblem = Callable[[str], None]
_Removable = LiveCage | Remains
GivenUp = Callable[[], bool]
"""Whether nobody wants the cage any more. Asked with a lock held: must not block."""


def lease_for(wall_s: float) -> float:
    """The lease of cages for calls of up to `wall_s`: one that is lent at the last moment still outlives its call."""
    return MAX_AGE_S + max(240.0, wall_s) + LEASE_MARGIN_S


class PoolBusy(Exception):
    """Every cage is taken and the queue is full, or the wait was too long."""


class PoolClosed(Exception):
    """The pool is shut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTerms:
    """`min_idle` cages of each kind in use are kept ready (0 = no warm pool), and as many more as lately ran at once;
    `max_cages` bounds all; `max_waiting`
    callers may wait `max_wait_s` seconds."""

    min_idle: int = 2
    max_cages: int = 16
    max_waiting: int = 64
    max_wait_s: float = 30.0


ONE_SHOT: Final = PoolTerms(min_idle=0)
"""For a program that makes one call: no cage is made ahead."""


@dataclass(slots=True, kw_only=True)
class _Shelf:
    """The cages of one spec."""

    recipe: CageRecipe
    idle: deque[LiveCage] = field(default_factory=deque)
    coming: int = 0
    wanted: int = 0
    failures: int = 0
    not_before: float = 0.0
    last_used: float = 0.0
    retired: bool = False
    running: int = 0
    peak: int = 0
    """The most that ran at once, forgotten by one at each look of `_keep`."""

    @property
    def short(self) -> bool:
        """Whether fewer are ready, or soon will be, than wanted. One that serves many calls comes back."""
        coming_back = self.running if self.recipe.spec.isolation == "namespace" else 0
        return len(self.idle) + self.coming + coming_back < self.wanted

    @property
    def stale(self) -> bool:
        return self.wanted == 0 and self.coming == 0 and self.running == 0 and not self.idle


class Pool:
    """Thread-safe. `take` blocks; use it in a worker thread."""

    def __init__(self, engine: Engine, owner: Owner, terms: PoolTerms, on_problem: OnProblem) -> None:
        self._engine = engine
        self._owner = owner
        self._terms = terms
        self._on_problem = on_problem
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        """Callers in the queue, and `close`."""
        self._lack = threading.Condition(lock)
        """The refill workers. Of their own: a call in a cage that comes back is none of their business."""
        self._end = threading.Condition(lock)
        """Threads that wait for a time to pass, or for the end."""
        self._shelves: dict[str, _Shelf] = {}
        self._running: set[LiveCage] = set()
        self._making = 0
        self._waiting = 0
        self._closed = False
        self._ended = False
        self._counts = {"created": 0, "removed": 0, "failed": 0}
        self._uids = itertools.count(random.SystemRandom().randrange(1 << 30))
        self._doomed: queue.SimpleQueue[tuple[_Removable, float] | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._remove_doomed, daemon=True, name="toolcage-remove")]
        if terms.min_idle:
            self._threads += [
                threading.Thread(target=self._refill, daemon=True, name=f"toolcage-refill-{number}")
                for number in range(WORKERS)
            ]
            self._threads.append(threading.Thread(target=self._keep, daemon=True, name="toolcage-keep"))
        for thread in self._threads:
            thread.start()

    def warm(self, recipe: CageRecipe) -> None:
        """Asks for idle cages of this kind, in the background."""
        with self._changed:
            shelf = self._shelf(recipe)
            shelf.wanted = self._terms.min_idle
            shelf.last_used = time.monotonic()
            self._stir()

    def take(self, recipe: CageRecipe, given_up: GivenUp = lambda: False) -> LiveCage:
        """A fresh cage: an idle one, else a new one. Raises PoolBusy, also for who has given up (see `look_again`),
        PoolClosed or EngineError."""
        cage = self._take_idle_or_place(recipe, given_up)
        if cage is not None:
            return cage
        try:
            cage = self._create(recipe)
        except BaseException:
            with self._changed:
                self._shelves[recipe.spec.digest].coming -= 1
                self._stir()
            raise
        with self._changed:
            shelf = self._shelves[recipe.spec.digest]
            shelf.coming -= 1
            closed = self._closed
            self._lend(shelf, cage)
        if closed:
            self.give_back(cage)
            raise PoolClosed
        return cage

    def look_again(self) -> None:
        """Somebody who may be waiting has given up."""
        with self._changed:
            self._changed.notify_all()

    def make(self, recipe: CageRecipe, given_up: GivenUp = lambda: False) -> LiveCage:
        """A new cage that was on no shelf: its taker keeps it, and gives it back to have it removed. It counts like one
        that runs, and ends with the pool. Raises PoolBusy, PoolClosed or EngineError."""
        end = time.monotonic() + self._terms.max_wait_s
        with self._changed:
            while not self._closed and self._total() >= self._terms.max_cages and not self._evict(None):
                self._queue_up(end, given_up)
            if self._closed:
                raise PoolClosed
            self._making += 1
        try:
            cage = self._create(recipe)
        except BaseException:
            self._made(None)
            raise
        if not self._made(cage):
            self.give_back(cage)
            raise PoolClosed
        return cage

    def _made(self, cage: LiveCage | None) -> bool:
        """Whether the pool is still open now that a creation has ended."""
        with self._changed:
            self._making -= 1
            if cage is not None:
                self._running.add(cage)
            self._stir()
            return not self._closed

    def _take_idle_or_place(self, recipe: CageRecipe, given_up: GivenUp) -> LiveCage | None:
        """An idle cage, or None once there is room to create one (then counted as coming)."""
        end = time.monotonic() + self._terms.max_wait_s
        with self._changed:
            while True:
                if self._closed:
                    raise PoolClosed
                shelf = self._shelf(recipe)
                shelf.last_used, shelf.retired = time.monotonic(), False
                self._size(shelf)
                self._drop_unfit(shelf, recipe)
                if shelf.idle:
                    cage = shelf.idle.popleft()
                    self._lend(shelf, cage)
                    if shelf.idle:  # a creation costs the engine a quarter of a second: let the call have it first
                        shelf.not_before = max(shelf.not_before, time.monotonic() + REFILL_DELAY_S)
                    self._stir()
                    return cage
                if self._total() < self._terms.max_cages or self._evict(shelf):
                    shelf.coming += 1
                    return None
                self._queue_up(end, given_up)

    def _queue_up(self, end: float, given_up: GivenUp) -> None:
        left = end - time.monotonic()
        if left <= 0 or given_up() or self._waiting >= self._terms.max_waiting:
            raise PoolBusy
        self._waiting += 1
        try:
            self._changed.wait(left)
        finally:
            self._waiting -= 1

    def give_back(self, cage: LiveCage) -> None:
        """Takes a used cage off the caller's hands. It is removed in the background, unless it is one that may serve
        another call of its kind."""
        with self._changed:
            self._running.discard(cage)
            shelf = self._shelves.get(cage.recipe.spec.digest)
            if shelf is not None:
                shelf.running = max(0, shelf.running - 1)
            kept = cage.reusable and _is_young(cage) and shelf is not None and not shelf.retired and not self._closed
            if kept and shelf is not None:
                shelf.idle.appendleft(cage)
            self._stir()
        if not kept:
            self._doomed.put((cage, time.monotonic() + REMOVE_DELAY_S))

    def retire(self, recipe: CageRecipe) -> None:
        """This kind will not be asked for again (its data changed): its idle cages go."""
        with self._changed:
            shelf = self._shelves.get(recipe.spec.digest)
            if shelf is None:
                return
            shelf.wanted, shelf.retired = 0, True
            idle, shelf.idle = list(shelf.idle), deque()
        for cage in idle:
            self._doom(cage)

    def stats(self) -> Mapping[str, int]:
        """Counts: idle, running, waiting, coming, and created, removed, failed since the start."""
        with self._changed:
            shelves = self._shelves.values()
            return {
                "idle": sum(len(shelf.idle) for shelf in shelves),
                "coming": self._total_coming(),
                "running": len(self._running),
                "waiting": self._waiting,
                **self._counts,
            }

    def close(self, timeout_s: float = 30.0) -> None:
        """Kills what runs, removes every cage of this pool, and returns when that is done or `timeout_s` passed."""
        with self._changed:
            self._closed = True
            idle = [cage for shelf in self._shelves.values() for cage in shelf.idle]
            for shelf in self._shelves.values():
                shelf.idle.clear()
            running = list(self._running)
            for condition in (self._changed, self._lack, self._end):
                condition.notify_all()
        end = time.monotonic() + timeout_s
        for cage in running:  # beside each other: an engine that has stopped answering would keep each waiting
            threading.Thread(target=cage.kill, daemon=True, name="toolcage-kill").start()
        with self._changed:
            while (self._running or self._total_coming()) and time.monotonic() < end:
                self._changed.wait(0.2)
        with self._changed:
            for cage in (*idle, *self._running):
                self._doom(cage)
            self._doomed.put(None)
            self._ended = True
        for thread in self._threads:
            thread.join(max(0.1, end - time.monotonic()))

    # inside, with the lock held

    def _stir(self) -> None:
        """Wakes those for whom a change of the counts may matter."""
        self._changed.notify_all()
        if self._short():
            self._lack.notify_all()

    def _shelf(self, recipe: CageRecipe) -> _Shelf:
        return self._shelves.setdefault(recipe.spec.digest, _Shelf(recipe=recipe))

    def _lend(self, shelf: _Shelf, cage: LiveCage) -> None:
        self._running.add(cage)
        shelf.running += 1
        shelf.peak = max(shelf.peak, shelf.running)
        self._size(shelf)

    def _size(self, shelf: _Shelf) -> None:
        """As many idle cages as lately ran at once: the next burst is served warm too."""
        if self._terms.min_idle:
            shelf.wanted = min(self._terms.max_cages, max(self._terms.min_idle, shelf.peak))

    def _total(self) -> int:
        return len(self._running) + self._total_coming() + sum(len(shelf.idle) for shelf in self._shelves.values())

    def _total_coming(self) -> int:
        return self._making + sum(shelf.coming for shelf in self._shelves.values())

    def _drop_unfit(self, shelf: _Shelf, recipe: CageRecipe) -> None:
        """A cage that died on the shelf (the engine was restarted, somebody killed it), or whose lease may end before
        the call, is nobody's call to lose."""
        if shelf.recipe.lease_s < recipe.lease_s:
            shelf.recipe = recipe
        for cage in list(shelf.idle):
            if not (_is_young(cage) and cage.recipe.lease_s >= recipe.lease_s and cage.looks_alive()):
                shelf.idle.remove(cage)
                self._doom(cage)

    def _evict(self, wanting: _Shelf | None) -> bool:
        """Makes room by giving up the idle cage of the kind that was used longest ago."""
        others = [shelf for shelf in self._shelves.values() if shelf.idle and shelf is not wanting]
        if not others:
            return False
        self._doom(min(others, key=lambda shelf: shelf.last_used).idle.popleft())
        return True

    def _short(self) -> bool:
        """Whether some kind has fewer idle cages than wanted, to be looked at again soon."""
        return any(shelf.short for shelf in self._shelves.values())

    def _lacking(self) -> _Shelf | None:
        """The kind to make a cage of ahead, now. A place that somebody waits for is not refilled."""
        if self._waiting or self._total() >= self._terms.max_cages:
            return None
        now = time.monotonic()
        lacking = [shelf for shelf in self._shelves.values() if shelf.short and shelf.not_before <= now]
        return max(lacking, key=lambda shelf: shelf.last_used, default=None)

    # threads

    def _create(self, recipe: CageRecipe) -> LiveCage:
        told = self._engine.recent_info()
        fitness.require(told, recipe.spec)
        users = users_under(told)
        uid = users[next(self._uids) % len(users)]
        cage = LiveCage.create(self._engine, recipe, uid=uid, owner=self._owner, on_remains=self._doom)
        with self._changed:
            self._counts["created"] += 1
        return cage

    def _refill(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (shelf := self._lacking()) is None:
                    self._lack.wait(REFILL_DELAY_S if self._short() else 1.0)
                if self._closed:
                    return
                assert shelf is not None
                shelf.coming += 1
            self._add_one(shelf)

    def _add_one(self, shelf: _Shelf) -> None:
        cage = None
        try:
            cage = self._create(shelf.recipe)
        except EngineError as error:
            self._on_problem(str(error))
        with self._changed:
            shelf.coming -= 1
            if cage is None:
                self._counts["failed"] += 1
                shelf.failures += 1
                pause, longest = BACKOFF_S
                shelf.not_before = time.monotonic() + min(longest, pause * 2**shelf.failures)
            else:
                shelf.failures = 0
                if not self._closed:
                    shelf.idle.append(cage)
                    cage = None
            self._stir()
        if cage is not None:
            self._doom(cage)

    def _keep(self) -> None:
        """Pings idle cages, which keeps them alive; gives up the dead, the old and those of kinds no longer used."""
        while True:
            with self._changed:
                if self._end.wait_for(lambda: self._closed, PING_IDLE_S):
                    return
                for shelf in self._shelves.values():
                    shelf.peak = max(shelf.running, shelf.peak - 1)
                    if shelf.wanted:
                        self._size(shelf)
                checking = [(shelf, cage) for shelf in self._shelves.values() for cage in shelf.idle]
            for shelf, cage in checking:
                self._check_idle(shelf, cage)
            with self._changed:
                for key in [key for key, shelf in self._shelves.items() if shelf.stale]:
                    del self._shelves[key]

    def _check_idle(self, shelf: _Shelf, cage: LiveCage) -> None:
        """One cage is off the shelf only for as long as its own ping takes."""
        with self._changed:
            if cage not in shelf.idle:
                return
            shelf.idle.remove(cage)
            shelf.coming += 1
        now = time.monotonic()
        fit = _is_young(cage) and now - shelf.last_used < MAX_AGE_S and cage.ping()
        with self._changed:
            shelf.coming -= 1
            keep = fit and not self._closed and len(shelf.idle) < shelf.wanted
            if keep:
                shelf.idle.append(cage)
            if now - shelf.last_used >= MAX_AGE_S:
                shelf.wanted = 0
            self._stir()
        if not keep:
            self._doom(cage)

    def _remove_doomed(self) -> None:
        """Removes what is done with. What the engine did not remove now is tried again with every later one, and after
        a while also without one."""
        kept: list[_Removable] = []
        while (doomed := self._next_doomed(again=bool(kept))) is not None:
            kept = [item for item in (*kept, *doomed) if not self._removed(item)]
        for item in kept:
            self._removed(item)

    def _next_doomed(self, *, again: bool) -> tuple[_Removable, ...] | None:
        """The next to remove, once it is ripe; nothing when it is time to try `again`, None at the end."""
        try:
            doomed = self._doomed.get(timeout=REMOVE_AGAIN_S if again else None)
        except queue.Empty:
            return ()
        if doomed is None:
            return None
        item, ripe = doomed
        with self._changed:
            self._end.wait_for(lambda: self._closed, max(0.0, ripe - time.monotonic()))
        return (item,)

    def _doom(self, item: _Removable) -> None:
        self._doomed.put((item, time.monotonic()))

    def _removed(self, item: _Removable) -> bool:
        try:
            gone = item.destroy()
        except EngineError as error:
            self._on_problem(f"a used cage was not removed: {error}")
            return False
        if isinstance(item, LiveCage):  # what never came up was not counted as created
            with self._changed:
                self._counts["removed"] += 1
        return gone


def _is_young(cage: LiveCage) -> bool:
    return time.monotonic() - cage.born < MAX_AGE_S
