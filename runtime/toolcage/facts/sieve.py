"""Where a text may hold something, asked of an engine that reads it once whatever is sought.

Decides only where a search is worth its while. Python's `re` reads a text once for each thing it seeks; Rust's `regex`,
which pydantic's core carries and `str` schemas run, reads it once for all of them, at some 500 MB/s, in linear time.
It says whether and not where, so a text is asked about block by block.

A sieve must let through whatever its user seeks: its pattern is the same or laxer, and where the engine cannot read a
text (lone surrogates) the answer is yes. `Innocent` is the reverse: its pattern is the same or stricter than what needs
no search, and of a text that cannot be read the answer is no. Patterns are in the syntax of Rust's `regex`, which has
no look-around.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

from pydantic_core import SchemaValidator, core_schema

BLOCK: Final = 4096
"""Characters that are asked about at a time, where so many of these hold anything at all."""
_WIDE: Final = 4 * BLOCK


def _holding(pattern: str) -> Callable[[str], bool]:
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
    return SchemaValidator(schema).isinstance_python


_IS_READABLE: Final = _holding("")


class Sieve:
    """Patterns, compiled when first used. No match of them may be longer than `reach` characters.

    One is the rule. The engine builds the states of its automaton as it meets them and keeps so many; two patterns
    that begin everywhere and go on for long have a state for each pair of places, and are better asked about apart."""

    def __init__(self, *patterns: str, reach: int = 0) -> None:
        self._patterns = patterns
        self._reach = reach

    @cached_property
    def _each(self) -> tuple[Callable[[str], bool], ...]:
        return tuple(map(_holding, self._patterns))

    def may_hold(self, text: str) -> bool:
        """Whether a pattern matches somewhere in the text, or the text cannot be read."""
        return any(holds(text) for holds in self._each) or not _IS_READABLE(text)

    def regions(self, text: str) -> list[tuple[int, int]]:
        """Stretches of the text, in order and apart, in which every match begins."""
        found: list[tuple[int, int]] = []
        for wide in range(0, len(text), _WIDE):
            if self.may_hold(text[wide : wide + _WIDE + self._reach]):
                for start in range(wide, min(wide + _WIDE, len(text)), BLOCK):
                    self._ask(text, start, found)
        return found

    def _ask(self, text: str, start: int, found: list[tuple[int, int]]) -> None:
        end = min(start + BLOCK, len(text))
        if self.may_hold(text[start : end + self._reach]):
            if found and found[-1][1] == start:
                start = found.pop()[0]
            found.append((start, end))


class Innocent:
    """One pattern that a text may be of from its beginning to its end, compiled when first used."""

    def __init__(self, pattern: str) -> None:
        self._pattern = rf"\A(?:{pattern})\z"

    @cached_property
    def is_surely(self) -> Callable[[str], bool]:
        """Whether the whole text is of the pattern."""
        return _holding(self._pattern)
