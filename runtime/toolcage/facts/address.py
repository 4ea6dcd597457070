"""Facts of mail addresses: who a message really goes to, and whether anything in the text could add a header.

A small grammar on purpose: `local@domain`, `Name <local@domain>`, quoted names and quoted local parts, commas or
semicolons between several. What mail programs read differently (comments, groups, routes, encoded words, a second
unquoted `@`, a local part with `%` or `!`, which servers take for a route to another domain, a domain with a comma or
another sign that none has) is unreadable here, and the screen refuses it. Domains are read as hosts are: one ASCII form
for every spelling. Line ends and NUL count wherever they stand, inside quotes and percent-encoded too
(GHSA-g7hc-96xr-gvvx).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from toolcage.facts.host import Host, read_host
from toolcage.types import Facts

MAX_READ: Final = 64 * 1024
_BREAKS: Final = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]|%0[0ad]|\\\\[rn0]|=0[ad]|&#(?:x0?[ad]|1[03]);?", re.I
)
# In the value of a header, where people write about line ends too: those that a header follows, or several of them.
_CONTROL: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|%(?:25)*00|\\\\0(?![0-9])", re.I)
_ENCODED_BREAK: Final = (
    r"(?:%(?:25)*(?:0[ad]|E5%(?:25)*98%(?:25)*8[ad]|u000[ad])|\\(?:[rn]|u000[ad]|x0[ad]|01[25])|=0[ad]"
    r"|&(?:#(?:x0*[ad]|0*1[03]);?|NewLine;)|[\u560a\u560d])"
)
_STARTS_HEADER: Final = re.compile(
    rf"{_ENCODED_BREAK}{{1,4}}[A-Za-z][A-Za-z0-9-]{{0,40}}[ \t]?:|{_ENCODED_BREAK}{{3}}", re.IGNORECASE
)
# Whether they end or not: programs differ in where. A tab may stand in a header.
_BASE64_WORD: Final = re.compile(r"=\?[^?]*+\?b\?([^?]*+)", re.IGNORECASE)
_QUOTED_WORD: Final = re.compile(r"=\?[^?]*+\?q\?", re.IGNORECASE)
_QUOTED_CONTROL: Final = re.compile("=(?:0[0-8a-f]|1[0-9a-f]|7f)", re.IGNORECASE)
_INVISIBLE: Final = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufe00-\ufe0f]|[\U000e0000-\U000e0fff]"
)
# Within a display name: joiners inside a word of Arabic or Indic writing, and those of emoji.
_PICTOGRAPH: Final = "[#*0-9\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff]"
_JOINED: Final = re.compile(
    "(?<=[\u0620-\u08ff])\u200c(?=[\u0620-\u08ff])|(?<=[\u0900-\u0dff])[\u200c\u200d](?=[\u0900-\u0dff])"
    f"|(?<={_PICTOGRAPH})(?:\ufe0f(?!\u200d)|\ufe0f?\u200d(?={_PICTOGRAPH}))"
)
_PIECE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[^",;<>@()]+|[",;<>@()]', re.DOTALL)
# `Ann Lee (HR)`, `Ann [HR]`, `Ann "Annie" Lee`: whatever a program does with it, the mailbox is the same.
_PLAIN: Final = r'[^<>@()",;:\\[\]]*'
_ASIDE: Final = re.compile(rf'(?<=[ \t])(?:\({_PLAIN}\)|\[{_PLAIN}\]|"{_PLAIN}")(?=[ \t]|\Z)')
# What a domain of mail is made of (RFC 5321): a host of a URL may also hold commas, which part addresses.
_DOMAIN: Final = re.compile(r"[a-z0-9_.-]+|\[[0-9a-f:.]+\]")
_LOCAL: Final = re.compile(r"[^\s\"(),:;<>@\[\\\]]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """`mailbox`: `local@domain` with the domain in its one form; '' where the text could not be read as one address.
    `name`: the display name, of which nothing is believed."""

    text: str
    mailbox: str = ""
    local: str = ""
    domain: Host | None = None
    name: str = ""
    encoded_word: bool = False

    @property
    def readable(self) -> bool:
        """Whether every mail program reads the same address here."""
        return bool(self.mailbox)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressFacts(Facts):
    """All addresses of the argument, in order. `breaks`: a line end or another control anywhere, encoded or not."""

    kind: Literal["address"] = "address"
    addresses: tuple[Address, ...] = ()
    breaks: bool = False
    invisible: bool = False
    has_nul: bool = False
    characters: int = 0


def read(*texts: str) -> AddressFacts:
    """The facts of one or several texts, each of which may hold several addresses. Never refuses."""
    return AddressFacts(
        addresses=tuple(address for text in texts for address in _addresses(text[:MAX_READ])),
        breaks=any(has_break(text) for text in texts),
        invisible=any(not text.isascii() and _INVISIBLE.search(_JOINED.sub("", text)) for text in texts),
        has_nul=any("\x00" in text for text in texts),
        characters=sum(map(len, texts)),
    )


def has_break(text: str) -> bool:
    """Whether a header with this value could become two: CR, LF, NUL or another control, as such or encoded. Tabs may
    stand in a header."""
    return _BREAKS.search(text) is not None


def starts_header(value: str) -> bool:
    """Whether a header with this value could become two, for a program that decodes it: a control as such or in an
    encoded word, an encoded line end before something like `Bcc:`. `C:\\new` and `%0A in URLs` are ordinary text."""
    if _CONTROL.search(value) or _STARTS_HEADER.search(value):
        return True
    quoted = _QUOTED_WORD.search(value)
    if quoted is not None and _QUOTED_CONTROL.search(value, quoted.end()):
        return True
    return any(_may_hold_control(word[1]) for word in _BASE64_WORD.finditer(value))


def _may_hold_control(text: str) -> bool:
    """Whether base64 holds a control of ASCII, or cannot be decoded: others may decode it still. What stands behind
    padding is read too, as some do."""
    try:
        raw = b"".join(base64.b64decode(part + "=" * (-len(part) % 4)) for part in re.split("[=\\s]+", text))
    except (binascii.Error, ValueError):
        return True
    return _CONTROL.search("".join(chr(byte) for byte in raw if byte < 0x80)) is not None


def _addresses(text: str) -> Iterator[Address]:
    for part in _split(text):
        if part and not part.isspace():
            yield _read_one(part)


def _split(text: str) -> list[str]:
    """At commas and semicolons outside quotes and angle brackets."""
    parts: list[str] = [""]
    pieces: list[str] = []
    inside = False
    for match in _PIECE.finditer(text):
        piece = match.group()
        inside = piece == "<" or (inside and piece != ">")
        if piece in ",;" and not inside:
            parts[-1] = "".join(pieces)
            parts.append("")
            pieces = []
        else:
            pieces.append(piece)
    parts[-1] = "".join(pieces)
    return parts


def _read_one(text: str) -> Address:
    bare = text.strip(" \t")
    encoded = "=?" in bare
    unread = Address(text=bare, encoded_word=encoded)
    name, address = "", bare
    if bare.endswith(">"):
        name, opened, address = bare[:-1].rpartition("<")
        if not opened or not (_is_name(name) or name.strip(' \t"') == address):
            return unread
    local, at, domain_text = address.rpartition("@")
    local = local.removeprefix("mailto:") if not name else local
    if not at or not _is_local(local):
        return unread
    domain = read_host(domain_text)
    if domain is None or _DOMAIN.fullmatch(domain.name) is None:
        return unread
    return Address(
        text=bare,
        mailbox=f"{local}@{domain.name}",
        local=local,
        domain=domain,
        name=name.strip(' \t"'),
        encoded_word=encoded,
    )


def _is_name(name: str) -> bool:
    """A phrase, or one quoted string: no `<`, `@` or comment that another program would take for an address."""
    bare = name.strip(" \t")
    if len(bare) > 1 and bare.startswith('"') and bare.endswith('"'):
        return '"' not in bare[1:-1].replace('\\"', "") and "<" not in bare and "@" not in bare
    return not re.search(r'[<>@()",;:\\\[\]]', _ASIDE.sub("", bare))


def _is_local(local: str) -> bool:
    """A dot-atom (letters of any script), or a short quoted string without an `@` or a bracket in it.

    Without `%` and `!`: a server for the domain may deliver `eve%evil.example` and `evil.example!eve` elsewhere.
    Without joiners: two mailboxes would look like one. Not beginning with what mail programs took for an option, a
    command or a file.
    """
    if "%" in local or "!" in local or _INVISIBLE.search(local) or local.lstrip('"').startswith(("-", "|", "/", ":")):
        return False
    if local.startswith('"') and local.endswith('"') and 2 < len(local) <= 66:
        return not re.search(r'["<>@,;\\]', local[1:-1])
    return _LOCAL.fullmatch(local) is not None and ".." not in local and local[0] != "." and local[-1] != "."
