"""Whether a `meta` tag of HTML only describes: no refresh, no policy, no encoding that reads the text anew.

`http-equiv`, `charset` and `name` are judged by allowlists: names that browsers obey (`referrer`, `monetization`), load
for (`msapplication-config`) or that prove to others whose page it is (`google-site-verification`) are not on them.
What `content` says under an allowed name is not judged, and `property` (Open Graph) is read by nobody who shows a page.
"""

from __future__ import annotations

import re
from typing import Final

_CHARSET: Final = r"(?:utf-8|us-ascii|iso-8859-[0-9]{1,2}|windows-125[0-9])"  # UTF-7 makes tags of plain letters
_CONTENT_TYPE: Final = re.compile(rf"text/html(?:[ ]?;[ ]?charset={_CHARSET})?\Z", re.IGNORECASE)
_IS_CHARSET: Final = re.compile(rf"{_CHARSET}\Z", re.IGNORECASE)
_SAID: Final = frozenset({"content-language", "x-ua-compatible"})
_NAMES: Final = """
    viewport color-scheme supported-color-schemes format-detection x-apple-disable-message-reformatting theme-color
    author description keywords generator originator progid robots language title subject date copyright rating
    application-name mobile-web-app-capable apple-mobile-web-app-capable apple-mobile-web-app-title
    apple-mobile-web-app-status-bar-style
"""
_PASSIVE_NAMES: Final = frozenset(_NAMES.split())
_FAMILIES: Final = re.compile(r"(?:(?:og|twitter|article):|(?:dc|dcterms)\.)[a-z0-9:._-]{1,64}\Z")


def is_passive_meta(pairs: list[tuple[str, str]]) -> bool:
    """`pairs`: its attributes with lower-case names and decoded values. An attribute that is there twice is refused."""
    said = dict(pairs)
    if len(said) < len(pairs) or ("name" in said and not _is_passive_name(said["name"].lower())):
        return False
    if "charset" in said and _IS_CHARSET.match(said["charset"]) is None:
        return False
    about = said.get("http-equiv", "content-language").lower()
    if about == "content-type":
        return _CONTENT_TYPE.match(said.get("content", "")) is not None
    return about in _SAID


def _is_passive_name(name: str) -> bool:
    return name in _PASSIVE_NAMES or _FAMILIES.match(name) is not None
