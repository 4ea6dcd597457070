"""The floor for HTML that a call carries: nothing in it acts by itself, and every tag can be read.

An allowlist of tags, attributes and schemes; what is not on it, or is not written plainly enough to be read, is refused
with the part that stands against it. Pictures from elsewhere pass (mails have them): a grant that forbids them looks at
the fact `remote`. A text without tags passes whatever words are in it. What *comes back* from a tool is neutralised,
not refused.
"""

from __future__ import annotations

from typing import Final

from toolcage.facts.html import MAX_READ, HtmlFacts
from toolcage.screens import text
from toolcage.screens.refuse import part, refuse

MAX_BYTES: Final = MAX_READ
_REPAIR: Final = (
    "Use formatting, tables, links with https: and mailto:, and pictures; no scripts, forms, frames or handlers. "
    "Where the text means `<`, write `&lt;`."
)


def screen(facts: HtmlFacts) -> None:
    """Raises Refused with `html.active`, `html.unreadable`, `html.too_long` or `text.nul`."""
    text.refuse_nul(facts.has_nul)
    if facts.utf8_bytes > MAX_BYTES:
        refuse("html.too_long", f"The HTML is longer than {MAX_BYTES} bytes.", "Attach it as a file.")
    if facts.active:
        refuse("html.active", f"The HTML holds {part(facts.active)}, which is not possible here.", _REPAIR)
    if facts.unreadable:
        shown = part(facts.unreadable)
        refuse("html.unreadable", f"The HTML holds {shown}, which is no plainly written tag or character.", _REPAIR)
