"""What the model can make of each run of sentences at most: what spares weighing those that cannot matter.

Each run's bound is the sum of its positive weights, repetitions counted, without the scale that only makes a sum
smaller; so no run that reaches a score is passed over, and the verdict is the one that weighing everything would give
(held by a test over thousands of texts). All sentences are laid in one list of words, and every step is one pass of
C code over it: a loop over words would cost more than what it spares. Sentences that differ in their numbers alone,
as the lines of logs and tables do, have one bound. Sentences in Han, Kana or Hangul, whose letters are weighed one by
one, get their exact sum of positive weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, islice, pairwise, repeat
from operator import add, sub
from typing import Final, TypeAlias

from toolcage.cleaning.injection.concepts import concept
from toolcage.cleaning.injection.wording import stems

Told: TypeAlias = tuple[int, str]
"""Where a sentence begins, and the sentence."""
_END, _MAIL, _LINK, _ASK, _APART = "\0", "\1", "\2", "\3", "\4"
_MARKS: Final = {_END: _END, _MAIL: "MAIL", _LINK: "LINK", _ASK: "ASK"}
_NO_MARKS: Final = str.maketrans(dict.fromkeys("\0\1\2\3\4", " "))
_HAS_MARK: Final = re.compile("[\0-\4]")
_LONGEST_WORD: Final = 20
_LETTERS: Final = f"{_APART} {_APART}"


class Positives:
    """The positive weights of a model by the kind of feature that they are for."""

    __slots__ = ("alone", "first", "meant", "meant_pairs", "meant_triples", "pairs", "skips")

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.alone: dict[str, float] = {}
        self.pairs: dict[tuple[str, ...], float] = {}
        self.skips: dict[tuple[str, ...], float] = {}
        self.meant: dict[str, float] = {}
        self.first: dict[tuple[str, ...], float] = {}
        self.meant_pairs: dict[tuple[str, ...], float] = {}
        self.meant_triples: dict[tuple[str, ...], float] = {}
        for feature, weight in weights.items():
            if weight > 0:
                self._add(feature, weight)

    def _add(self, feature: str, weight: float) -> None:
        if " _ " in feature:
            self.skips[tuple(feature.split(" _ "))] = weight
        elif " " in feature:
            self.pairs[tuple(feature.split(" "))] = weight
        elif feature.startswith("^"):
            self.first[_END, feature[1:]] = weight
        elif ">>" in feature:
            self.meant_triples[tuple(feature.split(">>"))] = weight
        elif ">" in feature:
            self.meant_pairs[tuple(feature.split(">"))] = weight
        elif feature.isupper():
            self.meant[feature] = weight
        else:
            self.alone[feature] = weight

    def of_words(self, words: list[str]) -> list[float]:
        """Sums up to each word: features of one word and of pairs are counted where they begin."""
        alone = map({word: self._alone(word) for word in set(words)}.__getitem__, words)
        pairs = map(self.pairs.get, zip(words, [*words[1:], ""], strict=True), repeat(0.0))
        skips = map(self.skips.get, zip(words, [*words[2:], "", ""], strict=False), repeat(0.0))
        return [*accumulate(map(add, map(add, alone, pairs), skips), initial=0.0)]

    def _alone(self, word: str) -> float:
        return self.alone.get(word, 0.0) + sum([self.alone.get(stem, 0.0) for stem in stems([word])])

    def of_meanings(self, meant: list[str]) -> list[float]:
        """The same for meanings."""
        later = [[*meant[gap:], *("",) * gap] for gap in range(1, 4)]
        total = map(self.meant.get, meant, repeat(0.0))
        for others in later:
            total = map(add, total, map(self.meant_pairs.get, zip(meant, others, strict=False), repeat(0.0)))
        triples = map(self.meant_triples.get, zip(meant, later[0], later[1], strict=False), repeat(0.0))
        first = map(self.first.get, zip(meant, later[0], strict=False), repeat(0.0))
        return [*accumulate(map(add, map(add, total, triples), first), initial=0.0)]


def worth_weighing(
    told: Sequence[tuple[Told, str | None, float]],
    positives: Positives,
    token: re.Pattern[str],
    window: int,
    floor: float,
) -> Iterator[list[Told]]:
    """The stretches of neighbouring sentences that hold every run of up to `window` whose sum may reach `floor`.

    `told` gives each sentence, the marks of what it holds (None: it is in letters that are weighed apart), and for
    those that are weighed apart the exact sum of positive weights. `token` finds a word or a mark."""
    written = [_LETTERS if marks is None else f"{one[1]}{marks}" for one, marks, _ in told]
    if _HAS_MARK.search("".join([one[1] for one, _, _ in told])):
        written = [f"{one[1].translate(_NO_MARKS)}{marks}" if marks is not None else _LETTERS for one, marks, _ in told]
    # All numbers are one word to the model.
    alike = _with_one_number(_END.join(written)).split(_END)
    bounds = _bounds([*dict.fromkeys(alike)], positives, token)
    if window * (max(bounds.values())[0] + max([apart for _, _, apart in told])) < floor:
        return
    kept = [
        (one, bound + apart)
        for (one, marks, apart), (bound, words) in zip(told, map(bounds.__getitem__, alike), strict=True)
        if words > len(marks or "")
    ]
    yield from _stretches(kept, window, floor)


def _with_one_number(text: str) -> str:
    """The text with a 0 in the place of every number. Far cheaper than a match at each."""
    for digit in "123456789":
        text = text.replace(digit, "0")
    while "00" in text:
        text = text.replace("00", "0")
    return text


def _bounds(sentences: list[str], positives: Positives, token: re.Pattern[str]) -> dict[str, tuple[float, int]]:
    """The bound of each sentence, and how many words and marks it has beside its first two."""
    words = token.findall(f"{_END}{_END.join(sentences)}{_END}")
    if any(len(word) > _LONGEST_WORD for word in set(words)):
        words = [word[:_LONGEST_WORD] for word in words]
    different = set(words)
    meaning = dict(zip(different, map(concept, different), strict=True)) | _MARKS
    meant = [*filter(None, map(meaning.get, words))]
    ends = _places_of_ends(words)
    sums = map(
        add,
        _each(positives.of_words(words), ends),
        _each(positives.of_meanings(meant), _places_of_ends(meant)),
    )
    counts = [after - before - 2 for before, after in pairwise(ends)]
    return dict(zip(sentences, zip(sums, counts, strict=True), strict=True))


def _places_of_ends(words: list[str]) -> list[int]:
    return [place for place, word in enumerate(words) if word == _END]


def _each(sums: list[float], ends: list[int]) -> Iterator[float]:
    """What each sentence adds."""
    at_ends = [sums[place] for place in ends]
    return map(sub, at_ends[1:], at_ends)


def _stretches(kept: list[tuple[Told, float]], window: int, floor: float) -> Iterator[list[Told]]:
    bounds = [bound for _, bound in kept] + [0.0] * (window - 1)
    runs = [*map(sum, zip(*(islice(bounds, gap, None) for gap in range(window)), strict=False))]
    stretch: list[Told] = []
    until = 0
    for place in [place for place, bound in enumerate(runs) if bound >= floor]:
        if stretch and place > until:
            yield stretch
            stretch = []
        begin = max(place, until) if stretch else place
        until = min(len(kept), place + window)
        stretch += [one for one, _ in kept[begin:until]]
    if stretch:
        yield stretch
