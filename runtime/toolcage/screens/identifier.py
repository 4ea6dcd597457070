"""The floor for identifiers: a name that is what it looks like.

Letters of any alphabet pass, also of two in one name. Refused are names that hold invisible characters, that borrow
letters of another alphabet for their looks, or that are drawn like a name with other characters (fullwidth letters,
accents written apart): what a person approves must be what is used.
"""

from __future__ import annotations

from typing import Final

from toolcage.facts.identifier import IdentifierFacts
from toolcage.screens import text
from toolcage.screens.refuse import part, refuse

MAX_CHARACTERS: Final = 1000


def screen(facts: IdentifierFacts) -> None:
    """Raises Refused with `identifier.hidden`, `identifier.confusable`, `identifier.too_long` or `text.nul`."""
    text.refuse_nul(facts.has_nul)
    if len(facts.name) > MAX_CHARACTERS:
        refuse("identifier.too_long", f"A name is longer than {MAX_CHARACTERS} characters.", "Use the exact name.")
    if facts.hidden:
        refuse("identifier.hidden", f"The name {part(facts.name)} holds an invisible character.", "Use the exact name.")
    if facts.confusable:
        hint = f"Did you mean {part(facts.skeleton)}?" if facts.skeleton.isascii() else "Use one alphabet."
        refuse("identifier.confusable", f"The name {part(facts.name)} looks like another one.", hint)
