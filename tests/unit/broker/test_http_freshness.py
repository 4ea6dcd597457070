"""For how long an answer may be given again: never longer than anybody said, and never where it cannot be read."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcage.broker.http_freshness import freshness

NOW = 1_800_000_000.0


def left(*headers: tuple[str, str], most_s: float = 100, status: int = 200) -> float | None:
    found = freshness(status, list(headers), most_s=most_s, now=NOW)
    return None if found is None else found.left_s


def at(seconds: float) -> str:
    return formatdate(NOW + seconds, usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ((), 100),
        ((("cache-control", "max-age=40"),), 40),
        ((("cache-control", "max-age=4000"),), 100),
        ((("cache-control", "MAX-AGE=40, , public"),), 40),
        ((("cache-control", "max-age=40, s-maxage=20"),), 20),
        ((("cache-control", "max-age=40"), ("age", "10")), 30),
        ((("cache-control", "max-age=40"), ("date", at(-15))), 25),
        ((("cache-control", "max-age=40"), ("date", at(-15)), ("age", "30")), 10),
        ((("cache-control", "max-age=40"), ("date", at(500))), 40),
        ((("expires", at(30)), ("date", at(0))), 30),
        ((("expires", at(30)), ("date", at(-10))), 30),
        ((("expires", at(30)),), 30),
        ((("cache-control", "max-age=40"), ("expires", "0")), 40),
        ((("age", "5000"),), 100),
        ((("pragma", "no-cache"), ("cache-control", "max-age=40")), 40),
        ((("vary", "accept, cookie"),), 100),
        ((("cache-control", ""),), 100),
    ],
)
def test_an_answer_is_fresh_for_as_long_as_the_least_of_all_say(
    headers: tuple[tuple[str, str], ...], seconds: int
) -> None:
    assert left(*headers) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "headers",
    [
        (("cache-control", "max-age"),),
        (("cache-control", "max-age=ten"),),
        (("cache-control", 'max-age="40'),),
        (("cache-control", "max-age=40 60"),),
        (("cache-control", "max-age=40; public"),),
        (("cache-control", "=40"),),
        (("cache-control", "max-age=40"), ("cache-control", "max-age=41")),
        (("cache-control", "x=\"a, no-store"),),
        (("cache-control", "No-Store"),),
        (("cache-control", "private=\"set-cookie\""),),
        (("cache-control", "max-age=40"), ("age", "-1")),
        (("cache-control", "max-age=40"), ("age", "1"), ("age", "2")),
        (("cache-control", "max-age=40"), ("date", "yesterday")),
        (("cache-control", "max-age=40"), ("date", at(-41))),
        (("expires", at(30)), ("expires", at(60))),
        (("expires", at(-1)),),
        (("expires", "never"),),
        (("vary", "a"), ("vary", "*")),
        (("set-cookie", "a=b"),),
        (("content-range", "bytes 0-1/2"),),
    ],
)
def test_what_cannot_be_read_or_is_not_for_keeping_is_not_kept(headers: tuple[tuple[str, str], ...]) -> None:
    assert left(*headers) is None


NAMES = st.sampled_from(("cache-control", "age", "date", "expires", "pragma", "vary", "x"))
WORDS = st.sampled_from(
    ("max-age=", "s-maxage=", "no-store", "private", "public", "no-cache", "=", ",", " ", '"', "\\", "10", "9999999999",
     "-1", "1e9", at(10), at(-10), "Fri, 31 Dec 9999 23:59:59 GMT", "*", ";")
)  # fmt: skip
VALUES = st.lists(WORDS, max_size=8).map("".join) | st.text(st.characters(max_codepoint=255), max_size=30)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6), st.integers(1, 86_400))
def test_whatever_a_server_says_an_answer_is_kept_no_longer_than_its_operator_says(
    headers: list[tuple[str, str]], most_s: int
) -> None:
    found = freshness(200, headers, most_s=most_s, now=NOW)
    if found is not None:
        assert 0 < found.left_s <= most_s
        assert found.age_s >= 0
        said = ",".join(value for name, value in headers if name == "cache-control").lower()
        quoted = '"' in said
        assert quoted or not {"no-store", "private", "no-cache"} & {part.strip() for part in said.split(",")}


@given(st.text(max_size=2000))
def test_no_text_takes_long_or_breaks_the_reading(text: str) -> None:
    left(("cache-control", text), ("age", text), ("expires", text), ("date", text))
