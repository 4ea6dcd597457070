"""A small model over words and word pairs of a few sentences: what rules have no phrase for.

Trained by `scripts/train_injection.py`, which writes `weights.json` and `hidden.json` beside this file and says how it
does on sources that it has not seen. Two stages: a logistic regression, whose weights have their word and can be read
by a person, says which runs of sentences are worth a closer look, and a layer of hidden units looks (`hidden`). Both
need nothing but a dictionary and cannot be made to run long. They add a signal; together with the rules it decides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from itertools import repeat
from typing import Final

from toolcage.cleaning.injection.bound import Positives, worth_weighing
from toolcage.cleaning.injection.hidden import Hidden
from toolcage.cleaning.injection.signals import LONGEST_EXCERPT, Reading, Signal
from toolcage.cleaning.injection.wording import (
    ASKING,
    LINK,
    MAIL,
    TOKEN_OR_MARK,
    WITHOUT_SPACES,
    features,
    scale,
    tokens,
    weighed,
)

WINDOW: Final = 3
SHARE_OF_UNITS: Final = 0.4
"""What the hidden units count for in the score; the weights count for the rest."""
_FEW: Final = 8
_ROUNDING: Final = 0.01


def weigh(
    reading: Reading,
    model: Model | None = None,
    found: list[tuple[int, str]] | None = None,
) -> Iterator[Signal]:
    """At most one signal: the run of up to WINDOW sentences that speaks most like an attack, if it does so at all.

    `model` None = the shipped one. `found`: the text's `sentences`, where they are known."""
    model = model or shipped_model()
    best, where, last = -math.inf, 0, 0
    for stretch in _worth_weighing(weighed(reading.text, found), model, model.floor):
        run = _best_run(stretch, model)
        if run[0] > best:
            best, where, last = run
    weight = model.weight(best)
    if weight > 0:
        excerpt = reading.text[last : last + LONGEST_EXCERPT].strip().partition("\n")[0]
        yield Signal(name="wording", weight=weight, excerpt=excerpt, position=where)


class _Sentence:
    """A sentence that is weighed: where it begins, its features, and what they add up to in each stage."""

    __slots__ = ("_summed", "features", "position", "weight")

    def __init__(self, position: int, features: set[str], weights: dict[str, float]) -> None:
        self.position = position
        self.features = features
        self.weight: float = sum(map(weights.get, features, repeat(0.0)))
        self._summed: int | None = None

    def summed(self, hidden: Hidden) -> int:
        if self._summed is None:  # most sentences are not looked at so closely
            self._summed = hidden.summed(self.features)
        return self._summed


def _best_run(stretch: list[tuple[int, str]], model: Model) -> tuple[float, int, int]:
    """The highest score of a run of neighbouring sentences, where the run begins, and where its last sentence does."""
    best, where, last = -math.inf, 0, 0
    recent: list[_Sentence] = []
    for position, sentence in stretch:
        words = tokens(sentence)
        if len(words) < 2:
            continue
        recent = [*recent[1 - WINDOW :], _Sentence(position, features(words, sentence), model.weights)]
        for length in range(1, len(recent) + 1):
            run = recent[-length:]
            score = model.score(run)
            if score > best:
                best, where, last = score, run[0].position, position
    return best, where, last


def _worth_weighing(told: list[tuple[int, str]], model: Model, floor: float) -> Iterator[list[tuple[int, str]]]:
    if len(told) < _FEW or floor <= 0:
        yield told
        return
    marked: list[tuple[tuple[int, str], str | None, float]] = []
    for one in told:
        sentence = one[1]
        if sentence.isascii() or WITHOUT_SPACES.search(sentence) is None:
            marks = "\1" if MAIL in sentence else ""
            if LINK in sentence:
                marks += "\2"
            if sentence.rstrip().endswith(ASKING):
                marks += "\3"
            marked.append((one, marks, 0.0))
        elif len(words := tokens(sentence)) > 1:
            found = map(model.weights.get, features(words, sentence), repeat(0.0))
            marked.append((one, None, sum(weight for weight in found if weight > 0)))
    yield from worth_weighing(marked, model.positives, TOKEN_OR_MARK, WINDOW, floor)


class Model:
    """Weights by feature, a bias, and the two scores between which the signal grows from 0 to 1.

    With hidden units a run whose weights reach `looks_from` has a mean of both; without, the weights score all."""

    __slots__ = ("_positives", "bias", "hidden", "high", "looks_from", "low", "weights")

    def __init__(
        self, *, weights: dict[str, float], bias: float, low: float, high: float,
        hidden: Hidden | None = None, looks_from: float = 0.0,
    ) -> None:  # fmt: skip
        self.weights = weights
        self.bias = bias
        self.low = low
        self.high = high
        self.hidden = hidden
        self.looks_from = looks_from
        self._positives: Positives | None = None

    @property
    def positives(self) -> Positives:
        """The positive weights, taken apart when first needed."""
        if self._positives is None:
            self._positives = Positives(self.weights)
        return self._positives

    @property
    def floor(self) -> float:
        """What the weights of a run must add up to if it is to give a signal."""
        return (self.low if self.hidden is None else self.looks_from) - self.bias - _ROUNDING

    def score(self, run: list[_Sentence]) -> float:
        """The score of a run of sentences."""
        scaled = scale(sum([len(one.features) for one in run]))
        weight = self.bias + scaled * sum([one.weight for one in run])
        if self.hidden is None:
            return weight
        if weight < self.looks_from:
            return -math.inf
        # Two learners of different kinds are wrong about different texts: their mean is wrong less often than either.
        units = self.hidden.score(sum([one.summed(self.hidden) for one in run]), scaled)
        return (1 - SHARE_OF_UNITS) * weight + SHARE_OF_UNITS * units

    def weight(self, score: float) -> float:
        """The signal's weight for a score: 0 below `low`, 1 and at most 1.2 from `high` on."""
        if score <= self.low:
            return 0.0
        return round(min(1.2, (score - self.low) / (self.high - self.low)), 3)

    def with_border(self, high: float) -> Model:
        """The same whose signal weighs 1 from another score on: for measuring."""
        return Model(
            weights=self.weights, bias=self.bias, low=self.low + high - self.high, high=high,
            hidden=self.hidden, looks_from=self.looks_from,
        )  # fmt: skip


@lru_cache(maxsize=1)
def shipped_model() -> Model:
    """The model in `weights.json` and `hidden.json`."""
    weights, hidden = (
        json.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))
        for name in ("weights.json", "hidden.json")
    )
    units = Hidden(
        features=hidden["features"].split("\n"), rows=hidden["rows"], thresholds=hidden["thresholds"],
        outputs=hidden["outputs"], step=hidden["step"], bias=hidden["bias"],
    )  # fmt: skip
    return Model(
        weights=weights["weights"], bias=weights["bias"], low=hidden["low"], high=hidden["high"],
        hidden=units, looks_from=hidden["looks_from"],
    )  # fmt: skip
