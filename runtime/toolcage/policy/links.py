"""Which places a text leads to when somebody reads, opens or renders it: every URL, host name and IP address in it.

For `origin: {body: {links: [said]}}`: a text may be written freely as long as each link in it comes from there. Reads
generously, since a link that is not seen is a way out: with or without a scheme, in HTML and Markdown, behind entities,
full-width letters or percent signs; words that only look like hosts (`report.txt`) count as well. A text that hides
something (invisible characters, a host that cannot be read) has no answer, and then no origin. Pure.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from toolcage.policy.origin import MAX_IDENTIFIERS, scalars, url_identifier

MAX_TEXT_CHARS: Final = 64 * 1024
_WORD: Final = re.compile(r"[^\s<>\"'`\\{}|^]+")
_HOST: Final = r"(?:(?>[^\W_][\w-]{0,62})(?<![-_])\.){1,8}[^\W\d_][\w-]{0,62}"
_NUMBERS: Final = r"(?:0x[0-9a-fA-F]{1,8}|[0-9]{1,10})(?:\.(?:0x[0-9a-fA-F]{1,8}|[0-9]{1,10})){3}"
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]{0,15}://"
_LINK: Final = re.compile(
    rf"(?P<whole>(?:{_SCHEME}|//)(?:(?!{_SCHEME}).)+)"
    rf"|(?<![\w@])(?P<bare>(?:{_HOST}|{_NUMBERS})(?::[0-9]{{1,5}})?(?:[/?#](?:(?!{_SCHEME}).)*)?)(?![\w@])"
)
_TRAILING: Final = ".,;:!?)]}\"'»…*_~"
_DOTS: Final = str.maketrans({"\u3002": ".", "\uff61": ".", "\u2024": "."})
_ALLOWED_CONTROLS: Final = frozenset("\n\r\t")


def links_in(value: Any) -> tuple[str, ...] | None:
    """The links in every text of the value, normalised as `origin` compares them; None when one cannot be read, and
    when there are more than 64."""
    found: dict[str, None] = {}
    texts = list(scalars(value))
    if sum(map(len, texts)) > MAX_TEXT_CHARS:  # together: a list of long texts is no less work than one
        return None
    for text in texts:
        if _hides(text):
            return None
        for link in _links(text):
            if link is None or len(found) >= MAX_IDENTIFIERS:
                return None
            found[link] = None
    return tuple(found)


def _hides(text: str) -> bool:
    return any(
        unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs") and character not in _ALLOWED_CONTROLS
        for character in text
    )


def _links(text: str) -> Iterator[str | None]:
    """As it stands, and what only decoding shows: another spelling of a host that stands there plainly adds nothing."""
    plain = list(_as_spelt(text))
    yield from plain
    hosts = {_host(link) for link in plain}
    shown = html.unescape(text)
    for decoded in dict.fromkeys(item for item in (shown, unquote(text), unquote(shown)) if item != text):
        yield from (link for link in _as_spelt(decoded) if _host(link) not in hosts)


def _as_spelt(text: str) -> Iterator[str | None]:
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).translate(_DOTS)):
        if "." not in word and "//" not in word:
            continue
        for match in _LINK.finditer(word):
            yield url_identifier(match[0].rstrip(_TRAILING).removeprefix("//"))


def _host(link: str | None) -> str | None:
    return None if link is None else link.split("://", 1)[1].split("/", 1)[0]
