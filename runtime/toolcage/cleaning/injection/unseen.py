"""Speech where nobody is spoken to: a question or a request in a part of a page that no person sees.

A comment of HTML, the text that stands in for a picture, and letters of no size or no opacity are read by models and by
hardly anyone else. Remarks of programmers stand there, and licences, and what a picture shows; somebody who asks there
for something asks the model. Elements that a page hides for a time (menus, notices) are not meant: ordinary pages are
full of them. Linear: each part is looked at once, and what a part may hold is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from toolcage.cleaning.injection.signals import LONGEST_EXCERPT, Signal

_SHORTEST, _LONGEST = 12, 600
_COMMENT: Final = ("<!--", "-->")
_FOR_OLD_BROWSERS: Final = "[if "
_ATTRIBUTES: Final = ("alt=", "font-size", "opacity")
_UNSEEN: Final = re.compile(
    rf"\balt=(?:\"(?P<alt>[^\"<>]{{{_SHORTEST},{_LONGEST}}})\"|'(?P<alternative>[^'<>]{{{_SHORTEST},{_LONGEST}}})')"
    r"|(?:font-size\s{0,3}:\s{0,3}[01](?:px|pt|em|rem)?|opacity\s{0,3}:\s{0,3}0(?:\.0+)?)\s{0,3}[;\"'][^<>]{0,200}>"
    rf"(?P<faint>[^<]{{{_SHORTEST},{_LONGEST}}})"
)
_SPOKEN_TO: Final = re.compile(
    r"\b(?:can|could|would|will|won't|do|did|have|are|were) you\b[^?]{3,160}\?"
    r"|\b(?:tell|give|show|help|send|write|remind|teach|explain to|read to) me\b"
    r"|\b(?:i|we)(?:'d| would| want| need|'m|'ve| have| was| am| are|'re)\b[^.!?]{3,80}\byour?\b"
    r"|\b(?:imagine|pretend|suppose) (?:that )?(?:you|we|i)\b|\blet's (?:say|play|pretend|imagine|suppose)\b"
)
_MARKS_OF_QUESTIONS: Final = re.compile("[?\uff1f\u061f]")
_SENTENCE_ENDS: Final = re.compile("[.!\n\u3002\uff01]")
_LEAST_WORDS, _LEAST_LETTERS_OF_HAN = 4, 8
_ADDRESSED, _ASKED = 1.0, 0.5


def search(text: str) -> Iterator[Signal]:
    """The signals of a text (lower case) that has its markup."""
    for position, said in _unseen(text):
        spoken = _SPOKEN_TO.search(said)
        found = spoken[0] if spoken else _question(said)
        if found is not None:
            weight = _ADDRESSED if spoken else _ASKED
            yield Signal(name="speaks_unseen", weight=weight, excerpt=found[:LONGEST_EXCERPT], position=position)


def _question(said: str) -> str | None:
    """A question of some words; in Han, whose words are not parted, of some letters."""
    for piece in _MARKS_OF_QUESTIONS.split(said)[:-1]:
        asked = _SENTENCE_ENDS.split(piece)[-1].strip()
        if len(asked.split()) >= _LEAST_WORDS or (asked >= "\u3040" and len(asked) >= _LEAST_LETTERS_OF_HAN):
            return asked
    return None


def _unseen(text: str) -> Iterator[tuple[int, str]]:
    """Each part that no person sees, and where it begins."""
    opening, closing = _COMMENT
    start = text.find(opening)
    while start >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        said = text[start + len(opening) : min(end, start + _LONGEST)]
        if not said.startswith(_FOR_OLD_BROWSERS):
            yield start, said
        start = text.find(opening, end)
    if any(sign in text for sign in _ATTRIBUTES):
        for part in _UNSEEN.finditer(text):
            yield part.start(), part[part.lastgroup or 0]
