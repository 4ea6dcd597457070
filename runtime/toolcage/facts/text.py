"""Facts of a text that has no grammar of its own here: how long it is and which control characters it holds.

Also what arguments of a kind without a reader in this version fall back to, so that they are bounded all the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from toolcage.types import Facts, Kind

# Tab, line feed and carriage return are ordinary in texts; U+0080–U+009F are the 8-bit forms of terminal controls.
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")

_FLAG: Final = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f")
_TAGS: Final = re.compile("[\U000e0000-\U000e007f]|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,}")
_OVERRIDES: Final = re.compile("[\u202d\u202e]")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFacts(Facts):
    """`characters`, `utf8_bytes`, `lines` (at least 1); whether a NUL is in it; how many other control characters.
    `tags`: characters that no font shows and that spell hidden text (the tag block outside a flag, runs of variation
    selectors); `overrides`: those that turn the direction of what stands around them."""

    kind: Kind = "text"
    characters: int = 0
    utf8_bytes: int = 0
    lines: int = 1
    has_nul: bool = False
    controls: int = 0
    tags: int = 0
    overrides: int = 0


def read(text: str, kind: Kind = "text") -> TextFacts:
    """The facts of `text`. Never refuses: a lone surrogate counts as three bytes."""
    nuls = text.count("\x00")
    return TextFacts(
        kind=kind,
        characters=len(text),
        utf8_bytes=len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")),
        lines=text.count("\n") + 1,
        has_nul=nuls > 0,
        controls=len(_CONTROL.findall(text)) - nuls,
        tags=0 if text.isascii() else sum(map(len, _TAGS.findall(_FLAG.sub("", text)))),
        overrides=0 if text.isascii() else len(_OVERRIDES.findall(text)),
    )
