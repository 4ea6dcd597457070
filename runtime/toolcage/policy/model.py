"""A role as the engine uses it: frozen, compiled, every rule with the line it came from.

Only `load` builds these, from files that passed every check. Nothing here reads files or decides; an entry merely
answers whether a call satisfies it, and raises where it cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from toolcage.policy.flows import Flow
from toolcage.policy.limits import Limit
from toolcage.policy.origin_rule import OriginRule, Reading
from toolcage.policy.rules import MAX_ROWS as MAX_ROWS
from toolcage.policy.rules import (
    ArgumentRule,
    HostFactRule,
    SameAsFactRule,
)
from toolcage.policy.rules import FragmentRule as FragmentRule
from toolcage.policy.rules import SqlRule as SqlRule
from toolcage.policy.shown import shown
from toolcage.types import (
    JSON,
    EgressTarget,
    Facts,
    OutputTerms,
    ResourceKind,
    SandboxTerms,
    SessionFacts,
    SqlTerms,
    Status,
    ToolDeclaration,
)
from toolcage.types import (
    Effect as ToolEffect,
)

Effect: TypeAlias = Literal["allow", "ask", "deny"]

NOTHING_KNOWN: Final = SessionFacts()
_INDEX_FROM: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One item of an `allow`, `ask` or `deny` list. It matches when everything that it says holds.

    `text` is the entry as canonical JSON: two entries of one tool say the same exactly when their texts are equal.
    """

    effect: Effect
    rule: str
    arguments: tuple[ArgumentRule, ...] = ()
    same_as: tuple[SameAsFactRule, ...] = ()
    origins: tuple[OriginRule, ...] = ()
    host: tuple[HostFactRule, ...] = ()
    text: str = field(default="{}", compare=False)

    def miss(
        self, arguments: Mapping[str, JSON], facts: Mapping[str, Facts], known: SessionFacts = NOTHING_KNOWN
    ) -> str | None:
        """None if the entry matches, else the first thing that does not. An argument it names must be present."""
        for item in self.arguments:
            if item.argument not in arguments:
                return _missing(item.argument)
            if (why := item.miss(arguments[item.argument], facts.get(item.argument))) is not None:
                return why
        if self.same_as or self.origins or self.host:
            return self._session_miss(arguments, known)
        return None

    def _session_miss(self, arguments: Mapping[str, JSON], known: SessionFacts) -> str | None:
        for same in self.same_as:
            if same.argument not in arguments:
                return _missing(same.argument)
            if not same.holds(arguments[same.argument], known.host):
                return f"The argument `{same.argument}` is not this session's own."
        for origin in self.origins:
            if origin.argument not in arguments:
                return _missing(origin.argument)
            if not origin.holds(arguments[origin.argument], known.origins):
                what = "A link in" if origin.reading.links else "The value of"
                return (
                    f"{what} `{origin.argument}` does not come from where the policy demands"
                    f" ({', '.join(sorted(origin.sources)) or 'a fixed list'}): ask the user to name it."
                )
        if not all(fact.holds(known.host) for fact in self.host):
            return "The policy does not permit this for the present user."
        return None

    def names(self, argument: str) -> bool:
        """Whether the entry says anything about the argument, so that it must be present to match."""
        return any(
            item.argument == argument for group in (self.arguments, self.same_as, self.origins) for item in group
        )

    def sql_terms(self) -> SqlTerms | None:
        """The bounds of the entry's `sql` facets together (the narrowest), for the cage to enforce again."""
        found = [item.terms for item in self.arguments if isinstance(item, SqlRule)]
        return narrowest(found) if found else None


class Entries(tuple[Entry, ...]):
    """Entries in the file's order, with an index over the argument that most of them compare with fixed texts."""

    _argument: str | None
    _always: list[int]
    _by_text: dict[str, list[int]]

    def __new__(cls, items: Iterable[Entry] = ()) -> Entries:
        made = super().__new__(cls, items)
        made._argument, made._always, made._by_text = None, [], {}
        if len(made) >= _INDEX_FROM:
            made._build()
        return made

    def candidates(self, arguments: Mapping[str, JSON]) -> Iterable[Entry]:
        """The entries that may match, in order: all but those whose fixed texts the argument does not equal."""
        if self._argument is None:
            return self
        value = arguments.get(self._argument)
        hits = self._by_text.get(value, ()) if isinstance(value, str) else ()
        positions = sorted([*self._always, *hits]) if hits else self._always
        return [self[position] for position in positions]

    def _build(self) -> None:
        exact = [
            {item.argument: item.exact for item in entry.arguments if isinstance(item, FragmentRule) and item.exact}
            for entry in self
        ]
        counts: dict[str, int] = {}
        for found in exact:
            for argument in found:
                counts[argument] = counts.get(argument, 0) + 1
        if not counts:
            return
        self._argument = max(counts, key=lambda name: counts[name])
        for position, found in enumerate(exact):
            texts = found.get(self._argument)
            if texts is None:
                self._always.append(position)
            for text in texts or ():
                self._by_text.setdefault(text, []).append(position)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What one role may do with one tool. `resources` holds the granted names per argument that names a resource.

    `declaration` is the tool's own, tightened by the grant's `kinds` and `effects`. `stated` are the keys of `sandbox`
    and `output` that the file writes, in its own words, to compare files by. `egress` are the hosts that its cage may
    connect to.
    """

    tool: str
    declaration: ToolDeclaration
    allow: Entries
    ask: Entries
    deny: Entries
    resources: Mapping[str, frozenset[str]]
    sandbox: SandboxTerms
    output: OutputTerms
    rule: str
    line: int
    limits: tuple[Limit, ...] = ()
    accept_weaker: str | None = None
    egress: tuple[EgressTarget, ...] = ()
    stated: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a case says about the session that its call is made in."""

    said: tuple[str, ...] = ()
    seen: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    used: frozenset[ToolEffect] = frozenset()
    facts: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One item of a role file's `tests`."""

    call: str
    args: Mapping[str, Any]
    expect: Status
    code: str | None
    line: int
    situation: Situation = field(default_factory=Situation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One policy file. `source` is the file's name alone; `digest` is the SHA-256 (hex) of its canonical content.

    `deny` holds the file's top-level deny entries by tool. A tool without a grant does not exist for the role.
    `ceilings` are the ancestors (and, for a delegated session, the roles above it): a call must pass every one of
    them too, and the digest covers them.
    """

    name: str
    description: str
    source: str
    digest: str
    grants: Mapping[str, Grant]
    deny: Mapping[str, tuple[Entry, ...]]
    cases: tuple[Case, ...] = ()
    flows: tuple[Flow, ...] = ()
    ceilings: tuple[Role, ...] = ()
    view: Mapping[str, ToolDeclaration] = field(init=False, compare=False, repr=False)
    _origins: Mapping[str, Mapping[str, frozenset[Reading]]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        view = MappingProxyType({name: grant.declaration for name, grant in self.grants.items()})
        object.__setattr__(self, "view", view)
        object.__setattr__(self, "_origins", {name: self._origins_of(name) for name in self.grants})

    def shown(self) -> tuple[ToolDeclaration, ...]:
        """The tools by name as a model may be shown them: each says what the grant's isolation means for its state."""
        return tuple(shown(grant.declaration, grant.sandbox.isolation) for _, grant in sorted(self.grants.items()))

    def resource_names(self) -> frozenset[tuple[ResourceKind, str]]:
        """Every resource that some grant names, to compare with resources.yaml at start."""
        return frozenset(
            (grant.declaration.resources[argument], name)
            for grant in self.grants.values()
            for argument, names in grant.resources.items()
            for name in names
        )

    def limits_of(self, tool: str) -> tuple[Limit, ...]:
        """The limits of a call of the tool: the role's own and those of every ceiling."""
        return tuple(
            limit for role in (self, *self.ceilings) if tool in role.grants for limit in role.grants[tool].limits
        )

    def asked_origins(self, tool: str) -> Mapping[str, frozenset[Reading]]:
        """The arguments of the tool about whose values some rule demands an origin, with how each is read for that."""
        return self._origins.get(tool, {})

    def origin_sources(self) -> frozenset[str]:
        """Every source that some rule of the role or its ceilings accepts: `said`, `tool:NAME`."""
        return frozenset(
            source
            for role in (self, *self.ceilings)
            for tool in role.grants
            for entry in role.entries_of(tool)
            for origin in entry.origins
            for source in origin.sources
        )

    def _origins_of(self, tool: str) -> Mapping[str, frozenset[Reading]]:
        found: dict[str, frozenset[Reading]] = {}
        for role in (self, *self.ceilings):
            for entry in role.entries_of(tool):
                for origin in entry.origins:
                    found[origin.argument] = found.get(origin.argument, frozenset()) | {origin.reading}
        return found

    def entries_of(self, tool: str) -> tuple[Entry, ...]:
        """Every entry of this file that bears on the tool, denials first."""
        grant = self.grants.get(tool)
        own = () if grant is None else (*grant.deny, *grant.ask, *grant.allow)
        return (*self.deny.get(tool, ()), *own)


def sink_arguments(declaration: ToolDeclaration) -> tuple[str, ...]:
    """The arguments that say where something goes: an address, URL or path of a tool that sends, writes or spends."""
    if not declaration.effects & {"sends", "writes", "spends"}:
        return ()
    return tuple(name for name, kind in declaration.kinds.items() if kind in ("address", "url", "path"))


def narrowest(found: list[SqlTerms]) -> SqlTerms:
    """The bounds that hold when all of these hold."""
    named = [terms.tables for terms in found if terms.tables is not None]
    listed = [terms.operations for terms in found if terms.operations is not None]
    written = [terms.writes for terms in found if terms.writes is not None]
    return SqlTerms(
        tables=frozenset.intersection(*named) if named else None,
        columns_except=frozenset().union(*(terms.columns_except for terms in found)),
        max_rows=min(terms.max_rows for terms in found),
        operations=frozenset.intersection(*listed) if listed else None,
        writes=frozenset.intersection(*written) if written else None,
    )


def _missing(argument: str) -> str:
    return f"The argument `{argument}` is missing."


def with_article(kind: str) -> str:
    """A kind of resource as a sentence names one."""
    return f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind.replace('_', ' ')}"
