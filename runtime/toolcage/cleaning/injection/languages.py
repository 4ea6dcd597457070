# ruff: noqa: E501 - tables of words read better in long lines
"""A question or request in another language than the text around it: somebody else is speaking.

An attacker whose words would be noticed in the language of a page writes in another one; a model reads both. Decides by
scripts and by the commonest little words, trusts neither to name a language exactly, and asks only whether one sentence
differs from nearly all of the rest. Quotations and names are no sentences of a foreign kind: the sentence must ask.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

_LITTLE: Final = {
    "en": "the of and to in is that for with was are this be it on as by have from or an you your not what how can",
    "de": "der die das und ist nicht ein eine mit von für auf den dem zu wer wie was hat sie ich wir bei aus auch einen wird",
    "fr": "le la les des et est un une pour dans que qui sur au avec pas vous nous je ce sont quel quelle comment du",
    "es": "el la los las y es un una para en que con por del se su como qué cuál cómo quién dónde más no lo",
    "it": "il lo la gli le e è un una per in che con del della di sono come qual quali cosa chi dove più non",
    "pt": "o a os as e é um uma para em que com do da não por como qual quem onde mais seu sua no na",
    "nl": "de het een en is van in op te dat niet met voor zijn wie wat hoe waar ook er maar",
    "pl": "i w na z się nie jest to że do jak co kto gdzie czy po dla od jaki jakie",
    "tr": "ve bir bu için ile ne kim nasıl nerede mi mı de da çok olan daha",
}  # fmt: skip
_SHARED: Final = frozenset(
    (
        "a",
        "as",
        "do",
        "no",
        "in",
        "die",
        "was",
        "des",
        "on",
        "i",
        "per",
        "is",
        "an",
        "or",
        "for",
        "come",
        "son",
        "me",
        "que",
        "we",
    )
)
_OF: Final[dict[str, tuple[str, ...]]] = {}
for _language, _words in _LITTLE.items():
    for _word in _words.split():
        if _language == "en" or _word not in _SHARED:
            _OF[_word] = (*_OF.get(_word, ()), _language)
_KANA: Final = re.compile("[\u3040-\u30ff]")
_JAPANESE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_SCRIPTS: Final = (
    ("kana", _KANA), ("han", re.compile("[\u3400-\u9fff]")), ("hangul", re.compile("[\uac00-\ud7af]")),
    ("cyrillic", re.compile("[\u0400-\u04ff]")), ("greek", re.compile("[\u0370-\u03ff]")),
    ("arabic", re.compile("[\u0600-\u06ff]")), ("hebrew", re.compile("[\u0590-\u05ff]")),
    ("devanagari", re.compile("[\u0900-\u097f]")), ("thai", re.compile("[\u0e00-\u0e7f]")),
)  # fmt: skip
_ASKS: Final = re.compile("[?;\uff1f\u061f]")
_LEAST_WORDS: Final = 3
_LEAST_AROUND: Final = 2
_MOST_FOREIGN: Final = 0.4
_LEAST_SHARE: Final = 0.6


def language(sentence: str, words: Iterable[str]) -> str | None:
    """A name for the script, or for the language whose little words stand in the sentence; None where it is unclear."""
    if not sentence.isascii():
        letters = sum(map(str.isalpha, sentence))
        japanese = _KANA.search(sentence) is not None  # and then its Han letters are Japanese too
        for name, pattern in _SCRIPTS:
            found = len((_JAPANESE if japanese and name == "kana" else pattern).findall(sentence))
            if found >= 4 and 2 * found > letters:
                return name
    votes: dict[str, int] = {}
    for languages in filter(None, map(_OF.get, words)):
        for name in languages:
            votes[name] = votes.get(name, 0) + 1
    if not votes:
        return None
    most = max(votes.values())
    first, *others = [name for name, count in votes.items() if count == most]
    return first if most > 1 and not others else None


def foreign_question(sentences: Iterable[tuple[int, str]]) -> tuple[int, str] | None:
    """The first sentence that asks something in a language that nearly nothing else of the text is in."""
    judged = [(position, sentence, words) for position, sentence in sentences if (words := _enough(sentence))]
    asking = [
        (position, sentence, spoken)
        for position, sentence, words in judged
        if _ASKS.search(sentence) and (spoken := _spoken(sentence, words)) and (spoken == "greek" or _asks(sentence))
    ]
    if not asking:
        return None
    around = _counted(judged, {spoken for _, _, spoken in asking})
    total = sum(around.values())
    if not around or max(around.values()) < _LEAST_SHARE * total:  # a text of many languages has no foreign one
        return None
    for position, sentence, spoken in asking:
        if total - around[spoken] >= _LEAST_AROUND and around[spoken] <= _MOST_FOREIGN * total:
            return position, sentence
    return None


def _enough(sentence: str) -> list[str]:
    """The words of a sentence that is long enough to be told a language of."""
    words = sentence.lower().split()
    if len(words) >= _LEAST_WORDS or (not sentence.isascii() and any(p.search(sentence) for _, p in _SCRIPTS[:3])):
        return words
    return []


def _asks(sentence: str) -> bool:
    return "?" in sentence or "\uff1f" in sentence or "\u061f" in sentence


def _spoken(sentence: str, words: list[str]) -> str | None:
    return language(sentence, [word.strip(".,:;!?\"'()¿¡") for word in words])


def _counted(judged: list[tuple[int, str, list[str]]], asked: set[str]) -> Counter[str]:
    """How many sentences are in which language; none at all once every language that is asked in is a common one."""
    around: Counter[str] = Counter()
    common = _MOST_FOREIGN * len(judged)
    for _, sentence, words in judged:
        spoken = _spoken(sentence, words)
        if spoken is None:
            continue
        around[spoken] += 1
        if spoken in asked and around[spoken] > common:
            asked = asked - {spoken}
            if not asked:
                return Counter()
    return around
