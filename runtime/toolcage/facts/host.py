"""Reads the host of a URL or the domain of an address as a browser would: every spelling becomes one.

The WHATWG URL standard's host parser: percent-decoding, IDNA 2008 (UTS 46, strict) to ASCII, and for anything that
ends in a number the IPv4 parser with its decimal, octal, hexadecimal and short forms; `[…]` is IPv6. What the
standard calls a failure is `None` here, and so is what it lets pass but no registered name has (`$`, `,` …), and the
screen refuses it: where parsers disagree, nothing is reached.

It resolves nothing. `local_name` says which names can only mean this machine or this network.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final
from urllib.parse import unquote_to_bytes

from toolcage.facts.confusables import mixes_scripts, passes_for_latin
from toolcage.facts.ip import IP, address_is_public

_MAX_NAME: Final = 253
# The standard lets more pass; no name that is registered or resolved has it, and parsers end a host at some of it.
_NAME: Final = re.compile(r"[a-z0-9_.-]+\Z", re.ASCII)
_NUMBER: Final = re.compile(r"(?:[0-9]+|0[xX][0-9A-Fa-f]*)\Z", re.ASCII)

_ONCE_MAPPED: Final = str.maketrans({"ß": "ss", "ς": "σ"})  # by IDNA 2003
# Signs that nobody takes for a letter, a dot or a slash. With what IDNA 2003 did with them programs agree.
_PICTOGRAPHS: Final = re.compile(
    "[\u2600-\u2757\u2763-\u2767\u2795-\u2797\u27a1\u27b0\u27bf\u2b50\u2b55\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff]"
)

_LOCAL_NAMES: Final = """
    localhost localdomain localdomain4 localdomain6 local internal intranet intra lan home corp private home.arpa
    in-addr.arpa ip6.arpa test invalid alt onion i2p consul cluster svc docker openstacklocal
    fritz.box mshome.net routerlogin.net routerlogin.com tplinkwifi.net tplinklogin.net router.asus.com
"""
_LOCAL_SUFFIXES: Final = frozenset(_LOCAL_NAMES.split())
_MACHINE_NAMES: Final = """
    metadata.goog metadata.tencentyun.com metadata.packet.net metadata.platformequinix.com api.metadata.cloud.ibm.com
    kubernetes.default
"""
_METADATA_NAMES: Final = frozenset(_MACHINE_NAMES.split())
# Names under these are any address that the name itself spells, loopback and private ones included.
_SERVICE_NAMES: Final = """
    nip.io sslip.io xip.io xip.name ip.addr.tools traefik.me backname.io local.gd localtest.me lvh.me lvh.pro
    lacolhost.com vcap.me yoogle.com fuf.me ulh.us smackaho.st localh.st localho.st lcl.host localhost.direct
    bugbounty.dod.network ddev.site lndo.site docksal.site spoofed.burpcollaborator.net
    1u.ms rbndr.us rebind.network rebinder.net rebind.it singularity.me lock.cmpxchg8b.com requestrepo.com
"""
_SPELLING_SERVICES: Final = frozenset(_SERVICE_NAMES.split())
# In labels of its own: `docs-10-2-1-0` counts a release.
_SPELLED_V4: Final = re.compile(
    r"(?:(?<=\.)|\A)([0-9]{1,3})([.-])([0-9]{1,3})\2([0-9]{1,3})\2([0-9]{1,3})(?![0-9-])", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """`name`: lower-case ASCII without a final dot, or the address in its one written form. `ip` where it is one.
    `unicode`: how a person would see the name. `spelled` is false where the given spelling was not the plain one."""

    name: str
    unicode: str
    ip: IP | None = None
    spelled: bool = True
    mixed_script: bool = False
    passes_for_latin: bool = False


def read_host(text: str) -> Host | None:
    """The host that `text` means, or None where a browser would fail too. Linear, never raises."""
    if text.startswith("["):
        return _read_v6(text)
    if len(text) > 4 * _MAX_NAME:
        return None
    name = _to_ascii(text)
    if not name or len(name) > _MAX_NAME or _NAME.match(name) is None:
        return None
    if _ends_in_number(name):
        address = _read_v4(name)
        if address is None:
            return None
        return Host(name=str(address), unicode=str(address), ip=address, spelled=text == str(address))
    name = name.rstrip(".") if name.endswith(".") else name
    labels = name.split(".")
    if not all(0 < len(label) <= 63 for label in labels):
        return None
    shown = [_to_unicode(label) for label in labels]
    if None in shown:
        return None
    written = [label or "" for label in shown]
    if written[-1].isdecimal():  # digits of another script, which some programs read as an address
        return None
    return Host(
        name=name,
        unicode=".".join(written),
        spelled=text.lower() == name,
        mixed_script=any(mixes_scripts(label) for label in written),
        passes_for_latin=written[-1].isascii() and any(passes_for_latin(label) for label in written),
    )


def ascii_domain(text: str) -> str | None:
    """The domain in its one ASCII form, in lower case: what is compared with what. None for what is not valid.

    IDNA 2008, with the pictographs that are registered under some top-level domains. `ß` and `ς` are letters of their
    own, as to every browser: `busineß.com` is another domain than `business.com`. Where else IDNA 2003 and IDNA 2008
    lead to two domains (joiners that nobody sees), the answer is None: nobody can say who would be reached.
    """
    if text.isascii():
        return text.lower()
    import idna  # loaded when a name needs it

    try:
        mapped = idna.uts46_remap(text, std3_rules=True, transitional=False)
        today = _encoded(mapped)
        former = text.encode("idna").decode("ascii").lower()
        if today != former and _encoded(mapped.translate(_ONCE_MAPPED)) != former:
            return None
    except (UnicodeError, ValueError, IndexError):
        return None
    return today


def _encoded(mapped: str) -> str:
    return ".".join(map(_label_to_ascii, mapped.split(".")))


def _label_to_ascii(label: str) -> str:
    import idna

    if label.isascii():
        return label
    drawn = _without_pictographs(label)
    if drawn != label and (not drawn or _label_to_ascii(drawn)):  # what is left must be valid by itself
        return "xn--" + label.encode("punycode").decode("ascii")
    return idna.encode(label, strict=True, std3_rules=True).decode("ascii")


def _without_pictographs(label: str) -> str:
    return _PICTOGRAPHS.sub("", label)


def local_name(name: str) -> bool:
    """Whether the name can only mean this machine, this network or a private address: `localhost`, `printer`,
    `db.internal`, `127.0.0.1.nip.io`. Any other name is judged by what it resolves to, when it is."""
    labels = name.split(".")
    if len(labels) == 1 or name in _METADATA_NAMES:
        return True
    suffixes = {".".join(labels[start:]) for start in range(len(labels))}
    if suffixes & _LOCAL_SUFFIXES or suffixes & _SPELLING_SERVICES:
        return True
    return any(_spells_private(match) for match in _SPELLED_V4.finditer(name))


def _spells_private(match: re.Match[str]) -> bool:
    try:
        return not address_is_public(IPv4Address(".".join(str(int(part)) for part in match.group(1, 3, 4, 5))))
    except AddressValueError:
        return False


def _read_v6(text: str) -> Host | None:
    if not text.endswith("]") or "%" in text:
        return None
    try:
        address = IPv6Address(text[1:-1])
    except AddressValueError:
        return None
    name = f"[{address.compressed}]"
    return Host(name=name, unicode=name, ip=address, spelled=text == name)


def _to_ascii(text: str) -> str | None:
    if "%" in text:
        try:
            text = unquote_to_bytes(text).decode("utf-8")
        except (UnicodeDecodeError, UnicodeEncodeError):
            return None
    return ascii_domain(text)


def _to_unicode(label: str) -> str | None:
    """The label as people see it; None for a punycode label that does not stand for a valid name."""
    if not label.startswith("xn--"):
        return label
    import idna

    try:
        shown = label[4:].encode("ascii").decode("punycode")
        if _without_pictographs(shown) != shown:
            return shown if _label_to_ascii(shown) == label else None
        return idna.decode(label)
    except (UnicodeError, ValueError, IndexError):
        return None


def _ends_in_number(name: str) -> bool:
    parts = name.rstrip(".").split(".") if name.endswith(".") else name.split(".")
    return _NUMBER.match(parts[-1]) is not None


def _read_v4(name: str) -> IPv4Address | None:
    parts = name.removesuffix(".").split(".")
    if len(parts) > 4 or any(_NUMBER.match(part) is None or len(part) > 40 for part in parts):
        return None
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:
        return None
    *first, last = numbers
    if any(number > 255 for number in first) or last >= 256 ** (5 - len(numbers)):
        return None
    value = last + sum(number << (8 * (3 - place)) for place, number in enumerate(first))
    return IPv4Address(value)


def _number(part: str) -> int:
    if part[:2] in ("0x", "0X"):
        return int(part[2:] or "0", 16)
    if len(part) > 1 and part.startswith("0"):
        return int(part, 8)
    return int(part)
