"""One domain has one ASCII form, and a name that programs take for two domains has none."""

import pytest

from toolcage.facts.host import ascii_domain, read_host
from toolcage.facts.url import read_url
from toolcage.policy.origin import identifiers_in


@pytest.mark.parametrize(
    ("text", "ascii_form"),
    [("Example.COM", "example.com"), ("bücher.example", "xn--bcher-kva.example"),
     ("BÜCHER.example", "xn--bcher-kva.example"), ("ｅｘａｍｐｌｅ。com", "example.com"),
     ("xn--busine-dta.com", "xn--busine-dta.com"), ("例え.jp", "xn--r8jz45g.jp"),
     ("busineß.com", "xn--busine-gta.com"), ("BUSINEẞ.com", "xn--busine-gta.com"), ("βόλος.com", "xn--nxasmm1c.com"),
     ("faß.de", "xn--fa-hia.de"), ("☕.com", "xn--53h.com"), ("i❤️.ws", "xn--i-7iq.ws"), ("xn--ls8h.la", "xn--ls8h.la")],
)  # fmt: skip
def test_every_spelling_of_a_domain_is_one(text: str, ascii_form: str) -> None:
    assert ascii_domain(text) == ascii_form
    host = read_host(text)
    assert host is not None
    assert host.name == ascii_form


TWO_READINGS = [
    "نامه\u200cای.com", "a\u200db.com", "ß\u200d.com", "👨\u200d👩.ws", "é_b.com", "é..com", "a⁄b.com", "☕⁄.com",
    "⊙.com", "☕\u0301.com",
]  # fmt: skip


@pytest.mark.parametrize("text", TWO_READINGS)
def test_a_domain_that_is_two_or_none_is_no_host_no_address_and_no_url(text: str) -> None:
    assert ascii_domain(text) is None
    assert read_host(text) is None
    assert read_url(f"https://{text}/").host is None
    assert identifiers_in(f"eve@{text}", "address") is None
    assert identifiers_in(f"https://{text}/", "url") is None


def test_an_address_at_another_domain_is_not_one_at_its_look_alike() -> None:
    assert identifiers_in("bob@business.com", "address") == ("email:bob@business.com",)
    assert identifiers_in("bob@busineß.com", "address") == ("email:bob@xn--busine-gta.com",)
    assert identifiers_in("bob@xn--busine-gta.com", "address") == ("email:bob@xn--busine-gta.com",)


@pytest.mark.parametrize("text", ["xn--53h-.com", "xn--a.com", "xn--googlex-6d7c.com", "xn--oeh.com"])
def test_punycode_of_what_is_no_name_is_no_host(text: str) -> None:
    assert read_host(text) is None


@pytest.mark.parametrize("text", ["xn--ls8h.la", "☕.com", "i❤️.ws"])
def test_a_name_with_a_pictograph_is_shown_as_it_is_drawn(text: str) -> None:
    host = read_host(text)
    assert host is not None
    assert host.unicode in ("💩.la", "☕.com", "i❤.ws")
