"""Markup that a page would execute or load, made inert.

Danger: scripts, event handlers, images and frames in output that ends in a web page, a notebook or a Markdown renderer
that lets HTML through. Protects: every HTML sink that inserts the text as the body of an element. (Inside an attribute
or a script only the sink's own escaping helps; `ToolResult.to_html` escapes fully whatever was chosen here.)

    inert    each `<` that could open a tag, comment, declaration or instruction becomes `&lt;`; `a < b` stays
    escape   all of & < > " ' (the one mode that is not idempotent: escaped text escapes again)
    clean    nh3 with the allowlist below; only for output that *is* HTML: from anything else it deletes `List<int>`
    keep     untouched, for a consumer that sanitises itself
"""

from __future__ import annotations

import re
from html import escape
from typing import Final

from toolcage.cleaning.marks import hides

_OPENS = re.compile(r"<(?=[A-Za-z/!?]|\Z)")
_STAYS = re.compile(r"<(?![A-Za-z/!?]|\Z)")
_ALLOWED = (
    "a abbr b blockquote br caption cite code col colgroup dd del details dfn div dl dt em h1 h2 h3 h4 h5 h6 hr i ins "
    "kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead time tr u ul var wbr"
)
TAGS: Final = frozenset(_ALLOWED.split())
"""The elements that `clean` leaves."""
_ATTRIBUTES: Final = {"*": {"title"}, "a": {"href", "title"}, "abbr": {"title"}}
_ADDRESS = re.compile(r"(?:https?://|mailto:)[\x21-\x7e\u00a1-\uffef]+", re.IGNORECASE)


def make_inert(text: str) -> tuple[str, int]:
    """The text in which nothing can become markup, and how many `<` were escaped.

    A `<` at the very end counts: whatever is appended later could complete it.
    """
    if "<" not in text:
        return text, 0
    if _STAYS.search(text) is None:  # a page: replacing all of them is far cheaper than a match at each
        return text.replace("<", "&lt;"), text.count("<")
    return _OPENS.subn("&lt;", text)


def escape_all(text: str) -> tuple[str, int]:
    """The text with & < > " ' escaped, and how many of them could have opened markup."""
    return escape(text, quote=True), len(_OPENS.findall(text))


def sanitise(text: str) -> tuple[str, int]:
    """The HTML that the allowlist leaves, and 1 if anything changed. Controls must have been shown before."""
    import nh3  # loaded when first needed

    kept = nh3.clean(
        text, tags=set(TAGS), attributes=_ATTRIBUTES, attribute_filter=_attribute,
        url_schemes={"http", "https", "mailto"},
        strip_comments=True, link_rel="noopener noreferrer nofollow",
    )  # fmt: skip
    return kept, int(kept != text)


def _attribute(_tag: str, name: str, value: str) -> str | None:
    if name == "href" and (hides(value) or _ADDRESS.fullmatch(value) is None):
        return None  # controls, invisible characters and relative addresses: what a browser makes of them varies
    return value
