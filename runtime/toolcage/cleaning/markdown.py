"""Markdown images and links that would carry data out, taken apart.

Danger: a renderer fetches an image by itself, and a person clicks a link whose text hides its address; both can carry
what the conversation holds (EchoLeak, CVE-2025-32711, used the reference style). Protects: chat windows, notebooks and
mail that render Markdown.

An inline link or image is `](` at once followed by its address, a definition is `]:`. One space between the two ends
its meaning and keeps text and address readable, without having to find the matching `[`, whose rules parsers disagree
on. They agree that a definition begins its line, so code such as `if a[0]:` stays. Addresses that are surely relative
stay (`[x](page.md)`, and the code `f[i](a)`). An autolink loses its `<`.
A bare address stays: it is data that the next call may need, and it shows what it is.
"""

from __future__ import annotations

import re

# An address leaves the page if it has a scheme or a host. Entities and backslashes are decoded in it, so they count; a
# `<` may hide anything. At the end of the text the rest is unknown.
_LEAVES = r"(?=\s*+(?:[<&\\]|[/\\][/\\&\t]|[A-Za-z][A-Za-z0-9+.-]{0,31}[:&\\]|\Z))"
_INLINE = re.compile(r"\]\(" + _LEAVES)
_DEFINITION = re.compile(r"\]:" + _LEAVES)
# What may stand before the `[` of a definition: indentation, quotation and list marks.
_CONTAINERS = re.compile(r"[\s>*+0-9.)-]*+")
_ADDRESS_BELOW = re.compile(r"[ \t]*+(?:\n|\Z)")
_AUTOLINK = re.compile(r"<(?=[dfhjmv])(?=(?:https?|ftps?|data|javascript|vbscript|file|mailto):)", re.IGNORECASE)


def part_links(text: str) -> tuple[str, int]:
    """The text with every link and image that leaves taken apart, and how many there were. Linear."""
    inline = definitions = autolinks = 0
    if "]" in text:  # one character is found far faster than two
        if "](" in text:
            text, inline = _INLINE.subn("] (", text)
        if "]:" in text:
            text, definitions = _part_definitions(text)
    if "<" in text:
        text, autolinks = _AUTOLINK.subn("&lt;", text)
    return text, inline + definitions + autolinks


def _part_definitions(text: str) -> tuple[str, int]:
    pieces: list[str] = []
    position = line = looked_until = 0
    begins = None  # where the first `[` of the line stands
    for match in _DEFINITION.finditer(text):
        newline = text.rfind("\n", looked_until, match.start())
        if newline >= 0:
            line, begins = newline + 1, None
        if begins is None or begins < 0:
            begins = text.find("[", max(line, looked_until), match.start())
        looked_until = match.start()
        # Where the address stands in the same line, it is parted: some renderers are laxer than the rules. Below, only
        # a definition has one. A line without a `[` of its own goes on with a label that an earlier one began.
        elsewhere = begins >= 0 and _CONTAINERS.fullmatch(text, line, begins) is None
        if elsewhere and _ADDRESS_BELOW.match(text, match.end()):
            continue
        pieces += [text[position : match.start()], "] :"]
        position = match.end()
    return "".join([*pieces, text[position:]]), len(pieces) // 2

