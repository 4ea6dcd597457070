"""A JSON value cleaned: every string and every key of it.

Danger: the same as of text, in the cells of a table and the names of its columns. Protects: the model, logs, pages.

A table is tens of thousands of short strings. They are laid side by side, some KiB at a time, cleaned as one text and
taken apart again. The gap between two strings holds a word that nobody outside this process knows and more white space
than any pattern reaches over. A string that ends in something unfinished, which the cleaners treat differently at the
end of a text, is cleaned alone; and if the number of gaps did not stay what it was, the strings are cleaned in halves.
Whether strings speak to the model is judged in groups too: a sentence laid over several cells is read as one.
"""

from __future__ import annotations

import random
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from toolcage.cleaning.injection import suspect
from toolcage.cleaning.json_bounds import MAX_DEPTH, MAX_ITEMS, Bounder
from toolcage.cleaning.personal import named_personal
from toolcage.cleaning.pipeline import clean_string, neutralise, require_redactable
from toolcage.cleaning.secrets import named_secret, names_secret
from toolcage.types import JSON, OutputTerms

_PART_CHARACTERS: Final = 64 * 1024
_JUDGED_CHARACTERS: Final = 4 * 1024
_LONG: Final = 1024
_WORD: Final = "".join(random.SystemRandom().choices("jqvwxz", k=14))
_GAP: Final = f"\n\n\n\n\n{_WORD}\n\n\n\n\n"
_UNFINISHED: Final = re.compile(r"(?:<[^<>\n]{0,200}|\r|\][(:]\s*+)\Z")
_ENDS_UNFINISHED: Final = re.compile(rf"(?:<[^<>\n]{{0,200}}|\r|\][(:]\s*?)(?=\n\n\n\n\n{_WORD})|-----END ")


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
    cleaner = _Cleaner(terms, exact_secrets, _strings(value, "", 0))
    bounder = Bounder(max_bytes=terms.max_bytes, text=cleaner.text)
    bounded = bounder.bound(value)
    cleaner.close()
    dropped = bounder.dropped + cleaner.dropped
    if dropped:
        cleaner.findings["truncated"] += 1
    return CleanedJSON(value=bounded, findings=+cleaner.findings, kept=bounder.kept, dropped=dropped)


def _strings(value: JSON, key: str, depth: int) -> Iterator[tuple[str, str]]:
    """Every string and the key it stands under, in the order in which `Bounder` asks for them."""
    if isinstance(value, str):
        yield key, value
    elif value is not None and not isinstance(value, int | float) and depth < MAX_DEPTH:
        named = ((key, item) for item in value) if isinstance(value, tuple | list) else value.items()
        for name, item in islice(named, MAX_ITEMS):
            if isinstance(item, str):
                yield name, item
            elif item is not None and not isinstance(item, int | float):
                yield from _strings(item, name, depth + 1)


@dataclass(slots=True)
class _Cleaner:
    """Cleans the strings of one value, a part at a time, ahead of the walk that asks for them."""

    terms: OutputTerms
    exact: Sequence[str]
    ahead: Iterator[tuple[str, str]]
    findings: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    _part: list[tuple[str, str]] = field(default_factory=list)
    _room: int = 0
    _ready: deque[tuple[str, str | None]] = field(default_factory=deque)
    _found: Counter[str] = field(default_factory=Counter)
    _keys: dict[str, tuple[str, Counter[str]]] = field(default_factory=dict)
    _secret_keys: dict[str, bool] = field(default_factory=dict)

    def text(self, text: str, room: int, key: str | None) -> str:
        """What the walk puts in the place of a string or, where `key` is None, of a key."""
        if key is None:
            return self._key(text, room)
        if not self._ready:
            self._prepare(room)
        original, cleaned = self._ready.popleft()
        if original is text and cleaned is not None and (len(cleaned) * 4 <= room or _fits(cleaned, room)):
            return cleaned
        return self._cut(text, room, key, counted=original is text and cleaned is not None)

    def close(self) -> None:
        """Takes back what was counted in strings that the walk did not reach."""
        if self._ready:
            reached = self._part[: len(self._part) - len(self._ready)]
            self._found = self._cleaned(reached, self._room)[1]
        self.findings.update(self._found)

    def _prepare(self, room: int) -> None:
        self.findings.update(self._found)
        self._part, self._room, length = [], room, 0
        for key, text in self.ahead:
            self._part.append((key, text))
            length += len(text) if len(text) <= room else 0
            if length >= _PART_CHARACTERS:
                break
        cleaned, self._found = self._cleaned(self._part, room)
        self._ready.extend(zip((text for _, text in self._part), cleaned, strict=True))

    def _cleaned(self, part: Sequence[tuple[str, str]], room: int) -> tuple[list[str | None], Counter[str]]:
        """Each string of the part cleaned, None where it is too long to be kept whole, and what was found."""
        made: list[str | None] = [None] * len(part)
        findings: Counter[str] = Counter()
        plain: list[int] = []
        looked_at = "phone" in self.terms.redact
        for place, (key, text) in enumerate(part):
            if key not in self._secret_keys:
                self._secret_keys[key] = names_secret(key)
            kind = self._named(key, text) if looked_at or self._secret_keys[key] else None
            if kind is not None:
                made[place] = f"[redacted:{kind}]"
                findings["secret_redacted" if kind == "password" else f"{kind}_redacted"] += 1
            elif len(text) <= room:
                plain.append(place)
        together, found = _clean_together([part[place][1] for place in plain], self.terms, self.exact)
        for place, text in zip(plain, together, strict=True):
            made[place] = text
        findings.update(found)
        findings["injection_suspected"] += _suspected(together)
        return made, findings

    def _named(self, key: str, text: str) -> str | None:
        """The kind of secret or personal data that the key says the string is."""
        if key not in self._secret_keys:
            self._secret_keys[key] = names_secret(key)
        if self._secret_keys[key] and "secrets" in self.terms.redact and named_secret(key, text):
            return "password"
        return named_personal(key, text, self.terms.redact) if "phone" in self.terms.redact else None

    def _key(self, key: str, room: int) -> str:
        if key not in self._keys:
            cleaned = clean_string(key, self.terms, self.exact, self.terms.max_bytes)
            self._keys[key] = (cleaned.text, cleaned.findings)
        text, findings = self._keys[key]
        if findings:
            self.findings.update(findings)
        return text if _fits(text, room) else self._cut(key, room, "", counted=True)

    def _cut(self, text: str, room: int, key: str, *, counted: bool) -> str:
        """A string that does not fit. `counted`: what was found in it is already in the findings."""
        kind = self._named(key, text)
        if kind is not None:
            return f"[redacted:{kind}]"
        cleaned = clean_string(text, self.terms, self.exact, room)
        self.dropped += cleaned.dropped
        self.findings.update(_cuts_only(cleaned.findings) if counted else cleaned.findings)
        return cleaned.text


def _fits(text: str, room: int) -> bool:
    return len(text) * 4 <= room or len(text.encode("utf-8", "replace")) <= room


def _cuts_only(findings: Counter[str]) -> Counter[str]:
    return Counter(truncated=findings["truncated"])


def _suspected(texts: Sequence[str]) -> int:
    """How many groups of neighbouring strings speak to the model. A long string is a group of its own."""
    groups: list[list[str]] = [[]]
    length = 0
    for text in texts:
        if len(text) >= _LONG or length >= _JUDGED_CHARACTERS:
            groups.append([])
            length = 0
        groups[-1].append(text)
        length = _JUDGED_CHARACTERS if len(text) >= _LONG else length + len(text)
    return sum(suspect("\n".join(group)).suspected for group in groups)


def _clean_together(texts: list[str], terms: OutputTerms, exact: Sequence[str]) -> tuple[list[str], Counter[str]]:
    """Each text cleaned as if it were alone, and what was found in all of them."""
    together, alone = list(range(len(texts))), list[int]()
    if _ENDS_UNFINISHED.search(_GAP.join([*texts, ""])) or _needs_care(terms):
        alone = [place for place in together if _is_special(texts[place], terms)]
        together = [place for place in together if not _is_special(texts[place], terms)]
    made = list(texts)
    cleaned, findings = _clean_joined([texts[place] for place in together], terms, exact)
    for place, text in zip(together, cleaned, strict=True):
        made[place] = text
    for place in alone:
        made[place], found = neutralise(texts[place], terms, exact)
        findings.update(found)
    return made, findings


def _clean_joined(texts: list[str], terms: OutputTerms, exact: Sequence[str]) -> tuple[list[str], Counter[str]]:
    if not texts:
        return [], Counter()
    if len(texts) == 1:
        text, findings = neutralise(texts[0], terms, exact)
        return [text], findings
    joined = _GAP.join(texts)
    cleaned, findings = neutralise(joined, terms, exact)
    pieces = cleaned.split(_GAP)
    if joined.count(_WORD) == len(texts) - 1 == cleaned.count(_WORD) == len(pieces) - 1:
        if _ENDS_UNFINISHED.search(cleaned + _GAP):  # cleaning left an end that it would not leave alone
            for place in [place for place, piece in enumerate(pieces) if _UNFINISHED.search(piece)]:
                pieces[place], found = neutralise(texts[place], terms, exact)
                findings.update(found - findings)
        return pieces, findings
    half = len(texts) // 2
    first, findings = _clean_joined(texts[:half], terms, exact)
    second, found = _clean_joined(texts[half:], terms, exact)
    return first + second, findings + found


def _needs_care(terms: OutputTerms) -> bool:
    return terms.html in ("clean", "escape") or "phone" in terms.redact


def _is_special(text: str, terms: OutputTerms) -> bool:
    """Whether a cleaner treats the text otherwise where it ends or begins, or parses it as a document."""
    return (
        _UNFINISHED.search(text) is not None
        or "-----END " in text
        or (terms.html in ("clean", "escape") and ("<" in text or "&" in text))
        or ("phone" in terms.redact and "+" in text)
    )
