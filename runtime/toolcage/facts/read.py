"""Reads one argument into the facts of its kind: the only place where an argument is read.

Rules and screens look at what this returns; neither reads the argument again. Numbers, booleans and null have no facts.
Paths, URLs and addresses may come as a list: each is read for itself. An argument that holds several texts (a list, an
object) is read as one text only where that loses nothing, which is so for plain text alone; elsewhere it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from toolcage.errors import Refused
from toolcage.facts import address, html, identifier, path, python, shell, sql, sql_text, text, url
from toolcage.types import JSON, Facts, Kind, Refusal


def read_facts(
    kind: Kind, value: JSON, *, dialect: sql_text.Dialect = "sqlite", purpose: sql.Purpose = "read"
) -> Facts | None:
    """The facts of `value`, or None where it holds no text. Raises Refused (blocked) when it cannot be read."""
    match kind:
        case "sql":
            return sql.read(_one_text(kind, value), dialect, purpose)
        case "python":
            return python.read(_one_text(kind, value))
        case "identifier":
            return identifier.read(_one_text(kind, value))
        case "shell":
            return None if value is None else shell.read(_one_text(kind, value))
        case "html":
            return None if value is None else html.read(_one_text(kind, value))
        case "path":
            return None if value is None else path.read(*_several_texts(kind, value))
        case "url":
            return None if value is None else url.read(*_several_texts(kind, value))
        case "address":
            return None if value is None else address.read(*_several_texts(kind, value))
        case "text":
            texts = list(_texts(value))
            return text.read("\n".join(texts)) if texts else None
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


def _several_texts(kind: Kind, value: JSON) -> tuple[str, ...]:
    """One text or a list of texts; anything else could carry one that nobody looked at."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, tuple | list) and all(isinstance(item, str) for item in value):
        return tuple(item for item in value if isinstance(item, str))
    raise Refused(
        Refusal(
            status="blocked",
            code=f"{kind}.not_text",
            message=f"An argument of kind {kind} must be a text or a list of texts.",
            hint="Pass it as a string, or as a list of strings.",
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
