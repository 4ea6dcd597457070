"""A JSON value brought within bounds of depth, width and bytes, with a mark wherever something is missing.

Danger: a value so deep that the next parser overflows its stack, so wide or long that it fills a context window,
numbers that JSON cannot carry. Protects: the model's context, every later serialiser.

One walk in document order with one budget for the whole value, so the first rows survive and the last are dropped.
What a string becomes is the caller's word (`text`), given the room that is left. Recursion ends at `max_depth`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from toolcage.types import JSON

MAX_DEPTH = 64
MAX_ITEMS = 100_000
LARGEST_PLAIN_BITS = 12_000  # the interpreter refuses to print integers above some 14 000 bits

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
    _names: dict[str, tuple[str, int]] = field(default_factory=dict)

    def bound(self, value: JSON, depth: int = 0, key: str | None = "") -> JSON:
        """The value within bounds, frozen. Never raises."""
        if isinstance(value, str):
            return self._string(value, key)
        if value is None or isinstance(value, int | float):
            self.kept += _plain_size(value)
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
        room = self.max_bytes - self.kept
        kept = self.text(value, room if room > 0 else 0, key)
        self.kept += (len(kept) if kept.isascii() else length(kept)) + 2
        return kept

    def _name(self, key: str) -> str:
        """A key cleaned. The rows of a table have the same ones: each is cleaned once while there is room for it."""
        known = self._names.get(key)
        if known is not None and 4 * known[1] <= self.max_bytes - self.kept:
            self.kept += known[1] + 2
            return known[0]
        before, room = self.kept, self.room
        name = self._string(key, None)
        if 4 * (self.kept - before) <= room:
            self._names[key] = name, self.kept - before - 2
        return name

    def _list(self, items: tuple[JSON, ...] | list[JSON], depth: int, key: str | None) -> JSON:
        made: list[JSON] = []
        for position, item in enumerate(items):
            if self.kept >= self.max_bytes or position >= self.max_items:
                self.dropped += size(*items[position:])
                made.append(f"[… {len(items) - position} items dropped …]")
                break
            made.append(self._string(item, key) if type(item) is str else self.bound(item, depth + 1, key))
            self.kept += 1
        return tuple(made)

    def _object(self, items: Mapping[str, JSON], depth: int) -> JSON:
        made: dict[str, JSON] = {}
        numbers: dict[str, int] = {}
        deeper = depth + 1
        for position, (key, item) in enumerate(items.items()):
            if self.kept >= self.max_bytes or position >= self.max_items:
                left = list(items.items())[position:]
                self.dropped += size(*(part for pair in left for part in pair)) + 2 * len(left)
                made[_free("[…]", made, numbers)] = f"[… {len(left)} keys dropped …]"
                break
            name = self._name(key)
            if name in made:
                name = _free(name, made, numbers)
            made[name] = self._string(item, key) if type(item) is str else self.bound(item, deeper, key)
            self.kept += 2
        return MappingProxyType(made)


def size(*values: JSON) -> int:
    """About the bytes that the values take as JSON. Not recursive: they may be deeper than the stack."""
    total, texts = 0, list[str]()
    containers: list[Iterable[JSON]] = [values]
    while containers:
        for item in containers.pop():
            kind = type(item)
            if kind is str:
                texts.append(item)  # type: ignore[arg-type]
            elif kind is MappingProxyType:
                total += 2 + 2 * len(item)  # type: ignore[arg-type]
                texts.extend(item)  # type: ignore[arg-type]
                containers.append(item.values())  # type: ignore[union-attr]
            elif kind is tuple:
                total += 2 + len(item)  # type: ignore[arg-type]
                containers.append(item)  # type: ignore[arg-type]
            else:
                total += _other_size(item, containers)
    return total + length("".join(texts)) + 2 * len(texts)


def _other_size(item: JSON, containers: list[Iterable[JSON]]) -> int:
    """The same for what is no frozen container and no plain string; what it holds is left to the caller."""
    if isinstance(item, str):
        return length(item) + 2
    if isinstance(item, Mapping):
        containers.append([*item, *item.values()])
        return 2 + 2 * len(item)
    if isinstance(item, tuple | list):
        containers.append(item)
        return 2 + len(item)
    return _plain_size(item)


def _plain_size(value: float | None) -> int:
    """`size` of what holds nothing."""
    if value is None or isinstance(value, bool):
        return 5
    return value.bit_length() * 3 // 10 + 1 if isinstance(value, int) else 12


def length(text: str) -> int:
    """The bytes of a text, lone surrogates included."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _number(value: bool | int | float | None) -> JSON:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no NaN or Infinity
    if isinstance(value, int) and value.bit_length() > LARGEST_PLAIN_BITS:
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
