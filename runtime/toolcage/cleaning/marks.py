"""How a hidden character is shown, and the text as a reader sees it without what is hidden.

Danger: a key, a word or a delimiter with invisible characters, controls or terminal sequences put between its letters
is missed by every pattern. Protects: the searches of the other modules, which look at `views` and map what they find
back to the text.

A mark is plain ASCII in square brackets, so no sink renders, executes or normalises it. `views` gives the same answer
for a text before and after it was marked: that is what makes cleaning idempotent.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from toolcage.facts.sieve import Sieve

CONTROL_CLASS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
"""C0 without tab and newline, DEL, C1. A carriage return counts: it overwrites a line in a terminal."""

_INVISIBLE_BMP = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
)
_INVISIBLE_BEYOND = "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff" + "".join(
    f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(1, 17)
)
INVISIBLE_CLASS = _INVISIBLE_BMP + _INVISIBLE_BEYOND
"""Bidi controls, zero-width characters, fillers, selectors, tags, line separators, noncharacters, lone surrogates.
Private use is not here: it renders as a visible glyph or box."""
READABLE_INVISIBLES = INVISIBLE_CLASS.replace("\ud800-\udfff", "")
"""The same without lone surrogates, which a sieve cannot read."""

# The engine tests the Basic Multilingual Plane by one look-up, and every range beyond it one by one for each character.
# So searches begin with all that lies beyond as one range, and look back at the few that are meant.
_BEYOND = "\U00010000-\U0010ffff"

CONTROLS = re.compile(f"[{CONTROL_CLASS}]")
INVISIBLES = re.compile(f"[{_INVISIBLE_BMP}{_BEYOND}](?<=[{INVISIBLE_CLASS}])[{INVISIBLE_CLASS}]*+")
_TO_CONTROLS = bytes(0 if (code < 0x20 and code not in (0x09, 0x0A)) or code == 0x7F else 0x20 for code in range(256))
_HIDDEN_CLASS = f"{CONTROL_CLASS}{INVISIBLE_CLASS}\u2400-\u2421"
_HIDDEN_CHARACTERS = re.compile(f"[{CONTROL_CLASS}{_INVISIBLE_BMP}\u2400-\u2421{_BEYOND}](?<=[{_HIDDEN_CLASS}])")
_MAY_CONTROL = Sieve(f"[{CONTROL_CLASS}]")
_MAY_HIDE = Sieve(f"[{CONTROL_CLASS}{READABLE_INVISIBLES}\u2400-\u2421]")

# Every pattern begins with one class, which the engine scans for fast, and looks back at what it was.
_FIRST = rf"[\[\u2400-\u2421{CONTROL_CLASS}{_INVISIBLE_BMP}{_BEYOND}]"
_MARK = r"\[U\+[0-9A-F]{4,6}(?: \+[0-9]{1,9} invisible)?\]"
_MARKS = re.compile(_MARK)
_SHOWN = rf"(?<=\[){_MARK[2:]}|(?<=[{_HIDDEN_CLASS}])"
_HIDDEN = re.compile(rf"{_FIRST}(?:{_SHOWN})")
_CSI_REST = "[0-?]*+[ -/]*+[@-~]"
_SEQUENCES = re.compile(
    rf"{_FIRST}(?:(?<=[\x1b\u241b])\[{_CSI_REST}|(?<=\x9b){_CSI_REST}|(?<=\[)U\+009B\]{_CSI_REST}"
    # OSC, DCS, SOS, PM, APC, then the two-character escapes
    rf"|(?<=[\x1b\u241b])[\]PX^_][^\x07\x1b\u2407\u241b\n]{{0,128}}(?:[\x07\u2407]|[\x1b\u241b]\\)"
    rf"|(?<=[\x1b\u241b])[ -/]*+[0-Z^-~]|{_SHOWN})"
)
_COLOUR = re.compile("\u241b\\[[0-9;]{0,24}m")
_MOST_COLOURS: Final = 16
_GONE: Final = "\ue000"
_ESCAPE: Final = "\u241b"
_COMMON = "\u241b\u240d\u2407\u2400\u200c\u200d\ufe0f"


def mark(character: str) -> str:
    """`[U+200B]` for one character."""
    return f"[U+{ord(character):04X}]"


@dataclass(slots=True)
class View:
    """A text with every match of `left_out` left out."""

    text: str
    full: str
    left_out: re.Pattern[str] | None
    _starts: list[int] = field(default_factory=list)
    _origins: list[int] = field(default_factory=list)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The span of the full text that `start:end` of the view stands for, hidden characters inside it included."""
        if self.left_out is None:
            return start, end
        if not self._starts:
            self._map(self.left_out)
        return self._at(start), self._at(end - 1) + 1

    def _at(self, position: int) -> int:
        piece = bisect_right(self._starts, position) - 1
        return self._origins[piece] + position - self._starts[piece]

    def _map(self, left_out: re.Pattern[str]) -> None:
        # Built only when something was found: most texts with hidden characters hide nothing.
        length = position = 0
        for match in left_out.finditer(self.full):
            if match.start() > position:
                self._starts.append(length)
                self._origins.append(position)
                length += match.start() - position
            position = match.end()
        self._starts.append(length)
        self._origins.append(position)


def has_controls(text: str) -> bool:
    """Whether a control character stands in the text."""
    if text.isascii() and len(text) > 64:
        return b"\0" in text.encode().translate(_TO_CONTROLS)
    return _MAY_CONTROL.may_hold(text) and CONTROLS.search(text) is not None


def hides(text: str) -> bool:
    """Whether the text holds a hidden character or the mark of one."""
    if "[" in text and "[U+" in text:
        return True
    if text.isascii():
        return has_controls(text)
    return _MAY_HIDE.may_hold(text) and _HIDDEN_CHARACTERS.search(text) is not None


def views(text: str, *, plain: bool = False) -> Iterator[View]:
    """The text as searches must see it: without hidden characters, and also without whole terminal sequences.

    `plain` says that the text does not hide anything (see `hides`), where that is known.

    Both are needed: a sequence can split a key, and its payload (a window title, a link target) can be one.
    """
    if plain or not hides(text):
        yield View(text, text, None)
        return
    uncoloured = _without_colours(text) if _ESCAPE in text and "[U+" not in text else None
    if uncoloured is not None and not _MAY_HIDE.may_hold(uncoloured):  # nothing but colours hides anything
        yield View(text.replace(_ESCAPE, ""), text, _HIDDEN)
        yield View(uncoloured, text, _SEQUENCES)
        return
    yield View(_without_hidden(text), text, _HIDDEN)
    if "\x1b" in text or "\u241b" in text or "\x9b" in text or "[U+009B]" in text:
        yield View(_SEQUENCES.sub("", text), text, _SEQUENCES)


def _without_hidden(text: str) -> str:
    """What `_HIDDEN` leaves. Marks go first and hold no hidden character, so the order makes no difference."""
    if "[U+" in text:
        text = _MARKS.sub("", text)
    for character in _COMMON:  # deleting one character everywhere is far cheaper than a match at each
        if character in text:
            text = text.replace(character, "")
    return _HIDDEN_CHARACTERS.sub("", text) if _MAY_HIDE.may_hold(text) else text


def _without_colours(text: str) -> str | None:
    """The text without the sequences that set a colour, if there are few kinds of them and no other escape.

    Where nothing else is hidden, that is what `_SEQUENCES` leaves: no sequence begins within one of a colour."""
    if _GONE in text:
        return None
    for _ in range(_MOST_COLOURS):  # deleting one everywhere is far cheaper than a match at each
        colour = _COLOUR.search(text)
        if colour is None:
            break
        text = text.replace(colour[0], _GONE)  # what stood around it must not become a sequence
    return None if _ESCAPE in text else text.replace(_GONE, "")
