"""Keys, tokens and passwords replaced by a mark that names what stood there.

Danger: a key in output reaches the model, its provider, the transcript and every log after it. Protects: all of them.

Two sources. *Shapes* (`secret_shapes`): formats whose issuers gave them a recognisable form, and passwords where the
text itself calls them that. *Exact values* that the caller knows, as they are and encoded (`facts.known_values`);
always redacted, from four characters up.

The searches see the text without hidden characters and terminal sequences (`marks.views`), so neither hides a key. A
program that wants to smuggle a key out can encode it in a way of its own: redaction limits accidents, and what a cage
cannot reach it cannot print.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from toolcage.cleaning.marks import views
from toolcage.cleaning.secret_shapes import (
    ANCHORED,
    CUT_KEY,
    LONGEST_ANCHORED,
    LONGEST_NAME,
    NAME_ENDS,
    NAMES,
    NEXT_ASSIGNMENT,
    PASSWORD,
    PLACEHOLDER,
    SHAPES,
    Shape,
    is_password,
    names_a_place,
    sieve_of,
)
from toolcage.cleaning.surroundings import around_changes
from toolcage.facts.known_values import find_known

Span = tuple[int, int, str]
Region = tuple[int, int]
Match: TypeAlias = re.Match[bytes]

_PASSES = 6
_PLAIN_PASSES = 2
_WORD_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=-")


def redact_secrets(
    text: str, exact: Sequence[str] = (), *, shapes: bool = True, plain: bool = False
) -> tuple[str, int]:
    """The text without secrets, and how many there were. `plain`: the text is known to hide nothing."""
    total = 0
    for number in range(_PASSES):  # what stood next to a redacted value may be recognisable only now
        spans = find_secrets(text, exact, shapes=shapes, plain=plain)
        if not spans:
            break
        if number >= _PLAIN_PASSES:  # keys glued to each other, each of which uncovers one more: the whole word goes
            spans = _widened(text, spans)
        total += len(spans)
        text, before = replaced(text, spans), text
        around = around_changes(before, text, exact)
        if around is not None and not find_secrets(around, exact, shapes=shapes, plain=plain):
            break
    return text, total


def _widened(text: str, spans: Sequence[Span]) -> list[Span]:
    """Each span with the rest of the word that it stands in."""
    made: list[Span] = []
    for start, end, name in spans:
        if made and end <= made[-1][1]:
            continue
        while start > 0 and text[start - 1] in _WORD_CHARACTERS:
            start -= 1
        while end < len(text) and text[end] in _WORD_CHARACTERS:
            end += 1
        made.append((start, end, name))
    return made


def replaced(text: str, spans: Sequence[Span]) -> str:
    """The text with a mark in the place of each span; spans are in order and do not overlap."""
    pieces, position = [], 0
    for start, end, name in spans:
        pieces += [text[position:start], f"[redacted:{name}]"]
        position = end
    return "".join([*pieces, text[position:]])


def find_secrets(text: str, exact: Sequence[str] = (), *, shapes: bool = True, plain: bool = False) -> list[Span]:
    """Where secrets stand, in order and without overlap: start, end, kind."""
    if not shapes and not exact:
        return []
    found: list[Span] = []
    for view in views(text, plain=plain):
        found += [(*view.origin(start, end), name) for start, end, name in _search(view.text, exact, shapes)]
    return _merged(found)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end, name in sorted(spans):
        if merged and start < merged[-1][1]:
            first = merged[-1]
            merged[-1] = (first[0], max(end, first[1]), first[2])
        else:
            merged.append((start, end, name))
    return merged


# Letters beyond ASCII that a pattern without regard to case takes for ASCII ones.
_FOLDED_LETTERS = {"\u212a": "k", "\u017f": "s", "\u0130": "i", "\u0131": "i"}


def _search(text: str, exact: Sequence[str], shapes: bool) -> Iterator[Span]:
    """Works on an image of the text in which every character is one byte, so that places are the same in both."""
    image = text.encode("ascii", "replace")
    for start, end in find_known(text, exact):
        yield start, end, "secret"
    if not shapes:
        return
    if not text.isascii() and any(letter in text for letter in _FOLDED_LETTERS):
        folded = _replaced_all(text, _FOLDED_LETTERS).encode("ascii", "replace")
    else:
        folded = image
    regions = ANCHORED.regions(folded.decode("ascii"))
    if regions:
        folded = folded.lower()
        for shape in SHAPES:
            yield from _matches(shape, text, folded if shape.folded else image, regions)
        yield from _passwords(text, folded, regions)
    if b"-----END " in image:
        cut = CUT_KEY.pattern.match(text)
        if cut is not None:
            yield cut.start(), cut.end(), CUT_KEY.name


def _replaced_all(text: str, letters: Mapping[str, str]) -> str:
    for letter, plain in letters.items():
        text = text.replace(letter, plain)
    return text


def _matches(shape: Shape, text: str, where: bytes, regions: Sequence[Region]) -> Iterator[Span]:
    last = 0
    for anchor in _of_shape(shape, where, regions):
        for back in shape.back:
            start = anchor.start() - back
            match = shape.pattern.match(text, start) if start >= last else None
            if match is not None:
                last = match.end()
                group = "value" if shape.pattern.groupindex else 0
                value = match[group]
                if ("[redacted:" not in value or shape.name == "private_key") and shape.accept(value):
                    yield match.start(group), match.end(group), shape.name
                break


def _passwords(text: str, folded: bytes, regions: Sequence[Region]) -> Iterator[Span]:
    last = 0
    for anchor in _anchors(NAME_ENDS, folded, [(start, end + LONGEST_NAME) for start, end in regions]):
        end = anchor.end()
        if end <= last or not folded[max(last, end - LONGEST_NAME) : end].endswith(NAMES):
            continue
        match = PASSWORD.match(text, end)
        if match is None:
            continue
        last = match.end()
        group = str(match.lastgroup)
        value = match[group]
        if "\n" in text[end : match.start(group)] and NEXT_ASSIGNMENT.match(value):
            last = end
            continue
        if names_a_place(_shell_name(text, end), value):
            continue
        if PLACEHOLDER.match(value) is None if group != "value" else "[redacted:" not in value and is_password(value):
            yield match.start(group), match.end(group), "password"


def _shell_name(text: str, end: int) -> str:
    """The word that ends there, if it is a variable of the shell that only looks like a password's."""
    for name in ("OLDPWD", "PWD"):
        start = end - len(name)
        before = text[start - 1 : start] if start > 0 else ""
        if start >= 0 and text.startswith(name, start) and not (before.isalnum() or before == "_"):
            return name
    return ""


def _of_shape(shape: Shape, where: bytes, regions: Sequence[Region]) -> Iterator[Match]:
    """Where the anchors of a shape stand. Those that a region does not hold at all are not sought in it."""
    for start, end in regions:
        piece = where[start : end + LONGEST_ANCHORED].decode("ascii")
        held = [anchor for anchor in shape.anchors if sieve_of(anchor).may_hold(piece)]
        yield from _anchors(held, where, [(start, end)])


def _anchors(anchors: Sequence[re.Pattern[bytes]], where: bytes, regions: Sequence[Region]) -> Iterator[Match]:
    """Where the anchors stand that begin in one of the regions, in order."""
    for start, end in regions:
        found = [anchor.finditer(where, start, end + LONGEST_ANCHORED) for anchor in anchors]
        for match in found[0] if len(found) == 1 else heapq.merge(*found, key=_begin):
            if match.start() >= end:
                break
            yield match


def _begin(match: Match) -> int:
    return match.start()
