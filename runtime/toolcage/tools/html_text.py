"""The text that a person would read in an HTML mail, with the places that its links lead to.

Scripts, styles, comments, and what a reader would not be shown (`hidden`, `display:none`, no size) are left out: text
that only a machine sees is how a mail speaks to a model behind its reader's back. That is a courtesy and no wall: a
page can hide text in many more ways. Nothing is fetched. Standard library only; shipped into cages.
"""

import re
from html.parser import HTMLParser
from typing import Final

MAX_HTML: Final = 2_000_000
MAX_OPEN: Final = 2_000
_SKIPPED_TAGS: Final = "script style head title template noscript svg math iframe object select textarea"
_VOID_TAGS: Final = "area base br col embed hr img input link meta param source track wbr"
_LINE_TAGS: Final = """
    address article aside blockquote br dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr li main
    nav ol p pre section table tr ul
"""
_SKIPPED: Final = frozenset(_SKIPPED_TAGS.split())
_VOID: Final = frozenset(_VOID_TAGS.split())
_LINES: Final = frozenset(_LINE_TAGS.split())
_CLOSES_ITSELF: Final = frozenset(("p", "li", "dt", "dd", "tr", "td", "th", "option"))
_UNSEEN: Final = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:\.0+)?(?:px|pt|em|rem|%)?\s*(?:;|$|!)"
    r"|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$|!)|max-height\s*:\s*0|text-indent\s*:\s*-\d{3,}",
    re.IGNORECASE,
)
_BLANKS: Final = re.compile(r"[ \t\r\f\v\xa0]+")
_EMPTY: Final = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def html_text(source: str) -> str:
    """The readable text. Never raises."""
    reader = _Reader()
    try:
        reader.feed(source[:MAX_HTML])
        reader.close()
    except (AssertionError, ValueError, RecursionError):
        reader.pieces.append("\n[the rest of this HTML could not be read]")
    return _EMPTY.sub("\n\n", "".join(reader.pieces)).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._open: list[tuple[str, bool, str]] = []  # tag, whether its content is left out, where it leads
        self._left_out = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _CLOSES_ITSELF and self._open and self._open[-1][0] == tag:
            self.handle_endtag(tag)
        if tag in _LINES:
            self._put("\n")
        if tag in ("td", "th"):
            self._put(" ")
        values = {name: value or "" for name, value in attrs}
        if tag == "img" and values.get("alt", "").strip():
            self._put(f"[image: {values['alt'].strip()[:200]}]")
        if tag in _VOID or len(self._open) >= MAX_OPEN:
            return
        left_out = tag in _SKIPPED or "hidden" in values or _UNSEEN.search(values.get("style", "")) is not None
        self._open.append((tag, left_out, values.get("href", "").strip() if tag == "a" else ""))
        self._left_out += left_out

    def handle_endtag(self, tag: str) -> None:
        if not any(name == tag for name, _, _ in self._open[-50:]):
            return
        while self._open:
            name, left_out, leads_to = self._open.pop()
            self._left_out -= left_out
            if leads_to and not self._left_out and not leads_to.startswith("#"):
                self._put(f" <{_BLANKS.sub('', leads_to)[:500]}>")
            if name == tag:
                break
        if tag in _LINES:
            self._put("\n")

    def handle_data(self, data: str) -> None:
        self._put(_BLANKS.sub(" ", data.replace("\n", " ")))

    def _put(self, text: str) -> None:
        if not self._left_out:
            self.pieces.append(text)
