"""Letters that look like other letters: a skeleton of a text, to compare what a person would read.

Two texts with one skeleton look alike in common fonts. The table is a small one of our own: Cyrillic, Greek, Armenian
and a few Latin letters that pass for ASCII, after NFKC has folded fullwidth, mathematical and circled forms. It is for
comparing and for searching, never for changing what is used. Hosts are held to more than names of data are: a browser
shows a label of two alphabets in punycode, while `Цена_USD` is the name of a column.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
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

# Capitals of other alphabets that are drawn as Latin ones, and Latin letters that another alphabet draws too.
_PASSING_CAPITALS: Final = frozenset("АВЕЅІЈКМНОРСТУХԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
_WITH_A_TWIN: Final = frozenset("aceijopsxyhABCEHIJKMOPSTXY")
_SMALL_LATIN: Final = frozenset("ɑɡɩʟɴᴏʀꜱᴜᴠᴡʏᴢᴀʙᴄᴅᴇꜰɢʜɪᴊᴋᴍᴘᴛ")
_ALPHABETS: Final = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})
_WORD: Final = re.compile(r"[^\W_]+")
_SYMBOL: Final = re.compile("[α-ω](?<![ονυι])")  # a letter of Greek alone stands for a quantity
_OTHER_DRAWING: Final = frozenset({"<super>", "<sub>", "<fraction>", "<square>"})


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


def reads_as_another(name: str) -> bool:
    """Whether a name may be read as one that it is not, since it borrows letters of another alphabet for their looks.

    Two alphabets may meet in a name (`Цена_USD`, `Δt`, `λmax`): what counts is a run of letters that are all drawn as
    letters of the alphabet beside them (`оrders`), or a word of such letters where nothing else in the name is of its
    alphabet (`соре`).
    """
    if name.isascii():
        return False
    words = [
        [(script, "".join(run)) for script, run in groupby(filter(str.isalpha, word), _alphabet)]
        for word in _WORD.findall(name)
    ]
    return any(map(_borrows, words)) or any(
        len(word) == 1 and _is_drawn_latin(*word[0]) and not _stands_by_its_kind(word[0], words) for word in words
    )


def has_other_spelling(name: str) -> bool:
    """Whether another name is drawn like this one and differs in how its characters are encoded alone: fullwidth and
    mathematical letters, ligatures, parts and accents that are written apart. `m²`, `µs` and `価格（円）` are drawn
    otherwise than `m2`, `us` and `価格(円)`."""
    if name.isascii():
        return False
    rest = "".join(character for character in name if not _is_drawn_otherwise(character))
    return unicodedata.normalize("NFKC", rest) != rest


def _is_drawn_otherwise(character: str) -> bool:
    tag, _, _ = unicodedata.decomposition(character).partition(" ")
    if tag in ("<wide>", "<narrow>"):
        plain = unicodedata.normalize("NFKC", character)
        return not (plain.isascii() and (plain.isalnum() or plain in "_-. "))
    return tag in _OTHER_DRAWING or character in "µ№℃℉"


def _alphabet(character: str) -> str:
    script = "LATIN" if character.isascii() else _script(character)
    return script if script in _ALPHABETS else "OTHER"


def _borrows(word: list[tuple[str, str]]) -> bool:
    """Whether a word of several alphabets holds a run that passes for one of another."""
    if any(any(map(str.isascii, run)) and not _SMALL_LATIN.isdisjoint(run) for _, run in word):
        return True
    alphabets = {script for script, _ in word} & _ALPHABETS
    if len(alphabets) < 2:
        return False
    if alphabets not in ({"LATIN", "CYRILLIC"}, {"LATIN", "GREEK"}):
        return True
    return any(
        all(c.casefold() in PASSING or c in _PASSING_CAPITALS for c in run)
        if script in ("CYRILLIC", "GREEK")
        else script == "LATIN" and "CYRILLIC" in alphabets and _WITH_A_TWIN.issuperset(run)
        for script, run in word
    )


def _is_drawn_latin(script: str, run: str) -> bool:
    return script not in ("LATIN", "OTHER") and all(c.casefold() in PASSING for c in run)


def _stands_by_its_kind(run: tuple[str, str], words: list[list[tuple[str, str]]]) -> bool:
    """Whether the run is a symbol, or other words of the name show that its alphabet is meant."""
    script, letters = run
    if script == "GREEK" and _SYMBOL.fullmatch(letters):
        return True
    return any(other == script and not _is_drawn_latin(other, text) for word in words for other, text in word)


def _script(character: str) -> str:
    name = unicodedata.name(character, "UNKNOWN").partition(" ")[0]
    return {"CJK": "HAN", "FULLWIDTH": "LATIN", "MATHEMATICAL": "LATIN"}.get(name, name)
