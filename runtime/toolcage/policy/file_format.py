"""The shape of a role file: keys, types and ranges. What the names in it mean is checked by `load` and `entries`.

Strict: a key that is not here is an error, and so is a value that this version does not enforce. `policies/schema.json`
is generated from these models. Deliberately without defaults for the cage: absent means "as the tool declares".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from toolcage.policy.model import MAX_ROWS
from toolcage.policy.quantities import GIB, MIB, number_between, size_bytes, time_seconds
from toolcage.types import STATUSES, HtmlMode, Isolation, Status

_METASCHEMA: Final = "https://json-schema.org/draft/2020-12/schema"
_SIZE_SCHEMA: Final = {"type": "string", "pattern": "^[1-9][0-9]{0,8}(B|KiB|MiB|GiB)$"}
_TIME_SCHEMA: Final = {"type": "string", "pattern": "^[1-9][0-9]{0,5}(ms|s|m)$"}

# Read stated fields through `model_fields_set` or `model_dump(exclude_unset=True)`. None is not in the annotations, so
# that `columns_except:` with nothing behind it is an error and not a rule that silently does not apply.
_ABSENT: Any = None

NAME_PATTERN: Final = r"^[a-z][a-z0-9_-]{0,63}$"


def _size(low: int, high: int) -> Any:
    return Annotated[int, BeforeValidator(lambda v: size_bytes(v, low=low, high=high)), WithJsonSchema(_SIZE_SCHEMA)]


def _number(low: float, high: float, *, whole: bool) -> Any:
    schema = {"type": "integer" if whole else "number", "minimum": low, "maximum": high}
    check = BeforeValidator(lambda v: number_between(v, low=low, high=high, whole=whole))
    return Annotated[int if whole else float, check, WithJsonSchema(schema)]


def _one_of(*known: str, refused: dict[str, str] = _ABSENT) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if isinstance(value, str) and refused and value in refused:
            raise ValueError(f"`{value}` {refused[value]}; write {' or '.join(known)}")
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"`{str(value)[:40]}` is not known here; write {' or '.join(known)}")
        return value

    return check


_Version: TypeAlias = Annotated[
    int, BeforeValidator(lambda v: number_between(v, low=1, high=1, whole=True)), WithJsonSchema({"const": 1})
]
_Name: TypeAlias = Annotated[str, Field(pattern=NAME_PATTERN)]
_Wall: TypeAlias = Annotated[
    float, BeforeValidator(lambda v: time_seconds(v, low=0.1, high=600)), WithJsonSchema(_TIME_SCHEMA)
]
_Isolation: TypeAlias = Annotated[
    Isolation,
    BeforeValidator(_one_of("container", "namespace", refused={"session": "is not enforced by this version"})),
    WithJsonSchema({"enum": ["container", "namespace"]}),
]
_Html: TypeAlias = Annotated[HtmlMode, BeforeValidator(_one_of("inert", "escape", "clean", "keep"))]
_Redact: TypeAlias = Annotated[
    str,
    BeforeValidator(_one_of("secrets", refused={"email": "is not redacted by this version"})),
    WithJsonSchema({"enum": ["secrets"]}),
]
_OnInjection: TypeAlias = Annotated[
    str,
    BeforeValidator(
        _one_of("flag", refused=dict.fromkeys(("ask", "withhold"), "is not enforced by this version"))
    ),
    WithJsonSchema({"enum": ["flag"]}),
]
_Expect: TypeAlias = Annotated[Status, BeforeValidator(_one_of(*STATUSES))]
_Table: TypeAlias = Annotated[str, Field(pattern=r"^[^.*\s\x00-\x1f]{1,128}$")]
_Column: TypeAlias = Annotated[str, Field(pattern=r"^[^.*\s\x00-\x1f]{1,128}\.[^.*\s\x00-\x1f]{1,128}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SqlFacetFile(_Strict):
    """Bounds of what a statement may read."""

    tables: Annotated[list[_Table], Field(min_length=1)] = _ABSENT
    columns_except: Annotated[list[_Column], Field(min_length=1)] = _ABSENT
    max_rows: _number(1, MAX_ROWS, whole=True) = _ABSENT  # type: ignore[valid-type]


_Entry: TypeAlias = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "description": "Argument names, each with a JSON Schema fragment or the facet of its kind.",
            "additionalProperties": {"anyOf": [SqlFacetFile.model_json_schema(), {"$ref": _METASCHEMA}]},
        }
    ),
]


class SandboxFile(_Strict):
    """The cage, as far as it differs from the tool's declaration."""

    image: _Name = _ABSENT
    memory: _size(32 * MIB, 16 * GIB) = _ABSENT  # type: ignore[valid-type]
    cpus: _number(0.1, 16, whole=False) = _ABSENT  # type: ignore[valid-type]
    wall: _Wall = _ABSENT
    pids: _number(8, 1024, whole=True) = _ABSENT  # type: ignore[valid-type]
    tmp: _size(MIB, 4 * GIB) = _ABSENT  # type: ignore[valid-type]
    isolation: _Isolation = _ABSENT
    runtime: _Name = _ABSENT


class OutputFile(_Strict):
    """How results are capped and cleaned."""

    max_bytes: _size(256, 16 * MIB) = _ABSENT  # type: ignore[valid-type]
    html: _Html = _ABSENT
    redact: list[_Redact] = _ABSENT
    on_injection: _OnInjection = _ABSENT


class GrantFile(_Strict):
    """What the role may do with one tool."""

    allow: Annotated[list[_Entry], Field(min_length=1)] = []
    ask: Annotated[list[_Entry], Field(min_length=1)] = []
    deny: list[_Entry] = []
    resources: dict[str, Annotated[list[_Name], Field(min_length=1)]] = {}
    sandbox: SandboxFile = SandboxFile()
    output: OutputFile = OutputFile()


class DenyFile(BaseModel):
    """A refusal that holds for the whole file: the tool, and an entry's arguments beside it."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    tool: str


class CaseFile(_Strict):
    """A call and the status word it must end with, without being run."""

    call: str
    args: dict[str, Any] = {}
    expect: _Expect
    code: str = _ABSENT


class RoleFile(_Strict):
    """One role of toolcage: what an agent may call, with what, in which cage."""

    version: _Version
    role: _Name
    description: Annotated[str, Field(max_length=2000)] = ""
    tools: dict[str, GrantFile]
    deny: list[DenyFile] = []
    tests: list[CaseFile] = []


def model_at(path: tuple[str | int, ...]) -> type[BaseModel]:
    """The model whose keys stand at `path` in a role file."""
    match path:
        case ("tools", _, "sandbox"):
            return SandboxFile
        case ("tools", _, "output"):
            return OutputFile
        case ("tools", _):
            return GrantFile
        case ("deny", _):
            return DenyFile
        case ("tests", _):
            return CaseFile
        case _:
            return RoleFile


