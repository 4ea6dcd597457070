"""The words of the detector: what was found, where, and what it weighs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SUSPECT_SCORE: Final = 1.0
LONGEST_EXCERPT: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A text in one spelling. `name`: `plain`, or what was undone (`base64`, `leet` …)."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One phrase that speaks to a model. `excerpt` is from the text and as untrusted as the text; `position` is in the
    reading that it was found in."""

    name: str
    weight: float
    excerpt: str
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """What was found. `score` adds each kind of signal once, of those that stand together."""

    score: float
    signals: tuple[Signal, ...]
    spelling: str = "plain"

    @property
    def suspected(self) -> bool:
        """Whether the score reaches the threshold for the label."""
        return self.score >= SUSPECT_SCORE

    def explain(self) -> str:
        """One line for a person: the score and each signal with its excerpt, printable."""
        parts = [f"{s.name} {s.weight:.2f} {s.excerpt!a}" for s in self.signals]
        return f"{self.score:.2f} ({self.spelling}): " + "; ".join(parts)
