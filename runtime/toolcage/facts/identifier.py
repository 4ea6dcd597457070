"""Facts of an identifier: the name of a thing, such as a column, a file's stem or a record's key.

Decides nothing; it says whether the name is plain ASCII and whether two spellings could be confused, so that rules
compare what will be used, exactly.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

from toolcage.facts.confusables import has_other_spelling, reads_as_another, skeleton
from toolcage.types import Facts

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifierFacts(Facts):
    """`name` as given. `plain`: ASCII letters, digits, `_`, `.` and `-`, not beginning with a digit or sign. `stable`:
    Unicode compatibility normalisation leaves it as it is. `skeleton`: what a person would read. `confusable`: it
    borrows look-alike letters, or is drawn like a name with other characters. `hidden`: it holds a control or an
    invisible character."""

    kind: Literal["identifier"] = "identifier"
    name: str = ""
    plain: bool = False
    stable: bool = True
    skeleton: str = ""
    confusable: bool = False
    hidden: bool = False
    has_nul: bool = False


def read(text: str) -> IdentifierFacts:
    """The facts of `text`. Never refuses."""
    return IdentifierFacts(
        name=text,
        plain=_PLAIN.fullmatch(text) is not None,
        stable=text.isascii() or unicodedata.normalize("NFKC", text) == text,
        skeleton=skeleton(text),
        confusable=reads_as_another(text) or has_other_spelling(text),
        hidden=(not text.isascii() and any(unicodedata.category(c) in _HIDDEN for c in text))
        or _CONTROL.search(text) is not None,
        has_nul="\x00" in text,
    )
