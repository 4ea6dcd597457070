"""What stands around the places that a step changed: all that the next look at a text has to see.

What was unchanged and far from any change was looked at already, in the same words. Nothing that cleaning seeks reaches
further than `_REACH` beyond a line that it changed, but for values that the caller knows, in their longest spelling. An
answer of None (much was changed, or lines were joined) asks for another look at everything; and so must whoever finds
something here, since a piece has ends where the text has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, compress, count
from operator import ne
from typing import Final

from toolcage.facts.known_values import known_values

_REACH: Final = 800
_LEAST: Final = 16_384
_MOST: Final = 0.5
_APART: Final = "\n.\n"


def around_changes(before: str, after: str, exact: Sequence[str] = ()) -> str | None:
    """The stretches of `after` around the lines that were others in `before`; None where they are most of it."""
    if len(after) < _LEAST:
        return None
    lines, others = after.split("\n"), before.split("\n")
    if len(lines) != len(others):
        return None
    reach = max((_REACH, *(known_values(value).longest for value in exact)))
    ends = [*accumulate(map(len, lines))]  # without the line ends before them
    changed = [*compress(count(), map(ne, lines, others))]
    stretches = [*_joined((ends[n] + n - len(lines[n]) - reach, ends[n] + n + reach) for n in changed)]
    if sum(end - start for start, end in stretches) > _MOST * len(after):
        return None
    pieces = [after[max(0, start) : end] for start, end in stretches]
    opened = "" if not stretches or stretches[0][0] <= 0 else _APART
    closed = "" if not stretches or stretches[-1][1] >= len(after) else _APART
    return f"{opened}{_APART.join(pieces)}{closed}"


def _joined(stretches: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Stretches in order, those that touch as one."""
    start, end = 0, -1
    for begin, finish in stretches:
        if begin > end:
            if end >= 0:
                yield start, end
            start = begin
        end = finish
    if end >= 0:
        yield start, end
