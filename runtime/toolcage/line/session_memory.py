"""What one conversation knows: the user's words, what tools returned, the effects used, the calls approved for it.

It remembers and answers; it decides nothing. A decision gets the few facts that it depends on as frozen
`SessionFacts`, which the audit keeps, so that the decision can be replayed without this memory. A delegated session
shares the memory of the one above it: nothing is forgotten by handing work on. Bounded: what no longer fits is
forgotten oldest first, which can only make an origin unknown, never known. Thread-safe.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from toolcage.policy.model import Role
from toolcage.policy.origin import KnownText, said_text, scalars, sources_of, tool_text, values_under
from toolcage.types import JSON, CleanOutput, Effect, SessionFacts, freeze, require

MOST_SAID_CHARS: Final = 512 * 1024
MOST_SEEN_CHARS: Final = 4 * 1024 * 1024
MOST_OF_ONE_RESULT: Final = 256 * 1024
MOST_ARGUMENTS: Final = 64 * 1024
MOST_TEXTS: Final = 2000
MOST_APPROVALS: Final = 1000


class SessionMemory:
    """The memory of one conversation and of every session delegated from it."""

    def __init__(self, host: Mapping[str, object] | None = None) -> None:
        facts = freeze(dict(host or {}))
        assert isinstance(facts, Mapping)
        self._host: Final[Mapping[str, JSON]] = facts
        self._lock = threading.Lock()
        self._said: deque[KnownText] = deque()
        self._seen: deque[KnownText] = deque()
        self._effects: set[Effect] = set()
        self._approved: dict[str, str] = {}

    def user_said(self, text: str) -> None:
        """Adds a turn of the user."""
        if not text.strip():
            return
        known = said_text(text[:MOST_SAID_CHARS])
        with self._lock:
            _keep(self._said, known, MOST_SAID_CHARS)

    def used(self, effects: Iterable[Effect]) -> None:
        """A tool with these effects begins to run. They count from now on, whatever comes of it."""
        with self._lock:
            self._effects.update(effects)

    def learned(self, output: CleanOutput, *, fields: Iterable[str] = ()) -> None:
        """What a call returned, as the model sees it. Only an `ok` result is a source. `fields` of its data are sources
        of their own too."""
        require(output, CleanOutput)
        if output.output.refusal is not None:
            return
        valid = output.output.approved.screened.authorized.valid
        tool = valid.declaration.name
        self.saw(tool, [*scalars(output.data), output.stdout], valid.arguments)
        self.saw_fields(tool, output.data, fields, valid.arguments)

    def saw_fields(self, tool: str, data: object, fields: Iterable[str], arguments: Mapping[str, JSON]) -> None:
        """The values of these fields of one `ok` result: who may write one field need not be able to write another."""
        for field in sorted(fields):
            self.saw(f"{tool}#{field}", values_under(data, field), arguments)

    def saw(self, tool: str, texts: Iterable[str], arguments: Mapping[str, JSON]) -> None:
        """The texts of one `ok` result of a call with these arguments. A call with huge arguments is no source: what
        it may not vouch for would have to be kept too."""
        if sum(map(len, scalars(arguments))) > MOST_ARGUMENTS:
            return
        kept, room = [], MOST_OF_ONE_RESULT
        for text in texts:
            if text and len(text) <= room:
                kept.append(text)
                room -= len(text)
        if kept:
            known = tool_text(tool, kept, arguments)
            with self._lock:
                _keep(self._seen, known, MOST_SEEN_CHARS)

    def facts_for(
        self, tool: str, arguments: Mapping[str, JSON], roles: Iterable[Role], spent: frozenset[str] = frozenset()
    ) -> SessionFacts:
        """What a decision of these roles about this call may depend on, and nothing else."""
        wanted = {
            identifier
            for role in roles
            for argument, readings in role.asked_origins(tool).items()
            if argument in arguments
            for reading in readings
            for identifier in reading.identifiers(arguments[argument]) or ()
        }
        with self._lock:
            known, effects = [*self._said, *self._seen] if wanted else [], frozenset(self._effects)
        origins = {identifier: sources_of(identifier, known) for identifier in sorted(wanted)}
        return SessionFacts(origins=MappingProxyType(origins), effects=effects, host=self._host, spent=spent)

    def approve(self, digest: str, approver: str) -> None:
        """Exactly this call stays approved for the rest of the session."""
        with self._lock:
            if len(self._approved) < MOST_APPROVALS:
                self._approved[digest] = approver

    def approved_by(self, digest: str) -> str | None:
        """Who approved exactly this call for the session, if anybody did."""
        with self._lock:
            return self._approved.get(digest)


def _keep(texts: deque[KnownText], new: KnownText, most: int) -> None:
    texts.append(new)
    held = sum(len(item.text) + len(item.given) for item in texts)
    while len(texts) > 1 and (held > most or len(texts) > MOST_TEXTS):
        oldest = texts.popleft()
        held -= len(oldest.text) + len(oldest.given)
