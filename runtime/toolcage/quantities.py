"""Sizes and times as policy and resource files write them: `256MiB`, `5s`. One spelling each, range-checked, no guess.

`256m`, `256MB` and a bare `256` are refused: engines and people read them differently. The ranges are the widest that
the cage is built for; a value outside is an error and is never clamped.
"""

from __future__ import annotations

import re
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

_SIZE: Final = re.compile(r"([1-9][0-9]{0,8})(B|KiB|MiB|GiB)")
_SIZE_UNITS: Final = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}
_TIME: Final = re.compile(r"([1-9][0-9]{0,5})(ms|s|m)")
_TIME_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}


def size_bytes(text: object, *, low: int, high: int) -> int:
    """The bytes that `text` names. Raises ValueError, with what to write instead."""
    found = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"{_shown(text)} is not a size; write a whole number and B, KiB, MiB or GiB, as in 256MiB")
    value = int(found[1]) * _SIZE_UNITS[found[2]]
    if not low <= value <= high:
        raise ValueError(f"{text} is out of range; write a size from {size_text(low)} to {size_text(high)}")
    return value


def time_seconds(text: object, *, low: float, high: float) -> float:
    """The seconds that `text` names. Raises ValueError, with what to write instead."""
    found = _TIME.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"{_shown(text)} is not a time; write a whole number and ms, s or m, as in 5s")
    value = int(found[1]) * _TIME_UNITS[found[2]]
    if not low <= value <= high:
        raise ValueError(f"{text} is out of range; write a time from {low:g}s to {high:g}s")
    return value


def number_between(value: object, *, low: float, high: float, whole: bool) -> float:
    """`value`, a plain number in the range. Raises ValueError, with what to write instead."""
    wanted = "a whole number" if whole else "a number"
    only = f"write {low:g}" if low == high else f"write {wanted} from {low:g} to {high:g}"
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise ValueError(f"{_shown(value)} is not {wanted}; {only}")
    if not low <= value <= high:
        raise ValueError(f"{value:g} is out of range; {only}")
    return value


def size_text(value: int) -> str:
    """The shortest spelling of `value` bytes that `size_bytes` reads back."""
    for unit, factor in reversed(_SIZE_UNITS.items()):
        if value % factor == 0 and value >= factor:
            return f"{value // factor}{unit}"
    return f"{value}B"


def _shown(value: object) -> str:
    return f"`{str(value)[:40]}`"
