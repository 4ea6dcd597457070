"""Which outputs are so small that cleaning them holds up no other call."""

from __future__ import annotations

import pytest

from toolcage.line.line import CLEAN_IN_PLACE, _weight
from toolcage.types import freeze


@pytest.mark.parametrize("value", [None, 1, "x" * 8000, {"value": 42, "type": "int"}, [1.5] * 20, {"a": [{"b": "c"}]}])
def test_a_small_value_is_cleaned_where_it_arrives(value: object) -> None:
    assert _weight(freeze(value), CLEAN_IN_PLACE) <= CLEAN_IN_PLACE


@pytest.mark.parametrize(
    "value",
    ["x" * 9000, ["x" * 90] * 100, ["x"] * 1000, {f"k{number}": 1 for number in range(100)}, {"k" * 9000: 1},
     [[[1] * 10] * 10] * 10, [{"a": "x" * 5000}, {"a": "x" * 5000}]],
)  # fmt: skip
def test_a_value_of_many_characters_or_parts_is_not(value: object) -> None:
    assert _weight(freeze(value), CLEAN_IN_PLACE) > CLEAN_IN_PLACE


def test_the_look_at_a_value_ends_when_it_is_seen_to_be_large() -> None:
    deep: tuple[object, ...] | int = 1
    for _ in range(60):
        deep = (deep, deep)
    assert _weight(deep, CLEAN_IN_PLACE) > CLEAN_IN_PLACE  # type: ignore[arg-type]
