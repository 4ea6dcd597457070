"""What an entry may demand of one argument, of a host fact, or of a value's origin: each rule answers for one value.

Pure and compiled: `load` builds these from a file that passed every check. A rule that cannot tell (facts of the wrong
kind, a host fact that nobody gave under `deny`) raises, and the decision is then a deny. Messages go to the model: the
kind of miss and the repair, never the rule's own values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import jsonschema_rs

from toolcage.policy.places import AddressBounds, HostBounds, PathBounds, address_miss, host_miss, path_miss
from toolcage.types import JSON, Facts, SqlTerms, thaw

if TYPE_CHECKING:
    from toolcage.facts.sql import SqlFacts

MAX_ROWS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentRule:
    """One argument must match a JSON Schema fragment. `exact` holds the texts that can, where they can be listed."""

    argument: str
    validator: jsonschema_rs.Validator = field(compare=False)
    exact: frozenset[str] | None = None

    def miss(self, value: JSON, facts: Facts | None) -> str | None:
        """None if the argument matches, else what a model may be told about it."""
        if self.validator.is_valid(value if isinstance(value, str) else thaw(value)):
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
        return (
            self._operation_miss(read) or self._table_miss(read) or self._column_miss(read) or self._write_miss(read)
        )

    def _operation_miss(self, read: SqlFacts) -> str | None:
        if self.terms.operations is None or read.root in self.terms.operations:
            return None
        return f"This kind of change is not granted: {read.root}."

    def _table_miss(self, read: SqlFacts) -> str | None:
        if self.terms.tables is None or read.tables <= self.terms.tables:
            return None
        return f"Tables that are not granted: {listed(sorted(read.tables - self.terms.tables))}."

    def _column_miss(self, read: SqlFacts) -> str | None:
        for excepted in sorted(self.terms.columns_except):
            table, _, column = excepted.rpartition(".")
            if table in read.star_tables or (table, "*") in read.columns or (None, "*") in read.columns:
                return f"`*` reads a column that is not granted: name the columns instead, without `{column}`."
            # a bare column that could not be resolved may be the excepted one
            if (table, column) in read.columns or (None, column) in read.columns:
                return f"The column `{column}` is not granted: leave it out, or qualify the one of another table."
        return None

    def _write_miss(self, read: SqlFacts) -> str | None:
        if self.terms.writes is None:
            return None
        for table, column in sorted(read.written):
            if column == "*":
                told = "deletes rows" if read.root == "delete" else "writes whole rows"
                return f"The statement {told}, and only some columns may be written: change those, by name."
            if f"{table}.{column}" not in self.terms.writes:
                return f"The column `{column}` may not be written: leave it out."
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsRule:
    """Every path of one argument must lie within the bounds."""

    argument: str
    bounds: PathBounds

    def miss(self, value: JSON, facts: Facts | None) -> str | None:
        return path_miss(self.argument, self.bounds, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsRule:
    """Every URL of one argument must lead to a host within the bounds."""

    argument: str
    bounds: HostBounds

    def miss(self, value: JSON, facts: Facts | None) -> str | None:
        return host_miss(self.argument, self.bounds, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressesRule:
    """Every mail address of one argument must be within the bounds."""

    argument: str
    bounds: AddressBounds

    def miss(self, value: JSON, facts: Facts | None) -> str | None:
        return address_miss(self.argument, self.bounds, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFactRule:
    """A fact that the host vouches for must match a fragment: `facts: {tenant: {const: acme}}`."""

    name: str
    validator: jsonschema_rs.Validator = field(compare=False)
    under_deny: bool = False

    def holds(self, host: Mapping[str, JSON]) -> bool:
        """Whether the fact matches. An absent fact matches no allow and no ask; under deny it raises LookupError."""
        if self.name not in host:
            if self.under_deny:
                raise LookupError(f"the host gave no fact {self.name}")
            return False
        return bool(self.validator.is_valid(thaw(host[self.name])))


@dataclass(frozen=True, slots=True, kw_only=True)
class SameAsFactRule:
    """One argument must equal a fact that the host vouches for: `tenant: {fact: tenant}`."""

    argument: str
    name: str
    under_deny: bool = False

    def holds(self, value: JSON, host: Mapping[str, JSON]) -> bool:
        """Whether they are the same JSON value. An absent fact: as in `HostFactRule`."""
        if self.name not in host:
            if self.under_deny:
                raise LookupError(f"the host gave no fact {self.name}")
            return False
        return _same(thaw(value), thaw(host[self.name]))


ArgumentRule: TypeAlias = FragmentRule | SqlRule | PathsRule | HostsRule | AddressesRule


def listed(names: list[str]) -> str:
    """A few names, each cut to a readable length."""
    shown = ", ".join(name[:64] for name in names[:8])
    return shown + (", …" if len(names) > 8 else "")


def _same(first: Any, second: Any) -> bool:
    return type(first) is type(second) and first == second
