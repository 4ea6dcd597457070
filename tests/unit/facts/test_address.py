"""Addresses are read one way or not at all, and a line end anywhere is seen."""

import pytest

from toolcage.facts.address import has_break, read


@pytest.mark.parametrize(
    ("text", "mailboxes"),
    [
        ("ana@example.com", ["ana@example.com"]),
        ("Ana Ruiz <ana@Example.COM>", ["ana@example.com"]),
        ('"Ruiz, Ana" <ana@example.com>, ben@example.org', ["ana@example.com", "ben@example.org"]),
        ("a@example.com; b@example.com", ["a@example.com", "b@example.com"]),
        ('"a b"@example.com', ['"a b"@example.com']),
        ("a+tag@example.com.", ["a+tag@example.com"]),
        ("ünï@bücher.example", ["ünï@xn--bcher-kva.example"]),
        ("o'neil@example.com", ["o'neil@example.com"]),
        ("a@mail_1.example-shop.com, b@[2001:db8::1]", ["a@mail_1.example-shop.com", "b@[2001:db8::1]"]),
        ("", []),
    ],
)
def test_plain_addresses_are_read_with_one_form_of_the_domain(text: str, mailboxes: list[str]) -> None:
    assert [address.mailbox for address in read(text).addresses] == mailboxes


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a@",
        "@b.com",
        "a@b@c.com",
        "a@b.com <c@d.com>",
        "x@y.com<z@w.com>",
        "<@r.com:a@b.com>",
        "a(comment)@b.com",
        "friends: a@b.com;",
        '"a@evil.com"@b.com',
        '"a,b"@c.com',
        "a@[",
        "a b@c.com",
        "a..b@c.com",
        ".a@b.com",
        "<a@b.com> c",
        'Ana" <a@b.com>',
        "a@b.com>",
        "ana@exa mple.com",
        "eve%evil.example@example.com",
        "<eve@evil.example,example.com>",
        "<eve@evil.example%2cexample.com>",
        "eve@evil!example.com",
        "eve@$example.com",
        "evil.example!eve@example.com",
        "Ana <eve%evil.example@example.com>",
        '"eve%evil.example"@example.com',
    ],
)
def test_what_mail_programs_read_differently_is_unreadable(text: str) -> None:
    assert not all(address.readable for address in read(text).addresses)


@pytest.mark.parametrize(
    "text",
    [
        "a@b.com\r\nBcc: x@y.com",
        "a@b.com\nX",
        '"a\r\nBcc: x"@b.com',
        '"a\nb" <c@d.com>',
        "a%0d%0aBcc:x@b.com",
        "a\\r\\nBcc@b.com",
        "a\x0bb@c.com",
        "a\u2028b@c.com",
        "a\x85b@c.com",
        "a&#13;&#10;b@c.com",
        "a@b.com\x00",
    ],
)
def test_a_line_end_is_seen_wherever_it_stands(text: str) -> None:
    assert has_break(text)
    assert read(text).breaks


def test_a_tab_and_ordinary_text_have_no_break() -> None:
    assert not has_break("Report for May\t(100 % done) = 0")
