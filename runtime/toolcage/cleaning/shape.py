"""One form of a secret, and how it is written down.

A shape is searched for by its `anchors`, patterns over the text as ASCII (every other character a question mark), each
literal characters, which the engine scans for fast, and what surely follows them. Only at an anchor is the whole
pattern tried. Every pattern is bounded or repeats possessively: linear on any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolcage.cleaning.secret_values import always

NAMED: Final = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|api[_-]?key|apikey|access[_-]?key|access[_-]?token|auth[_-]?token"
    r"|client[_-]?secret|secret[_-]?key|private[_-]?key|account[_-]?key|signing[_-]?key|encryption[_-]?key)"
)
# What a token pages through a list with, and says nothing to anybody else.
PAGING: Final = (
    "next", "page", "pagination", "continuation", "cursor", "sync", "delta", "resume", "skip", "idempotency",
)  # fmt: skip
# A quotation mark, escaped once or more as JSON in JSON has it, or as HTML writes it.
QUOTE: Final = r"(?:\\{0,7}[\"']|&quot;|&#(?:34|39|x2[27]);)"
ASSIGNED: Final = rf"{QUOTE}?\s{{0,4}}(?:=>|:=|[:=])\s{{0,4}}"
# What may stand in the ASCII image of a text for the white space and the letters of other scripts.
SPACE: Final = r"[\s\x1c-\x1f?]"
ANY_ASSIGNED: Final = rf"{QUOTE}?{SPACE}{{0,4}}(?:=>|:=|[:=]){SPACE}{{0,4}}"
# A value and what may not stand in one: controls, white space, quotation marks and what ends it in code.
VALUE: Final = r"[^\x00-\x20\x7f\"'\\,;&<>`]"
# Most prefixes are so distinctive that they count in the middle of a word too: a colour code or a label may stand
# directly before the key. The others (`task-…` holds `sk-…`) need a beginning.
START: Final = r"(?<![A-Za-z0-9])"
WORD_START: Final = r"(?<![A-Za-z0-9_-])"
ALONE: Final = r"(?<![A-Za-z0-9+/_-])"


@dataclass(frozen=True, slots=True)
class Shape:
    """One form. The group `value`, where there is one, is what gets redacted.

    `pattern` is tried at each anchor and `back` characters before it. `folded`: the anchors are lower case. `apart`:
    they begin nearly everywhere, so the sieve asks about them alone.
    """

    name: str
    anchors: tuple[re.Pattern[bytes], ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] = always
    folded: bool = False
    back: tuple[int, ...] = (0,)
    apart: bool = False


def shape(
    name: str,
    anchors: str | tuple[str, ...],
    pattern: str,
    accept: Callable[[str], bool] = always,
    *,
    folded: bool = False,
    back: tuple[int, ...] = (0,),
    apart: bool = False,
) -> Shape:
    """A shape; the anchors are patterns of what is ASCII."""
    written = (anchors,) if isinstance(anchors, str) else anchors
    compiled = tuple(re.compile(one.encode()) for one in written)
    return Shape(name, compiled, re.compile(pattern), accept, folded, back, apart)
