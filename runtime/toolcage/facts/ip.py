"""Which IP addresses are on the public internet: one pure function, for URLs before a call and sockets during it.

An allowlist: IPv4 outside every special-purpose block, IPv6 inside 2000::/3 and outside its special blocks (the IANA
special-purpose registries). Tables of our own, because Python's `is_global` differs between versions. An address that
carries an IPv4 address (mapped, NAT64, ISATAP) is judged by what it carries; the deprecated carriers (compatible, 6to4,
Teredo) are never public.

It decides about addresses only. A name is resolved by whoever connects, who asks this again and connects to exactly
the address that was judged.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final, Literal

IP = IPv4Address | IPv6Address
Reach = Literal["public", "loopback", "private", "link_local", "metadata", "multicast", "reserved"]

_METADATA: Final = frozenset(
    {
        IPv4Address("169.254.169.254"),
        IPv4Address("169.254.169.253"),
        IPv4Address("169.254.170.2"),
        IPv4Address("169.254.170.23"),
        IPv4Address("100.100.100.200"),
        IPv4Address("192.0.0.192"),
        IPv4Address("168.63.129.16"),  # in public space, and the host of an Azure machine
        IPv6Address("fd00:ec2::254"),
        IPv6Address("fd00:ec2::23"),
        IPv6Address("fd20:ce::254"),
        IPv6Address("fd00:42::42"),
    }
)
_V4_BLOCKS: Final[tuple[tuple[str, Reach], ...]] = (
    ("0.0.0.0/8", "loopback"),  # Linux takes 0.0.0.0 for the machine itself
    ("127.0.0.0/8", "loopback"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "private"),
    ("172.16.0.0/12", "private"),
    ("192.168.0.0/16", "private"),
    ("169.254.0.0/16", "link_local"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "reserved"),
    ("192.88.99.0/24", "reserved"),
    ("198.18.0.0/15", "reserved"),
    ("198.51.100.0/24", "reserved"),
    ("203.0.113.0/24", "reserved"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
)
_V6_BLOCKS: Final[tuple[tuple[str, Reach], ...]] = (
    ("::1/128", "loopback"),
    ("::/128", "loopback"),
    ("fc00::/7", "private"),
    ("fec0::/10", "private"),
    ("fe80::/10", "link_local"),
    ("ff00::/8", "multicast"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "reserved"),
    ("2002::/16", "reserved"),
    ("3fff::/20", "reserved"),
)
_V4: Final = tuple((IPv4Network(block), reach) for block, reach in _V4_BLOCKS)
_V6: Final = tuple((IPv6Network(block), reach) for block, reach in _V6_BLOCKS)
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")


def address_is_public(address: IP) -> bool:
    """Whether `address` is on the public internet, whatever it carries inside. Pure; says nothing about who answers."""
    return reach_of(address) == "public"


def reach_of(address: IP) -> Reach:
    """What kind of address it is; `public` only where nothing speaks against it."""
    if address in _METADATA:
        return "metadata"
    if isinstance(address, IPv4Address):
        return next((reach for block, reach in _V4 if address in block), "public")
    if address.scope_id is not None:
        return "link_local"
    carried = _carried(address)
    if carried is not None:
        return reach_of(carried)
    special = next((reach for block, reach in _V6 if address in block), None)
    if special is not None:
        return special
    return "public" if address in _GLOBAL_UNICAST else "reserved"


def _carried(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    low = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _NAT64:
        return low
    if (int(address) >> 32) & 0xFDFF_FFFF == 0x0000_5EFE and reach_of(low) != "public":
        return low  # ISATAP: the site's router unpacks it
    return None
