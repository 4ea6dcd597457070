"""Characters that are not seen, shown; writing that needs them, left alone.

Danger: bidi controls that reorder what a person reads (CVE-2021-42574), and zero-width characters, tag characters,
runs of variation selectors and fillers that carry text only the model sees. Protects: people, the model, and every
search that compares text.

Kept: the joiner inside an emoji sequence, a variation selector on the character that takes it, the tags of the flags
that fonts know, and the joiners inside words of the Arabic, Syriac, Mongolian, Indic and Southeast Asian scripts. The
decision looks at the whole run of invisible characters and its two neighbours, which are never changed themselves.
"""

from __future__ import annotations

import re

from toolcage.cleaning.marks import INVISIBLES, READABLE_INVISIBLES, mark
from toolcage.facts.sieve import Innocent

_LONGEST_SPELLED_RUN = 4
_LONGEST_KNOWN = 8
_PICTOGRAPH = re.compile(
    "[#*0-9\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b05-\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_CURSIVE = re.compile("[\u0600-\u061b\u061d-\u08ff\u1800-\u180a\u1810-\u18af\ufb50-\ufdcf\ufe70-\ufefc]")
_INDIC = re.compile("[\u0900-\u0dff\u0f00-\u109f\u1780-\u17b3\u17b6-\u17ff\u1a20-\u1aaf\u1b00-\u1c4f\ua840-\uabff]")
_VIRAMA = re.compile("[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca]")
_MONGOLIAN = re.compile("[\u1820-\u18aa]")
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]")
_VARIED = re.compile("[\u2200-\u22ff\u2a00-\u2aff\u3000-\u303f\uff00-\uff60]")
_FLAG_TAGS = frozenset(
    "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls", "gbnir")
)

# Texts whose invisible characters all belong: emoji, words of cursive and Indic scripts. Not all that belong are here.
_BELONGING = Innocent(
    rf"(?:[^{READABLE_INVISIBLES}]|{_PICTOGRAPH.pattern}(?:\ufe0f?\u200d{_PICTOGRAPH.pattern})*[\ufe0e\ufe0f]?"
    rf"|{_CURSIVE.pattern}(?:\u200c{_CURSIVE.pattern})+|{_INDIC.pattern}(?:[\u200c\u200d]{_INDIC.pattern})+)*"
)


def show_invisibles(text: str) -> tuple[str, int]:
    """The text with every invisible character shown that its writing does not need, and how many there were."""
    if text.isascii() or _BELONGING.is_surely(text):
        return text, 0
    shown = 0
    known: dict[str, tuple[str, int]] = {}

    def replace(match: re.Match[str]) -> str:
        nonlocal shown
        start, end = match.span()
        before = text[start - 1 : start] if start else ""
        context = text[start - len(before) : end + 1]  # unambiguous: only the run in it is invisible
        if context not in known:
            decided = _decided(match[0], before, text[end : end + 1])
            if len(context) > _LONGEST_KNOWN:
                shown += decided[1]
                return decided[0]
            known[context] = decided
        kept, count = known[context]
        shown += count
        return kept

    return INVISIBLES.sub(replace, text), shown


def _decided(run: str, before: str, after: str) -> tuple[str, int]:
    """What stands for the run, and how many characters of it are shown."""
    if _belongs(run, before, after):
        return run, 0
    if len(run) <= _LONGEST_SPELLED_RUN:
        return "".join(map(mark, run)), len(run)
    return f"[U+{ord(run[0]):04X} +{len(run) - 1} invisible]", len(run)


def _belongs(run: str, before: str, after: str) -> bool:
    if run in ("\u200c", "\u200d"):
        return _joins(run, before, after)
    if run in ("\ufe0e", "\ufe0f", "\ufe0f\u200d"):
        emoji = _PICTOGRAPH.match(before) is not None
        return emoji and (len(run) == 1 or _PICTOGRAPH.match(after) is not None)
    if before == "\U0001f3f4":
        return run in _FLAG_TAGS
    if len(run) > 1:
        return False
    if "\u180b" <= run <= "\u180f":
        return _MONGOLIAN.match(before) is not None
    if "\U000e0100" <= run <= "\U000e011f":  # the part of the range that registered ideographic sequences use
        return _IDEOGRAPH.match(before) is not None
    if "\ufe00" <= run <= "\ufe02":
        return _VARIED.match(before) is not None or _IDEOGRAPH.match(before) is not None
    return False


def _joins(joiner: str, before: str, after: str) -> bool:
    if _CURSIVE.match(before):
        # A word may end in a joiner that keeps the joined form, as in Persian abbreviations.
        return joiner == "\u200d" or _CURSIVE.match(after) is not None
    if _INDIC.match(before):
        return _INDIC.match(after) is not None or _VIRAMA.match(before) is not None
    return joiner == "\u200d" and all(map(_PICTOGRAPH.match, (before, after)))
