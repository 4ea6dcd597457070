"""Which addresses a name may lead to: every spelling of a private one is refused unless the operator said so."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from toolcage.broker.addresses import MOST, on_site, permitted
from toolcage.broker.stream import Denied

PUBLIC = ["93.184.215.14", "1.1.1.1", "2606:4700:4700::1111"]
ON_SITE = ["127.0.0.1", "127.8.9.10", "::1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1"]
NEVER_BY_NAME = [
    "169.254.169.254", "169.254.1.1", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fe80::1", "fe80::1%1",
    "224.0.0.1", "ff02::1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "2001:db8::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:93.184.215.14",  # mapped
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::5db8:d70e", "64:ff9b:1::1",  # NAT64
    "2002:7f00:1::", "2002:a00:1::1", "2002:5db8:d70e::1",  # 6to4
    "2001:0:53aa:64c:0:5efe:7f00:1", "2001::1",  # Teredo
    "::127.0.0.1", "2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:1",  # compatible, ISATAP
    "not an address", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_reached(address: str) -> None:
    assert permitted("api.example.org", [address], allow_private=False) == [ip_address(address)]


@pytest.mark.parametrize("address", ON_SITE)
def test_a_private_address_may_be_reached_only_where_the_operator_allowed_it_for_the_name(address: str) -> None:
    with pytest.raises(Denied) as caught:
        permitted("api.example.org", [address], allow_private=False)
    assert caught.value.code == "egress.address"
    assert address not in caught.value.message
    assert permitted("db.internal", [address], allow_private=True) == [ip_address(address)]


@pytest.mark.parametrize("address", NEVER_BY_NAME)
@pytest.mark.parametrize("allow_private", [False, True])
def test_no_permission_for_a_name_reaches_metadata_or_an_address_inside_another(
    address: str, allow_private: bool
) -> None:
    with pytest.raises(Denied):
        permitted("api.example.org", [address], allow_private=allow_private)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254"])
def test_an_address_that_is_written_out_is_its_own_permission_and_no_other_address_s(address: str) -> None:
    assert permitted(address, [address], allow_private=False) == [ip_address(address)]
    with pytest.raises(Denied):
        permitted(address, ["127.0.0.2"], allow_private=True)


def test_one_private_address_among_public_ones_refuses_the_name() -> None:
    with pytest.raises(Denied):
        permitted("rebind.example.org", ["93.184.215.14", "127.0.0.1"], allow_private=False)
    with pytest.raises(Denied):
        permitted("rebind.example.org", ["93.184.215.14", "169.254.169.254"], allow_private=True)


def test_of_a_long_answer_only_the_first_addresses_are_tried_and_none_twice() -> None:
    many = ["1.1.1.1", "1.1.1.1", *(f"1.1.1.{last}" for last in range(2, 90))]
    assert permitted("many.example.org", many, allow_private=False) == [
        ip_address(f"1.1.1.{last}") for last in range(1, MOST + 1)
    ]


def test_only_this_machine_and_private_networks_may_be_reached_in_the_clear() -> None:
    assert all(on_site(ip_address(address)) for address in ON_SITE)
    assert not any(on_site(ip_address(address)) for address in [*PUBLIC, "169.254.1.1", "::ffff:10.0.0.1"])
