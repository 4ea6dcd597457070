"""The file that holds declared operations of an HTTP interface: written once by a person's command, read as data.

JSON, versioned, closed: another field is an error. Reading it runs nothing of anybody's: each entry becomes an
`ApiOperation` of ours, whose effects follow from its method, and passes the same checks as every declaration. What the
file may make a cage ask is bounded by the endpoint that a grant names, whatever stands in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from toolcage.errors import DeclarationError
from toolcage.tools.api_operation import ApiOperation

SUFFIX: Final = ".json"
MAX_OPERATIONS: Final = 64
_Words = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class Place(BaseModel):
    """Where one value goes: the way to it in the arguments, the part of the request, its name there."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    at: Annotated[list[_Words], Field(min_length=1, max_length=2)]
    into: Annotated[Literal["path", "query", "header", "body"], Field(alias="in")]
    name: _Words
    joined: bool = False


class Operation(BaseModel):
    """One tool."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    description: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    method: Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
    path: Annotated[str, StringConstraints(pattern=r"^/[^?#%\\ ]{0,500}$")]
    parameters: dict[str, Any]
    places: Annotated[list[Place], Field(max_length=200)]


class ApiFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    version: Literal[1]
    tools: Annotated[list[Operation], Field(min_length=1, max_length=MAX_OPERATIONS)]


def write_file(specs: Iterable[Mapping[str, Any]]) -> str:
    """The file's text. Raises DeclarationError for more operations than one file may hold, and for none."""
    made = _checked({"version": 1, "tools": list(specs)}, "the file")
    return json.dumps(made.model_dump(by_alias=True), indent=2) + "\n"


def read_file(text: str, label: str) -> tuple[ApiOperation, ...]:
    """The tools in a file's text; `label` stands in messages. Raises DeclarationError."""
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        what = f"{label} is not JSON, or has a key twice"
        raise DeclarationError(f"{what}; write it with `toolcage tools from-openapi`") from None
    return tuple(ApiOperation(item.model_dump(by_alias=True)) for item in _checked(data, label).tools)


def _checked(data: object, label: str) -> ApiFile:
    try:
        made = ApiFile.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part)[:60] for part in first["loc"]) or "the top"
        raise DeclarationError(f"{label} cannot be used: at {where}: {first['msg'][:200]}") from None
    names = [item.name for item in made.tools]
    if len(set(names)) != len(names):
        raise DeclarationError(f"{label}: two tools have the same name")
    return made


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("twice")
    return made
