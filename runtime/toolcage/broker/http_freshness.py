"""Whether an answer may be given again instead of asking again, and for how long: the strict part of RFC 9111.

What an operator switched on is a shared cache, and a small one. Only a plain GET is answered from it, only a whole 200
goes in, nothing is ever served stale or asked about again. Everything that the RFC would let a cache do after a second
look (`no-cache`, validators, heuristics, `stale-*`) is not done. What is malformed counts as a no. Pure.
"""

from __future__ import annotations

import email.utils
import re
from dataclasses import dataclass
from typing import Final

from toolcage.broker.http_headers import Headers, folded
from toolcage.broker.request_head import RequestHead

_WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_VALUE: Final = r'([^\s",;]+)|"((?:[^"\\]|\\.)*)"'
_DIRECTIVE: Final = re.compile(rf"[ \t,]*({_WORD})(?:=(?:{_VALUE}))?[ \t]*(?:,|$)")
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_NEVER: Final = frozenset(("no-store", "no-cache", "private"))
_UNKEPT: Final = frozenset(("content-range", "set-cookie", "set-cookie2"))
_ASKS_ANEW: Final = frozenset(
    """
    authorization cache-control cookie cookie2 if-match if-modified-since if-none-match if-range if-unmodified-since
    pragma proxy-authorization range
    """.split()  # noqa: SIM905 - a list of names reads better than a list of quotes
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """`age_s` is how old the answer is already, `left_s` for how long it may be given again; both in seconds."""

    age_s: float
    left_s: float


def wants_anew(head: RequestHead) -> bool:
    """Whether this request is never answered from what was kept: no plain GET, or one that brings credentials, a
    condition, a range or a wish for a fresh answer, also where the broker would not pass that on."""
    return head.method != "GET" or head.has_body or any(folded(name) in _ASKS_ANEW for name, _ in head.headers)


def freshness(status: int, headers: Headers, *, most_s: float, now: float) -> Freshness | None:
    """How fresh an answer is; None where it may not be kept. `most_s` is the operator's bound, `now` the
    time of day."""
    found = _Found(headers)
    if status != 200 or found.names & _UNKEPT or any("*" in value for value in found.values("vary")):
        return None
    directives = _directives(found.values("cache-control"))
    if directives is None or directives.keys() & _NEVER:
        return None
    if not directives and any("no-cache" in value.lower() for value in found.values("pragma")):
        return None
    age_s, lifetime_s = _age(found, now), _lifetime(found, directives, most_s, now)
    if age_s is None or lifetime_s is None or lifetime_s <= age_s:
        return None
    return Freshness(age_s=age_s, left_s=min(most_s, lifetime_s - age_s))


class _Found:
    """The headers of one answer, by name."""

    def __init__(self, headers: Headers) -> None:
        self._headers = headers
        self.names = frozenset(name for name, _ in headers)

    def values(self, name: str) -> list[str]:
        return [value for known, value in self._headers if known == name]

    def one(self, name: str) -> str | None:
        """The one value of a header, '' where there are several."""
        values = self.values(name)
        return None if not values else values[0] if len(values) == 1 else ""


def _directives(values: list[str]) -> dict[str, str] | None:
    """By name in lower case; '' without a value. None where something is malformed or said twice in two ways."""
    text, found, at = ",".join(values).strip(" \t,"), dict[str, str](), 0
    while at < len(text):
        match = _DIRECTIVE.match(text, at)
        if match is None:
            return None
        name, value = match[1].lower(), match[2] or match[3] or ""
        if found.setdefault(name, value) != value:
            return None
        at = match.end()
    return found


def _lifetime(found: _Found, directives: dict[str, str], most_s: float, now: float) -> float | None:
    """Seconds from the answer's making; None where what it says of them cannot be read."""
    for name in ("s-maxage", "max-age"):
        if name in directives:
            return float(directives[name]) if _SECONDS.fullmatch(directives[name]) else None
    expires, date = found.one("expires"), found.one("date")
    if expires is None:
        return most_s + (_age(found, now) or 0.0)  # it says nothing: the operator's word alone counts
    ends, made = _time(expires), now if date is None else _time(date)
    return None if ends is None or made is None else ends - made


def _age(found: _Found, now: float) -> float | None:
    """The more of what caches before us say and of what the answer's own date says; None for nonsense."""
    said, date = found.one("age"), found.one("date")
    made = now if date is None else _time(date)
    if made is None or (said is not None and not _SECONDS.fullmatch(said.strip())):
        return None
    return max(0.0, now - made, float(said or 0))


def _time(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
