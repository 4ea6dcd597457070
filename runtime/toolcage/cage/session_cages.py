"""The cages with `session` isolation: which session holds which, for how long, and whose turn it is.

One cage for each session and tool, made at its first call, never shared, never on a pool's shelf. It is ended with its
session, when it was idle or alive for too long, when its spec or its tool's source changes, and after whatever makes
`LiveCage` not reusable; the next call then gets a fresh one and is told. Calls of one session and tool take turns in
the order in which they came. Sessions hold at most half of the pool's places: at that bound a new one ends the cage
that was idle longest, so that forgotten sessions cannot keep every other call out.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final

from toolcage.cage.live import CageRecipe, LiveCage
from toolcage.cage.pool import LEASE_MARGIN_S, PING_IDLE_S, GivenUp, Pool, PoolBusy, PoolClosed, PoolTerms

IDLE_S: Final = 900.0
AGE_S: Final = 4 * 3600.0


def session_lease_for(wall_s: float) -> float:
    """The lease of such a cage for calls of up to `wall_s`: it outlives the age at which it is ended, and a call."""
    return AGE_S + max(1800.0, wall_s) + LEASE_MARGIN_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who a cage is for: a session's id and a tool's name."""

    session: str
    tool: str


@dataclass(slots=True, kw_only=True)
class _Slot:
    """What one session has for one tool. `turns` are the calls that hold or await the cage, first come first."""

    cage: LiveCage | None = None
    source: Hashable = None
    born: float = 0.0
    used: float = 0.0
    lost: bool = False
    ended: bool = False
    turns: deque[object] = field(default_factory=deque)


class SessionCages:
    """Thread-safe. `take` blocks; use it in a worker thread."""

    def __init__(self, pool: Pool, terms: PoolTerms, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._terms = terms
        self._clock = clock
        self._most = max(1, terms.max_cages // 2)
        self._changed = threading.Condition()
        self._slots: dict[Holder, _Slot] = {}
        self._busy: dict[LiveCage, _Slot] = {}
        self._closed = False
        self._ends: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._keeper = threading.Thread(target=self._keep, daemon=True, name="toolcage-sessions")
        self._keeper.start()

    def take(
        self, holder: Holder, recipe: CageRecipe, source: Hashable, given_up: GivenUp = lambda: False
    ) -> tuple[LiveCage, bool]:
        """The session's cage for this tool, and whether it is a fresh one in the place of one that was lost.

        Waits for its turn. `source` tells the tool's source: another one gets another cage. Raises PoolBusy, also for
        who has given up (see `look_again`), PoolClosed or EngineError.
        """
        turn = object()
        slot = self._await_turn(holder, turn, given_up)
        try:
            cage = self._fitting(slot, recipe, source)
            lost = cage is None and slot.lost
            if cage is None:
                self._make_room(slot)
                cage = self._pool.make(recipe, given_up)
            self._hold(slot, cage, source)
        except BaseException:
            self._pass_on(slot, turn)
            raise
        return cage, lost

    def give_back(self, cage: LiveCage) -> bool:
        """Whether `cage` is one of these. It stays with its session when it may serve another call, else it is gone."""
        with self._changed:
            slot = self._busy.pop(cage, None)
            if slot is None:
                return False
            slot.used = self._clock()
            kept = cage.reusable and not slot.ended and not self._closed
            slot.cage, slot.lost = (cage, False) if kept else (None, True)
            slot.turns.popleft()
            self._changed.notify_all()
        if not kept:
            self._pool.give_back(cage)
        return True

    def look_again(self) -> None:
        """Somebody who may be waiting for a turn has given up."""
        with self._changed:
            self._changed.notify_all()

    def end(self, session: str) -> None:
        """Ends the cages of a session: idle ones now, one that runs a call with that call."""
        with self._changed:
            ended = {holder: slot for holder, slot in self._slots.items() if holder.session == session}
            idle = [self._emptied(slot) for slot in ended.values()]
            running = [cage for cage, slot in self._busy.items() if any(slot is other for other in ended.values())]
            for holder, slot in ended.items():
                slot.ended = True
                del self._slots[holder]
            self._changed.notify_all()
        for cage in running:
            cage.kill()
        self._dispose(idle)

    def end_soon(self, session: str) -> None:
        """The same from a finalizer, which may run anywhere: takes no lock, the keeper does it."""
        self._ends.put(session)

    def look_after(self) -> None:
        """Ends what was idle or alive for too long, and pings the rest, which keeps it alive."""
        with self._changed:
            slots = [slot for slot in self._slots.values() if slot.cage is not None and not slot.turns]
        for slot in slots:
            self._look_at(slot)

    def count(self) -> int:
        """How many sessions' cages wait for their next call."""
        with self._changed:
            return sum(slot.cage is not None for slot in self._slots.values())

    def close(self) -> None:
        """Ends every cage and every wait. Calls that run are the pool's to end."""
        with self._changed:
            self._closed = True
            idle = [self._emptied(slot) for slot in self._slots.values() if not slot.turns]
            self._slots.clear()
            self._changed.notify_all()
        self._ends.put(None)
        self._dispose(idle)
        self._keeper.join(PING_IDLE_S)

    # taking turns

    def _await_turn(self, holder: Holder, turn: object, given_up: GivenUp) -> _Slot:
        end = time.monotonic() + self._terms.max_wait_s
        with self._changed:
            if self._closed:
                raise PoolClosed
            slot = self._slots.setdefault(holder, _Slot())
            if len(slot.turns) > self._terms.max_waiting:
                raise PoolBusy
            slot.turns.append(turn)
            while slot.turns[0] is not turn:
                left = end - time.monotonic()
                if self._closed or slot.ended or left <= 0 or given_up():
                    slot.turns.remove(turn)
                    raise PoolClosed if self._closed or slot.ended else PoolBusy
                self._changed.wait(left)
            return slot

    def _pass_on(self, slot: _Slot, turn: object) -> None:
        with self._changed:
            slot.turns.remove(turn)
            self._changed.notify_all()

    def _hold(self, slot: _Slot, cage: LiveCage, source: Hashable) -> None:
        with self._changed:
            if not self._closed and not slot.ended:
                if slot.cage is not cage:
                    slot.born, slot.source = self._clock(), source
                slot.cage = None
                self._busy[cage] = slot
                return
        self._pool.give_back(cage)
        raise PoolClosed

    # one slot's cage

    def _fitting(self, slot: _Slot, recipe: CageRecipe, source: Hashable) -> LiveCage | None:
        """The slot's cage if it can serve this call; one that cannot is ended."""
        with self._changed:
            cage = slot.cage
            if cage is None:
                return None
            same = cage.recipe.spec == recipe.spec and slot.source == source
            same = same and cage.recipe.lease_s >= recipe.lease_s
            if same and not self._expired(slot) and cage.looks_alive():
                return cage
            self._emptied(slot)
        self._dispose([cage])
        return None

    def _expired(self, slot: _Slot) -> bool:
        now = self._clock()
        return now - slot.born >= AGE_S or now - slot.used >= IDLE_S

    def _emptied(self, slot: _Slot) -> LiveCage | None:
        """Takes the cage out of the slot. Under the lock."""
        cage, slot.cage = slot.cage, None
        slot.lost = slot.lost or cage is not None
        return cage

    def _make_room(self, wanting: _Slot) -> None:
        with self._changed:
            idle = [slot for slot in self._slots.values() if slot.cage is not None and not slot.turns]
            full = len(idle) + len(self._busy) >= self._most
            cage = self._emptied(min(idle, key=lambda slot: slot.used)) if full and idle else None
        self._dispose([cage])

    def _look_at(self, slot: _Slot) -> None:
        turn = object()
        with self._changed:
            cage = slot.cage
            if cage is None or slot.turns:
                return
            slot.turns.append(turn)
        fit = not self._expired(slot) and cage.ping()
        with self._changed:
            slot.turns.remove(turn)
            gone = None if fit and not self._closed and not slot.ended else self._emptied(slot)
            self._changed.notify_all()
        self._dispose([gone])

    def _dispose(self, cages: list[LiveCage | None]) -> None:
        for cage in cages:
            if cage is not None:
                self._pool.give_back(cage)

    def _keep(self) -> None:
        due = time.monotonic() + PING_IDLE_S
        while True:
            try:
                session = self._ends.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                self.look_after()
                due = time.monotonic() + PING_IDLE_S
                continue
            if session is None:
                return
            self.end(session)
