"""The words of the line: what passes from stage to stage, as frozen data.

Trusts nothing and does nothing. The stage outputs (`ToolCall` … `CleanOutput`) are *sealed*: each class can be built by
one module only, the stage that claimed its seal, and the next stage asks `require` for that proof. Skipping a stage is
therefore a type error for mypy and a TypeError at run time. Python has no true privacy: the seal stops mistakes, not
code that already runs in the host process.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, NoReturn, TypeAlias, TypeVar, get_args

JSON: TypeAlias = "bool | int | float | str | tuple[JSON, ...] | Mapping[str, JSON] | None"
"""A JSON value, frozen: lists are tuples, objects are read-only mappings."""

Status = Literal[
    "ok", "malformed", "invalid", "denied", "blocked", "approval_required", "rejected", "tool_error", "timeout",
    "out_of_memory", "limit_exceeded", "busy", "unavailable", "cancelled",
]  # fmt: skip
Kind = Literal["sql", "python", "shell", "path", "url", "address", "html", "identifier", "text"]
Effect = Literal["reads_private", "reads_untrusted", "sends", "writes", "spends"]
Isolation = Literal["container", "namespace", "session"]
HtmlMode = Literal["inert", "escape", "clean", "keep"]
FileUse = Literal["read", "list", "write", "update", "by_mode"]
ResourceKind = Literal["database", "endpoint", "mailbox", "calendar", "workspace", "mcp_server"]

PortalKind = Literal["http", "connect", "postgres", "smtp", "imap"]

STATUSES: Final[tuple[Status, ...]] = get_args(Status)
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
EFFECTS: Final[tuple[Effect, ...]] = get_args(Effect)
CHANGING_TOOL: Final = "change_database"
"""The one tool whose SQL may change data. No grant makes another one, and no stranger's tool can have its name."""
SESSION_WORKSPACE: Final = "session"
"""The workspace that every session has of its own. It stands in no file, and is granted by this name."""
WRITING_USES: Final[frozenset[FileUse]] = frozenset({"write", "update", "by_mode"})
ISOLATION_STRENGTH: Final[Mapping[Isolation, int]] = MappingProxyType({"session": 0, "namespace": 1, "container": 2})


def freeze(value: Any) -> JSON:
    """A JSON value made immutable, all the way down. Anything that is not JSON raises TypeError."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return MappingProxyType({str(key): freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def thaw(value: JSON) -> Any:
    """The same value as plain dicts and lists, a copy that the receiver may change."""
    if isinstance(value, str | int):  # most of what there is, and told sooner than by a question to an abstract class
        return value
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


# --- refusals ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a call did not succeed.

    `message` and `hint` are for the model: the kind of refusal and how to repair the call, no host path, no secret, no
    rule text. `operator` is for the audit log and the operator's eyes: file, line, rule, cause.
    """

    status: Status
    code: str
    message: str
    hint: str | None = None
    operator: str | None = None
    retryable: bool = False


# --- tools ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDeclaration:
    """What the host must know about a tool; the body is elsewhere and only ever runs in a cage.

    `parameters` is a JSON Schema 2020-12 object schema with `additionalProperties: false`. `kinds` maps an argument's
    name to its kind (absent = `text`). `resources` maps an argument whose value *names* a resource to the kind of
    resource it names. `accepts_files` says that a caller may attach files. `trusted` is false for a stranger's tool,
    whose effects and kinds are only suggestions.

    `file_uses` maps an argument of kind `path` to what a call does with that path of its workspace: the file is sent
    in (`read`), a listing of the folder is (`list`), the file that the body leaves under that name is taken back
    (`write`: whatever was there; `update`: the present file is sent in, and must be unchanged when it is replaced;
    `by_mode`: `update` where the argument `mode` is `append`, else `write`).

    `effects_need` maps an effect of the tool to arguments: a call that gives none of them has not that effect.
    """

    name: str
    description: str
    parameters: Mapping[str, JSON]
    kinds: Mapping[str, Kind] = field(default_factory=lambda: MappingProxyType({}))
    effects: frozenset[Effect] = frozenset()
    resources: Mapping[str, ResourceKind] = field(default_factory=lambda: MappingProxyType({}))
    image: str = "python"
    isolation: Isolation = "container"
    wall_s: float = 10.0
    idempotent: bool = False
    accepts_files: bool = False
    trusted: bool = True
    file_uses: Mapping[str, FileUse] = field(default_factory=lambda: MappingProxyType({}))
    effects_need: Mapping[Effect, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def effects_of(self, arguments: Mapping[str, JSON]) -> frozenset[Effect]:
        """What a call with these arguments does."""
        return self.effects - {
            effect for effect, needed in self.effects_need.items() if not any(name in arguments for name in needed)
        }

    @property
    def changes_databases(self) -> bool:
        """Whether its SQL is for changing data, and its session at a database may write."""
        return self.name == CHANGING_TOOL

    @property
    def writes_files(self) -> bool:
        """Whether a call may change a file of its workspace."""
        return bool(WRITING_USES & set(self.file_uses.values()))

    @property
    def fixed_resources(self) -> frozenset[str]:
        """The words in `resources` that are no arguments: what the tool always works with, named by its grant alone."""
        properties = self.parameters.get("properties")
        return frozenset(self.resources) - frozenset(properties if isinstance(properties, Mapping) else ())

    def to_openai(self) -> dict[str, Any]:
        """An entry for the `tools` of a chat completion, as plain JSON data."""
        named = {"name": self.name, "description": self.description, "parameters": thaw(self.parameters)}
        return {"type": "function", "function": named}

    def to_anthropic(self) -> dict[str, Any]:
        """An entry for the `tools` of a message request, as plain JSON data."""
        return {"name": self.name, "description": self.description, "input_schema": thaw(self.parameters)}

    def to_mcp(self) -> dict[str, Any]:
        """An entry of an MCP server's list of tools, as plain JSON data."""
        return {"name": self.name, "description": self.description, "inputSchema": thaw(self.parameters)}

    def to_dict(self) -> dict[str, Any]:
        """Every field, as plain JSON data."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": thaw(self.parameters),
            "kinds": dict(self.kinds),
            "effects": sorted(self.effects),
            "resources": dict(self.resources),
            "image": self.image,
            "isolation": self.isolation,
            "wall_s": self.wall_s,
            "idempotent": self.idempotent,
            "accepts_files": self.accepts_files,
            "trusted": self.trusted,
            "file_uses": dict(self.file_uses),
            "effects_need": {effect: list(needed) for effect, needed in self.effects_need.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file that the host attaches to a call: a clean relative name and its bytes."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was read from one argument, once. Each kind's own class (in `facts/`) extends this."""

    kind: Kind


# --- what a grant fixes for one call -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxTerms:
    """The cage that a grant (or the tool's declaration) asks for. Sizes in bytes, times in seconds."""

    image: str = "python"
    isolation: Isolation = "container"
    memory_bytes: int = 256 * 1024 * 1024
    cpus: float = 1.0
    wall_s: float = 10.0
    pids: int = 64
    tmp_bytes: int = 64 * 1024 * 1024
    runtime: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTerms:
    """How results of a grant are cleaned. `max_bytes` caps stdout, stderr and data each."""

    max_bytes: int = 64 * 1024
    html: HtmlMode = "inert"
    redact: tuple[str, ...] = ("secrets",)
    on_injection: Literal["flag", "withhold", "ask"] = "flag"


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressTarget:
    """A host and port that a cage may connect to: a name in lower case, or `*.` and a domain for every host below."""

    host: str
    port: int

    def covers(self, other: EgressTarget) -> bool:
        """Whether whatever `other` permits is permitted by this too."""
        below = self.host.startswith("*.") and other.host.endswith(self.host[1:])
        return self.port == other.port and (self.host == other.host or below)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlTerms:
    """What the matching entry's `sql` facet leaves open; the cage enforces it again inside the engine.

    `tables` None = no entry narrowed the tables. `columns_except` holds `table.column`, lower case. `operations` are
    the kinds of change (`insert`, `update`, `delete`), `writes` the columns (`table.column`) that a change may set;
    None = no entry narrowed them.
    """

    tables: frozenset[str] | None = None
    columns_except: frozenset[str] = frozenset()
    max_rows: int = 1000
    operations: frozenset[str] | None = None
    writes: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """What a decision may know besides the call: everything about the session that it depends on, and nothing else.

    `origins` maps each identifier in the call's arguments that a rule asks about to where the session met it: `said`
    (the user's words) or `tool:NAME` (an `ok` result). `effects` are those of the tools that the session has used.
    `host` is what the host vouches for, such as tenant and user. `spent` names the limits that are used up, by rule.
    """

    origins: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    effects: frozenset[Effect] = frozenset()
    host: Mapping[str, JSON] = field(default_factory=lambda: MappingProxyType({}))
    spent: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a policy says about one call. `rule` is `file:line` and the rule's name, for the operator.

    `status` and `retryable` say how a `deny` is told: `denied`, or `limit_exceeded` where a limit is used up.
    """

    effect: Literal["allow", "ask", "deny"]
    code: str
    message: str = ""
    hint: str | None = None
    rule: str | None = None
    sql: SqlTerms | None = None
    status: Status = "denied"
    retryable: bool = False


# --- what comes out of a cage --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that came out of a cage. `name` and `media_type` are cleaned; `content` is exact and untrusted."""

    name: str
    media_type: str
    size: int
    sha256: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """What was cut: which part (`stdout`, `stderr`, `data`, `artifacts`, `rows`), how much was kept and dropped.

    Units are bytes, except for `rows` and `artifacts`, which count items. `dropped` None = unknown but more than zero.
    """

    part: str
    kept: int
    dropped: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a call used. Seconds and bytes; `duration_ms` is the whole line as the caller saw it."""

    queue_s: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    memory_peak_bytes: int = 0
    bytes_out: int = 0
    duration_ms: float = 0.0


# --- seals ---------------------------------------------------------------------------------------------------------

_T = TypeVar("_T")
_claimed: set[type] = set()
_minted: Final[dict[type, weakref.WeakSet[Any]]] = {}


def _unbuildable(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError(f"{type(self).__name__} is the output of a stage of the line and cannot be built outside it")


def sealed(cls: type[_T]) -> type[_T]:
    """Class decorator: a frozen dataclass that only the holder of its seal can build."""
    made = dataclass(frozen=True, kw_only=True, eq=False, slots=True, weakref_slot=True)(cls)
    made.__init__ = _unbuildable  # type: ignore[method-assign]
    for name in ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__setstate__"):
        setattr(made, name, _unbuildable)
    _minted[made] = weakref.WeakSet()
    return made


def claim_seal(cls: type[_T]) -> Callable[..., _T]:
    """The one function that builds `cls`. It can be claimed once, by the stage's module at import; then never again."""
    if cls in _claimed:
        raise TypeError(f"the seal of {cls.__name__} is already held by its stage")
    _claimed.add(cls)
    names = frozenset(item.name for item in dataclasses.fields(cls))  # type: ignore[arg-type]

    def mint(**values: object) -> _T:
        if values.keys() != names:
            raise TypeError(f"{cls.__name__} takes exactly {sorted(names)}, got {sorted(values)}")
        made = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        _minted[cls].add(made)
        return made

    return mint


def require(value: object, cls: type[_T]) -> _T:
    """`value`, proven to be a genuine output of the stage that makes `cls`. Raises TypeError for anything else."""
    if type(value) is not cls or value not in _minted[cls]:
        raise TypeError(f"expected a {cls.__name__} made by its stage, got {type(value).__name__}")
    return value


# --- stage outputs -------------------------------------------------------------------------------------------------


@sealed
class ToolCall:
    """parse → one well-formed call. `canonical` is the RFC 8785 form of the arguments, `digest` its SHA-256 in hex,
    which covers the attached files too."""

    call_id: str
    tool: str
    arguments: Mapping[str, JSON]
    files: tuple[InputFile, ...]
    canonical: bytes
    digest: str


@sealed
class ValidCall:
    """validate → a call of a tool that the role has, whose arguments fit its schema (defaults filled) and were read
    into facts, one per argument that has a kind of its own."""

    call: ToolCall
    declaration: ToolDeclaration
    arguments: Mapping[str, JSON]
    canonical: bytes
    digest: str
    facts: Mapping[str, Facts]


@sealed
class AuthorizedCall:
    """authorize → the role may do this (`allow`) or may once a person agrees (`ask`), on these terms. `resources` maps
    an argument, or a word that the tool declares, to the resource; `egress` are the hosts that the cage may connect
    to."""

    valid: ValidCall
    role: str
    policy_digest: str
    decision: Decision
    resources: Mapping[str, str]
    egress: tuple[EgressTarget, ...]
    sandbox: SandboxTerms
    output: OutputTerms


@sealed
class ScreenedCall:
    """screen → nothing in the arguments crosses the floor that no grant can lift."""

    authorized: AuthorizedCall


@sealed
class ApprovedCall:
    """approve → the decision was `allow`, or a person approved exactly this digest. `expires_at` is monotonic seconds,
    None = the decision was `allow`."""

    screened: ScreenedCall
    approver: str | None
    approval_digest: str
    expires_at: float | None


@sealed
class CageOutput:
    """execute → what came back from the cage, every byte of it untrusted. `refusal` is None only when the tool's body
    ended well. `data` is the frozen JSON value that the body returned. `egress_denied` counts connections that a portal
    refused or broke off, as far as they were told."""

    approved: ApprovedCall
    refusal: Refusal | None
    data: JSON
    stdout: bytes
    stderr: bytes
    exit_code: int | None
    artifacts: tuple[Artifact, ...]
    truncated: tuple[Truncation, ...]
    usage: Usage
    private: bool
    egress_denied: int


@sealed
class CleanOutput:
    """clean → the same, decoded, capped, neutralised, redacted and labelled. `findings` counts what cleaning did
    (`secret_redacted`, `control_shown`, …)."""

    output: CageOutput
    data: JSON
    error: str | None
    hint: str | None
    stdout: str
    stderr: str
    artifacts: tuple[Artifact, ...]
    truncated: tuple[Truncation, ...]
    labels: tuple[str, ...]
    findings: Mapping[str, int]
