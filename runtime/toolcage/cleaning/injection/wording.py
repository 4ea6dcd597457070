"""The sentences of a text and what the learned part sees in each: words, pairs of them, and what they mean.

Decides what counts as a sentence in prose, markup, tables and JSON, what of it is only reported, and that an address is
one word whatever it spells. In a text of more than `_WHOLE` characters only sentences with a telling word count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from toolcage.cleaning.injection.concepts import concepts
from toolcage.cleaning.injection.layout import flowing

_WHOLE: Final = 96 * 1024
_LONGEST_SENTENCE: Final = 600
_LONG_RUN: Final = 96
_FAR: Final = 4
_STEM: Final = 6
_LONGEST_WITHOUT_STEM: Final = 7
ASKING: Final = ("?", "\uff1f", "\u061f", "?\"", "?'")
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# Burmese, Khmer, Lao and Thai write no spaces either, and words of several letters: meanings are looked for in them,
# and what stands between counts as words of some length.
_UNSPACED: Final = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
# Vowels and other marks that Python does not count as letters, of Hebrew, Arabic and the scripts of India.
_VOWELS: Final = (
    r"\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0970-\u0dff"
)
_TOKEN: Final = re.compile(
    rf"[{_UNSPACED}]{{1,8}}|[^\W\d_{_UNSPACED}]+(?:[{_VOWELS}]+[^\W\d_{_UNSPACED}]*)*(?:['\u2019][^\W\d_]+)?"
    rf"|[0-9]+|[?!:]|{_WIDE.pattern}"
)
TOKEN_OR_MARK: Final = re.compile(rf"{_TOKEN.pattern}|[\0-\4]")
WITHOUT_SPACES: Final = re.compile(rf"[{_WIDE.pattern[1:-1]}{_UNSPACED}]")
# What of a tag is no text: its name, the names of its attributes, and quotation marks. What an attribute says is text.
_NAME: Final = r"[\w:@.-]{1,40}"
_ATTRIBUTES: Final = rf"(?:\s{{1,9}}{_NAME}(?:=[^\s\"'<>=]{{1,60}})?){{0,3}}\s{{0,9}}"
# One class first, which the engine scans for fast, then a look back at what it was.
_END: Final = re.compile(
    r"[.!?;\u3002\uff01\uff1f\u0589\u0964\u06d4\u104b\u1362\u17d4\n\r|<\-&*\\\"'={}\[\]#](?:(?<=[.!?;])\s+"
    r"|(?<=[\n\r|])[\n\r|]*|(?<=[\u3002\uff01\uff1f\u0589\u0964\u06d4\u104b\u1362\u17d4])"
    rf"|(?<=<)(?:!--|\|[^<>|\n]{{0,60}}\|>|[/!?]?{_NAME}{_ATTRIBUTES}(?:[/?]?>|=\s{{0,9}}[\"']))"
    rf"|(?<=[\"']){_ATTRIBUTES}(?:[/?]?>|(?<=[\w:@.-])=\s{{0,9}}[\"'])"
    r"|(?<=-)-+>?|(?<=&)lt;!?\s*|(?<=\*)/|(?<=\\)n|(?<=\")\s{0,3}[:,}\]]\s{0,3}\"?|(?<==)[\"']"
    r"|(?<=[{}\[\]])|(?<=\s#)#*\s)"
)
_CLOSING: Final = frozenset(".!?;\u3002\uff01\uff1f\u0589\u0964\u06d4\u104b\u1362\u17d4")
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
# An address is one word, whatever it spells: `.io` is no Italian, and a link to donations asks for no money.
_ADDRESS: Final = re.compile(r"(?:[a-z]{2,8}://|www\.)[^\s<>\"'`)|]+|[^\s@<>()\"',;:|]{1,64}@[^\s@<>()\"',;:|]{1,80}\.[^\W\d_]{2,}")
MAIL, LINK = "\5", "\6"
_NO_MARKS: Final = str.maketrans({MAIL: " ", LINK: " "})


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


def stems(words: Iterable[str]) -> list[str]:
    """How each longer word begins: what its forms have in common."""
    return [f"{word[:_STEM]}*" for word in words if len(word) > _LONGEST_WITHOUT_STEM]


def features(words: list[str], sentence: str) -> set[str]:
    """Words, stems, pairs of neighbours and with one word between; meanings, pairs and triples of these in order."""
    made = set(words)
    made.update(stems(words))
    made.update(map(" ".join, pairwise(words)))
    made.update(map(" _ ".join, zip(words, words[2:], strict=False)))
    meant = concepts(words, sentence)
    if MAIL in sentence:
        meant.append("MAIL")
    if LINK in sentence:
        meant.append("LINK")
    if sentence.rstrip().endswith(ASKING):
        meant.append("ASK")
    if meant:
        made.update(meant)
        made.add("^" + meant[0])
        for gap in range(1, _FAR):
            made.update(map(">".join, zip(meant, meant[gap:], strict=False)))
        made.update(map(">>".join, zip(meant, meant[1:], meant[2:], strict=False)))
    return made


def sentences(text: str) -> list[tuple[int, str]]:
    """The sentences and lines of a text as it flows, with where each begins; long ones are cut."""
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

    `found`: `sentences` of the text as it flows."""
    found = sentences(flowing(text)) if found is None else found
    if len(text) > _WHOLE:
        found = [(position, sentence) for position, sentence in found if _TELLING.search(sentence)]
    if MAIL in text or LINK in text:
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
    return f" {LINK} " if "://" in address[0] or address[0].startswith("www.") else f" {MAIL} "


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
