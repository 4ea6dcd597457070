"""Which addresses are public: every special block is not, whatever carries the address."""

from ipaddress import ip_address

import pytest

from toolcage.facts.ip import address_is_public, reach_of


@pytest.mark.parametrize(
    "text",
    [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "2606:4700::1111",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "172.32.0.1",
        "11.0.0.1",
    ],
)
def test_addresses_of_the_internet_are_public(text: str) -> None:
    assert address_is_public(ip_address(text))


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("0.0.0.0", "loopback"),
        ("127.0.0.1", "loopback"),
        ("127.255.0.9", "loopback"),
        ("::1", "loopback"),
        ("::", "loopback"),
        ("10.1.2.3", "private"),
        ("100.64.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("fd12::1", "private"),
        ("fec0::1", "private"),
        ("169.254.1.1", "link_local"),
        ("fe80::1", "link_local"),
        ("fe80::1%eth0", "link_local"),
        ("2606:4700::1%eth0", "link_local"),
        ("169.254.169.254", "metadata"),
        ("100.100.100.200", "metadata"),
        ("192.0.0.192", "metadata"),
        ("168.63.129.16", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("198.18.0.1", "reserved"),
        ("192.0.2.1", "reserved"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("2001:db8::1", "reserved"),
        ("2002:7f00:1::", "reserved"),
        ("2001:0:7f00:1::", "reserved"),
        ("::127.0.0.1", "reserved"),
        ("4000::1", "reserved"),
        ("::ffff:169.254.169.254", "metadata"),
        ("::ffff:127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b:1::1", "reserved"),
        ("2606:4700::5efe:10.0.0.1", "private"),
    ],
)
def test_special_addresses_are_not(text: str, reach: str) -> None:
    assert reach_of(ip_address(text)) == reach
    assert not address_is_public(ip_address(text))
