"""A JSON value stays within depth, width and bytes, and shows where something is missing."""

import json
import math

from toolcage.cleaning.json_bounds import Bounder, _free, size
from toolcage.types import JSON, freeze, thaw


def bound(value: object, **limits: int) -> tuple[JSON, Bounder]:
    bounder = Bounder(**({"max_bytes": 10_000} | limits), text=lambda text, room, key: text[:room])
    return thaw(bounder.bound(freeze(value))), bounder


def test_a_value_within_bounds_is_unchanged() -> None:
    value = {"rows": [[1, "a", None, True, 2.5]], "n": {"m": []}}
    made, bounder = bound(value)
    assert (made, bounder.dropped) == (value, 0)


def test_depth_is_cut_where_a_parser_would_overflow() -> None:
    value: JSON = "deep"
    for _ in range(5000):
        value = (value,)
    bounder = Bounder(max_bytes=10**6, text=lambda text, room, key: text)
    assert "nested deeper" in json.dumps(thaw(bounder.bound(value)))
    assert bounder.dropped > 0


def test_the_first_rows_stay_and_a_mark_counts_the_rest() -> None:
    made, bounder = bound([[i, "x" * 20] for i in range(1000)], max_bytes=1000)
    assert made[0] == [0, "x" * 20]
    assert made[-1].startswith("[… ")
    assert made[-1].endswith("items dropped …]")
    assert len(json.dumps(made)) < 2000
    assert bounder.dropped > 20_000


def test_wide_objects_are_cut_and_marked() -> None:
    made, bounder = bound({f"k{i}": i for i in range(100)}, max_items=3)
    assert list(made) == ["k0", "k1", "k2", "[…]"]
    assert bounder.dropped > 0


def test_numbers_that_json_cannot_carry_become_text() -> None:
    made, _ = bound([math.nan, math.inf, 10**5000])
    assert made[:2] == ["nan", "inf"]
    assert "integer of" in made[2]


def test_two_keys_that_become_one_both_stay() -> None:
    bounder = Bounder(max_bytes=1000, text=lambda text, room, key: "same" if key is None else text)
    assert sorted(thaw(bounder.bound(freeze({"a": "1", "b": "2"}))).values()) == ["1", "2"]


def test_size_is_near_the_bytes_of_the_json() -> None:
    value = freeze({"a": [1, 2.5, "text", None], "b": {"c": "ä" * 100}})
    assert abs(size(value) - len(json.dumps(thaw(value), ensure_ascii=False).encode())) < 40


class Counted(dict[str, int]):
    """Counts how often it is asked whether it holds a key."""

    asked = 0

    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return super().__contains__(key)


def test_keys_made_to_collide_with_their_numbered_forms_are_looked_at_once() -> None:
    taken = Counted({"k": 0} | {f"k ({number})": 0 for number in range(2_000, 4_000)})
    numbers = {"k": 2_000}
    for _ in range(500):
        taken[_free("k", taken, numbers)] = 0
    assert len(taken) == 2_501
    assert taken.asked < 4_000
