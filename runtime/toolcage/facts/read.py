"""Reads one argument into the facts of its kind: the only place where an argument is read.

Rules and screens look at what this returns; neither reads the argument again. Numbers, booleans and null have no facts.
A kind that has no reader in this version is read as text of that kind. An argument that holds several texts (a list, an
object) is read as one text only where that loses nothing, which is never so for SQL: there it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from toolcage.errors import Refused
from toolcage.facts import identifier, python, sql, sql_text, text
from toolcage.types import JSON, Facts, Kind, Refusal


def read_facts(kind: Kind, value: JSON, *, dialect: sql_text.Dialect = "sqlite") -> Facts | None:
    """The facts of `value`, or None where it holds no text. Raises Refused (blocked) when it cannot be read."""
    match kind:
        case "sql":
            return sql.read(_one_text(kind, value), dialect)
        case "python":
            return python.read(_one_text(kind, value))
        case "identifier":
            return identifier.read(_one_text(kind, value))
        case "text" | "shell" | "path" | "url" | "address" | "html":
            texts = list(_texts(value))
            return text.read("\n".join(texts), kind) if texts else None
        case _:
            assert_never(kind)


def _one_text(kind: Kind, value: JSON) -> str:
    if isinstance(value, str):
        return value
    raise Refused(
        Refusal(
            status="blocked",
            code=f"{kind}.not_text",
            message=f"An argument of kind {kind} must be one text.",
            hint="Pass it as a string.",
        )
    )


def _texts(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _texts(item)
