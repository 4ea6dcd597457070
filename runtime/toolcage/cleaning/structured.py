"""A JSON value cleaned: every string and every key of it.

Danger: the same as of text, in the cells of a table and the names of its columns. Protects: the model, logs, pages.

The strings are read first and cleaned side by side, each different one once (`side_by_side`). Where the value is plain
and fits, that is all: what cleaning changed is put in its place, and a value in which nothing changed stays the very
same. Otherwise it is walked with a budget (`json_bounds`), and read on as the walk asks for more.

Whether strings speak to the model is judged in groups of neighbours, and keys by themselves in the same way: a
sentence laid over several cells is read as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from toolcage.cleaning.injection import suspect
from toolcage.cleaning.json_bounds import Bounder, length
from toolcage.cleaning.json_strings import Reader
from toolcage.cleaning.personal import named_personal, names_personal
from toolcage.cleaning.pipeline import clean_string, neutralise, require_redactable
from toolcage.cleaning.secret_keys import named_secret, names_secret
from toolcage.cleaning.side_by_side import neutralise_each
from toolcage.types import JSON, OutputTerms

_JUDGED_CHARACTERS: Final = 4 * 1024
_LONG: Final = 1024
_MARKUP: Final = frozenset("<>&[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedJSON:
    """A JSON value after cleaning, frozen; `kept` and `dropped` are bytes as JSON would take them."""

    value: JSON
    findings: Counter[str]
    kept: int
    dropped: int


def clean_json(value: JSON, terms: OutputTerms, exact_secrets: Sequence[str] = ()) -> CleanedJSON:
    """A JSON value with every string and every key cleaned, at most `terms.max_bytes` in all.

    Raises:
        ValueError: `terms.redact` names something that does not exist.
    """
    require_redactable(terms)
    return _Cleaner(value, terms, exact_secrets).clean()


class _Cleaner:
    """Cleans one value. `_made` is what became of each string and key that was read."""

    def __init__(self, value: JSON, terms: OutputTerms, exact: Sequence[str]) -> None:
        self._value = value
        self._terms = terms
        self._exact = exact
        self._naming: dict[str, bool] = {}
        self._kinds: dict[tuple[str, str], str | None] = {}
        self._reader = Reader(value, self._names_kind, lambda key, text: self._called(key, text) is not None)
        self._made: dict[str, str] = {}
        self._found: Counter[str] = Counter()
        self._strings: list[str] = []
        self._dropped = 0
        self._reached: list[str] = []
        self._reached_names: dict[str, None] = {}
        self._apart: Counter[str] = Counter()

    def clean(self) -> CleanedJSON:
        """The value cleaned."""
        self._read(self._terms.max_bytes)
        return self._as_it_is() or self._bounded()

    def _read(self, room: int) -> None:
        """Reads on and cleans what was read."""
        strings, names = self._reader.read(room)
        counts = Counter(strings)
        counts.update(names)
        made, found = neutralise_each(counts, self._terms, self._exact)
        self._made.update(made)
        self._found.update(found)
        self._strings += strings

    def _as_it_is(self) -> CleanedJSON | None:
        """The value with nothing but strings changed, if that is all there is to do."""
        reader, made = self._reader, self._made
        if not (reader.whole and reader.plain and reader.can_be_carried()):
            return None
        if any(made[name] != name for name in reader.names):
            return None
        strings = [*map(made.__getitem__, self._strings)]
        kept = reader.size() + length("".join(strings)) + 2 * len(strings)
        if kept > self._terms.max_bytes:
            return None
        changed = {text: cleaned for text, cleaned in made.items() if text != cleaned}
        self._found["injection_suspected"] += _suspected(strings) + _suspected(reader.names)
        value = _with(self._value, changed) if changed else self._value
        return CleanedJSON(value=value, findings=+self._found, kept=kept, dropped=0)

    def _bounded(self) -> CleanedJSON:
        bounder = Bounder(max_bytes=self._terms.max_bytes, text=self._text)
        bounded = bounder.bound(self._value)
        findings = self._found_in_reached()
        dropped = bounder.dropped + self._dropped
        if dropped:
            findings["truncated"] += 1
        return CleanedJSON(value=bounded, findings=+findings, kept=bounder.kept, dropped=dropped)

    def _found_in_reached(self) -> Counter[str]:
        """What was found in what the walk reached."""
        reached = Counter(self._reached) + Counter(self._reached_names.keys())
        found = self._found
        if len(self._reached) != len(self._strings) or len(self._reached_names) != len(self._reader.names):
            found = neutralise_each(reached, self._terms, self._exact)[1]
        found["injection_suspected"] += _suspected([*map(self._made.__getitem__, self._reached)])
        found["injection_suspected"] += _suspected([*map(self._made.__getitem__, self._reached_names)])
        return found + self._apart

    def _text(self, text: str, room: int, key: str | None) -> str:
        """What the walk puts in the place of a string or, where `key` is None, of a key."""
        kind = None if key is None else self._called(key, text)
        if kind is not None:
            self._apart["secret_redacted" if kind == "password" else f"{kind}_redacted"] += 1
            return f"[redacted:{kind}]"
        if text not in self._made and len(text) <= room:
            self._read(max(room, _JUDGED_CHARACTERS))
        cleaned = self._made.get(text)
        if cleaned is None:
            return self._cut(text, room, counted=False)
        if key is None:
            self._reached_names[text] = None
        else:
            self._reached.append(text)
        return cleaned if _fits(cleaned, room) else self._cut(text, room, counted=True)

    def _cut(self, text: str, room: int, *, counted: bool) -> str:
        """A string that does not fit. `counted`: what was found in it is counted elsewhere."""
        cleaned = clean_string(text, self._terms, self._exact, room)
        self._dropped += cleaned.dropped
        self._apart.update(Counter(truncated=cleaned.findings["truncated"]) if counted else cleaned.findings)
        return cleaned.text

    def _names_kind(self, key: str) -> bool:
        """Whether the key may say that a string is a secret or personal data, as it came or as it is shown."""
        known = self._naming.get(key)
        if known is None:
            known = any(self._names(one) for one in self._readings(key))
            self._naming[key] = known
        return known

    def _names(self, key: str) -> bool:
        redact = self._terms.redact
        return ("secrets" in redact and names_secret(key)) or names_personal(key, redact)

    def _called(self, key: str, text: str) -> str | None:
        """The kind of secret or personal data that the key says the string is. Both are read as they came and as they
        are shown: the result of one cleaning says nothing to the next that it did not say before."""
        if not self._names_kind(key):
            return None
        known = self._kinds.get((key, text), "")
        if known == "":
            known = self._kind(key, text) or self._kind_as_shown(key, text)
            self._kinds[key, text] = known
        return known

    def _kind(self, key: str, text: str) -> str | None:
        if "secrets" in self._terms.redact and named_secret(key, text):
            return "password"
        return named_personal(key, text, self._terms.redact)

    def _kind_as_shown(self, key: str, text: str) -> str | None:
        shown = self._shown(text)
        kinds = (self._kind(name, one) for name in self._readings(key) for one in (text, shown))
        return next(filter(None, kinds), None)

    def _readings(self, key: str) -> tuple[str, ...]:
        if _MARKUP.isdisjoint(key):
            return (key,)  # a sanitiser may leave a name of what was none; marks of other steps are no part of one
        return key, self._shown(key)

    def _shown(self, text: str) -> str:
        return neutralise(text, self._terms, self._exact)[0]


def _with(value: JSON, changed: Mapping[str, str]) -> JSON:
    """The frozen value with these strings changed. Its depth is within bounds."""
    if type(value) is str:
        return changed.get(value, value)
    if type(value) is tuple:
        return tuple([changed.get(item, item) if type(item) is str else _with(item, changed) for item in value])
    if type(value) is MappingProxyType:
        return MappingProxyType({
            key: changed.get(item, item) if type(item) is str else _with(item, changed) for key, item in value.items()
        })  # fmt: skip
    return value


def _fits(text: str, room: int) -> bool:
    return len(text) * 4 <= room or len(text.encode("utf-8", "replace")) <= room


def _suspected(texts: Iterable[str]) -> int:
    """How many groups of neighbouring strings speak to the model. A long string is a group of its own."""
    groups: list[list[str]] = [[]]
    characters = 0
    for text in texts:
        if len(text) >= _LONG or characters >= _JUDGED_CHARACTERS:
            groups.append([])
            characters = 0
        groups[-1].append(text)
        characters = _JUDGED_CHARACTERS if len(text) >= _LONG else characters + len(text)
    return sum(suspect("\n".join(group)).suspected for group in groups)
