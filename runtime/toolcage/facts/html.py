"""Facts of HTML that a call carries (a mail's body, a page to publish): its tags, and what in it could act or load.

A tokenizer of its own, linear, that reads less than a browser does: what it cannot read as a plain tag is listed as
`unreadable`, and the screen lets only what it can read pass. Tags, attributes and schemes are judged by allowlists,
since the list of what acts in a page has no end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import Final, Literal

from toolcage.types import Facts

MAX_READ: Final = 1024 * 1024
_TAG_NAMES: Final = """
    a abbr address article aside b bdi blockquote body br caption center cite code col colgroup data dd del details
    dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 head header hr html i img ins kbd li main mark
    nav ol p pre q rp rt ruby s samp section small span strike strong sub summary sup table tbody td tfoot th thead
    time title tr tt u ul var wbr
"""
PASSIVE_TAGS: Final = frozenset(_TAG_NAMES.split())
_ATTRIBUTE_NAMES: Final = """
    abbr align alt bgcolor border cellpadding cellspacing class color cols colspan datetime dir face headers height
    href id lang name nowrap open rel role rows rowspan scope size span src start style summary title type valign
    value width xml:lang
"""
_PASSIVE_ATTRIBUTES: Final = frozenset(_ATTRIBUTE_NAMES.split())
_ADDRESS_ATTRIBUTES: Final = frozenset({"href", "src"})
_OPENS: Final = re.compile(r"<(?=[A-Za-z/!?])")
_COMMENT: Final = re.compile(r"<!--(?!\[if|>|->)[^<>]*-->|<!doctype html[^<>\[]*>", re.IGNORECASE)
_CLOSE: Final = re.compile(r"</([A-Za-z][A-Za-z0-9]*)[ \t\n]*>")
_VALUE: Final = r"(?:\"[^\"<>]*\"|'[^'<>]*'|[^ \t\n\"'=<>`]+)"
_OPEN: Final = re.compile(
    rf"<([A-Za-z][A-Za-z0-9]*)((?:[ \t\n]+[A-Za-z][A-Za-z0-9:_.-]*(?:[ \t\n]*=[ \t\n]*{_VALUE})?)*+)[ \t\n]*/?>"
)
_ATTRIBUTE: Final = re.compile(
    r"([A-Za-z][A-Za-z0-9:_.-]*)(?:[ \t\n]*=[ \t\n]*(?:\"([^\"]*)\"|'([^']*)'|([^ \t\n\"'=<>`]+)))?"
)
_ADDRESS: Final = re.compile(
    r"(?:(?:https?://|mailto:|tel:|cid:|#|/(?![/\\]))[^\x00-\x20\\]*|[\w.-]+(?:[/?#][^\x00-\x20\\]*)?)\Z", re.IGNORECASE
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_PASSIVE_SCHEMES: Final = frozenset({"http:", "https:", "mailto:", "tel:", "cid:"})
_STYLE: Final = re.compile(r"[\w\s#%.,:;()'\"!+-]*\Z", re.ASCII)
_ACTIVE_STYLE: Final = re.compile(r"url|expression|import|behaviou?r|binding|javascript", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlFacts(Facts):
    """`tags` lower case. `active`: the first thing that is not on an allowlist (`<script>`, `onclick`, `javascript:`),
    '' = none. `unreadable`: the first tag that is not written plainly. `remote`: something is loaded by being shown."""

    kind: Literal["html"] = "html"
    tags: frozenset[str] = frozenset()
    active: str = ""
    unreadable: str = ""
    remote: bool = False
    utf8_bytes: int = 0
    has_nul: bool = False


def read(text: str) -> HtmlFacts:
    """The facts of `text`. Never refuses; of a longer text, those of its first MAX_READ characters."""
    tags: set[str] = set()
    active, unreadable, remote = "", "", False
    position, looked_at = 0, text[:MAX_READ].replace("\r", "\n").replace("\f", "\n")
    while (found := _OPENS.search(looked_at, position)) is not None:
        start = found.start()
        if (comment := _COMMENT.match(looked_at, start)) is not None:
            position = comment.end()
        elif (close := _CLOSE.match(looked_at, start)) is not None:
            tags.add(close[1].lower())
            position = close.end()
        elif (tag := _OPEN.match(looked_at, start)) is not None:
            tags.add(tag[1].lower())
            active = active or _active(tag[1].lower(), tag[2])
            remote = remote or _loads(tag[1].lower(), tag[2])
            position = tag.end()
        else:
            unreadable = unreadable or looked_at[start : start + 40]
            position = start + 1
    outside = sorted(tags - PASSIVE_TAGS)
    return HtmlFacts(
        tags=frozenset(tags),
        active=active or (f"<{outside[0][:32]}>" if outside else ""),
        unreadable=unreadable,
        remote=remote,
        utf8_bytes=len(text.encode("utf-8", "surrogatepass")),
        has_nul="\x00" in text,
    )


def _active(tag: str, attributes: str) -> str:
    if tag not in PASSIVE_TAGS:
        return f"<{tag[:32]}>"
    for name, value in _pairs(attributes):
        if name not in _PASSIVE_ATTRIBUTES and not name.startswith(("data-", "aria-")):
            return name[:32]
        if name in _ADDRESS_ATTRIBUTES and not _is_passive_address(value):
            return f"{name}={value[:32]}"
        if name == "style" and (_STYLE.match(value) is None or _ACTIVE_STYLE.search(value)):
            return f"style={value[:32]}"
    return ""


def _is_passive_address(value: str) -> bool:
    bare = value.strip(" \t\n")
    if not bare:
        return True
    scheme = _SCHEME.match(bare)
    if scheme is not None and scheme.group().lower() not in _PASSIVE_SCHEMES:
        return False
    return _ADDRESS.match(bare) is not None and bare.isprintable()


def _loads(tag: str, attributes: str) -> bool:
    return tag == "img" and any(
        name == "src" and not value.lower().startswith("cid:") for name, value in _pairs(attributes)
    )


def _pairs(attributes: str) -> list[tuple[str, str]]:
    return [
        (match[1].lower(), unescape(match[2] or match[3] or match[4] or ""))
        for match in _ATTRIBUTE.finditer(attributes)
    ]
