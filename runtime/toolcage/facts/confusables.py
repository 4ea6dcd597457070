"""Letters that look like other letters: a skeleton of a text, to compare what a person would read.

Two texts with one skeleton look alike in common fonts. The table is a small one of our own: Cyrillic, Greek, Armenian
and a few Latin letters that pass for ASCII, after NFKC has folded fullwidth, mathematical and circled forms. It is for
comparing and for searching, never for changing what is used.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_LOOKS: Final = {
    # Cyrillic
    "а": "a", "ӑ": "a", "в": "b", "с": "c", "ԁ": "d", "е": "e", "ё": "e", "ӗ": "e", "һ": "h", "н": "h", "і": "i",
    "ї": "i", "ј": "j", "к": "k", "ӏ": "l", "м": "m", "п": "n", "о": "o", "р": "p", "ԛ": "q", "г": "r", "ѕ": "s",
    "т": "t", "ц": "u", "ѵ": "v", "ԝ": "w", "х": "x", "у": "y", "ү": "y", "з": "3", "б": "6", "ь": "b", "и": "u",
    # Greek
    "α": "a", "β": "b", "ϲ": "c", "δ": "d", "ε": "e", "ϝ": "f", "η": "n", "ι": "i", "ϳ": "j", "κ": "k", "ν": "v",
    "ο": "o", "ρ": "p", "τ": "t", "υ": "u", "ω": "w", "χ": "x", "γ": "y", "μ": "u", "σ": "o",
    # Armenian, Cherokee and Latin relatives
    "ա": "w", "ց": "g", "հ": "h", "յ": "j", "օ": "o", "ս": "u", "ո": "n", "զ": "q", "ք": "p", "ɑ": "a", "ɡ": "g",
    "ı": "i", "ɩ": "i", "ʟ": "l", "ɴ": "n", "ᴏ": "o", "ʀ": "r", "ꜱ": "s", "ᴜ": "u", "ᴠ": "v", "ᴡ": "w", "ʏ": "y",
    "ᴢ": "z", "ᴀ": "a", "ʙ": "b", "ᴄ": "c", "ᴅ": "d", "ᴇ": "e", "ꜰ": "f", "ɢ": "g", "ʜ": "h", "ɪ": "i", "ᴊ": "j",
    "ᴋ": "k", "ᴍ": "m", "ᴘ": "p", "ᴛ": "t", "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t",
}  # fmt: skip
_TABLE: Final = str.maketrans(_LOOKS)
# Those that no reader tells from the Latin letter in a common font.
PASSING: Final = frozenset("асԁеһіјӏорԛѕѵԝхуүοναιρυϲϳօսհɑɡıꜱᴏᴠᴡᴢᴄ")


def skeleton(text: str) -> str:
    """`text` as it would be read if every letter were the ASCII letter that it looks like; lower case, no accents."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_TABLE)
    if folded.isascii():
        return folded
    apart = unicodedata.normalize("NFD", folded)
    for mark in filter(unicodedata.combining, set(apart)):
        apart = apart.replace(mark, "")
    return apart.translate(_TABLE)


def scripts(text: str) -> frozenset[str]:
    """The alphabets that the letters of `text` are from: `LATIN`, `CYRILLIC`, `HAN` …, by their Unicode names."""
    found: set[str] = set()
    for character in text:
        if character.isascii():
            if character.isalpha():
                found.add("LATIN")
        elif character.isalpha():
            found.add(_script(character))
    return frozenset(found)


def mixes_scripts(text: str) -> bool:
    """Whether Latin, Cyrillic, Greek, Armenian or Cherokee letters stand in one word with another of these."""
    return len(scripts(text) & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}) > 1


def passes_for_latin(text: str) -> bool:
    """Whether a text without a Latin letter reads as a Latin one: each of its letters looks like one."""
    letters = [c for c in text.casefold() if c.isalpha()]
    return bool(letters) and not any(c.isascii() for c in letters) and all(c in PASSING for c in letters)


def _script(character: str) -> str:
    name = unicodedata.name(character, "UNKNOWN").partition(" ")[0]
    return {"CJK": "HAN", "FULLWIDTH": "LATIN", "MATHEMATICAL": "LATIN"}.get(name, name)
