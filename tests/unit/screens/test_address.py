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
        "Ann Lee (HR) <ann@example.com>",
        'Ann "Annie" Lee [HR] <ann@example.com>',
        '"ann@example.com" <ann@example.com>',
        "ann@example.com <ann@example.com>",
        "info@faß.de",
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
        ('"bob@example.com" <ann@example.com>', "address.unreadable"),
        ("Ann (bob@example.com) <ann@example.com>", "address.unreadable"),
        ("-oQ/tmp/x@example.com", "address.unreadable"),
        ('"-oQ/tmp -X/x"@example.com', "address.unreadable"),
        ('"|id"@example.com', "address.unreadable"),
        ("/dev/null@example.com", "address.unreadable"),
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


ORDINARY_HEADERS = [
    "Report for May, 100 % done (ünï)",
    "C:\\new\\report.txt",
    "LaTeX \\rho and \\nu",
    "\\\\server\\readme",
    "50% off\\new",
    "Encoding: %0A in URLs",
    "Regex \\r?\\n explained: how",
    "&#10; entity",
    "=?utf-8?q?M=C3=BCller?=",
    "=?utf-8?b?5pel5pys?=",
    "Re: path\\r\\n literal",
]
TWO_HEADERS = [
    "a\r\nBcc: x",
    "a\nb",
    "a\rb",
    "a\x00",
    "a\u2028b",
    "a\x85b",
    "a\x0bb",
    "a\ud800b",
    "a%0d%0aBcc: x",
    "a%0aBcc:x",
    "a%250aBcc:x",
    "a\\r\\nBcc: x",
    "a\\u000aBcc: x",
    "a=0ABcc: x",
    "a&#13;&#10;Bcc: x",
    "a&NewLine;Bcc: x",
    "a\u560a\u560dBcc: x",
    "a%E5%98%8ABcc: x",
    "a%0d%0a%0d%0abody",
    "=?utf-8?q?a=0D=0ABcc:_x?=",
    "=?utf-8?b?eA0KQmNjOiBh?=",
    "=?utf-8?b?eA0KQmNjO?=",
    "=?utf-8?b?eA==DQpC?=",
    f"=?utf-8?b?{'QUFB' * 200}DQpC?=",
    "=?utf-8?b?eA0K QmNj?=",
    f"=?utf-8?q?{'a' * 500}=0A_x?=",
    "=?utf-8?q?a b=0D x?=",
    "=?utf-8?q?what?_=0a_x?=",
    "a%00",
    "a" * 3000,
]


@pytest.mark.parametrize("text", ORDINARY_HEADERS)
def test_a_header_may_speak_of_line_ends(text: str) -> None:
    screen_header(text)


@pytest.mark.parametrize("text", TWO_HEADERS, ids=[repr(text[:24]) for text in TWO_HEADERS])
def test_a_header_stays_one_line(text: str) -> None:
    with pytest.raises(Refused):
        screen_header(text)
