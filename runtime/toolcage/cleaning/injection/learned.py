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
from itertools import pairwise, repeat
from typing import Final

from toolcage.cleaning.injection.bound import Positives, worth_weighing
from toolcage.cleaning.injection.concepts import concepts
from toolcage.cleaning.injection.signals import LONGEST_EXCERPT, Reading, Signal

WINDOW: Final = 3
_WHOLE: Final = 96 * 1024
_LONGEST_SENTENCE: Final = 600
_LONG_RUN: Final = 96
_FAR: Final = 4
_ASKING: Final = ("?", "\uff1f", "\u061f", "?\"", "?'")
_TOKEN: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?|[0-9]+|[?!:]|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_TOKEN_OR_MARK: Final = re.compile(rf"{_TOKEN.pattern}|[\0-\4]")
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# One class first, which the engine scans for fast, then a look back at what it was.
_END: Final = re.compile(
    r"[.!?;\u3002\uff01\uff1f\n\r|<\-&*\\\"={}\[\]#](?:(?<=[.!?;])\s+|(?<=[\n\r|])[\n\r|]*|(?<=[\u3002\uff01\uff1f])"
    r"|(?<=<)[^<>]{0,200}>|(?<=-)-+>?|(?<=&)lt;!?\s*|(?<=\*)/|(?<=\\)n|(?<=\")\s{0,3}[:,}\]]\s{0,3}\"?|(?<==)\""
    r"|(?<=[{}\[\]])|(?<=\s#)#*\s)"
)
_CLOSING: Final = frozenset(".!?;\u3002\uff01\uff1f")
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
_QUOTES: Final = ('"', "\u201c", "\u201e", "\u00ab")
_FEW: Final = 8
_ROUNDING: Final = 0.01
# An address is one word, whatever it spells: `.io` is no Italian, and a link to donations asks for no money.
_ADDRESS: Final = re.compile(r"(?:[a-z]{2,8}://|www\.)[^\s<>\"'`)|]+|[^\s@<>()\"',;:|]{1,64}@[^\s@<>()\"',;:|]{1,80}\.[^\W\d_]{2,}")
_MAIL, _LINK = "\5", "\6"
_NO_MARKS: Final = str.maketrans({_MAIL: " ", _LINK: " "})


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
    if _MAIL in sentence:
        meant.append("MAIL")
    if _LINK in sentence:
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


def sentences(text: str) -> list[tuple[int, str]]:
    """The sentences and lines of a text with where each begins; long ones are cut."""
    found: list[tuple[int, str]] = []
    position = 0
    for match in _END.finditer(text):
        end = match.start()
        if text[end] in _CLOSING:
            end += 1
        if 3 < end - position <= _LONGEST_SENTENCE:
            found.append((position, text[position:end]))
        elif end - position > 3:
            found += _pieces(text, position, end)
        position = match.end()
    found += _pieces(text, position, len(text))
    return [one for one in found if not one[1].isspace()]


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    for begin in range(start, end, _LONGEST_SENTENCE):
        piece = text[begin : min(end, begin + _LONGEST_SENTENCE)]
        if len(piece) > 3:
            yield begin, piece


def weighed(text: str, found: list[tuple[int, str]] | None = None) -> list[tuple[int, str]]:
    """The sentences that count, where they begin, addresses as one mark each, without what they only report.

    `found`: `sentences` of the text."""
    found = sentences(text) if found is None else found
    if len(text) > _WHOLE:
        found = [(position, sentence) for position, sentence in found if _TELLING.search(sentence)]
    if _MAIL in text or _LINK in text:
        found = [(position, sentence.translate(_NO_MARKS)) for position, sentence in found]
    if "@" in text or "://" in text or "www." in text:
        found = [(position, _with_marks(sentence)) for position, sentence in found]
    if not any(quote in text for quote in _QUOTES):
        return found
    return [
        (position, _without_reported(sentence) if _QUOTATION.search(sentence) else sentence)
        for position, sentence in found
    ]


def _with_marks(sentence: str) -> str:
    if "@" not in sentence and "://" not in sentence and "www." not in sentence:
        return sentence
    return _ADDRESS.sub(_mark, sentence)


def _mark(address: re.Match[str]) -> str:
    return f" {_LINK} " if "://" in address[0] or address[0].startswith("www.") else f" {_MAIL} "


def parts(text: str) -> Iterator[tuple[int, str, set[str]]]:
    """Each sentence that is weighed: where it begins, its text, its features."""
    for position, sentence in weighed(text):
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


def weigh(
    reading: Reading,
    model: Model | None = None,
    least: float = 0.0,
    found: list[tuple[int, str]] | None = None,
) -> Iterator[Signal]:
    """At most one signal: the run of up to WINDOW sentences that speaks most like an attack, if it does so at all.

    `model` None = the one in `weights.json`. A signal of less weight than `least` may be left out.
    `found`: the text's `sentences`, where they are known."""
    model = model or shipped_model()
    floor = model.low + least * (model.high - model.low) - model.bias - _ROUNDING
    best, where, last = -math.inf, 0, 0
    for stretch in _worth_weighing(weighed(reading.text, found), model, floor):
        run = _best_run(stretch, model.weights)
        if run[0] > best:
            best, where, last = run
    weight = model.weight(best + model.bias)
    if weight > 0:
        excerpt = reading.text[last : last + LONGEST_EXCERPT].strip().partition("\n")[0]
        yield Signal(name="wording", weight=weight, excerpt=excerpt, position=where)


def _best_run(stretch: list[tuple[int, str]], weights: dict[str, float]) -> tuple[float, int, int]:
    """The highest sum of a run of neighbouring sentences, where the run begins, and where its last sentence does."""
    best, where, last = -math.inf, 0, 0
    recent: list[tuple[int, float, int]] = []
    for position, sentence in stretch:
        words = tokens(sentence)
        if len(words) < 2:
            continue
        found = features(words, sentence)
        own = sum(map(weights.get, found, repeat(0.0)))
        recent = [*recent[1 - WINDOW :], (position, own, len(found))]
        total, count = 0.0, 0
        for begin, some, size in reversed(recent):
            total += some
            count += size
            scaled = total * scale(count)
            if scaled > best:
                best, where, last = scaled, begin, position
    return best, where, last


def _worth_weighing(told: list[tuple[int, str]], model: Model, floor: float) -> Iterator[list[tuple[int, str]]]:
    if len(told) < _FEW or floor <= 0:
        yield told
        return
    marked: list[tuple[tuple[int, str], str | None, float]] = []
    for one in told:
        sentence = one[1]
        if sentence.isascii() or _WIDE.search(sentence) is None:
            marks = "\1" if _MAIL in sentence else ""
            if _LINK in sentence:
                marks += "\2"
            if sentence.rstrip().endswith(_ASKING):
                marks += "\3"
            marked.append((one, marks, 0.0))
        elif len(words := tokens(sentence)) > 1:
            found = map(model.weights.get, features(words, sentence), repeat(0.0))
            marked.append((one, None, sum(weight for weight in found if weight > 0)))
    yield from worth_weighing(marked, model.positives, _TOKEN_OR_MARK, WINDOW, floor)


class Model:
    """Weights by feature, a bias, and the two scores between which the signal grows from 0 to 1."""

    __slots__ = ("_positives", "bias", "high", "low", "weights")

    def __init__(self, *, weights: dict[str, float], bias: float, low: float, high: float) -> None:
        self.weights = weights
        self.bias = bias
        self.low = low
        self.high = high
        self._positives: Positives | None = None

    @property
    def positives(self) -> Positives:
        """The positive weights, taken apart when first needed."""
        if self._positives is None:
            self._positives = Positives(self.weights)
        return self._positives

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
