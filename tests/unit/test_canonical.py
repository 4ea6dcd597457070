"""The fast canonical form is the library's, for every value."""

from __future__ import annotations

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from toolcage.canonical import CanonicalizationError, canonical_json

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None))
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec=None)), inner) | st.tuples(inner),
    max_leaves=12,
)


def _outcome(write: object, value: object) -> bytes | type:
    assert callable(write)
    try:
        return write(value)  # type: ignore[no-any-return]
    except (CanonicalizationError, UnicodeEncodeError) as error:
        return type(error)


@given(_VALUES)
def test_every_value_has_the_form_or_the_error_that_the_library_gives_it(value: object) -> None:
    assert _outcome(canonical_json, value) == _outcome(rfc8785.dumps, value)


@pytest.mark.parametrize(
    "value",
    [
        {"\U0001f600": 1, "\ufb01": 2, "a": 3},  # in UTF-16 order the first stands before the second
        {"b": {"z": [1, {"y": 2, "x": 1}], "a": None}, "B": True},
        "\x00\x1f\x7f\u2028\u2029\\\"/\b\f\n\r\té",
        [2**53 - 1, -(2**53) + 1],
        [1.0, 1e21, 5e-324, -0.0],
        {},
        [],
    ],
)
def test_values_near_the_edges_have_the_form_of_the_library(value: object) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("value", [2**53, -(2**53), float("nan"), "\ud800", {"\ud800": 1}, {1: 2}, object()])
def test_what_is_no_i_json_is_refused_as_the_library_refuses_it(value: object) -> None:
    with pytest.raises(ValueError, match=r".") as of_library:
        rfc8785.dumps(value)
    with pytest.raises(of_library.type):
        canonical_json(value)


def test_a_value_deeper_than_the_fast_writer_goes_is_written_all_the_same() -> None:
    value: list[object] = []
    for _ in range(280):
        value = [value]
    assert canonical_json(value) == b"[" * 281 + b"]" * 281
