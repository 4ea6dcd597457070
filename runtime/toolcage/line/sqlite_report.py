"""What a cage proposes for a SQLite database, held against the call: the one reader of that report on the host.

A cage may be taken over by what it runs, so its report is a stranger's. It must propose the call's own kind of change
of the call's own table, no row twice, no more rows than the cap and no more bytes than one change may write; and what
the call says plainly is taken from the call: each plain value that is written, and the number of rows of VALUES. What
is left to the cage is which rows meet a condition that is not plain, and the value of an expression. Whether a row
meets the plain conditions is asked of the database itself (`sqlite_change`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from toolcage.facts.sql_change import Plain, SqlChange
from toolcage.tools.sqlite_rows import PROPOSAL_BYTES, Scalar, decode, encode
from toolcage.types import JSON

Parameters: TypeAlias = JSON
_DIGEST_CHARS: Final = 64


class BadReport(Exception):
    """The report does not belong to the call. The text is for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row that is to change. `key` and `before`, the digest of what it was, are empty for a new one; `values` are
    those of the written columns."""

    key: tuple[Scalar, ...]
    before: str
    values: tuple[Scalar, ...]


def read_report(data: JSON, change: SqlChange, parameters: Parameters, most: int) -> tuple[Row, ...]:
    """The rows. Raises BadReport."""
    if not isinstance(data, Mapping) or data.get("operation") != change.operation or data.get("table") != change.table:
        _bad("it is for another change")
    listed = data.get("rows")
    if not isinstance(listed, tuple) or len(listed) > most:
        _bad(f"it has no list of at most {most} rows")
    rows = tuple(_row(item, change) for item in listed)
    if change.operation != "insert" and len({row.key for row in rows}) < len(rows):
        _bad("it changes a row twice")
    if change.values is None or change.operation == "delete":
        return rows
    if change.operation == "insert" and len(rows) != len(change.values):
        _bad(f"it has {len(rows)} rows for {len(change.values)} of VALUES")
    said = change.values if change.operation == "insert" else change.values * len(rows)
    made, size = [], 0
    for row, values in zip(rows, said, strict=True):
        made.append(_with_plain(row, values, parameters))
        size += sum(len(part) for value in made[-1].values for part in encode(value))
        if size > PROPOSAL_BYTES:  # a value of the call, in more rows than its statement would have changed
            _bad("it writes more than one change may")
    return tuple(made)


def plain_value(plain: Plain, parameters: Parameters) -> Scalar:
    """The value as the engine binds it. Raises BadReport where the call has none, which the cage should have seen."""
    value: JSON = plain.literal
    if isinstance(plain.parameter, str):
        if not isinstance(parameters, Mapping) or plain.parameter not in parameters:
            _bad("a parameter has no value")
        value = parameters[plain.parameter]
    elif plain.parameter is not None:
        if not isinstance(parameters, tuple) or plain.parameter >= len(parameters):
            _bad("a parameter has no value")
        value = parameters[plain.parameter]
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        _bad("a parameter holds half a character")
    if not isinstance(value, str | float | None) and not (isinstance(value, int) and -(2**63) <= value < 2**63):
        _bad("a parameter cannot be bound")
    return value


def _with_plain(row: Row, said: Sequence[Plain | None], parameters: Parameters) -> Row:
    if len(said) != len(row.values):
        _bad("its rows have another number of values")
    values = tuple(
        value if plain is None else plain_value(plain, parameters)
        for value, plain in zip(row.values, said, strict=True)
    )
    return Row(key=row.key, before=row.before, values=values)


def _row(item: Any, change: SqlChange) -> Row:
    if not isinstance(item, tuple) or len(item) != 3:
        _bad("a row is not as it should be")
    key, before, values = item
    if change.operation == "insert":
        if key is not None or before is not None:
            _bad("a new row has a key")
        return Row(key=(), before="", values=_scalars(values))
    if not isinstance(before, str) or len(before) != _DIGEST_CHARS:
        _bad("a row has no digest")
    found = _scalars(key)
    if not found:
        _bad("a row has no key")
    if change.operation == "delete" and values:
        _bad("a row that is deleted has values")
    return Row(key=found, before=before, values=_scalars(values))


def _scalars(listed: Any) -> tuple[Scalar, ...]:
    if not isinstance(listed, tuple):
        _bad("a row is not as it should be")
    try:
        return tuple(decode(item) for item in listed)
    except ValueError:
        _bad("a value is none that SQLite can hold")


def _bad(text: str) -> NoReturn:
    raise BadReport(text)
