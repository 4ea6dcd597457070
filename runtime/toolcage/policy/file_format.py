"""The shape of a role file: keys, types and ranges. What the names in it mean is checked by `load` and `entries`.

Strict: a key that is not here is an error, and so is a value that this version does not enforce. `policies/schema.json`
is generated from these models. Deliberately without defaults for the cage: absent means "as the tool declares".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema

from toolcage.policy.limits import SPANS, Measure
from toolcage.policy.places import EGRESS_PATTERN, HOST_PATTERN, broad_folder, broad_host, egress_target
from toolcage.policy.rules import MAX_ROWS
from toolcage.quantities import GIB, MIB, number_between, size_bytes, time_seconds
from toolcage.types import EFFECTS, KINDS, STATUSES, Effect, EgressTarget, HtmlMode, Isolation, Kind, Status

_METASCHEMA: Final = "https://json-schema.org/draft/2020-12/schema"
SIZE_SCHEMA: Final = {"type": "string", "pattern": "^[1-9][0-9]{0,8}(B|KiB|MiB|GiB)$"}
TIME_SCHEMA: Final = {"type": "string", "pattern": "^[1-9][0-9]{0,5}(ms|s|m)$"}

# Read stated fields through `model_fields_set` or `model_dump(exclude_unset=True)`. None is not in the annotations, so
# that `columns_except:` with nothing behind it is an error and not a rule that silently does not apply.
_ABSENT: Any = None

NAME_PATTERN: Final = r"^[a-z][a-z0-9_-]{0,63}$"
TABLE_PATTERN: Final = r"^([^.*\s\x00-\x1f]{1,128}\.)?[^.*\s\x00-\x1f]{1,128}$"
COLUMN_PATTERN: Final = r"^([^.*\s\x00-\x1f]{1,128}\.){1,2}[^.*\s\x00-\x1f]{1,128}$"
DOMAIN_PATTERN: Final = r"^([a-z0-9-]{1,63}\.){1,8}[a-z][a-z0-9-]{1,62}$"
ADDRESS_PATTERN: Final = r"^[^\s@,;<>]{1,64}@([a-z0-9-]{1,63}\.){1,8}[a-z][a-z0-9-]{1,62}$"
SUFFIX_PATTERN: Final = r"^\.[A-Za-z0-9]{1,16}$"
PATTERN_WORDS: Final[Mapping[str, str]] = MappingProxyType({
    SIZE_SCHEMA["pattern"]: "a size, as `256MiB`",
    TIME_SCHEMA["pattern"]: "a time, as `5s`",
    NAME_PATTERN: "a name: `a-z`, digits, `_`, `-`, at most 64",
    HOST_PATTERN: "a host name, or `*.` and a domain",
    EGRESS_PATTERN: "a host name, or `*.` and a domain, with `:` and a port",
    TABLE_PATTERN: "a table's name",
    COLUMN_PATTERN: "`table.column`",
    DOMAIN_PATTERN: "a domain",
    ADDRESS_PATTERN: "a mail address",
    SUFFIX_PATTERN: "an ending, as `.csv`",
})  # fmt: skip
"""What a text of each pattern is, for people: in the reference and in faults."""


def _size(low: int, high: int) -> Any:
    return Annotated[int, BeforeValidator(lambda v: size_bytes(v, low=low, high=high)), WithJsonSchema(SIZE_SCHEMA)]


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
    float, BeforeValidator(lambda v: time_seconds(v, low=0.1, high=600)), WithJsonSchema(TIME_SCHEMA)
]
_Isolation: TypeAlias = Annotated[
    Isolation,
    BeforeValidator(_one_of("container", "namespace", "session")),
    WithJsonSchema({"enum": ["container", "namespace", "session"]}),
]
_Html: TypeAlias = Annotated[HtmlMode, BeforeValidator(_one_of("inert", "escape", "clean", "keep"))]
_Redact: TypeAlias = Annotated[
    str,
    BeforeValidator(_one_of("secrets", "email", "iban", "card", "phone")),
    WithJsonSchema({"enum": ["secrets", "email", "iban", "card", "phone"]}),
]
_OnInjection: TypeAlias = Annotated[
    str,
    BeforeValidator(
        _one_of("flag", "withhold", "ask")
    ),
    WithJsonSchema({"enum": ["flag", "withhold", "ask"]}),
]
_Expect: TypeAlias = Annotated[Status, BeforeValidator(_one_of(*STATUSES))]
_EffectWord: TypeAlias = Annotated[Effect, BeforeValidator(_one_of(*EFFECTS))]
_Effects: TypeAlias = Annotated[list[_EffectWord], Field(min_length=1)]
_PROGRAMS: Final = "is for the tool itself to declare"
_KindWord: TypeAlias = Annotated[
    Kind,
    BeforeValidator(
        _one_of(
            *(kind for kind in KINDS if kind not in ("python", "shell")),
            refused={"python": _PROGRAMS, "shell": _PROGRAMS},
        )
    ),
    WithJsonSchema({"enum": [kind for kind in KINDS if kind not in ("python", "shell")]}),
]
_Placement: TypeAlias = Annotated[
    str,
    BeforeValidator(
        _one_of("cage", refused={"host": "would run the tool in the host process, which this version never does"})
    ),
    WithJsonSchema({"enum": ["cage"]}),
]
_Table: TypeAlias = Annotated[str, Field(pattern=TABLE_PATTERN)]
_Column: TypeAlias = Annotated[str, Field(pattern=COLUMN_PATTERN)]


def _bound(check: Callable[[str], str | None]) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        if not isinstance(value, str):
            raise ValueError("write text")
        if problem := check(value):
            raise ValueError(problem)
        return value

    return checked


def _egress(value: Any) -> EgressTarget:
    if not isinstance(value, str):
        raise ValueError("write a host and its port, such as `api.example.com:443`")
    return egress_target(value)


_HostName: TypeAlias = Annotated[
    str, BeforeValidator(_bound(broad_host)), WithJsonSchema({"type": "string", "pattern": HOST_PATTERN})
]
_Egress: TypeAlias = Annotated[
    EgressTarget,
    PlainValidator(_egress),
    WithJsonSchema({"type": "string", "pattern": EGRESS_PATTERN}),
]
_Folder: TypeAlias = Annotated[str, BeforeValidator(_bound(broad_folder)), WithJsonSchema({"type": "string"})]
_Domain: TypeAlias = Annotated[str, Field(pattern=DOMAIN_PATTERN)]
_Address: TypeAlias = Annotated[str, Field(pattern=ADDRESS_PATTERN)]
_Suffix: TypeAlias = Annotated[str, Field(pattern=SUFFIX_PATTERN)]
_Source: TypeAlias = Annotated[str, Field(pattern=r"^(said|tool:[^\s]{1,200})$")]


def _limit(measure: Measure) -> Any:
    size = "[1-9][0-9]{0,8}(B|KiB|MiB|GiB)" if measure == "bytes" else "[1-9][0-9]{0,6}"
    one = {"type": "string", "pattern": f"^{size}/({'|'.join(SPANS[measure])})$"}
    schema = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}
    return Annotated[list[str], BeforeValidator(_listed_texts), WithJsonSchema(schema)]


def _listed_texts(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_OPERATIONS: Final = ("insert", "update", "delete")
_Operation: TypeAlias = Annotated[
    str, BeforeValidator(_one_of(*_OPERATIONS)), WithJsonSchema({"enum": list(_OPERATIONS)})
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SqlFacetFile(_Strict):
    """Bounds of what a statement may read, or change."""

    tables: Annotated[list[_Table], Field(min_length=1)] = _ABSENT
    columns_except: Annotated[list[_Column], Field(min_length=1)] = _ABSENT
    max_rows: _number(1, MAX_ROWS, whole=True) = _ABSENT  # type: ignore[valid-type]
    operations: Annotated[list[_Operation], Field(min_length=1)] = _ABSENT
    writes: Annotated[list[_Column], Field(min_length=1)] = _ABSENT


class PathsFacetFile(_Strict):
    """Where the paths of an argument may lie."""

    under: Annotated[list[_Folder], Field(min_length=1)] = _ABSENT
    suffixes: Annotated[list[_Suffix], Field(min_length=1)] = _ABSENT


class HostsFacetFile(_Strict):
    """Where the URLs of an argument may lead."""

    names: Annotated[list[_HostName], Field(min_length=1)]
    schemes: Annotated[
        list[Annotated[str, BeforeValidator(_one_of("https", "http")), WithJsonSchema({"enum": ["https", "http"]})]],
        Field(min_length=1),
    ] = _ABSENT
    ports: Annotated[list[_number(1, 65535, whole=True)], Field(min_length=1)] = _ABSENT  # type: ignore[valid-type]


class AddressesFacetFile(_Strict):
    """Whom the mail addresses of an argument may name."""

    domains: Annotated[list[_Domain], Field(min_length=1)] = _ABSENT
    only: Annotated[list[_Address], Field(min_length=1)] = _ABSENT
    max: _number(1, 1000, whole=True) = _ABSENT  # type: ignore[valid-type]


class LiteralFile(_Strict):
    """Values that the policy itself vouches for."""

    literal: Annotated[list[Annotated[str, Field(min_length=1, max_length=2000)]], Field(min_length=1)]


OriginItem: TypeAlias = _Source | LiteralFile


class NotFromFile(_Strict):
    """Matches when some part of the value is from none of these."""

    not_: Annotated[list[OriginItem], Field(min_length=1, alias="not")]


FACETS: Final[dict[str, tuple[Kind, type[BaseModel]]]] = {
    "sql": ("sql", SqlFacetFile),
    "paths": ("path", PathsFacetFile),
    "hosts": ("url", HostsFacetFile),
    "addresses": ("address", AddressesFacetFile),
}
RESERVED: Final = ("origin", "facts", "arguments")
_FACT_NAME: Final = {"type": "object", "properties": {"fact": {"type": "string"}}, "required": ["fact"],
                     "additionalProperties": False}  # fmt: skip


def _argument_schema() -> dict[str, Any]:
    facets = [
        {"type": "object", "properties": {name: model.model_json_schema()}, "required": [name],
         "additionalProperties": False}
        for name, (_, model) in FACETS.items()
    ]  # fmt: skip
    return {"anyOf": [SqlFacetFile.model_json_schema(), *facets, _FACT_NAME, {"$ref": _METASCHEMA}]}


def _origin_schema() -> dict[str, Any]:
    source = {"type": "string", "pattern": r"^(said|tool:[^\s]{1,200})$"}
    items = {"type": "array", "minItems": 1, "items": {"anyOf": [source, LiteralFile.model_json_schema()]}}
    negated = {"type": "object", "properties": {"not": items}, "required": ["not"], "additionalProperties": False}
    either = {"anyOf": [items, negated]}
    links = {"type": "object", "properties": {"links": either}, "required": ["links"], "additionalProperties": False}
    return {"type": "object", "minProperties": 1, "additionalProperties": {"anyOf": [items, negated, links]}}


def entry_words() -> dict[str, Any]:
    """The keys of an entry that are not argument names, with their schemas."""
    return {
        "origin": {"description": "Argument names, each with where its value must come from.", **_origin_schema()},
        "facts": {
            "description": "What the host vouches for, each name with a JSON Schema fragment.",
            "type": "object", "minProperties": 1, "additionalProperties": {"$ref": _METASCHEMA},
        },
        "arguments": {
            "description": "Arguments again, for a tool that has one named `origin`, `facts` or `arguments`.",
            "type": "object", "minProperties": 1, "additionalProperties": _argument_schema(),
        },
    }  # fmt: skip


_Entry: TypeAlias = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "description": "Argument names, each with a JSON Schema fragment or the facet of its kind.",
            "properties": entry_words(),
            "additionalProperties": _argument_schema(),
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


class LimitsFile(_Strict):
    """How often and how much, each as `AMOUNT/SPAN` or a list of them."""

    rate: _limit("rate") = _ABSENT  # type: ignore[valid-type]
    calls: _limit("calls") = _ABSENT  # type: ignore[valid-type]
    bytes: _limit("bytes") = _ABSENT  # type: ignore[valid-type]
    seconds: _limit("seconds") = _ABSENT  # type: ignore[valid-type]


class GrantFile(_Strict):
    """What the role may do with one tool."""

    allow: Annotated[list[_Entry], Field(min_length=1)] = []
    ask: Annotated[list[_Entry], Field(min_length=1)] = []
    deny: list[_Entry] = []
    resources: dict[str, Annotated[list[_Name], Field(min_length=1)]] = {}
    egress: Annotated[list[_Egress], Field(min_length=1, max_length=64)] = []
    sandbox: SandboxFile = SandboxFile()
    output: OutputFile = OutputFile()
    limits: LimitsFile = LimitsFile()
    kinds: dict[str, _KindWord] = {}
    effects: list[_EffectWord] = _ABSENT
    placement: _Placement = _ABSENT
    accept_weaker: Annotated[str, Field(min_length=10, max_length=500)] = _ABSENT


class DenyFile(BaseModel):
    """A refusal that holds for the whole file: the tool, and an entry's arguments beside it."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    __pydantic_extra__: dict[str, Any] = Field(init=False)

    tool: str


class FlowFile(_Strict):
    """What a session that has used tools with all the effects `after` may no longer do unasked, or at all."""

    ask: _EffectWord = _ABSENT
    deny: _EffectWord = _ABSENT
    after: _Effects


class CaseFile(_Strict):
    """A call and the status word it must end with, without being run; and the session that it is made in."""

    call: str
    args: dict[str, Any] = {}
    expect: _Expect
    code: str = _ABSENT
    said: str | list[str] = []
    seen: dict[str, str] = {}
    used: list[_EffectWord] = []
    facts: dict[str, Any] = {}


class RoleFile(_Strict):
    """One role of toolcage: what an agent may call, with what, in which cage."""

    version: _Version
    role: _Name
    description: Annotated[str, Field(max_length=2000)] = ""
    extends: Annotated[list[Annotated[str, Field(min_length=1, max_length=400)]], Field(min_length=1)] = _ABSENT
    tools: dict[str, GrantFile]
    deny: list[DenyFile] = []
    flows: list[FlowFile] = []
    tests: list[CaseFile] = []


def model_at(path: tuple[str | int, ...]) -> type[BaseModel]:
    """The model whose keys stand at `path` in a role file."""
    match path:
        case ("tools", _, "sandbox"):
            return SandboxFile
        case ("tools", _, "output"):
            return OutputFile
        case ("tools", _, "limits"):
            return LimitsFile
        case ("tools", _):
            return GrantFile
        case ("deny", _):
            return DenyFile
        case ("flows", _):
            return FlowFile
        case ("tests", _):
            return CaseFile
        case _:
            return RoleFile


