"""Limits as a policy file writes them: how often, how many, how much, in which span. It counts nothing itself.

`rate` is a moving window of one session. `calls`, `bytes` and `seconds` count per session, per hour or day over all
sessions of the role, or over the role's whole life in one runtime (`role`); `bytes` and `seconds` also bound a single
call. What is counted and when is `line/ledger`'s; what a used-up limit means is `decide`'s. Counts are kept in the
process: a restart begins anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from toolcage.quantities import GIB, size_bytes

Measure: TypeAlias = Literal["rate", "calls", "bytes", "seconds"]
Span: TypeAlias = Literal["second", "minute", "hour", "day", "call", "session", "role"]

MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)
SPANS: Final[dict[Measure, tuple[Span, ...]]] = {
    "rate": ("second", "minute", "hour", "day"),
    "calls": ("session", "hour", "day", "role"),
    "bytes": ("call", "session", "hour", "day", "role"),
    "seconds": ("call", "session", "hour", "day", "role"),
}
WINDOW_SECONDS: Final[dict[Span, int]] = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
MOST: Final = 1_000_000
_COUNT: Final = re.compile(r"[1-9][0-9]{0,6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """At most `amount` of a measure in a span. `rule` is where it stands; `role` and `tool` are whose count it is."""

    measure: Measure
    amount: int
    span: Span
    role: str
    tool: str
    rule: str

    @property
    def is_window(self) -> bool:
        """Whether it frees itself as time passes, so that the same call may succeed later."""
        return self.span in WINDOW_SECONDS


def parse_limit(measure: Measure, text: str) -> tuple[int, Span]:
    """Amount and span of `60/minute`, `300/session`, `10MiB/hour`. Raises ValueError, with what to write instead."""
    amount, _, span = text.partition("/")
    spans = SPANS[measure]
    if span not in spans:
        known = " or ".join(spans)
        raise ValueError(f"`{text[:40]}` has no span known for {measure}; write an amount, `/` and {known}")
    if measure == "bytes":
        return size_bytes(amount, low=1, high=1024 * GIB), span
    if not _COUNT.fullmatch(amount) or int(amount) > MOST:
        wanted = f"a whole number from 1 to {MOST}"
        raise ValueError(f"`{text[:40]}` has not {wanted} before the `/`; write one, as in 60/{span}")
    return int(amount), span
