"""Text that speaks to the model instead of the user: found, scored and explained.

Danger: instructions in a page, a mail or a file that the model follows as if they were the user's. Protects: nothing by
itself. It flags; the boundaries (role, grants, approval, network) must hold when it says nothing, because an ordinary
sentence can be an attack and no wording tells them apart.

The text is read in every spelling that hides words (`spellings`). Each reading, without its layout (`layout`), is
searched for phrasings (`rules`), and its sentences are weighed by a small model (`learned`). Signals count together
only where they stand close to each other: a long page collects single words without meaning anything by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolcage.cleaning.injection import languages, learned, rules, spellings, unseen, wording
from toolcage.cleaning.injection.layout import flowing
from toolcage.cleaning.injection.signals import LONGEST_EXCERPT, SUSPECT_SCORE, Reading, Signal, Suspicion

__all__ = ["SUSPECT_SCORE", "Signal", "Suspicion", "suspect"]

_SHORTEST_PHRASE = 6
_NEAR = 700
# Readings whose sentences were weighed already, or hold so much that was only changed by being read so.
_SAME_SENTENCES = frozenset({"markup", "leet"})
# Readings that ordinary text has too.
_EVERYDAY = frozenset({"plain", "escapes", "markup", "look_alikes", "percent"})
# Readings that leave most lines of ordinary text as they are.
_LINE_BY_LINE = frozenset({"plain", "escapes", "markup", "look_alikes"})
# Readings with the letters of the text's language and with its markup: JSON writes most alphabets as escapes.
_AS_WRITTEN = frozenset({"plain", "escapes"})
_HIDDEN_ON_PURPOSE = 1.25
_GAP = "\n" * (_NEAR + 100)
_NOTHING = Suspicion(score=0.0, signals=())


def suspect(text: str, model: learned.Model | None = None) -> Suspicion:
    """The signals in a text and their score. Never raises, changes nothing; linear in the text.

    `model` stands in for the shipped one, for measuring."""
    if len(text) < _SHORTEST_PHRASE:
        return _NOTHING
    best = _NOTHING
    seen: set[str] = set()
    for whole in spellings.readings(text):
        reading = _news(whole, seen) if whole.name in _LINE_BY_LINE else whole
        flowed = Reading(name=reading.name, text=flowing(reading.text))
        signals = list(rules.search(flowed))
        if reading.name not in _SAME_SENTENCES:
            sentences = wording.sentences(flowed.text)
            if reading.name in _AS_WRITTEN:
                signals += _foreign(sentences)
                signals += unseen.search(reading.text)
            signals += learned.weigh(flowed, model, sentences)
        found = _together(reading.name, signals)
        if found.score > best.score:
            best = found
        if best.suspected:
            break
    return best


def _news(reading: Reading, seen: set[str]) -> Reading:
    """The reading without lines that an earlier one had, but for those so near to a new one that they count with it.

    Signals further apart than `_NEAR` never count together, so nothing is lost but the time for what was read before.
    """
    lines = reading.text.split("\n")
    if not seen:
        seen.update(lines)
        return reading
    kept = bytearray(len(lines))
    for step in (1, -1):
        distance = 2 * _NEAR
        for place in range(len(lines))[::step]:
            distance = 0 if lines[place] not in seen else distance + len(lines[place])
            kept[place] |= distance <= _NEAR
    seen.update(lines)
    # What was left out leaves a gap: neighbours that it parted must not seem to stand together.
    told = [line if keep else _GAP for line, keep in zip(lines, kept, strict=True)]
    joined = "\n".join(line for place, line in enumerate(told) if line is not _GAP or told[place - 1] is not _GAP)
    return Reading(name=reading.name, text=joined)


def _foreign(sentences: list[tuple[int, str]]) -> Iterator[Signal]:
    question = languages.foreign_question(sentences)
    if question is not None:
        yield Signal(
            name="foreign_question", weight=1.0, excerpt=question[1].strip()[:LONGEST_EXCERPT], position=question[0]
        )


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
        best_score *= _HIDDEN_ON_PURPOSE  # nobody hides by accident what reads as an instruction
    return Suspicion(score=round(best_score, 3), signals=tuple(best.values()), spelling=spelling)
