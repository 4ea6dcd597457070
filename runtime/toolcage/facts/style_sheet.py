"""Whether CSS that stands in HTML loads anything: functions and at-rules by allowlist, no escape, no `url`.

`is_passive_style` judges a `style` attribute, `is_passive_sheet` the text of a `<style>`. Comments and strings are read
as a browser reads them, from left to right, so neither can hide the rest of a sheet: a quote or a comment that does not
end is refused. Words within strings count like any others. What the rules look like on a screen is not judged.
"""

from __future__ import annotations

import re
from typing import Final

_STYLE: Final = re.compile(r"[\w\s#%.,:;()'\"!+-]*\Z", re.ASCII)
_SHEET: Final = re.compile(r"[^<\\]*\Z")
_COMMENT: Final = r"/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)"  # to the end if it has none: in linear time
_PIECE: Final = re.compile(rf"{_COMMENT}|\"[^\"\n]*\"|'[^'\n]*'")
_STAYS_OPEN: Final = re.compile(r"[\"']|/\*")
_FUNCTION: Final = re.compile(r"(?<![\w-])([\w-]*+)\(")
_RULE: Final = re.compile(r"@([\w-]*)")
_FUNCTION_NAMES: Final = """
    rgb rgba hsl hsla hwb lab lch oklab oklch color-mix calc min max clamp var linear-gradient radial-gradient
    conic-gradient repeating-linear-gradient translate translatex translatey scale rotate skew matrix cubic-bezier
    steps repeat minmax fit-content not is where has nth-child nth-of-type nth-last-child lang dir
"""
_PASSIVE_FUNCTIONS: Final = frozenset({"", *_FUNCTION_NAMES.split()})
_PASSIVE_RULES: Final = frozenset({"media", "supports", "page", "keyframes", "-webkit-keyframes", "layer", "container"})
_ACTIVE: Final = re.compile(
    r"url|expression|import(?!ant)|(?<![\w-])behaviou?r|binding|javascript|progid", re.IGNORECASE
)


def is_passive_style(text: str) -> bool:
    """Whether the value of a `style` attribute loads nothing."""
    return _STYLE.match(text) is not None and _names_nothing_active(text)


def is_passive_sheet(text: str) -> bool:
    """Whether the rules between `<style>` and `</style>` load nothing; lines end with a line feed."""
    bare = _PIECE.sub(_without_comment, text)
    if _SHEET.match(text) is None or _STAYS_OPEN.search(_PIECE.sub(_without_closed, text)) is not None:
        return False
    return {rule.lower() for rule in _RULE.findall(bare)} <= _PASSIVE_RULES and _names_nothing_active(bare)


def _without_comment(piece: re.Match[str]) -> str:
    return " " if piece[0].startswith("/*") else piece[0]


def _without_closed(piece: re.Match[str]) -> str:
    return " " if piece[0].endswith(("*/", '"', "'")) else piece[0]


def _names_nothing_active(text: str) -> bool:
    names = {name.lower() for name in _FUNCTION.findall(text)}
    return names <= _PASSIVE_FUNCTIONS and _ACTIVE.search(text) is None
