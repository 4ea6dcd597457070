"""A layer of hidden units over the features of a few sentences: what single weights cannot say.

A word may speak for an attack beside one word and against it beside another; a linear model cannot tell, a few units
can. Each unit sums what its features give it, counts only above nothing, and the units' weighed sum is the score.

A row of one feature (what it gives to each unit, and to the score itself) is held as one integer with a lane of 32 bits
for each number. So the sums of all units are one sum of integers, made by C code: a loop over the units would cost
many times as much. Numbers are a byte each, moved by `_ZERO` to be positive; the last lane counts the rows.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Final

_ZERO: Final = 128
_LANE: Final = 4


class Hidden:
    """The rows by feature, the units' thresholds and weights, and how much one step of a byte is.

    `rows`: one byte for each unit and one for the score, feature by feature, in base64."""

    __slots__ = ("_bias", "_lanes", "_outputs", "_rows", "_step", "_thresholds")

    def __init__(
        self, *, features: Sequence[str], rows: str, thresholds: Sequence[float], outputs: Sequence[float],
        step: float, bias: float,
    ) -> None:  # fmt: skip
        self._thresholds, self._outputs, self._step, self._bias = thresholds, outputs, step, bias
        width = len(thresholds) + 1
        self._lanes = struct.Struct(f"<{width + 1}I")
        self._rows: Mapping[str, int] = dict(zip(features, _as_integers(b64decode(rows), width), strict=True))

    def summed(self, features: Iterable[str]) -> int:
        """What the features give to all units, as one integer: of several sentences, these are added."""
        return sum(map(self._rows.get, features, repeat(0)))

    def score(self, total: int, scale: float) -> float:
        """The score of a run of sentences whose sums make `total`, each sum times `scale`."""
        *lanes, rows = self._lanes.unpack(total.to_bytes(self._lanes.size, "little"))
        unit = scale * self._step
        *sums, direct = [unit * (lane - _ZERO * rows) for lane in lanes]
        units = zip(sums, self._thresholds, self._outputs, strict=True)
        score: float = self._bias + direct
        for given, least, out in units:
            score += out * max(0.0, given + least)
        return score


def _as_integers(numbers: bytes, width: int) -> Iterable[int]:
    count = len(numbers) // width
    spread = bytearray(count * (width + 1) * _LANE)
    for lane in range(width):
        spread[lane * _LANE :: (width + 1) * _LANE] = numbers[lane::width]
    spread[width * _LANE :: (width + 1) * _LANE] = bytes([1]) * count
    size = (width + 1) * _LANE
    for start in range(0, len(spread), size):
        yield int.from_bytes(spread[start : start + size], "little")
