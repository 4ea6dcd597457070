"""A role as the engine uses it: frozen, compiled, every rule with the line it came from.

Only `load` builds these, from a file that passed every check. Nothing here reads files or decides; an `ArgumentRule`
merely answers whether one argument satisfies it, and raises where it cannot tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import jsonschema_rs

from toolcage.types import JSON, Facts, OutputTerms, ResourceKind, SandboxTerms, SqlTerms, Status, ToolDeclaration, thaw

if TYPE_CHECKING:
    from toolcage.facts.sql import SqlFacts

Effect: TypeAlias = Literal["allow", "ask", "deny"]

MAX_ROWS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentRule:
    """One argument must match a JSON Schema fragment."""

    argument: str
    validator: jsonschema_rs.Validator = field(compare=False)

    def miss(self, value: JSON, facts: Facts | None) -> str | None:
        """None if the argument matches, else what a model may be told about it."""
        if self.validator.is_valid(thaw(value)):
            return None
        return f"The argument `{self.argument}` has a value that the policy does not permit."


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlRule:
    """One argument of kind `sql` must read within bounds. Judged on facts, never on text."""

    argument: str
    terms: SqlTerms

    def miss(self, value: JSON, facts: Facts | None) -> str | None:
        """None if the statement reads within bounds, else what a model may be told. Raises without SQL facts."""
        if facts is None or facts.kind != "sql":
            raise LookupError(f"no SQL facts for the argument {self.argument}")
        read = cast("SqlFacts", facts)
        return self._table_miss(read) or self._column_miss(read)

    def _table_miss(self, read: SqlFacts) -> str | None:
        if self.terms.tables is None:
            return None
        outside = sorted(read.tables - self.terms.tables)
        return f"Tables that are not granted: {_listed(outside)}." if outside else None

    def _column_miss(self, read: SqlFacts) -> str | None:
        for excepted in sorted(self.terms.columns_except):
            table, column = excepted.split(".")
            if table in read.star_tables or (table, "*") in read.columns or (None, "*") in read.columns:
                return f"`*` reads a column that is not granted: name the columns instead, without `{column}`."
            # a bare column that could not be resolved may be the excepted one
            if (table, column) in read.columns or (None, column) in read.columns:
                return f"The column `{column}` is not granted: leave it out, or qualify the one of another table."
        return None


ArgumentRule: TypeAlias = FragmentRule | SqlRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One item of an `allow`, `ask` or `deny` list. It matches when every argument rule does."""

    effect: Effect
    rule: str
    arguments: tuple[ArgumentRule, ...] = ()

    def miss(self, arguments: Mapping[str, JSON], facts: Mapping[str, Facts]) -> str | None:
        """None if the entry matches, else the first thing that does not. An argument it names must be present."""
        for item in self.arguments:
            if item.argument not in arguments:
                return f"The argument `{item.argument}` is missing."
            if (why := item.miss(arguments[item.argument], facts.get(item.argument))) is not None:
                return why
        return None

    def names(self, argument: str) -> bool:
        return any(item.argument == argument for item in self.arguments)

    def sql_terms(self) -> SqlTerms | None:
        """The bounds of the entry's `sql` facets together (the narrowest), for the cage to enforce again."""
        found = [item.terms for item in self.arguments if isinstance(item, SqlRule)]
        return _narrowest(found) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What one role may do with one tool. `resources` holds the granted names per argument that names a resource."""

    tool: str
    declaration: ToolDeclaration
    allow: tuple[Entry, ...]
    ask: tuple[Entry, ...]
    deny: tuple[Entry, ...]
    resources: Mapping[str, frozenset[str]]
    sandbox: SandboxTerms
    output: OutputTerms
    rule: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One item of a role file's `tests`."""

    call: str
    args: Mapping[str, Any]
    expect: Status
    code: str | None
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One policy file. `source` is the file's name alone; `digest` is the SHA-256 (hex) of its canonical content.

    `deny` holds the file's top-level deny entries by tool. A tool without a grant does not exist for the role.
    """

    name: str
    description: str
    source: str
    digest: str
    grants: Mapping[str, Grant]
    deny: Mapping[str, tuple[Entry, ...]]
    cases: tuple[Case, ...] = ()

    def resource_names(self) -> frozenset[tuple[ResourceKind, str]]:
        """Every resource that some grant names, to compare with resources.yaml at start."""
        return frozenset(
            (grant.declaration.resources[argument], name)
            for grant in self.grants.values()
            for argument, names in grant.resources.items()
            for name in names
        )


def sink_arguments(declaration: ToolDeclaration) -> tuple[str, ...]:
    """The arguments that say where something goes: an address, URL or path of a tool that sends, writes or spends."""
    if not declaration.effects & {"sends", "writes", "spends"}:
        return ()
    return tuple(name for name, kind in declaration.kinds.items() if kind in ("address", "url", "path"))


def _narrowest(found: list[SqlTerms]) -> SqlTerms:
    named = [terms.tables for terms in found if terms.tables is not None]
    return SqlTerms(
        tables=frozenset.intersection(*named) if named else None,
        columns_except=frozenset().union(*(terms.columns_except for terms in found)),
        max_rows=min(terms.max_rows for terms in found),
    )


def _listed(names: list[str]) -> str:
    shown = ", ".join(name[:64] for name in names[:8])
    return shown + (", …" if len(names) > 8 else "")
