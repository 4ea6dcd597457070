"""Rules across the calls of one session: what a session has already read decides what it may still send.

A flow names an effect of the tool that is called and the effects that the session must have used before it applies:
`{ask: sends, after: [reads_untrusted, reads_private]}`. It only tightens: `deny` denies, `ask` turns a permission into
a question, and neither ever permits. Effects count from the moment a tool runs, whatever its result. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from toolcage.types import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """`outcome` for a tool with `effect` once the session has used tools with every effect in `after`."""

    outcome: Literal["ask", "deny"]
    effect: Effect
    after: frozenset[Effect]
    rule: str

    def applies(self, effects: frozenset[Effect], used: frozenset[Effect]) -> bool:
        return self.effect in effects and self.after <= used


def first_flow(
    flows: Iterable[Flow], outcome: Literal["ask", "deny"], effects: frozenset[Effect], used: frozenset[Effect]
) -> Flow | None:
    """The first flow of that outcome that applies to a tool with these effects."""
    return next((flow for flow in flows if flow.outcome == outcome and flow.applies(effects, used)), None)
