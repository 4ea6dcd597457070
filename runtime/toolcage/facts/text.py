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


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFacts(Facts):
    """`characters`, `utf8_bytes`, `lines` (at least 1); whether a NUL is in it; how many other control characters."""

    kind: Kind = "text"
    characters: int = 0
    utf8_bytes: int = 0
    lines: int = 1
    has_nul: bool = False
    controls: int = 0


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
    )
