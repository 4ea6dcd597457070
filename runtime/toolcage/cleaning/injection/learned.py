"""A small linear model over words and word pairs of a few sentences: what rules have no phrase for.

Trained by `scripts/train_injection.py`, which writes `weights.json` beside this file and says how it does on sources
that it has not seen. A logistic regression is enough to weigh wording, can be read by a person (each weight has its
word), needs nothing but a dictionary, and cannot be made to run long. It adds a signal; together with the rules it
decides.

In a text of more than `_WHOLE` characters only sentences with a telling word are weighed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Final

from toolcage.cleaning.injection.concepts import concepts
from toolcage.cleaning.injection.signals import LONGEST_EXCERPT, Reading, Signal

WINDOW: Final = 3
_WHOLE: Final = 96 * 1024
_LONGEST_SENTENCE: Final = 600
_LONG_RUN: Final = 96
_FAR: Final = 4
_ASKING: Final = ("?", "\uff1f", "\u061f", "?\"", "?'")
_TOKEN: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?|[0-9]+|[?!:]|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_END: Final = re.compile(
    r"(?<=[.!?;])\s+|[\n\r|]+|(?<=[\u3002\uff01\uff1f])|<[^<>]{0,200}>|--+>?|&lt;!?|\*/|\\n"
    r"|\"\s{0,3}[:,}\]]\s{0,3}\"?|=\"|[{}\[\]]|(?<=\s)#+\s"
)
_TELLING: Final = re.compile(
    r"ignor|disregard|instruct|prompt|password|assistant|\bai\b|override|bypass"
    r"|\byou(?:r|'re| are| must)?\b.{0,80}(?:must|user|secret|pretend|now)"
)


_QUOTATION: Final = re.compile(
    "\"[^\"\n]{3,240}\"|\u201c[^\u201d\n]{3,240}\u201d|\u201e[^\u201c\u201d\n]{3,240}[\u201c\u201d]|\u00ab[^\u00bb\n]{3,240}\u00bb"
)
_REPORTS: Final = re.compile(
    r"attack|inject|jailbr|research|phrase|joke|trick|malicious|vulnerab|hidden|exploit|filter|detect|wrote|said|says|called|asked"
    r"|replied|told|reporte?d|shown?|text|words|sentence|satz|forscher|warn|chercheur|phrase|frase|investig|obey|message\b"
)
_LEAST_REPORT: Final = 6


def tokens(sentence: str) -> list[str]:
    """The words of a sentence as the model sees them: lower case, numbers alike, letters of Han and Kana apart."""
    found: list[str] = []
    for word in _TOKEN.findall(sentence):
        if word[0].isdigit():
            found.append("0")
        elif not word.isascii() and _WIDE.search(word):
            found += list(word)
        else:
            found.append(word[:20])
    return found


def features(words: list[str], sentence: str) -> set[str]:
    """Words, pairs of neighbours, pairs with one word between; meanings, and pairs and triples of meanings in order."""
    made = set(words)
    made.update(map(" ".join, pairwise(words)))
    made.update(map(" _ ".join, zip(words, words[2:], strict=False)))
    meant = concepts(words, sentence)
    if "@" in sentence:
        meant.append("MAIL")
    if "://" in sentence or "www." in sentence:
        meant.append("LINK")
    if sentence.rstrip().endswith(_ASKING):
        meant.append("ASK")
    if meant:
        made.update(meant)
        made.add("^" + meant[0])
        for gap in range(1, _FAR):
            made.update(map(">".join, zip(meant, meant[gap:], strict=False)))
        made.update(map(">>".join, zip(meant, meant[1:], meant[2:], strict=False)))
    return made


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences and lines of a text with where each begins; long ones are cut."""
    position = 0
    for match in _END.finditer(text):
        yield from _pieces(text, position, match.start())
        position = match.end()
    yield from _pieces(text, position, len(text))


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    for begin in range(start, end, _LONGEST_SENTENCE):
        piece = text[begin : min(end, begin + _LONGEST_SENTENCE)]
        if len(piece) > 3 and not piece.isspace():
            yield begin, piece


def parts(text: str) -> Iterator[tuple[int, str, set[str]]]:
    """Each sentence that is weighed: where it begins, its text, its features."""
    large = len(text) > _WHOLE
    for position, sentence in sentences(text):
        if large and _TELLING.search(sentence) is None:
            continue
        if _QUOTATION.search(sentence):
            sentence = _without_reported(sentence)
        words = tokens(sentence)
        if len(words) > 1:
            yield position, sentence, features(words, sentence)


def _without_reported(sentence: str) -> str:
    """The sentence without what it quotes, where enough of it is about the quotation: news about attacks are none."""
    rest = _QUOTATION.sub(" ", sentence)
    return rest if len(_REPORTS.findall(rest)) >= 1 and len(tokens(rest)) >= _LEAST_REPORT else sentence


def scale(features_in_run: int) -> float:
    """What a run's weights are multiplied with: a long run (a list of links, say) is not strong by being long."""
    return math.sqrt(min(1.0, _LONG_RUN / max(1, features_in_run)))


def weigh(reading: Reading, model: Model | None = None) -> Iterator[Signal]:
    """At most one signal: the run of up to WINDOW sentences that speaks most like an attack, if it does so at all.

    `model` None = the one in `weights.json`."""
    model = model or shipped_model()
    best, where, excerpt = -math.inf, 0, ""
    lookup = model.weights.get
    recent: list[tuple[int, float, int]] = []
    for position, sentence, found in parts(reading.text):
        own = sum(lookup(feature, 0.0) for feature in found)
        recent = [*recent[1 - WINDOW :], (position, own, len(found))]
        total, count = 0.0, 0
        for begin, some, size in reversed(recent):
            total += some
            count += size
            scaled = total * scale(count)
            if scaled > best:
                best, where, excerpt = scaled, begin, sentence
    weight = model.weight(best + model.bias)
    if weight > 0:
        yield Signal(name="wording", weight=weight, excerpt=excerpt.strip()[:LONGEST_EXCERPT], position=where)


class Model:
    """Weights by feature, a bias, and the two scores between which the signal grows from 0 to 1."""

    __slots__ = ("bias", "high", "low", "weights")

    def __init__(self, *, weights: dict[str, float], bias: float, low: float, high: float) -> None:
        self.weights = weights
        self.bias = bias
        self.low = low
        self.high = high

    def weight(self, score: float) -> float:
        """The signal's weight for a score: 0 below `low`, 1 and at most 1.2 from `high` on."""
        if score <= self.low:
            return 0.0
        return round(min(1.2, (score - self.low) / (self.high - self.low)), 3)


@lru_cache(maxsize=1)
def shipped_model() -> Model:
    """The model in `weights.json`."""
    content = json.loads(files(__package__).joinpath("weights.json").read_text(encoding="utf-8"))
    return Model(weights=content["weights"], bias=content["bias"], low=content["low"], high=content["high"])
