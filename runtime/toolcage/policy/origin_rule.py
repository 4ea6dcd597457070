"""The `origin` of an entry: the identifiers of one argument, or the links in its text, must come from such sources.

Judged on what the session's facts say of each identifier (`SessionFacts.origins`), so that a decision needs no texts
and can be replayed. What cannot be read has no origin. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcage.policy.links import links_in
from toolcage.policy.origin import identifiers_in
from toolcage.types import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How an argument's value is asked about: as one value of its kind, or (`links`) for the links in its texts."""

    kind: Kind
    links: bool = False

    def identifiers(self, value: Any) -> tuple[str, ...] | None:
        """The identifiers, normalised; None when the value cannot be read with certainty."""
        return links_in(value) if self.links else identifiers_in(value, self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginRule:
    """The identifiers of one argument must (or, `negated`, must not all) come from the accepted sources.

    A negated rule matches when some identifier has none of the sources, or cannot be read: it stands under `ask` and
    `deny`, where a match is the stricter outcome.
    """

    argument: str
    reading: Reading
    sources: frozenset[str]
    literals: frozenset[str] = field(default_factory=frozenset)
    negated: bool = False

    def holds(self, value: Any, origins: Mapping[str, frozenset[str]]) -> bool:
        """Whether the rule matches this value."""
        return self._accepted(value, origins) is not self.negated

    def _accepted(self, value: Any, origins: Mapping[str, frozenset[str]]) -> bool:
        identifiers = self.reading.identifiers(value)
        if identifiers is None:
            return False
        return all(
            item in self.literals or bool(self.sources & origins.get(item, frozenset())) for item in identifiers
        )
