"""The policies in force: one value, replaced as a whole, so that what belongs to one reload stays together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from toolcage.line.judge import closed_role
from toolcage.policy.model import Role
from toolcage.policy.narrow import narrowed
from toolcage.types import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """`roles` decide; `shadow`, if there is one, only says what it would have decided. `generation` counts reloads."""

    roles: Mapping[str, Role]
    shadow: Mapping[str, Role] | None
    generation: int
    sources: frozenset[str] = field(init=False)
    """What some rule asks about as a value's origin: results of other tools need not be remembered."""

    def __post_init__(self) -> None:
        every = [*self.roles.values(), *(self.shadow or {}).values()]
        object.__setattr__(self, "sources", frozenset().union(*(role.origin_sources() for role in every)))

    def role_of(self, lineage: tuple[str, ...]) -> Role:
        """The role of a session, under those that delegated to it; the closed one when any of them is gone."""
        found = [self.roles.get(name) for name in lineage]
        named = [role for role in found if role is not None]
        if len(named) < len(found):
            return closed_role(lineage[-1])
        try:
            return narrowed(named[-1], named[:-1])
        except ValueError:  # a reload made them contradict each other
            return closed_role(lineage[-1])

    def shadow_of(self, role: str) -> Role | None:
        """Who watches over a role: None where nobody does, the closed role where the shadow does not know it."""
        return None if self.shadow is None else self.shadow.get(role) or closed_role(role)

    def digests(self) -> Mapping[str, JSON]:
        """For the audit log."""
        detail: dict[str, JSON] = {"policies": MappingProxyType({r.name: r.digest for r in self.roles.values()})}
        if self.shadow is not None:
            detail["shadow"] = MappingProxyType({role.name: role.digest for role in self.shadow.values()})
        return MappingProxyType(detail)
