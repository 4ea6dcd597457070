"""The floor for mail addresses and headers: one reading, one line, a domain that mail can go to.

A line end anywhere, inside quotes or encoded too, would add a header, and with it a recipient nobody saw. A domain is
held to what a URL's host is held to. Who may be written to is the grant's word.
"""

from __future__ import annotations

from typing import Final

from toolcage.facts.address import Address, AddressFacts, starts_header
from toolcage.screens import text
from toolcage.screens.refuse import part, refuse
from toolcage.screens.url import screen_host

MAX_ADDRESSES: Final = 500
MAX_CHARACTERS: Final = 64 * 1024
MAX_MAILBOX: Final = 254
MAX_HEADER: Final = 2000
_PLAIN: Final = "Write each as name@example.com."


def screen(facts: AddressFacts) -> None:
    """Returns nothing for addresses that every mail program reads alike. Raises Refused with a code `address.…` or
    `text.nul`."""
    text.refuse_nul(facts.has_nul)
    if facts.characters > MAX_CHARACTERS or len(facts.addresses) > MAX_ADDRESSES:
        refuse("address.too_many", f"More than {MAX_ADDRESSES} addresses in one argument.", "Send fewer at a time.")
    if facts.breaks:
        refuse("address.line_break", "An address holds a line end or a control character.", _PLAIN)
    if facts.invisible:
        refuse("address.invisible", "An address holds an invisible character.", _PLAIN)
    for address in facts.addresses:
        _screen_one(address)


def screen_header(value: str) -> None:
    """Returns nothing for a text that stays one header's value (a subject, a name). Raises Refused."""
    text.refuse_nul("\x00" in value)
    if starts_header(value):
        refuse(
            "header.line_break", "A header's value holds a line end or a control character.", "Write it in one line."
        )
    if len(value) > MAX_HEADER:
        refuse("header.too_long", f"A header's value is longer than {MAX_HEADER} characters.", "Shorten it.")


def _screen_one(address: Address) -> None:
    shown = part(address.text)
    if address.encoded_word:
        refuse("address.encoded_word", f"{shown} holds an encoded word, which mail programs read differently.", _PLAIN)
    if not address.readable or address.domain is None:
        refuse("address.unreadable", f"{shown} is not one plain mail address.", _PLAIN)
    if len(address.mailbox) > MAX_MAILBOX:
        refuse("address.too_long", f"{shown} is longer than a mail address can be.", _PLAIN)
    screen_host(address.domain, "address")
