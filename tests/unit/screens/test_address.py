"""Addresses go to one domain that everybody can see; headers stay one line."""

import pytest

from toolcage.errors import Refused
from toolcage.facts.address import read
from toolcage.screens.address import screen, screen_header


@pytest.mark.parametrize(
    "text",
    [
        "ana@example.com",
        "Ana <ana@example.com>, b@example.org",
        "ünï@bücher.example",
        "",
        "'o'@example.com",
        "李@example.com",
        "علی\u200cرضا <ali@example.com>",
        "👩\u200d💻 Dev ❤\ufe0f <dev@example.com>",
    ],
)
def test_plain_addresses_pass(text: str) -> None:
    screen(read(text))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a@b.com\r\nBcc: c@d.com", "address.line_break"),
        ('"a\r\nBcc: c"@d.com', "address.line_break"),
        ("a%0d%0aBcc:c@d.com", "address.line_break"),
        ("a\u200b@b.com", "address.invisible"),
        ("An\u200ca <a@b.com>", "address.invisible"),
        ("علی\u200cرضا@b.com", "address.unreadable"),
        ("👩\u200d💻@b.com", "address.unreadable"),
        ("=?utf-8?q?a=40b.com?= <c@d.com>", "address.encoded_word"),
        ("a@b@c.com", "address.unreadable"),
        ("not an address", "address.unreadable"),
        ("a@localhost", "address.private_name"),
        ("a@[127.0.0.1]", "address.unreadable"),
        ("a@127.1", "address.private_address"),
        ("a@pаypal.com", "address.confusable_name"),
        (", ".join(["a@b.com"] * 501), "address.too_many"),
        ("a@b.com\x00", "text.nul"),
    ],
)
def test_the_refusal_names_what_stands_against_it(text: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        screen(read(text))
    assert caught.value.refusal.code == code


def test_a_header_stays_one_line() -> None:
    screen_header("Report for May, 100 % done (ünï)")
    for bad in ("a\r\nBcc: x", "a\nb", "a\rb", "a\x00", "a\u2028b", "a" * 3000):
        with pytest.raises(Refused):
            screen_header(bad)
