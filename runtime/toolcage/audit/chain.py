"""The hash chain: how a record becomes one line, and how a line is read back.

A line is ASCII JSON: `{"hash":…,["mac":…,]` followed by the record's other fields in canonical order. `hash` is the
SHA-256 of the RFC 8785 form of those other fields, `prev` among them, which is the hash of the record before; `mac` is
HMAC-SHA256 of `hash` under an optional key. Reading is byte-exact: a line that is not the one form its record has
(duplicate keys, white space, floats, other escapes, NaN) is malformed even where its hash fits, so two readers can
never see two different records. The chain alone proves order and integrity only against someone who cannot recompute
it; `docs/audit.md` says what the key and an exported head add.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from pydantic_core import from_json, to_json

from toolcage.audit.record import (
    ENVELOPE_FIELDS,
    INTEGER_FIELDS,
    LARGEST_INTEGER,
    PAYLOAD_FIELDS,
    RECORD_TYPES,
    Payload,
    RecordType,
)

VERSION: Final = 1
GENESIS: Final = "0" * 64
MIN_KEY_BYTES: Final = 16
MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""A longer record is refused when written and malformed when read, so no file can make a reader fill the memory."""

_HEX: Final = b"0123456789abcdef"
_REQUIRED: Final = frozenset(ENVELOPE_FIELDS) - {"hash", "mac"}
_KNOWN: Final = _REQUIRED | PAYLOAD_FIELDS
_MAC_PREFIX: Final = b'"mac":"'
_MOST_SHAPES: Final = 4096
_Shape: TypeAlias = "tuple[tuple[type, ...], Callable[[Payload], tuple[int, ...]]]"
_shapes: Final[dict[tuple[str, ...], _Shape]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The last record of a runtime's chain. Kept elsewhere, it proves that nothing up to it was cut or rewritten."""

    runtime: str
    seq: int = 0
    hash: str = GENESIS


class Parsed(NamedTuple):
    """One line that is well-formed, not yet trusted: `digest` is what its content hashes to, `hash` what it claims."""

    fields: Payload
    digest: str
    hash: str
    mac: str | None


class MalformedLine(ValueError):
    """A line is not a record in its one form. For `verify`, which names the place."""


def canonical(fields: Payload) -> bytes:
    """RFC 8785 of flat text and whole numbers: keys in order, then exactly what serde writes (a test holds it against
    the rfc8785 library, which takes eight times as long)."""
    return to_json(dict(sorted(fields.items())))


def extend(head: Head, kind: RecordType, time: str, payload: Payload, key: bytes | None) -> tuple[Head, bytes]:
    """The line of the next record after `head`, newline included, and the head that it makes."""
    seq = head.seq + 1
    envelope: Payload = {
        "v": VERSION, "runtime": head.runtime, "seq": seq, "prev": head.hash, "time": time, "type": kind,
    }  # fmt: skip
    content = canonical(envelope | payload)
    digest = hashlib.sha256(content).hexdigest()
    seal = f'{{"hash":"{digest}",'
    if key is not None:
        seal += f'"mac":"{mac_of(digest, key)}",'
    line = seal.encode() + _ascii(content, envelope | payload)[1:] + b"\n"
    return Head(runtime=head.runtime, seq=seq, hash=digest), line


def mac_of(digest: str, key: bytes) -> str:
    """The mac of a record whose hash is `digest`."""
    return hmac.digest(key, digest.encode(), "sha256").hex()


def parse_line(line: bytes) -> Parsed:
    """A line without its newline, read strictly.

    Raises:
        MalformedLine: it is not the one form of a record.
    """
    if line[:9] != b'{"hash":"' or line[73:75] != b'",':
        raise MalformedLine("it does not start with a hash")
    start, mac = 75, None
    if line[75:82] == _MAC_PREFIX:
        if line[146:148] != b'",' or line[82:146].translate(None, _HEX):
            raise MalformedLine("its mac is not 64 hexadecimal digits")
        start, mac = 148, line[82:146].decode()
    fields, content = _parse_content(b"{" + line[start:])
    digest = hashlib.sha256(content).hexdigest()
    if line[9:73] == digest.encode():
        return Parsed(fields, digest, digest, mac)
    if line[9:73].translate(None, _HEX):
        raise MalformedLine("its hash is not 64 hexadecimal digits")
    return Parsed(fields, digest, line[9:73].decode(), mac)


def _parse_content(text: bytes) -> tuple[Payload, bytes]:
    try:
        fields = from_json(text, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        raise MalformedLine(f"it is not JSON: {error}") from None
    if type(fields) is not dict:
        raise MalformedLine("it is not an object")
    names = tuple(fields)
    types, integers = _shapes.get(names) or _learn_shape(names)
    if tuple(map(type, fields.values())) != types:
        raise MalformedLine("a field is text where a number is due, or the other way round")
    for number in integers(fields):
        if not 0 <= number <= LARGEST_INTEGER:
            raise MalformedLine("a number is not one of 0 to 2^53 - 1")
    if fields["v"] != VERSION or fields["type"] not in RECORD_TYPES:
        raise MalformedLine("its version or type is not one that this release reads")
    content = to_json(fields)
    # Encoding again and comparing catches duplicate keys, white space, and every second spelling of a value at once.
    if _ascii(content, fields) != text:
        raise MalformedLine("it is not in canonical form: a key twice, white space, or another spelling of a value")
    return fields, content


def _learn_shape(names: tuple[str, ...]) -> _Shape:
    """The types that fields of these names have, once the names are those of a record. Kept, because few sets of
    names occur and this is the hot path of `verify`."""
    if unknown := set(names) - _KNOWN:
        raise MalformedLine(f"it has an unknown field: {min(unknown)!a}")
    if missing := _REQUIRED - set(names):
        raise MalformedLine(f"it lacks the field {min(missing)!r}")
    if list(names) != sorted(names):
        raise MalformedLine("its fields are not in canonical order")
    types = tuple(int if name in INTEGER_FIELDS else str for name in names)
    shape = types, itemgetter(*(name for name in names if name in INTEGER_FIELDS))
    if len(_shapes) < _MOST_SHAPES:
        _shapes[names] = shape
    return shape


def _ascii(content: bytes, fields: Payload) -> bytes:
    """The same canonical JSON with everything beyond printable ASCII escaped, so that no terminal acts on a line."""
    if content.isascii() and b"\x7f" not in content:
        return content
    return json.dumps(dict(sorted(fields.items())), ensure_ascii=True, separators=(",", ":")).encode()
