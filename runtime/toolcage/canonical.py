"""The one form of a JSON value as bytes (RFC 8785), for digests and records.

Decides nothing. The form is the rfc8785 library's; what nearly every value consists of (text, whole numbers, objects
with names in ASCII) is written by serde, which gives the same bytes a good ten times faster, a property test holds.
Everything else (fractions, other names, other types, whatever is no I-JSON) is the library's, its errors too.
"""

from __future__ import annotations

from typing import Any, Final

import rfc8785
from pydantic_core import to_json

CanonicalizationError = rfc8785.CanonicalizationError
_LARGEST_INTEGER: Final = 2**53 - 1


class _Unusual(Exception):
    """The value has a part that serde may write otherwise."""


def canonical_json(value: Any) -> bytes:
    """RFC 8785 of plain dicts, lists and scalars.

    Raises CanonicalizationError for what has no such form (UnicodeEncodeError for a lone surrogate in a name).
    """
    try:
        return to_json(_ordered(value))
    except (_Unusual, ValueError):  # ValueError: a lone surrogate, or deeper than serde goes
        return rfc8785.dumps(value)


def _ordered(value: Any) -> Any:
    """The same value with its objects' names in order. Exact types only: a subclass may write itself otherwise."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is int and -_LARGEST_INTEGER <= value <= _LARGEST_INTEGER:
        return value
    if kind is dict:
        if not all(type(name) is str and name.isascii() for name in value):  # others are ordered by UTF-16 units
            raise _Unusual
        return {name: _ordered(value[name]) for name in sorted(value)}
    if kind is list or kind is tuple:
        return [_ordered(item) for item in value]
    raise _Unusual
