"""Many short texts cleaned in one go, each as if it were alone.

Danger: the same as of text. Protects the same; what it spares is the cost of a search for each of a table's cells.

Each different text is cleaned once, however often it stands there. The texts are laid side by side, some KiB at a time,
cleaned as one and taken apart again. The gap between two holds a word that nobody outside this process knows and more
white space than any pattern reaches over. A text that ends in something unfinished, which the cleaners treat
differently at the end of a text, is cleaned alone; and if the number of gaps did not stay what it was, the texts are
cleaned in halves.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from toolcage.cleaning.pipeline import neutralise
from toolcage.types import OutputTerms

_TOGETHER_CHARACTERS: Final = 64 * 1024
_WORD: Final = "".join(random.SystemRandom().choices("jqvwxz", k=14))
_GAP: Final = f"\n\n\n\n\n{_WORD}\n\n\n\n\n"
# A tag that is not closed, also before frames, which are taken away before its end is looked for.
_OPEN: Final = r"<[^<>]{0,200}(?:<[^<>]{0,130}>{1,2}[^<>]{0,130}){0,4}"
_UNFINISHED: Final = re.compile(rf"(?:{_OPEN}|\r|\][(:]\s*+)\Z")
# The same before a gap. Each begins with one character, which the engine scans for fast.
_UNFINISHED_ENDS: Final = tuple(
    re.compile(rf"{end}(?=\n\n\n\n\n{_WORD}|\Z)") for end in (_OPEN, r"\r", r"\](?:[(:]\s*?)")
)


def neutralise_each(
    counts: Mapping[str, int], terms: OutputTerms, exact: Sequence[str]
) -> tuple[dict[str, str], Counter[str]]:
    """What becomes of each text, and what was found in all of them, each counted as often as it stands there."""
    often: dict[int, list[str]] = {}
    for text, count in counts.items():
        often.setdefault(count, []).append(text)
    made: dict[str, str] = {}
    findings: Counter[str] = Counter()
    for count, texts in often.items():
        for part in _parts(texts):
            cleaned, found = _together(part, terms, exact)
            made.update(zip(part, cleaned, strict=True))
            for name, number in found.items():
                findings[name] += number * count
    return made, findings


def _parts(texts: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    length = 0
    for text in texts:
        part.append(text)
        length += len(text)
        if length >= _TOGETHER_CHARACTERS:
            yield part
            part, length = [], 0
    if part:
        yield part


def _together(texts: list[str], terms: OutputTerms, exact: Sequence[str]) -> tuple[list[str], Counter[str]]:
    """Each text cleaned as if it were alone, and what was found in all of them."""
    if len(texts) < 2:
        return _apart(texts, [True] * len(texts), terms, exact)
    joined = _GAP.join(texts)
    if _may_end_unfinished(joined) or _needs_care(terms):
        special = [_is_special(text, terms) for text in texts]
        if any(special):
            return _apart(texts, special, terms, exact)
    cleaned, findings = neutralise(joined, terms, exact)
    if joined.count(_WORD) == len(texts) - 1 == cleaned.count(_WORD):
        pieces = cleaned.split(_GAP) if cleaned != joined else texts
        if len(pieces) == len(texts):
            unfinished = [*map(_is_unfinished, pieces)] if _may_end_unfinished(cleaned) else []
            # Ends that cleaning left and would not leave in a text by itself.
            return _apart(texts, unfinished, terms, exact) if any(unfinished) else (pieces, findings)
    half = len(texts) // 2
    first, findings = _together(texts[:half], terms, exact)
    second, found = _together(texts[half:], terms, exact)
    return first + second, findings + found


def _apart(
    texts: list[str], alone: list[bool], terms: OutputTerms, exact: Sequence[str]
) -> tuple[list[str], Counter[str]]:
    """The same, where some are to be cleaned `alone`."""
    others = [text for text, one in zip(texts, alone, strict=True) if not one]
    together, findings = _together(others, terms, exact) if others else ([], Counter[str]())
    rest = iter(together)
    made: list[str] = []
    for text, one in zip(texts, alone, strict=True):
        if one:
            cleaned, found = neutralise(text, terms, exact)
            findings.update(found)
        made.append(cleaned if one else next(rest))
    return made, findings


def _needs_care(terms: OutputTerms) -> bool:
    return terms.html in ("clean", "escape") or "phone" in terms.redact


def _is_special(text: str, terms: OutputTerms) -> bool:
    """Whether a cleaner treats the text otherwise where it ends or begins, or parses it as a document."""
    return (
        _is_unfinished(text)
        or (terms.html in ("clean", "escape") and ("<" in text or "&" in text))
        or ("phone" in terms.redact and "+" in text)
    )


def _may_end_unfinished(joined: str) -> bool:
    """Whether one of the joined texts is unfinished."""
    return any(end.search(joined) for end in _UNFINISHED_ENDS) or "-----END " in joined


def _is_unfinished(text: str) -> bool:
    return _UNFINISHED.search(text) is not None or "-----END " in text
