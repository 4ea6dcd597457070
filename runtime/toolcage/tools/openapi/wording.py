"""A stranger's text made fit to stand in a tool's declaration: plain words on one line, cut, nothing hidden.

Markup is taken off rather than escaped: a description is read by a model, not shown as a page. Links lose their target,
because a target is what such a text would want to be followed. Whether the words themselves try to steer a model is for
`Suspect`, which the caller brings. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final, TypeAlias

Suspect: TypeAlias = Callable[[str], bool]
"""Whether a text speaks to a model instead of describing something."""

_CODE: Final = re.compile(r"`{1,3}")
_IMAGE: Final = re.compile(r"!\[[^\]]{0,200}\]\([^)]{0,2000}\)")
_LINK: Final = re.compile(r"\[([^\]]{0,200})\]\([^)]{0,2000}\)")
_TAG: Final = re.compile(r"<[^<>]{0,500}>")
_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"')\]]{1,2000}", re.IGNORECASE)


def plain(text: object, most: int) -> str:
    """`text` on one line, without markup and links, at most `most` characters; empty for what is no text."""
    if not isinstance(text, str):
        return ""
    words = text[: most * 8]
    for pattern, instead in ((_IMAGE, " "), (_LINK, r"\1"), (_URL, "(link)"), (_TAG, " "), (_CODE, "")):
        words = pattern.sub(instead, words)
    kept = "".join(character if _may_stand(character) else " " for character in unicodedata.normalize("NFC", words))
    line = " ".join(kept.split())
    return line if len(line) <= most else f"{line[: most - 3].rstrip()}..."


def _may_stand(character: str) -> bool:
    if " " <= character <= "~":
        return character not in "<>"
    code = ord(character)
    selector = 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180F
    filler = code in (0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800)
    category = unicodedata.category(character)
    return not selector and not filler and category not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
