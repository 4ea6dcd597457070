"""The strings of a JSON value, read in document order and no further than they are needed.

Decides nothing about them: it says which there are, what the value takes besides them, and whether it is plain, that
is frozen and within the bounds of depth and width, with numbers that JSON can carry and no string that the key alone
calls a secret. In such a value only strings change when it is cleaned. Not recursive: no depth of a value is too deep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Final

from toolcage.cleaning.json_bounds import LARGEST_PLAIN_BITS, MAX_DEPTH, MAX_ITEMS, length
from toolcage.types import JSON

_NUMBERS: Final = frozenset({int, float, bool, type(None)})
_CONTAINERS: Final = frozenset({tuple, MappingProxyType})


class Reader:
    """Reads one value. `names` are its keys, each once, in the order in which they were met.

    `named` says whether a key could call a string a secret, and `calls` whether it calls this one so: such a string is
    not among those that are read."""

    def __init__(self, value: JSON, named: Callable[[str], bool], calls: Callable[[str, str], bool]) -> None:
        self.names: list[str] = []
        self.plain = True
        self._named = named
        self._calls = calls
        self._size = 0
        self._columns: dict[tuple[str, ...], int] = {}
        self._known: set[str] = set()
        self._naming: set[str] = set()
        self._given = 0
        self._numbers: list[int | float | None] = []
        self._open: list[Iterator[JSON]] = [iter((value,))]

    @property
    def whole(self) -> bool:
        """Whether everything was read."""
        return not self._open and self._given == len(self.names)

    def read(self, most: int) -> tuple[list[str], list[str]]:
        """The next strings, `most` characters of them and the one with which there are more, and as much of the new
        names. What is longer than that by itself is passed over."""
        found: list[str] = []
        left = most
        while self._open:
            for item in self._open[-1]:
                kind = type(item)
                if kind is str:
                    if len(item) > most:  # type: ignore[arg-type]
                        self.plain = False
                        continue
                    found.append(item)  # type: ignore[arg-type]
                    left -= len(item)  # type: ignore[arg-type]
                    if left < 0:
                        break
                elif kind in _NUMBERS:
                    self._numbers.append(item)  # type: ignore[arg-type]
                elif kind not in _CONTAINERS and isinstance(item, str | int | float):  # a class of its own
                    self.plain = False
                else:
                    left -= self._enter(item)
                    break
            else:
                self._open.pop()
            if left < 0:
                break
        return found, self._new_names(most)

    def _new_names(self, most: int) -> list[str]:
        found: list[str] = []
        left = most
        while left >= 0 and self._given < len(self.names):
            name = self.names[self._given]
            self._given += 1
            if len(name) > most:
                self.plain = False
                continue
            found.append(name)
            left -= len(name)
        return found

    def size(self) -> int:
        """The bytes, as JSON would take them, of all that was read but the strings."""
        numbers = sum([_number_size(number) for number in self._numbers])
        columns = sum(often * sum(length(name) + 4 for name in names) for names, often in self._columns.items())
        return self._size + columns + numbers

    def can_be_carried(self) -> bool:
        """Whether JSON can carry every number that was read."""
        return all(map(_is_carried, self._numbers))

    def _enter(self, item: JSON) -> int:
        """Goes into a list or an object. The least bytes that it takes besides its strings."""
        if len(self._open) > MAX_DEPTH:
            self.plain = False
            return 0
        self._size += 2
        count = len(item)  # type: ignore[arg-type]
        if type(item) is tuple:
            items: Iterator[JSON] = iter(item)
            self._size += count
        elif type(item) is MappingProxyType or isinstance(item, Mapping):
            items = self._values(item)
            self.plain = self.plain and type(item) is MappingProxyType
        else:
            items = iter(item)  # type: ignore[arg-type]
            self.plain = False
        if count > MAX_ITEMS:
            self.plain = False
            items = islice(items, MAX_ITEMS)
        self._open.append(items)
        return 2 + 2 * count

    def _values(self, item: Mapping[str, JSON]) -> Iterator[JSON]:
        """What is in an object. The rows of a table have the same columns: those are looked at once."""
        columns = tuple(item)
        if columns not in self._columns:
            self._columns[columns] = 0
            new = [name for name in columns[:MAX_ITEMS] if name not in self._known]
            self.names += new
            self._known.update(new)
            self._naming.update(filter(self._named, new))
        self._columns[columns] += 1
        if self._naming.isdisjoint(columns):
            return iter(item.values())
        depth = MAX_DEPTH - len(self._open)
        return (self._not_called(key, value, depth) if key in self._naming else value for key, value in item.items())

    def _not_called(self, key: str, value: JSON, depth: int) -> JSON:
        """The value, or the list without the strings, that the key does not call a secret; None in their place."""
        if isinstance(value, str):
            if not self._calls(key, value):
                return value
            self.plain = False
            return None
        if isinstance(value, tuple | list) and depth > 0:
            return tuple(self._not_called(key, item, depth - 1) for item in value)
        return value


def _number_size(number: float | None) -> int:
    if type(number) is float:
        return 12
    return number.bit_length() * 3 // 10 + 1 if type(number) is int else 5


def _is_carried(number: float | None) -> bool:
    if type(number) is float:
        return math.isfinite(number)
    return number is None or int(number).bit_length() <= LARGEST_PLAIN_BITS
