"""Text that speaks to the model instead of the user: found, scored and explained.

Danger: instructions in a page, a mail or a file that the model follows as if they were the user's. Protects: nothing by
itself. It flags; the boundaries (role, grants, approval, network) must hold when it says nothing, because an ordinary
sentence can be an attack and no wording tells them apart.

The text is read in every spelling that hides words (`spellings`), each reading is searched for phrasings (`rules`), and
its sentences are weighed by a small linear model (`learned`). Signals count together only where they stand close to
each other: a long page collects single words without meaning anything by them.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolcage.cleaning.injection import learned, rules, spellings
from toolcage.cleaning.injection.signals import SUSPECT_SCORE, Signal, Suspicion

__all__ = ["SUSPECT_SCORE", "Signal", "Suspicion", "suspect"]

_SHORTEST_PHRASE = 6
_NEAR = 700
# Readings whose sentences were weighed already, or hold so much that was only changed by being read so.
_SAME_SENTENCES = frozenset({"markup", "leet"})
# Readings that ordinary text has too.
_EVERYDAY = frozenset({"plain", "escapes", "markup", "look_alikes", "percent"})
_NOTHING = Suspicion(score=0.0, signals=())


def suspect(text: str, model: learned.Model | None = None) -> Suspicion:
    """The signals in a text and their score. Never raises, changes nothing; linear in the text.

    `model` stands in for the shipped one, for measuring."""
    if len(text) < _SHORTEST_PHRASE:
        return _NOTHING
    best = _NOTHING
    for reading in spellings.readings(text):
        signals = list(rules.search(reading))
        if reading.name not in _SAME_SENTENCES:
            signals += learned.weigh(reading, model)
        found = _together(reading.name, signals)
        if found.score > best.score:
            best = found
        if best.suspected:
            break
    return best


def _together(spelling: str, signals: Iterable[Signal]) -> Suspicion:
    """The strongest group of signals of different names that stand within `_NEAR` characters."""
    ordered = sorted(signals, key=lambda signal: signal.position)
    best: dict[str, Signal] = {}
    best_score, start = 0.0, 0
    for end, last in enumerate(ordered):
        while last.position - ordered[start].position > _NEAR:
            start += 1
        group: dict[str, Signal] = {}
        for signal in ordered[max(start, end - 40) : end + 1]:
            if signal.name not in group or signal.weight > group[signal.name].weight:
                group[signal.name] = signal
        score = sum(signal.weight for signal in group.values())
        if score > best_score:
            best, best_score = group, score
    if spelling not in _EVERYDAY and best.keys() - {"wording", "encoded"}:
        best_score *= 1.25  # nobody hides by accident what reads as an instruction
    return Suspicion(score=round(best_score, 3), signals=tuple(best.values()), spelling=spelling)
