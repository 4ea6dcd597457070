"""Facts of HTML that a call carries (a mail's body, a page to publish): its tags, and what in it could act or load.

A tokenizer of its own, linear, that reads less than a browser does: what it cannot read as a plain tag is listed as
`unreadable`, and the screen lets only what it can read pass: no control characters, in tags none behind references.
Tags, attributes, schemes and relations of links are judged by allowlists, since the list of what acts in a page has no
end; `meta` by `html_meta`, style sheets by `style_sheet`: they load nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import Final, Literal

from toolcage.facts.html_meta import is_passive_meta
from toolcage.facts.style_sheet import is_passive_sheet, is_passive_style
from toolcage.types import Facts

MAX_READ: Final = 1024 * 1024
_TAG_NAMES: Final = """
    a abbr acronym address article aside b bdi big blockquote body br caption center cite code col colgroup data dd
    del details dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 head header hr html i img ins kbd
    li main mark meta nav nobr ol p picture pre q rp rt ruby s samp section small source span strike strong style
    sub summary sup table tbody td tfoot th thead time title tr tt u ul var wbr
"""
PASSIVE_TAGS: Final = frozenset(_TAG_NAMES.split())
_ATTRIBUTE_NAMES: Final = """
    abbr align alt bgcolor border cellpadding cellspacing charset cite class color cols colspan content datetime
    decoding dir face headers height href http-equiv id lang loading media name nowrap open property rel role rows
    rowspan scope size sizes span src srcset start style summary target title type valign value width xml:lang xmlns
"""
_PASSIVE_ATTRIBUTES: Final = frozenset(_ATTRIBUTE_NAMES.split())
_ADDRESS_ATTRIBUTES: Final = frozenset({"href", "src", "cite"})
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
    r"(?:(?:https?://|mailto:|tel:|sms:|cid:|#|\?|/(?![/\\]))[^\x00-\x1f\\]*|[\w.-]+(?:[/?#][^\x00-\x1f\\]*)?)\Z",
    re.IGNORECASE,
)
_PICTURE: Final = re.compile(
    r"data:image/(?:png|jpeg|jpg|gif|webp|avif);base64,[A-Za-z0-9+/\s]*={0,2}\Z", re.IGNORECASE
)
_CANDIDATE: Final = re.compile(r"[ \t\n][0-9.]{1,8}[wx][ \t\n]*\Z")
_CONTROL: Final = re.compile(r"[\x01-\x08\x0b\x0e-\x1f\x7f]")  # ESC changes the encoding in some
_REFERENCE: Final = re.compile(r"&#(?:[0-9]++|[xX][0-9A-Fa-f]++);?")
_LONGEST_REFERENCE: Final = 12
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_PASSIVE_SCHEMES: Final = frozenset({"http:", "https:", "mailto:", "tel:", "sms:", "cid:"})
_SHEET_BODY: Final = re.compile(r"[^<]*(?=</style[ \t\n]*>)", re.IGNORECASE)
_RELATIONS: Final = """
    alternate author bookmark external help license next nofollow noopener noreferrer prev privacy-policy sponsored tag
    terms-of-service ugc
"""
_PASSIVE_RELATIONS: Final = frozenset(_RELATIONS.split())  # not `opener`: what it opens could lead the page away
_XHTML: Final = "http://www.w3.org/1999/xhtml"


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlFacts(Facts):
    """`tags` lower case. `active`: the first thing that is not on an allowlist (`<script>`, `onclick`, `javascript:`),
    '' = none. `unreadable`: the first tag or character that is not written plainly. `remote`: pictures are loaded."""

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
    active, unreadable, remote = "", _control(text), False
    position, looked_at = 0, text[:MAX_READ].replace("\r", "\n").replace("\f", "\n")
    while (found := _OPENS.search(looked_at, position)) is not None:
        start = found.start()
        if (comment := _COMMENT.match(looked_at, start)) is not None:
            position = comment.end()
        elif (close := _CLOSE.match(looked_at, start)) is not None:
            tags.add(close[1].lower())
            position = close.end()
        elif (tag := _OPEN.match(looked_at, start)) is not None:
            name, attributes = tag[1].lower(), tag[2]
            tags.add(name)
            if lost := _lost_reference(attributes):
                unreadable = unreadable or lost
            else:
                active = active or _active(name, attributes)
                remote = remote or _loads(name, attributes)
            position = tag.end()
            if name == "style":
                sheet = _SHEET_BODY.match(looked_at, position)
                position = sheet.end() if sheet else position
                unreadable = unreadable or ("" if sheet else looked_at[start : start + 40])
                active = active or ("" if sheet is None or is_passive_sheet(sheet[0]) else f"<style>{sheet[0][:32]}")
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


def _control(text: str) -> str:
    found = _CONTROL.search(text)
    return found[0] if found else ""


def _lost_reference(attributes: str) -> str:
    """The first reference that a browser reads as a character (a control, mostly) and `unescape` as none, or not."""
    for reference in _REFERENCE.findall(attributes):
        if len(reference) > _LONGEST_REFERENCE or not unescape(reference):
            return str(reference)
    return ""


def _active(tag: str, attributes: str) -> str:
    if tag not in PASSIVE_TAGS:
        return f"<{tag[:32]}>"
    pairs = _pairs(attributes)
    for name, value in pairs:
        if name not in _PASSIVE_ATTRIBUTES and not name.startswith(("data-", "aria-")):
            return name[:32]
        if not _is_passive_value(tag, name, value):
            return f"{name}={value[:32]}"
    return "" if tag != "meta" or is_passive_meta(pairs) else "<meta>"


def _is_passive_value(tag: str, name: str, value: str) -> bool:
    if name in _ADDRESS_ATTRIBUTES:
        return _is_passive_address(value) or (tag == "img" and name == "src" and _PICTURE.match(value) is not None)
    match name:
        case "style":
            return is_passive_style(value)
        case "srcset":
            return all(_is_passive_address(_CANDIDATE.sub("", one)) for one in value.split(","))
        case "target":
            return value.lower() in ("_blank", "_self", "_top", "_parent", "")
        case "rel":
            return tag != "a" or set(value.lower().split()) <= _PASSIVE_RELATIONS
        case "xmlns":
            return tag == "html" and value == _XHTML
        case _:
            return True


def _is_passive_address(value: str) -> bool:
    bare = value.strip(" \t\n")
    if not bare:
        return True
    scheme = _SCHEME.match(bare)
    if scheme is not None and scheme.group().lower() not in _PASSIVE_SCHEMES:
        return False
    return _ADDRESS.match(bare) is not None and bare.isprintable()


def _loads(tag: str, attributes: str) -> bool:
    return tag in ("img", "source") and any(
        name == "srcset" or (name == "src" and not value.lower().startswith(("cid:", "data:")))
        for name, value in _pairs(attributes)
    )


def _pairs(attributes: str) -> list[tuple[str, str]]:
    return [
        (match[1].lower(), unescape(match[2] or match[3] or match[4] or ""))
        for match in _ATTRIBUTE.finditer(attributes)
    ]
