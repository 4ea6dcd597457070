"""Only http and https to hosts that are public as far as their spelling says."""

import pytest

from toolcage.errors import Refused
from toolcage.facts.url import read
from toolcage.screens.url import screen


def code_of(text: str) -> str:
    with pytest.raises(Refused) as caught:
        screen(read(text))
    assert caught.value.refusal.hint
    return caught.value.refusal.code


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com",
        "http://example.com:8080/a?b=c#d",
        "https://bücher.example/",
        "https://1.1.1.1/",
        "https://[2606:4700::1111]/",
        "https://xn--e1afmkfd.xn--p1ai/",
        "https://example.com/@user",
        "https://example.com/?next=http://127.0.0.1/",
        "https://example.com/?re=\\d#\\w",
        "https://a_b.example.com/",
        "https://日本語.example/",
        "https://release-1-2-3-4.example.com",
        "https://docs-10-2-1-0.example.com",
        "https://v10.0.0.1.docs.example.com/",
        "https://faß.de/",
        "https://☕.example/",
        "https://пример.рф/путь",
    ],
)
def test_public_urls_pass(text: str) -> None:
    screen(read(text))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("ftp://example.com", "url.scheme"),
        ("file:///etc/passwd", "url.scheme"),
        ("gopher://example.com", "url.scheme"),
        ("javascript:alert(1)", "url.scheme"),
        ("example.com", "url.not_absolute"),
        ("//example.com", "url.not_absolute"),
        ("", "url.not_absolute"),
        ("https://user:pw@example.com", "url.userinfo"),
        ("https://example.com@127.0.0.1", "url.userinfo"),
        ("https://example.com\\@other.example/", "url.backslash"),
        ("https:\\\\example.com/", "url.backslash"),
        ("https://example.com\\@127.0.0.1/", "url.backslash"),
        ("https://example.com/\r\nHost: x", "url.control"),
        ("https://exa\tmple.com/", "url.control"),
        ("https://example.com:0x50/", "url.port"),
        ("https://example.com:25/", "url.port"),
        ("https://example.com:6000/", "url.port"),
        ("https:///", "url.host"),
        ("https://exa mple.com", "url.host"),
        ("https://300.1.1.1", "url.host"),
        ("http://$(id).example.com", "url.host"),
        ("http://1.1.1.1,127.0.0.1", "url.host"),
        ("http://*.example.com", "url.host"),
        ("http://१२७.०.०.१", "url.host"),
        ("http://127.0.0.1", "url.private_address"),
        ("http://0x7f.1", "url.private_address"),
        ("http://[::ffff:169.254.169.254]", "url.private_address"),
        ("http://[64:ff9b::a9fe:a9fe]", "url.private_address"),
        ("http://[fe80::1]", "url.private_address"),
        ("http://localhost", "url.private_name"),
        ("http://LOCALHOST.:80", "url.private_name"),
        ("http://printer", "url.private_name"),
        ("http://db.internal", "url.private_name"),
        ("http://metadata.google.internal", "url.private_name"),
        ("http://127.0.0.1.nip.io", "url.private_name"),
        ("http://x.10-0-0-1.example.com", "url.private_name"),
        ("http://10.0.0.1.example.com", "url.private_name"),
        ("http://127.0.0.1e0", "url.private_name"),
        ("http://localtest.me", "url.private_name"),
        ("http://s-1.1.1.1-127.0.0.1-1-fs-e.d.rebind.it", "url.private_name"),
        ("http://fritz.box", "url.private_name"),
        ("http://localhost6.localdomain6", "url.private_name"),
        ("http://api.metadata.cloud.ibm.com", "url.private_name"),
        ("http://metadata.goog", "url.private_name"),
        ("http://kubernetes.default.svc", "url.private_name"),
        ("http://pаypal.com", "url.confusable_name"),
        ("http://соре.com", "url.confusable_name"),
        ("http://example.com\x00", "text.nul"),
        ("http://example.com/" + "a" * 9000, "url.too_long"),
    ],
)
def test_the_refusal_names_what_stands_against_it(text: str, code: str) -> None:
    if code == "text.nul":
        with pytest.raises(Refused):
            screen(read(text))
    else:
        assert code_of(text) == code


def test_one_bad_url_among_good_ones_is_refused() -> None:
    with pytest.raises(Refused):
        screen(read("https://example.com", "http://10.0.0.1"))
