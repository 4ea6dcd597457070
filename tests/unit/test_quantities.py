"""Sizes, times and numbers: one spelling, exact, range-checked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcage.quantities import number_between, size_bytes, size_text, time_seconds

HUGE = 2**80


@pytest.mark.parametrize(
    ("text", "value"), [("1B", 1), ("256B", 256), ("64KiB", 65536), ("256MiB", 268435456), ("2GiB", 2147483648)]
)
def test_a_size_is_read_exactly(text: str, value: int) -> None:
    assert size_bytes(text, low=1, high=HUGE) == value


@pytest.mark.parametrize(
    "text",
    [
        "256", "256M", "256m", "256MB", "256 MiB", "256mib", "0MiB", "-1MiB", "1.5GiB", "1e3B", "٣MiB", "1MiB\n", "",
        None, 256, True,
    ],
)  # fmt: skip
def test_any_other_spelling_of_a_size_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        size_bytes(text, low=1, high=HUGE)


@pytest.mark.parametrize(("text", "value"), [("5s", 5.0), ("500ms", 0.5), ("2m", 120.0)])
def test_a_time_is_read_exactly(text: str, value: float) -> None:
    assert time_seconds(text, low=0.1, high=600) == pytest.approx(value)


@pytest.mark.parametrize("text", ["5", "5 s", "5sec", "0s", "-5s", "1.5s", "1h", "inf", "5s\n", "", None, 5, True])
def test_any_other_spelling_of_a_time_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        time_seconds(text, low=0.1, high=600)


@pytest.mark.parametrize("value", [True, "1", None, float("nan"), float("inf"), 0, 17])
def test_a_number_outside_its_range_or_of_another_type_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        number_between(value, low=0.1, high=16, whole=False)


@given(st.integers(min_value=1, max_value=999_999_999))
def test_a_shown_size_reads_back_as_the_same_size(value: int) -> None:
    assert size_bytes(size_text(value), low=1, high=HUGE) == value
