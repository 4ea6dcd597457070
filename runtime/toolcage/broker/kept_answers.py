"""Answers that endpoints gave, for a while, so that the same question is not asked again: one memory for a runtime.

A resource's operator switches it on and bounds it in seconds and bytes. An answer is found again only by who would get
the very same one: the same resource as it is written now, the same role under the same policy, the same session unless
the operator lets a role's sessions share, and a request of which the server would see the very same bytes, its key
included. So no header can change an answer without being part of its place, whatever `Vary` says. Whether and for how
long an answer may be kept is `http_freshness`. Where something is sent to a resource that may change it, all of its
answers are forgotten, and what was asked before that is not kept any more. Monotonic time. Thread-safe.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final

from toolcage.broker.http_freshness import Freshness
from toolcage.broker.http_headers import Headers

MOST_ENTRIES: Final = 1000
OVERHEAD: Final = 1024
"""What an entry costs besides its content, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepTerms:
    """What one resource may keep, for one call. `scope` is who may get it again; `session` whose end forgets it."""

    resource: str
    seconds: int
    max_bytes: int
    scope: Hashable
    session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """One answer as a cage was told it. `made` is the clock's time at which it would have been new."""

    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    made: float
    until: float

    @property
    def size(self) -> int:
        return len(self.body) + sum(len(name) + len(value) for name, value in self.headers) + OVERHEAD


@dataclass(slots=True)
class _Shelf:
    """What one resource has kept, oldest first. `change` counts what may have changed it."""

    entries: OrderedDict[Hashable, tuple[KeptAnswer, str | None]] = field(default_factory=OrderedDict)
    size: int = 0
    change: int = 0

    def drop(self, place: Hashable) -> None:
        answer, _ = self.entries.pop(place)
        self.size -= answer.size


class Place:
    """Where one request's answer may stand, from before it is asked. `asked` is all that the server would see of it."""

    def __init__(self, answers: KeptAnswers, terms: KeepTerms, asked: bytes) -> None:
        self.terms = terms
        self._answers = answers
        self._place = (terms.scope, hashlib.sha256(asked).digest())
        self._change = answers.change_of(terms.resource)

    def find(self) -> KeptAnswer | None:
        """What was answered before and still holds."""
        return self._answers.find(self.terms.resource, self._place)

    def keep(self, headers: Headers, body: bytes, fresh: Freshness) -> None:
        """Keeps an answer, unless something was sent to the resource since it was asked for."""
        now = self._answers.clock()
        answer = KeptAnswer(headers=tuple(headers), body=body, made=now - fresh.age_s, until=now + fresh.left_s)
        self._answers.put(self.terms, self._place, answer, self._change)


class Copy:
    """What of one answer will be kept, unless it grows beyond what its resource may keep. It is kept when its announced
    `length` has come, before its client can know that, or when it is over."""

    def __init__(self, place: Place, fresh: Freshness, headers: Headers, length: int | None) -> None:
        self._place = place
        self._fresh = fresh
        self._headers = headers
        self._length = length
        self._body: bytearray | None = bytearray()

    def add(self, piece: bytes) -> None:
        """More of the body, as the client is told it."""
        if self._body is not None:
            self._body += piece
            if len(self._body) > self._place.terms.max_bytes:
                self._body = None
            elif len(self._body) == self._length:
                self.whole()

    def whole(self) -> None:
        """The answer came to its end."""
        if self._body is not None:
            self._place.keep(self._headers, bytes(self._body), self._fresh)
            self._body = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """One call's way to what its resource has kept."""

    answers: KeptAnswers
    terms: KeepTerms

    def place(self, asked: bytes) -> Place:
        """Where the answer to a request stands of which the server would see `asked`."""
        return Place(self.answers, self.terms, asked)

    def told(self, answer: KeptAnswer) -> Headers:
        """The answer's headers, framed anew, with the age that it has now."""
        kept = [(name, value) for name, value in answer.headers if name not in ("age", "content-length")]
        age_s = max(0, int(self.answers.clock() - answer.made))
        return [*kept, ("age", str(age_s)), ("content-length", str(len(answer.body)))]

    def changed(self) -> None:
        """Something was sent to the resource that may have changed it."""
        self.answers.changed(self.terms.resource)


class KeptAnswers:
    """Everything that is kept, by resource."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lock = threading.RLock()
        self._shelves: dict[str, _Shelf] = {}
        self._ended: deque[str] = deque()

    def change_of(self, resource: str) -> int:
        with self._lock:
            return self._shelf(resource).change

    def find(self, resource: str, place: Hashable) -> KeptAnswer | None:
        with self._lock:
            shelf = self._shelf(resource)
            answer, _ = shelf.entries.get(place, (None, None))
            if answer is not None and answer.until <= self.clock():
                shelf.drop(place)
                return None
            return answer

    def put(self, terms: KeepTerms, place: Hashable, answer: KeptAnswer, change: int) -> None:
        with self._lock:
            shelf = self._shelf(terms.resource)
            if answer.size > terms.max_bytes or shelf.change != change:
                return
            for old in [key for key, (kept, _) in shelf.entries.items() if key == place or kept.until <= self.clock()]:
                shelf.drop(old)
            while shelf.entries and (
                shelf.size + answer.size > terms.max_bytes or len(shelf.entries) >= MOST_ENTRIES
            ):
                shelf.drop(next(iter(shelf.entries)))
            shelf.entries[place] = (answer, terms.session)
            shelf.size += answer.size

    def changed(self, resource: str) -> None:
        """Forgets all that the resource answered, also what is on its way."""
        with self._lock:
            shelf = self._shelf(resource)
            shelf.entries.clear()
            shelf.size = 0
            shelf.change += 1

    def end_session(self, session: str) -> None:
        """Forgets what nobody but this session could have got again."""
        self.end_session_soon(session)
        with self._lock:
            self._forget_ended()

    def end_session_soon(self, session: str) -> None:
        """The same, when next something is looked for. Takes no lock: safe in a finalizer."""
        if self._shelves:  # where nothing is kept, nothing is looked for, and nobody would take it out again
            self._ended.append(session)

    def _forget_ended(self) -> None:
        while self._ended:
            session = self._ended.popleft()
            for shelf in self._shelves.values():
                for place in [key for key, (_, whose) in shelf.entries.items() if whose == session]:
                    shelf.drop(place)

    def _shelf(self, resource: str) -> _Shelf:
        """With the lock held."""
        self._forget_ended()
        return self._shelves.setdefault(resource, _Shelf())
