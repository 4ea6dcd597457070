"""What one audit record says: an intent, a closing, or an event of the runtime, as frozen data.

Decides how a record becomes flat JSON: every value is text or a whole number, absent fields are left out, fractions of
a second become microseconds. Flat and free of floats means that the canonical form (RFC 8785) has one cheap encoding
and nothing hides in a nested object. Values are untrusted text and are kept as they are; only what JSON cannot hold (a
lone surrogate) is spelled out. What is recorded is the caller's choice: nothing here redacts.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from toolcage.canonical import CanonicalizationError, canonical_json
from toolcage.errors import UsageError
from toolcage.types import JSON, Facts, SessionFacts, Status, Usage, thaw

EventType = Literal["runtime_start", "connection", "pool", "attestation", "runtime_end", "note"]
RecordType = Literal["runtime_start", "intent", "connection", "closing", "pool", "attestation", "runtime_end", "note"]
Payload: TypeAlias = dict[str, str | int]

RECORD_TYPES: Final[tuple[RecordType, ...]] = get_args(RecordType)
LARGEST_INTEGER: Final = 2**53 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """What intents and closings share. `arguments` is the canonical JSON text, `facts` too (see `facts_text`).

    `rule` and `note` are for the operator: `file:line` and the rule's name, a cause, a host detail. `decision` is the
    policy's word and code (`ask policy.ask`), `session_facts` what it knew of the session, `shadow` what a second
    policy would have said; with the arguments they are all that a decision is replayed from.
    """

    call_id: str
    session: str | None = None
    role: str | None = None
    policy_digest: str | None = None
    rule: str | None = None
    tool: str | None = None
    arguments: str | None = None
    arguments_digest: str | None = None
    facts: str | None = None
    session_facts: str | None = None
    decision: str | None = None
    shadow: str | None = None
    approver: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent(CallRecord):
    """This call is about to run. Written, and durable, before anything does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing(CallRecord):
    """How a call ended. `intent` is the seq of its durable intent record; None = it was refused before one was due.
    `released_by` let the model read output that speaks to it (`on_injection: ask`)."""

    intent: int | None = None
    released_by: str | None = None
    status: Status
    code: str
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something about the runtime rather than one call. `detail` is any JSON and is kept as canonical text."""

    type: EventType
    session: str | None = None
    role: str | None = None
    policy_digest: str | None = None
    detail: Mapping[str, JSON] | None = None
    note: str | None = None


Record: TypeAlias = Intent | Closing | Event

USAGE_FIELDS: Final = (
    "usage_queue_us", "usage_wall_us", "usage_cpu_us", "usage_duration_us",
    "usage_memory_peak_bytes", "usage_bytes_out",
)  # fmt: skip
INTEGER_FIELDS: Final = frozenset(("v", "seq", "intent", *USAGE_FIELDS))
ENVELOPE_FIELDS: Final = ("v", "runtime", "seq", "prev", "time", "type", "hash", "mac")
PAYLOAD_FIELDS: Final = frozenset(
    item.name
    for cls in (Intent, Closing, Event)
    for item in dataclasses.fields(cls)
    if item.name not in ("usage", "type")
) | frozenset(USAGE_FIELDS)


def type_of(record: Record) -> RecordType:
    """The word that a record's `type` field holds."""
    if isinstance(record, Event):
        return record.type
    return "intent" if isinstance(record, Intent) else "closing"


def payload_of(record: Record) -> Payload:
    """The fields of a record that are present, flat.

    Raises:
        UsageError: a field holds something other than its text or whole number, or the detail is not I-JSON.
    """
    payload: Payload = {}
    for name in _NAMES[type(record)]:
        value = getattr(record, name)
        if value is None:
            continue
        if name == "usage":
            payload.update(_usage(value))
        elif name == "detail":
            payload[name] = _canonical_text(thaw(value))
        else:
            payload[name] = _plain(name, value)
    return payload


def session_facts_text(known: SessionFacts) -> str:
    """What a decision knew of its session as canonical JSON text; empty parts are left out."""
    parts: dict[str, Any] = {
        "origins": known.origins, "effects": known.effects, "host": known.host, "spent": known.spent,
    }  # fmt: skip
    return _canonical_text(_readable({name: value for name, value in parts.items() if value}))


def facts_text(facts: Mapping[str, Facts]) -> str:
    """Facts as canonical JSON text: dataclasses become objects, sets sorted arrays, anything that is no data its
    type's name. Big whole numbers become text, so nothing that a caller sends can make an intent unwritable."""
    return _canonical_text(_readable(facts))


_NAMES: Final[Mapping[type, tuple[str, ...]]] = {
    Intent: tuple(item.name for item in dataclasses.fields(Intent)),
    Closing: tuple(item.name for item in dataclasses.fields(Closing)),
    Event: tuple(item.name for item in dataclasses.fields(Event) if item.name != "type"),
}


def _plain(name: str, value: object) -> str | int:
    if name in INTEGER_FIELDS:
        if type(value) is int and 0 <= value <= LARGEST_INTEGER:
            return value
        raise UsageError(f"audit field {name!r} must be a whole number from 0 to 2^53 - 1")
    if not isinstance(value, str):
        raise UsageError(f"audit field {name!r} must be text, not {type(value).__name__}")
    return value if value.isascii() else encodable(value)


def encodable(text: str) -> str:
    """The same text with each lone surrogate, which UTF-8 cannot carry, spelled out as `\\udc80`."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _usage(usage: Usage) -> Payload:
    return {
        "usage_queue_us": _whole(usage.queue_s * 1e6),
        "usage_wall_us": _whole(usage.wall_s * 1e6),
        "usage_cpu_us": _whole(usage.cpu_s * 1e6),
        "usage_memory_peak_bytes": _whole(usage.memory_peak_bytes),
        "usage_bytes_out": _whole(usage.bytes_out),
        "usage_duration_us": _whole(usage.duration_ms * 1e3),
    }


def _whole(value: float) -> int:
    """Clamped rather than refused: a strange counter must not leave a finished call without its closing."""
    if math.isnan(value):
        return 0
    return round(min(max(value, 0), LARGEST_INTEGER))


def _canonical_text(value: Any) -> str:
    try:
        return canonical_json(value).decode("utf-8")
    except CanonicalizationError as error:
        raise UsageError(f"audit detail is not I-JSON: {error}") from error


def _readable(value: Any) -> Any:
    if type(value) is str and value.isascii():  # most of what there is
        return value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, int):
        return value if abs(value) <= LARGEST_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return value.hex()
    return _readable_parts(value)


@functools.cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(item.name for item in dataclasses.fields(kind))


def _readable_parts(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: _readable(getattr(value, name)) for name in _field_names(type(value))}
    if isinstance(value, Mapping):
        return {encodable(str(key)): _readable(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_readable(item) for item in value), key=repr)
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    return f"<{type(value).__name__}>"
