"""Where a value came from, as a plain predicate: which identifiers a text names, and whether an argument's are among
those that the user said, that a named tool returned, or that the policy lists.

Values are compared as whole identifiers after normalisation (the domain of an e-mail address, the blanks of an IBAN,
scheme and port of a URL, the signs in a phone number), never as substrings. What has no such form must stand in the
text whole, between its own borders: `general` is not in `general-random`. A bare number of fewer than five digits in
running text names nothing. What cannot be read as an identifier has no origin. Pure; it trusts nothing in the texts.

A tool's output never vouches for what stood in the same call's arguments: an origin that was accepted before still
counts on its own, and one that was not is not laundered by "no contact attacker@evil.example".
"""

from __future__ import annotations

import html
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from toolcage.facts.host import ascii_domain
from toolcage.types import Kind

SAID: Final = "said"
MAX_VALUE_CHARS: Final = 2000
MAX_IDENTIFIERS: Final = 64
MIN_DIGITS: Final = 5

_LOCAL: Final = r"[\w.!#$%&'*+/=?^`{|}~-]"
_LABEL: Final = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_DOMAIN: Final = rf"(?:{_LABEL}\.){{1,8}}[^\W\d_][\w-]{{0,62}}"
_EMAIL: Final = re.compile(rf"(?<!{_LOCAL})({_LOCAL}{{1,64}})@({_DOMAIN})(?![\w@-]|\.\w)")
_NAMED_EMAIL: Final = re.compile(r"[^<>@,;]{0,200}<([^<>\s]{3,320})>")
_URL: Final = re.compile(r"(?<![\w+.-])([A-Za-z][A-Za-z0-9+.-]{0,15}://[^\s<>\"'`\\{}|^]{1,2000})")
_BARE_URL: Final = re.compile(
    rf"(?<![\w@./:-])({_DOMAIN}(?::\d{{1,5}})?(?:[/?#][^\s<>\"'`\\{{}}|^]{{0,2000}})?)(?![\w@])"
)
_GLUED: Final = re.compile(
    rf"(?<![\w@./:-])({_LOCAL}{{1,64}}@)?((?:[a-z0-9][a-z0-9-]{{0,62}}\.){{1,8}}[a-z][a-z0-9-]{{1,62}})"
    r"\.[A-Z][a-z]*(?![\w@.-])"
)
_IBAN: Final = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_PHONE: Final = re.compile(r"(?<![\w+])(?:\+|00)?[0-9(](?:[ ().-]{0,2}[0-9]){6,14}(?![\w]|[.-]\w)")
_PATH_WORD: Final = re.compile(r"\"([^\"\n]{1,400})\"|'([^'\n]{1,400})'|`([^`\n]{1,400})`|([^\s\"'`]{1,400})")
_TRAILING: Final = ".,;:!?)]}\"'»…"
_PORTS: Final = {"http": 80, "https": 443, "ftp": 21, "ws": 80, "wss": 443}
_MARKS: Final = "'`*"
_JOINERS: Final = frozenset("-@._/+:%~#=&\\")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownText:
    """One text that a session has met: where it is from, what it names, and what it may not vouch for.

    `leaves` are the whole scalar values of a structured result; `given` is the squashed text of that call's arguments,
    each by itself and all in one.
    """

    source: str
    text: str
    named: frozenset[str]
    leaves: frozenset[str] = frozenset()
    given: str = ""


def said_text(text: str) -> KnownText:
    """What the user said."""
    plain = _plain(text)
    return KnownText(source=SAID, text=plain, named=frozenset((*_named_in(plain), *_named_before_a_sentence(plain))))


def tool_text(tool: str, texts: Iterable[str], arguments: Any) -> KnownText:
    """What a tool returned with status `ok`: the scalar values of its result, and the arguments of that call."""
    leaves = [_plain(item) for item in texts]
    joined = "\n".join(leaves)
    given = [spelling for item in scalars(arguments) for spelling in (item, unquote(item), html.unescape(item))]
    return KnownText(
        source=f"tool:{tool}",
        text=joined,
        named=frozenset(_named_in(joined)).difference(*(_named_in(_plain(item)) for item in given)),
        leaves=frozenset(item.strip() for item in leaves if len(item) <= MAX_VALUE_CHARS),
        given="\n".join([*map(_squashed, given), "".join(map(_squashed, scalars(arguments)))]),
    )


def values_under(data: Any, field: str) -> Iterator[str]:
    """The scalars that stand under this key of an object, or in a list under it, at any depth; not those of an object
    further below, whose keys say what they are."""
    if isinstance(data, Mapping):
        for key, item in data.items():
            if key == field:
                yield from _bare(item)
            yield from values_under(item, field)
    elif isinstance(data, tuple | list):
        for item in data:
            yield from values_under(item, field)


def _bare(value: Any) -> Iterator[str]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _bare(item)
    elif not isinstance(value, Mapping):
        yield from scalars(value)


def fields_of(tool: str, sources: Iterable[str]) -> frozenset[str]:
    """The fields of the tool's results that are sources of their own: FIELD of each `tool:NAME#FIELD`."""
    start = f"tool:{tool}#"
    return frozenset(source.removeprefix(start) for source in sources if source.startswith(start))


def sources_of(identifier: str, known: Iterable[KnownText]) -> frozenset[str]:
    """Every source that names the identifier."""
    return frozenset(item.source for item in known if _names(item, identifier))


def identifiers_in(value: Any, kind: Kind) -> tuple[str, ...] | None:
    """The identifiers of an argument's value, normalised; None when a part of it cannot be read as one, and when there
    are more than 64, since each is looked for in everything that the session knows."""
    found: list[str] = []
    for text in scalars(value):
        if len(text) > MAX_VALUE_CHARS or (read := _read(_plain(text), kind)) is None:
            return None
        found.extend(read)
        if len(found) > MAX_IDENTIFIERS:
            return None
    return tuple(dict.fromkeys(found))


def scalars(value: Any) -> Iterator[str]:
    """Every scalar of a JSON value as text, keys left out. Numbers as JSON writes them; null holds nothing."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, int | float):
        yield str(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from scalars(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from scalars(item)


# --- reading one value ---------------------------------------------------------------------------------------------


def _read(text: str, kind: Kind) -> list[str] | None:
    if not text or any(unicodedata.category(character) in ("Cc", "Cf") for character in text):
        return None
    if kind == "address":
        return _addresses(text)
    if kind == "url":
        return _one(url_identifier(text))
    if kind == "path":
        return _one(_path(text))
    return _one(_email(text) or _typed_url(text) or _account(text) or _phone(text) or f"text:{text}")


def _one(identifier: str | None) -> list[str] | None:
    return None if identifier is None else [identifier]


def _addresses(text: str) -> list[str] | None:
    found = []
    for part in re.split(r"[,;]", text):
        named = _NAMED_EMAIL.fullmatch(part.strip())
        read = _email(named[1] if named else part.strip())
        if read is None:
            return None
        found.append(read)
    return found


def _email(text: str) -> str | None:
    match = _EMAIL.fullmatch(text)
    domain = None if match is None else ascii_domain(match[2])
    return None if match is None or domain is None else f"email:{match[1]}@{domain}"


def _typed_url(text: str) -> str | None:
    return url_identifier(text) if "://" in text and _URL.fullmatch(text) else None


def url_identifier(text: str) -> str | None:
    """Scheme and host in lower case, no default port, no empty path; one that carries a user name is no identifier."""
    whole = text if "://" in text else f"//{text}"
    try:
        parts = urlsplit(whole)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or "@" in parts.netloc or "\\" in text or any(character.isspace() for character in text):
        return None
    domain = ascii_domain(host.rstrip("."))
    scheme = parts.scheme.lower()
    if domain is None:
        return None
    shown_port = "" if port is None or port == _PORTS.get(scheme or "https") else f":{port}"
    rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return f"url:{scheme}://{domain}{shown_port}{rest}"


def _path(text: str) -> str | None:
    parts = text.split("/")
    if "\0" in text or ".." in parts or "\\" in text:
        return None
    return f"path:{posixpath.normpath(text)}"


def _account(text: str) -> str | None:
    squeezed = text.replace(" ", "")
    return f"account:{squeezed}" if _IBAN.fullmatch(text) and _has_iban_checksum(squeezed) else None


def _has_iban_checksum(squeezed: str) -> bool:
    moved = squeezed[4:] + squeezed[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


def _phone(text: str) -> str | None:
    if not _PHONE.fullmatch(text):
        return None
    digits = re.sub(r"[^0-9]", "", text)
    if text.startswith("+"):
        return f"phone:+{digits}"
    return f"phone:+{digits[2:]}" if digits.startswith("00") else f"phone:{digits}"


# --- reading a whole text ------------------------------------------------------------------------------------------


def _named_in(text: str) -> Iterator[str]:
    for match in _EMAIL.finditer(text):
        if read := _email(match[0]):
            yield read
        if read := _quoted_email(match, text):
            yield read
    for match in _URL.finditer(text):
        yield from _url_forms(match[1].rstrip(_TRAILING))
    for match in _BARE_URL.finditer(text):
        yield from _url_forms(match[1].rstrip(_TRAILING))
    for match in _IBAN.finditer(text):
        yield from _accounts_at(match[0])
    for match in _PHONE.finditer(text):
        if read := _phone(match[0]):
            yield read
    for match in _PATH_WORD.finditer(text):
        word = next(group for group in match.groups() if group is not None)
        if read := _path(word.rstrip(_TRAILING).lstrip("([{")):
            yield read


def _named_before_a_sentence(text: str) -> Iterator[str]:
    """What a person named without a blank behind the full stop: `example.com.Then`, `ann@example.com.Thanks`. For the
    user's own words alone: in anybody else's text the longer name is what may be meant."""
    for match in _GLUED.finditer(text):
        if match[1] and (read := _email(match[1] + match[2])):
            yield read
        elif not match[1]:
            yield from _url_forms(match[2])


def _quoted_email(match: re.Match[str], text: str) -> str | None:
    """The address inside quotation or emphasis marks, which could also begin a mailbox's name: `'ann@example.com'`."""
    bare = match[0].lstrip(_MARKS)
    marks = match[0][: len(match[0]) - len(bare)]
    return _email(bare) if marks and text.startswith(marks[::-1], match.end()) else None


def _url_forms(text: str) -> Iterator[str]:
    """The URL itself; without a scheme, what it may mean; over https what was said over http."""
    read = url_identifier(text)
    if read is None:
        return
    yield read
    scheme, _, rest = read.removeprefix("url:").partition("://")
    if scheme == "":
        yield from (f"url:{other}://{rest}" for other in ("https", "http"))
    else:
        yield f"url:://{rest}"
    if scheme == "http" and ":" not in rest.split("/", 1)[0]:
        yield f"url:https://{rest}"
    yield f"text:{rest.split('/', 1)[0]}"


def _accounts_at(candidate: str) -> Iterator[str]:
    """The longest beginning, ending at a blank or at the end, that has an IBAN's checksum."""
    words = candidate.split(" ")
    for count in range(len(words), 0, -1):
        if read := _account(" ".join(words[:count])):
            yield read
            return


def _names(known: KnownText, identifier: str) -> bool:
    kind, _, value = identifier.partition(":")
    if known.source != SAID and (not _squashed(value) or _given_in(known.given, value)):
        return False
    if identifier in known.named:
        return True
    return kind == "text" and (value in known.leaves or _stands_whole(value, known.text))


def _given_in(given: str, value: str) -> bool:
    """Whether the letters and digits of the value stand in the arguments, split over several of them or not."""
    return _squashed(value.split("://")[-1]) in given


def _stands_whole(value: str, text: str) -> bool:
    if value.replace(".", "").replace(",", "").isdigit() and sum(map(str.isdigit, value)) < MIN_DIGITS:
        return False
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        if not _joined(text[max(0, start - 2) : start][::-1], value[0]) and not _joined(text[end : end + 2], value[-1]):
            return True
        start = text.find(value, start + 1)
    return False


def _joined(beside: str, edge: str) -> bool:
    """Whether what stands beside a value belongs to it: a word, or a joining sign with a word behind it."""
    if not beside:
        return False
    if _is_word(beside[0]):
        return _is_word(edge)
    return beside[0] in _JOINERS and len(beside) > 1 and _is_word(beside[1])


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.combining(character) > 0


def _squashed(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text)
