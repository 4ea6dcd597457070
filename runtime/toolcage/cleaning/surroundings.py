"""What stands around the places that a step changed: all that the next look at a text has to see.

What was unchanged and far from any change was looked at already, in the same words. Nothing that cleaning seeks reaches
further than `_REACH` beyond a line that it changed, but for values that the caller knows, in their longest spelling. An
answer of None (much was changed, or lines were joined) asks for another look at everything; and so must whoever finds
something here, since a piece has ends where the text has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from toolcage.facts.known_values import known_values

_REACH: Final = 800
_LEAST: Final = 16_384
_MOST: Final = 0.5
_BLOCK: Final = 1024
_APART: Final = "\n.\n"


def around_changes(before: str, after: str, exact: Sequence[str] = ()) -> str | None:
    """The stretches of `after` around the lines that were others in `before`; None where they are most of it."""
    if len(after) < _LEAST or before.count("\n") != after.count("\n"):
        return None
    reach = max((_REACH, *(known_values(value).longest for value in exact)))
    stretches: list[tuple[int, int]] = []
    covered = 0
    for begin, end in _changed(before, after):
        start, end = max(0, begin - reach), end + reach
        if stretches and start <= stretches[-1][1]:
            start, last = stretches.pop()
            covered -= last - start
        stretches.append((start, end))
        covered += end - start
        if covered > _MOST * len(after):
            return None
    pieces = [after[start:end] for start, end in stretches]
    opened = "" if not stretches or stretches[0][0] == 0 else _APART
    closed = "" if not stretches or stretches[-1][1] >= len(after) else _APART
    return f"{opened}{_APART.join(pieces)}{closed}"


def _changed(before: str, after: str) -> Iterator[tuple[int, int]]:
    """Where in `after` some lines stand that hold all the changes; both texts have as many lines.

    Block by block, because most of a text is unchanged, and equal blocks are told faster than lines."""
    old = new = 0
    while old < len(before) or new < len(after):
        if before[old : old + _BLOCK] == after[new : new + _BLOCK]:
            old, new = old + _BLOCK, new + _BLOCK
            continue
        end = before.find("\n", old + _BLOCK) + 1 or len(before)
        last = _after_lines(after, new, before.count("\n", old, end))
        yield after.rfind("\n", 0, new) + 1, last
        old, new = end, last


def _after_lines(text: str, start: int, lines: int) -> int:
    """Where the text goes on after so many line ends; its end where there are none."""
    for _ in range(lines):
        start = text.find("\n", start) + 1
    return start if lines else len(text)
