"""Which of a name's addresses may be connected: the last word before a socket, whatever a URL looked like.

An address that the operator wrote out is its own permission. Besides that, public addresses always, loopback and
private ones only where the operator allowed them for this very name; link-local ones, every metadata service, and IPv6
addresses that carry an IPv4 address (mapped, NAT64, 6to4, Teredo, ISATAP) never. One refused address among several
refuses the name: a name that is public and private at once is how rebinding begins. Pure; resolves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address
from typing import Final

from toolcage.broker.stream import Denied
from toolcage.facts.host import read_host
from toolcage.facts.ip import IP, reach_of

MOST: Final = 4
"""So many addresses of one name are tried; the rest of a long answer is left alone."""
_ON_SITE: Final = ("loopback", "private")


def literal(host: str) -> IP | None:
    """The address that `host` is, or None for a name. `host` stands without brackets."""
    found = read_host(f"[{host}]" if ":" in host else host)
    return None if found is None else found.ip


def permitted(host: str, found: Sequence[str], *, allow_private: bool) -> list[IP]:
    """The addresses among `found`, the answer for `host`, to be tried in order. Raises Denied (`egress.address`)."""
    named = literal(host)
    addresses = [_read(text, host) for text in found]
    for address in addresses:
        if not _may(address, named, allow_private):
            raise _refused(f"{host} is at {address} ({reach_of(address)})")
    return list(dict.fromkeys(addresses))[:MOST]


def on_site(address: IP) -> bool:
    """Whether it is this machine or a private network: where a connection without TLS may go."""
    return _carried_nothing(address) and reach_of(address) in _ON_SITE


def _may(address: IP, named: IP | None, allow_private: bool) -> bool:
    if named is not None:
        return address == named
    return _carried_nothing(address) and (reach_of(address) == "public" or (allow_private and on_site(address)))


def _carried_nothing(address: IP) -> bool:
    """What carries another address is one more spelling of it, on which a router and this module could disagree."""
    if not isinstance(address, IPv6Address):
        return True
    number = int(address)
    nat64, isatap = number >> 32 == 0x0064_FF9B << 64, (number >> 32) & 0xFDFF_FFFF == 0x0000_5EFE
    return not (nat64 or isatap or address.ipv4_mapped or address.sixtofour or address.teredo)


def _read(text: str, host: str) -> IP:
    try:
        return ip_address(text)
    except ValueError:
        raise _refused(f"the answer for {host} is no address") from None


def _refused(operator: str) -> Denied:
    return Denied("egress.address", "this place is at an address that may not be reached from here", operator)
