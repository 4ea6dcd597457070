"""A JSON value brought within bounds of depth, width and bytes, with a mark wherever something is missing.

Danger: a value so deep that the next parser overflows its stack, so wide or long that it fills a context window,
numbers that JSON cannot carry. Protects: the model's context, every later serialiser.

One walk in document order with one budget for the whole value, so the first rows survive and the last are dropped.
What a string becomes is the caller's word (`text`), given the room that is left. Recursion ends at `max_depth`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from toolcage.types import JSON

MAX_DEPTH = 64
MAX_ITEMS = 100_000
_LARGEST_PLAIN_BITS = 12_000  # the interpreter refuses to print integers above some 14 000 bits

TextStep = Callable[[str, int, str | None], str]
"""text, room in bytes, the key it stands under (None for a key itself) → the text to put there"""


@dataclass(slots=True)
class Bounder:
    """Walks one value. `kept` and `dropped` are bytes, as JSON would take them, after the walk."""

    max_bytes: int
    text: TextStep
    max_depth: int = MAX_DEPTH
    max_items: int = MAX_ITEMS
    kept: int = 0
    dropped: int = 0

    def bound(self, value: JSON, depth: int = 0, key: str | None = "") -> JSON:
        """The value within bounds, frozen. Never raises."""
        if isinstance(value, str):
            return self._string(value, key)
        if value is None or isinstance(value, int | float):
            self.kept += size(value)
            return _number(value)
        if depth >= self.max_depth:
            self.dropped += size(value)
            return f"[… nested deeper than {self.max_depth} levels, dropped …]"
        self.kept += 2
        if isinstance(value, tuple | list):
            return self._list(value, depth, key)
        return self._object(value, depth)

    @property
    def room(self) -> int:
        """Bytes left."""
        return max(0, self.max_bytes - self.kept)

    def _string(self, value: str, key: str | None) -> str:
        kept = self.text(value, self.room, key)
        self.kept += _length(kept) + 2
        return kept

    def _list(self, items: tuple[JSON, ...] | list[JSON], depth: int, key: str | None) -> JSON:
        made: list[JSON] = []
        for position, item in enumerate(items):
            if self.kept >= self.max_bytes or position >= self.max_items:
                self.dropped += sum(map(size, items[position:]))
                made.append(f"[… {len(items) - position} items dropped …]")
                break
            made.append(self.bound(item, depth + 1, key))
            self.kept += 1
        return tuple(made)

    def _object(self, items: Mapping[str, JSON], depth: int) -> JSON:
        made: dict[str, JSON] = {}
        numbers: dict[str, int] = {}
        for position, (key, item) in enumerate(items.items()):
            if self.kept >= self.max_bytes or position >= self.max_items:
                left = list(items.items())[position:]
                self.dropped += sum(_length(name) + size(value) + 4 for name, value in left)
                made[_free("[…]", made, numbers)] = f"[… {len(left)} keys dropped …]"
                break
            made[_free(self._string(key, None), made, numbers)] = self.bound(item, depth + 1, key)
            self.kept += 2
        return MappingProxyType(made)


def size(value: JSON) -> int:
    """About the bytes that the value takes as JSON. Not recursive: the value may be deeper than the stack."""
    total, stack = 0, [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            total += _length(item) + 2
        elif isinstance(item, Mapping):
            total += 2 + sum(_length(key) + 4 for key in item)
            stack.extend(item.values())
        elif isinstance(item, tuple | list):
            total += 2 + len(item)
            stack.extend(item)
        elif isinstance(item, int) and not isinstance(item, bool):
            total += item.bit_length() * 3 // 10 + 1
        else:
            total += 5 if item is None or isinstance(item, bool) else 12
    return total


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _number(value: bool | int | float | None) -> JSON:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no NaN or Infinity
    if isinstance(value, int) and value.bit_length() > _LARGEST_PLAIN_BITS:
        return f"[… an integer of {value.bit_length()} bits …]"
    return value


def _free(key: str, taken: Mapping[str, JSON], numbers: dict[str, int]) -> str:
    """Two keys may become one when cleaned; neither is lost. `numbers` remembers where the search for a key went on, so
    that keys made to collide with each other and with their numbered forms are looked at once."""
    if key not in taken:
        return key
    number = numbers.get(key, len(taken))
    while f"{key} ({number})" in taken:
        number += 1
    numbers[key] = number + 1
    return f"{key} ({number})"
