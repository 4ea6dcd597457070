"""Patterns: anchored at both ends, linear-time, one meaning."""

from __future__ import annotations

import pytest

from toolcage.policy.patterns import check_pattern


@pytest.mark.parametrize(
    "pattern",
    ["^a$", "^$", r"\Aa\z", "^(a|b)$", "^(?:a|b)$", r"^\|$", "^[|]$", r"^a\\$", r"^[\[\]]{1,3}$", "^(a|b)(c|d)$"],
)
def test_an_anchored_linear_pattern_is_accepted(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", "not anchored"),
        ("^", "not anchored"),
        ("a", "not anchored"),
        ("^a", "not anchored"),
        ("a$", "not anchored"),
        (r"^a\$", "not anchored"),
        ("^[a$", "not anchored"),
        ("^[$]", "not anchored"),
        ("^a$\n", "not anchored"),
        ("^*a$", "not anchored"),
        ("^?a$", "not anchored"),
        ("^{0}a$", "not anchored"),
        (r"^a\Z", "not anchored"),
        ("^a\\", "not anchored"),
        ("^a$|^b$", "one side of `|`"),
        ("^a|b$", "one side of `|`"),
        ("^(a)|(b)$", "one side of `|`"),
        ("^(?i)a$", "starts with `(?`"),
        ("^(?m)a$", "starts with `(?`"),
        ("^(?=a)a$", "starts with `(?`"),
        ("^(?!a)b$", "starts with `(?`"),
        ("^(?<=a)b$", "starts with `(?`"),
        ("^(?P<n>a)$", "starts with `(?`"),
        (r"^(a)\1$", "linear time"),
        ("^(a{1000}){1000}$", "linear time"),
        ("^(a$", "linear time"),
        ("^a)|(b$", "linear time"),
        ("^[[]$", "inside a class"),
        ("^[a&&b]$", "inside a class"),
        ("^[]a]$", "starts with `]`"),
        ("^" + "a" * 1000 + "$", "longer than"),
    ],
)
def test_a_pattern_that_permits_more_than_it_shows_or_is_not_linear_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        check_pattern(pattern)
    assert said in str(caught.value)
