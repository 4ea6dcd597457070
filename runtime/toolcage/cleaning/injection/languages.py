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
_QUESTIONS: Final = {
    "en": "who whom whose what when where why which how",
    "de": "wer wem wessen wann warum wieso weshalb woher wohin welche welcher welches wieviel wie wo",
    "fr": "qui quand pourquoi où comment combien quel quelle quels quelles",
    "es": "quién quiénes cuándo cuánto cuánta cuántos cuántas dónde cómo cuál cuáles qué",
    "it": "chi quando perché dove quanto quanti quante quale quali come",
    "pt": "quem quando quanto quantos quantas onde qual quais porquê como",
    "nl": "wie wanneer waarom waar hoe hoeveel welke",
    "pl": "kto kiedy dlaczego gdzie jak ile który która które",
    "cs": "kdo kdy proč kde jak kolik který která které",
    "tr": "nasıl nerede neden niçin hangi kaç",
    "sv": "vem när varför hur vilken vilket vad",
    "da": "hvem hvornår hvorfor hvor hvordan hvilken hvilket hvad",
    "no": "hvem når hvorfor hvor hvordan hvilken hvilket hva",
    "fi": "kuka missä miten milloin miksi kuinka montako",
    "hu": "hol mikor miért hogyan hány melyik kicsoda",
    "ro": "cine când unde cum cât câte",
    "vi": "nào đâu sao",
    "id": "siapa kapan mengapa dimana bagaimana berapa",
}  # fmt: skip
"""Words that ask: where one stands in a question, it counts as much as two little ones."""
_SHARED: Final = frozenset({
    "a", "as", "do", "no", "in", "die", "was", "des", "on", "i", "per", "is", "an", "or", "for", "come", "son", "me", "que", "we",
})  # fmt: skip
_OF: Final[dict[str, tuple[str, ...]]] = {}
for _language, _words in _LITTLE.items():
    for _word in _words.split():
        if _language == "en" or _word not in _SHARED:
            _OF[_word] = (*_OF.get(_word, ()), _language)
_ASKING: Final[dict[str, tuple[str, ...]]] = {}
for _language, _words in _QUESTIONS.items():
    for _word in _words.split():
        _ASKING[_word] = (*_ASKING.get(_word, ()), _language)
_KANA: Final = re.compile("[\u3040-\u30ff]")
_JAPANESE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_SCRIPTS: Final = (
    ("kana", _KANA), ("han", re.compile("[\u3400-\u9fff]")), ("hangul", re.compile("[\uac00-\ud7af]")),
    ("cyrillic", re.compile("[\u0400-\u04ff]")), ("greek", re.compile("[\u0370-\u03ff]")),
    ("arabic", re.compile("[\u0600-\u06ff]")), ("hebrew", re.compile("[\u0590-\u05ff]")),
    ("devanagari", re.compile("[\u0900-\u097f]")), ("thai", re.compile("[\u0e00-\u0e7f]")),
)  # fmt: skip
_ASKED: Final = re.compile("[?\uff1f\u061f][\\s\"'\u201d\u00bb)\\]]*$")
_WORD: Final = re.compile(r"[^\W\d_]+")
_LEAST_WORDS: Final = 3
_LEAST_VOTES: Final = 2
_LONGEST_END: Final = 12
_LEAST_AROUND: Final = 2
_UNCLEAR: Final[frozenset[str]] = frozenset()
_MOST_FOREIGN: Final = 0.4
_LEAST_SHARE: Final = 0.6


def foreign_question(sentences: Iterable[tuple[int, str]]) -> tuple[int, str] | None:
    """The first sentence that asks something in a language that nearly nothing else of the text is in."""
    told = list(sentences)
    asking = [
        (position, sentence, spoken)
        for position, sentence in told
        if (asks := _asks(sentence)) or ";" in sentence
        if (spoken := _spoken(sentence)) and (asks or "greek" in spoken)  # which asks with a semicolon
    ]
    if not asking:
        return None
    known = {position: spoken for position, _, spoken in asking}
    around = [spoken for position, sentence in told if (spoken := known.get(position) or _spoken(sentence))]
    most = max(Counter(name for spoken in around for name in spoken).values())
    if most < _LEAST_SHARE * len(around):  # a text of many languages has no foreign one
        return None
    for position, sentence, spoken in asking:
        alike = sum(not spoken.isdisjoint(other) for other in around)
        if len(around) - alike >= _LEAST_AROUND and alike <= _MOST_FOREIGN * len(around):
            return position, sentence
    return None


def _spoken(sentence: str) -> frozenset[str]:
    """What the sentence may be in: a script, or the languages that its little words speak for; none where it is unclear.

    A language with half as many votes as the first may be it too: so of a sentence that quotes another."""
    words = _WORD.findall(sentence.lower())
    if len(words) < _LEAST_WORDS and (sentence.isascii() or not any(p.search(sentence) for _, p in _SCRIPTS[:3])):
        return _UNCLEAR
    if not sentence.isascii():
        letters = sum(map(str.isalpha, sentence))
        japanese = _KANA.search(sentence) is not None  # and then its Han letters are Japanese too
        for name, pattern in _SCRIPTS:
            found = len((_JAPANESE if japanese and name == "kana" else pattern).findall(sentence))
            if found >= 4 and 2 * found > letters:
                return frozenset((name,))
    asks = _asks(sentence)
    votes: Counter[str] = Counter()
    for word in set(words):
        votes.update(_OF.get(word, ()))
        if asks and word in _ASKING:
            votes.update({name: 2 - (name in _OF.get(word, ())) for name in _ASKING[word]})
    most = max(votes.values(), default=0)
    if most < _LEAST_VOTES:
        return _UNCLEAR
    return frozenset(name for name, count in votes.items() if 2 * count >= most)


def _asks(sentence: str) -> bool:
    return _ASKED.search(sentence[-_LONGEST_END:]) is not None
