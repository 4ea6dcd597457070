"""Words of many languages by what they mean to an attack: what lets the learned part judge wording that it never saw.

An instruction to a model is made of few meanings (drop, old, orders; give, your, secret; play, persona, without
limits) and of countless words; `lexicon.txt` holds some for each meaning in some seventy languages. Each word is looked
up by its stem; in scripts that put no spaces between words they are looked for inside the text. A word without an entry
means nothing here. Deliberately no grammar: which meanings stand in which order, and how far apart, is for `learned`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

_MOST_REMEMBERED: Final = 50_000
_WITHIN: Final = ", within"
_remembered: dict[str, str | None] = {}


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """Whole words, stems, and words that are looked for inside others, by what they mean."""

    whole: dict[str, str]
    stems: dict[str, str]
    within: dict[str, str]
    lengths: tuple[int, ...]
    pattern: re.Pattern[str]


def concept(word: str) -> str | None:
    """What a lower-case word means to an attack, if anything."""
    if word in _remembered:
        return _remembered[word]
    known = _lexicon()
    stem = next((word[:n] for n in known.lengths if word[:n] in known.stems), "")
    found = known.whole.get(word) or known.stems.get(stem)
    if len(_remembered) < _MOST_REMEMBERED:  # bounded: the words come from strangers
        _remembered[word] = found
    return found


def concepts(words: Iterable[str], sentence: str) -> list[str]:
    """The meanings of a sentence in order. `words` are those with spaces between them."""
    found = [name for name in map(concept, words) if name is not None]
    if not sentence.isascii():
        known = _lexicon()
        found += [known.within[match[0]] for match in known.pattern.finditer(sentence)]
    return found


@lru_cache(maxsize=1)
def _lexicon() -> _Lexicon:
    whole: dict[str, str] = {}
    stems: dict[str, str] = {}
    within: dict[str, str] = {}
    for language, meaning, word in _entries():
        if language.endswith(_WITHIN):
            within.setdefault(word, meaning)
        elif word.endswith("-"):
            stems.setdefault(word.removesuffix("-"), meaning)
        else:
            whole.setdefault(word, meaning)
    longest_first = sorted(map(re.escape, within), key=lambda word: (-len(word), word))
    lengths = tuple(sorted({len(stem) for stem in stems}, reverse=True))
    return _Lexicon(whole, stems, within, lengths, re.compile("|".join(longest_first)))


def _entries() -> Iterator[tuple[str, str, str]]:
    """(language, meaning, word) of every entry of the file."""
    language = meaning = ""
    for line in files(__package__).joinpath("lexicon.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            language = line.strip("[]")
        elif not line.startswith("#"):
            name, colon, rest = line.partition(": ")
            if colon:
                meaning = name
            for word in (rest if colon else line).split():
                yield language, meaning, word
