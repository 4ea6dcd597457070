"""URLs are read as a browser reads them, and every spelling of an address becomes one."""

import pytest

from toolcage.facts.url import read, read_url

LOOPBACK = [
    "127.0.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "0x7F.0.0.0x1",
    "127.0.0.1.", "１２７.0.0.1", "127。0。0。1", "①②⑦.⓪.⓪.①", "%31%32%37.0.0.1", "00000177.0.0.01",
]  # fmt: skip


@pytest.mark.parametrize("host", LOOPBACK)
def test_every_spelling_of_an_ipv4_address_is_read_as_it(host: str) -> None:
    read_host = read_url(f"http://{host}/x").host
    assert read_host is not None
    assert str(read_host.ip) == "127.0.0.1"


@pytest.mark.parametrize("host", ["[::1]", "[0:0:0:0:0:0:0:1]", "[::0.0.0.1]", "[0000::1]"])
def test_every_spelling_of_an_ipv6_address_is_read_as_it(host: str) -> None:
    found = read_url(f"http://{host}:8080/").host
    assert found is not None
    assert found.name == "[::1]"


@pytest.mark.parametrize(
    "host",
    [
        "256.1.1.1",
        "1.2.3.4.5",
        "0x1ffffffff",
        "08.1.1.1",
        "a.1.2.08",
        "[::1",
        "[fe80::1%25eth0]",
        "a b",
        "",
        "%zz",
        "a%00b",
        "xn--a-ecp.ru.xn--",
        "x" * 64 + ".com",
        "a..b",
    ],
)
def test_hosts_that_a_browser_refuses_are_unreadable(host: str) -> None:
    assert read_url(f"http://{host}/").host is None


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("http://example.com", "example.com", 80),
        ("HTTPS://EXAMPLE.com:8443/a?b#c", "example.com", 8443),
        ("http:example.com", "example.com", 80),
        ("http:////example.com/", "example.com", 80),
        ("http:\\\\example.com\\a", "example.com", 80),
        (" \thttp://exa\nmple.com ", "example.com", 80),
        ("http://a.com:80\\@b.com/", "a.com", 80),
        ("http://a.com#@b.com/", "a.com", 80),
        ("http://a.com?@b.com/", "a.com", 80),
        ("http://a:b@c.com@d.com/", "d.com", 80),
        ("http://ⓔⓧⓐⓜⓟⓛⓔ.com", "example.com", 80),
        ("http://bücher.example", "xn--bcher-kva.example", 80),
        ("http://exam\u00adple.com", "example.com", 80),
        ("http://example.com:", "example.com", 80),
    ],
)
def test_the_host_is_the_one_that_a_browser_connects_to(text: str, host: str, port: int) -> None:
    url = read_url(text)
    assert url.host is not None
    assert (url.host.name, url.port) == (host, port)


def test_the_plain_form_is_what_to_connect_to() -> None:
    assert read_url("HTTP:\\\\EXAMPLE.com:80\\a b?q#f").href == "http://example.com/a b?q"
    assert read_url("http://0x7f.1:81/").href == "http://127.0.0.1:81/"
    assert read_url("http://a.com:99999/").href == ""


def test_user_information_controls_and_ports_are_facts() -> None:
    assert read_url("http://user@a.com/").has_userinfo
    assert read_url("http://@a.com/").has_userinfo
    assert not read_url("http://a.com/@b").has_userinfo
    assert read_url("http://a.com/\r\nx").has_control
    assert read_url("http://a.com:1e3/").bad_port
    assert read_url("http://a.com:65536/").bad_port


def test_several_urls_are_read_each_for_itself() -> None:
    facts = read("http://a.com", "ftp://b.com", "c\x00")
    assert [url.scheme for url in facts.urls] == ["http", "ftp", ""]
    assert facts.has_nul


def test_mixed_alphabets_and_look_alikes_are_facts_and_other_alphabets_are_not() -> None:
    mixed = read_url("http://pаypal.com").host
    whole = read_url("http://соре.com").host
    russian = read_url("http://пример.рф").host
    assert mixed is not None
    assert whole is not None
    assert russian is not None
    assert mixed.mixed_script
    assert whole.passes_for_latin
    assert not any((russian.mixed_script, russian.passes_for_latin))
