"""Paths, hosts and addresses within bounds, and the neighbours that are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolcage.errors import PolicyError
from toolcage.policy.model import Role
from toolcage.policy.places import (
    AddressBounds,
    HostBounds,
    PathBounds,
    address_miss,
    broad_folder,
    broad_host,
    host_miss,
    path_miss,
)

REPORTS = PathBounds(under=("reports",), suffixes=(".csv", ".txt"))
SITES = HostBounds(names=("example.com", "*.docs.example.org"))
TEAM = AddressBounds(domains=("example.com",), only=("guest@example.org",), max_count=2)


@pytest.mark.parametrize("path", ["reports/a.csv", "./reports/2024/b.txt", "reports//a.csv", ["reports/a.csv"]])
def test_a_path_within_the_folders_is_within_bounds(path: Any) -> None:
    assert path_miss("path", REPORTS, path) is None


@pytest.mark.parametrize(
    "path",
    ["other/a.csv", "reports-2/a.csv", "reports", "a.csv", "/reports/a.csv", "reports/../a.csv", "reports/..",
     "reports/x/../a.csv",
     "~/a.csv", "reports\\a.csv", "reports/a.csv\0", "reports/a.csv\n", "reports/a.sh", "reports/a.csv ", "", 3, None,
     [],
     ["reports/a.csv", "other/a.csv"], "Reports/a.csv", "reports/\u202ea.csv"],
)  # fmt: skip
def test_a_path_that_leaves_or_can_be_read_twice_is_not(path: Any) -> None:
    assert path_miss("path", REPORTS, path) is not None


@pytest.mark.parametrize(
    "url",
    ["https://example.com", "https://example.com/", "HTTPS://Example.com:443/x?y=1", "https://a.docs.example.org/",
     "https://a.b.docs.example.org/"],
)  # fmt: skip
def test_a_url_of_a_granted_host_is_within_bounds(url: str) -> None:
    assert host_miss("url", SITES, url) is None


@pytest.mark.parametrize(
    "url",
    ["http://example.com/", "https://www.example.com/", "https://docs.example.org/", "https://evildocs.example.org/",
     "https://example.com.evil.net/", "https://example.com@evil.net/", "https://evil.net/example.com",
     "https://example.com:8443/", "https://example.com:x/", "https:/example.com", "//example.com/", "example.com",
     "https://93.184.216.34/", "https://[::1]/", "https://0x7f.1/", "https://localhost/",
     "https://example.com\\@evil.net/",
     "https://exаmple.com/", "https://example%2ecom/", " https://example.com/", "https://example.com/ x",
     "https://example.com/\n", "javascript:alert(1)", "", 3, None, [], ["https://example.com/", "https://evil.net/"]],
)  # fmt: skip
def test_a_url_elsewhere_or_one_that_readers_differ_about_is_not(url: Any) -> None:
    assert host_miss("url", SITES, url) is not None


@pytest.mark.parametrize("to", ["ann@example.com", "Ann <ann@Example.com>; bob@example.com", "guest@example.org",
                                ["ann@example.com", "guest@example.org"]])  # fmt: skip
def test_addresses_of_the_granted_domains_are_within_bounds(to: Any) -> None:
    assert address_miss("to", TEAM, to) is None


@pytest.mark.parametrize(
    "to",
    ["ann@evil.example", "ann@example.com\n", "ann@example.com.evil.net", "ann@sub.example.com", "other@example.org",
     "ann@example.com, eve@evil.example", "ann@example.com <eve@evil.example>",
     "ann@example.com\nBcc: eve@evil.example",
     "a@example.com, b@example.com, c@example.com", "ann@exаmple.com", "@example.com", "ann@", "", 3, None, []],
)  # fmt: skip
def test_addresses_elsewhere_too_many_or_unreadable_are_not(to: Any) -> None:
    assert address_miss("to", TEAM, to) is not None


@pytest.mark.parametrize("name", ["example.com", "api.example.com", "*.example.com", "*.docs.example.co.uk"])
def test_a_host_that_bounds_something_is_accepted(name: str) -> None:
    assert broad_host(name) is None


@pytest.mark.parametrize(
    "name",
    ["*", "*.com", "*.co.uk", "*.github.io", "*.amazonaws.com", "com", "localhost", "db.local", "10.0.0.1", "[::1]",
     "example.com:443", "https://example.com", "Example.com", "a*.example.com", "*.*.example.com", "exаmple.com", "",
     "example.com.", "metadata.google.internal"],
)  # fmt: skip
def test_a_host_that_grants_the_world_or_is_none_is_refused(name: str) -> None:
    assert broad_host(name) is not None


@pytest.mark.parametrize("folder", ["/", ".", "./", "..", "../x", "a/../..", "/etc", "~", "a\\b", "a/.."])
def test_a_folder_that_bounds_nothing_is_refused(folder: str) -> None:
    assert broad_folder(folder) is not None
    assert broad_folder("reports/2024") is None


@pytest.mark.parametrize(
    ("grant", "told"),
    [
        ("read_page: {allow: [{url: {hosts: {names: ['*.co.uk']}}}]}", "anybody can have"),
        ("read_page: {allow: [{url: {hosts: {}}}]}", "bounds nothing"),
        ("read_page: {allow: [{url: {hosts: {name: [example.com]}}}]}", "did you mean `names`"),
        ("read_page: {allow: [{url: {paths: {under: [x]}}}]}", "is for an argument of kind path"),
        ("read_page: {allow: [{url: {}}], deny: [{url: {hosts: {names: [example.com]}}}]}", "wholly within them"),
        ("send_email: {allow: [{to: {addresses: {domains: ['*.example.com']}}}]}", "write text that matches"),
        ("write_file: {allow: [{path: {paths: {under: ['..']}}}]}", "is not a folder below"),
        ("search_web: {allow: [{term: {hosts: {names: [example.com]}}}]}", "state `kinds:"),
    ],
)
def test_bounds_that_would_not_bound_do_not_load(load: Callable[..., Role], grant: str, told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        load(grant)


MAILS = "send_email: {allow: [{to: %s}], ask: [{to: {addresses: %s}}]}"


@pytest.mark.parametrize(
    ("allow", "ask"),
    [
        ("{}", "{domains: [example.com]}"),
        ("{addresses: {max: 3}}", "{domains: [example.com]}"),
        ("{addresses: {domains: [example.com, example.org]}}", "{domains: [example.com]}"),
        ("{addresses: {domains: [example.com]}}", "{only: [boss@example.com]}"),
    ],
)
def test_an_ask_that_a_call_escapes_by_naming_one_more_does_not_load(
    load: Callable[..., Role], allow: str, ask: str
) -> None:
    with pytest.raises(PolicyError, match="nobody is asked"):
        load(MAILS % (allow, ask))


@pytest.mark.parametrize(
    ("allow", "ask"),
    [
        ("{addresses: {domains: [example.org]}}", "{domains: [example.com]}"),
        ("{addresses: {domains: [example.com]}}", "{domains: [example.com, example.org]}"),
        ("{addresses: {domains: [example.com]}}", "{max: 5}"),
    ],
)
def test_an_ask_apart_from_the_allow_or_around_it_loads(load: Callable[..., Role], allow: str, ask: str) -> None:
    assert load(MAILS % (allow, ask)).grants["send_email"].ask


@pytest.mark.parametrize(
    ("allow", "ask", "loads"),
    [
        ("{hosts: {names: [api.example.com]}}", "{hosts: {names: ['*.example.com']}}", False),
        ("{hosts: {names: [api.example.org]}}", "{hosts: {names: ['*.example.com']}}", True),
    ],
)
def test_hosts_below_a_star_count_as_the_same_place(
    load: Callable[..., Role], allow: str, ask: str, loads: bool
) -> None:
    text = f"read_page: {{allow: [{{url: {allow}}}], ask: [{{url: {ask}}}]}}"
    if loads:
        assert load(text).grants["read_page"].ask
        return
    with pytest.raises(PolicyError, match="nobody is asked"):
        load(text)
