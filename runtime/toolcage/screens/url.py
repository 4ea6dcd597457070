"""The floor for URLs: http and https to a public host, and nothing that two parsers could read differently.

No user information (it hides the host), no control characters, no port that browsers refuse because another protocol
listens there, no address that is not public in whatever spelling, no name that can only be local, no name that passes
for another one. Which hosts a role may reach is its grant's word, not this floor's.

It resolves no name. A public name may point to a private address: who connects asks `facts.ip.address_is_public` about
the address it resolved, connects to exactly that one, and comes back here with each redirect.
"""

from __future__ import annotations

from typing import Final

from toolcage.facts.host import Host, local_name
from toolcage.facts.ip import reach_of
from toolcage.facts.url import Url, UrlFacts
from toolcage.screens import text
from toolcage.screens.refuse import part, refuse

MAX_CHARACTERS: Final = 8192
MAX_URLS: Final = 1000
SCHEMES: Final = frozenset({"http", "https"})
# The fetch standard's list of ports that are never spoken to: what listens there takes an HTTP request for its own.
_BAD_PORTS: Final = frozenset(
    (0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
     110,
     111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
     540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
     6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080)
)  # fmt: skip
_PUBLIC: Final = "Use an https URL of a public host."
_REACH: Final = {
    "loopback": "this machine itself",
    "private": "a private network",
    "link_local": "the local link",
    "metadata": "a cloud's metadata service",
    "multicast": "a multicast group",
    "reserved": "a reserved range",
}


def screen(facts: UrlFacts) -> None:
    """Returns nothing for URLs that may be asked for. Raises Refused with a code `url.…` or `text.nul`."""
    text.refuse_nul(facts.has_nul)
    if len(facts.urls) > MAX_URLS:
        refuse("url.too_many", f"More than {MAX_URLS} URLs in one argument.", "Send fewer at a time.")
    for url in facts.urls:
        _screen_one(url)


def _screen_one(url: Url) -> None:
    shown = part(url.text)
    if len(url.text) > MAX_CHARACTERS:
        refuse("url.too_long", f"The URL is longer than {MAX_CHARACTERS} characters.", "Shorten it.")
    if url.has_control:
        refuse("url.control", f"The URL {shown} holds a control character.", "Percent-encode it or leave it out.")
    if not url.scheme:
        refuse("url.not_absolute", f"{shown} is not an absolute URL.", "Begin with https://.")
    if url.scheme not in SCHEMES:
        refuse("url.scheme", f"The scheme {part(url.scheme)} is not possible.", _PUBLIC)
    if url.has_userinfo:
        refuse(
            "url.userinfo", f"The URL {shown} holds a user name or password.", "Leave out what stands before the `@`."
        )
    if url.bad_port:
        refuse("url.port", f"The URL {shown} has a port that is not a number up to 65535.", "Leave the port out.")
    if url.host is None:
        refuse("url.host", f"The host of {shown} cannot be read.", "Write the host as plain lower-case letters.")
    screen_host(url.host)
    if url.port in _BAD_PORTS:
        refuse("url.port", f"Port {url.port} belongs to another protocol.", "Use 80, 443 or the service's HTTP port.")
    if url.backslash:
        refuse("url.backslash", f"The URL {shown} holds a backslash.", "Write `/`, or `%5C` where one is meant.")


def screen_host(host: Host, code: str = "url") -> None:
    """Returns nothing for a host that is public as far as its spelling says.

    Raises Refused with `CODE.private_address`,
    `CODE.private_name` or `CODE.confusable_name`."""
    if host.ip is not None:
        reach = reach_of(host.ip)
        if reach != "public":
            refuse(f"{code}.private_address", f"{part(host.name)} is an address of {_REACH[reach]}.", _PUBLIC)
        return
    if local_name(host.name):
        refuse(f"{code}.private_name", f"{part(host.name)} is a name of this machine or of a private network.", _PUBLIC)
    if host.mixed_script or host.passes_for_latin:
        message = f"{part(host.name)} mixes alphabets so that it looks like another name."
        refuse(f"{code}.confusable_name", message, _PUBLIC)
