"""One domain has one ASCII form, and a name that programs take for two domains has none."""

import pytest

from toolcage.facts.host import ascii_domain, read_host
from toolcage.facts.url import read_url
from toolcage.policy.origin import identifiers_in


@pytest.mark.parametrize(
    ("text", "ascii_form"),
    [("Example.COM", "example.com"), ("bücher.example", "xn--bcher-kva.example"),
     ("BÜCHER.example", "xn--bcher-kva.example"), ("ｅｘａｍｐｌｅ。com", "example.com"),
     ("xn--busine-dta.com", "xn--busine-dta.com"), ("例え.jp", "xn--r8jz45g.jp")],
)  # fmt: skip
def test_every_spelling_of_a_domain_is_one(text: str, ascii_form: str) -> None:
    assert ascii_domain(text) == ascii_form
    host = read_host(text)
    assert host is not None
    assert host.name == ascii_form


TWO_READINGS = [
    "busineß.com", "BUSINEẞ.com", "bςd.com", "نامه\u200cای.com", "a\u200db.com", "☕.com", "é_b.com", "é..com",
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
    assert identifiers_in("bob@xn--busine-dta.com", "address") == ("email:bob@xn--busine-dta.com",)
