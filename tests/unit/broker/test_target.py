"""Paths with one reading are compared with the grant; a path with two readings is refused before any comparison."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcage.broker.stream import Denied
from toolcage.broker.target import check_path, split_target

PREFIXES = ("/v1/items", "/v1/open/")


def verdict(target: str) -> str:
    try:
        path, _ = split_target(target)
        check_path(path, PREFIXES)
    except Denied as denied:
        return denied.code
    return "granted"


@pytest.mark.parametrize(
    "target",
    [
        "/v1/items",
        "/v1/items/",
        "/v1/items/7",
        "/v1/items?q=../../admin&r=%2e%2e%2f",
        "/v1/items/a.b/..c/...",
        "/v1/items/caf%C3%A9",
        "/v1/%69tems/7",
        "/v1/items/a%20b;v=1,2",
        "/v1/open/x",
    ],
)
def test_a_plain_path_below_a_prefix_is_granted(target: str) -> None:
    assert verdict(target) == "granted"


@pytest.mark.parametrize(
    "target", ["/", "/v1", "/v1/", "/v1/itemsX", "/v1/items2/x", "/V1/items", "/v1/items;x/7", "/v1/open", "/v2/items"]
)
def test_a_plain_path_outside_of_every_prefix_is_not(target: str) -> None:
    assert verdict(target) == "egress.path_not_granted"


@pytest.mark.parametrize(
    "target",
    [
        "/v1/items/../admin",
        "/v1/items/./x",
        "/v1/items/..",
        "/v1/items/%2e%2e/admin",
        "/v1/items/%2E./admin",
        "/v1/items/.%2e",
        "/v1/items/..;/admin",
        "/v1/items/..;x=1/admin",
        "/v1/items/%2e%2e%3bx/admin",
        "/v1/items/..%20/admin",
        "/v1/items/..%2fadmin",
        "/v1/items%2f..%2f..%2fadmin",
        "/v1/items/..%5cadmin",
        "/v1/items%5c..%5cadmin",
        "/v1/items/%252e%252e/admin",
        "/v1/items/%252fadmin",
        "/v1/items/%00",
        "/v1/items/%0d%0aX:1",
        "/v1/items/%7f",
        "/v1/items//x",
        "//v1/items",
        "//evil.example/v1/items",
        "/v1/items/%ff",
        "/v1/items/%c0%ae%c0%ae/admin",
        "/v1/items/%EF%BC%8Fadmin",
        "/v1/items/%EF%BC%8E%EF%BC%8E/admin",
        "/v1/items/%E2%80%A5/admin",
        "/v1/items/%EF%BC%8552e",
        "/v1/items/a\\b",
        "/v1/items/a|b",
        "/v1/items/%",
        "/v1/items/%2",
        "/v1/items/%zz",
        "/v1/items#/x",
        "/v1/items?a#b",
        "https://api.example.com/v1/items",
        "http:/v1/items",
        "*",
        "api.example.com:443",
        "",
        "v1/items",
        "?x",
    ],
)
def test_a_path_that_can_be_read_in_two_ways_is_refused(target: str) -> None:
    assert verdict(target) == "egress.bad_path"


@given(st.lists(st.sampled_from([".", "..", "%2e", "%2f", "%5c", "%25", "/", "items", "v1", ";", "a", "\\", "%"])))
def test_no_spelling_that_is_granted_means_another_path_to_any_reader(parts: list[str]) -> None:
    target = "/v1/items/" + "".join(parts)
    if verdict(target) != "granted":
        return
    readings = {target, unquote(target), unquote(unquote(target)), target.partition(";")[0]}
    for reading in readings:
        stack: list[str] = []
        for segment in reading.replace("\\", "/").split("/"):
            if segment.partition(";")[0] == "..":
                stack = stack[:-1]
            elif segment not in ("", "."):
                stack.append(segment)
        assert stack[:2] == ["v1", "items"]
