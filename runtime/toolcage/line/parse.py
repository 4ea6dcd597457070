"""One well-formed call out of whatever arrived: raw JSON bytes, text, or a mapping that the host built.

It decides on form alone: size, depth, I-JSON (no duplicate keys, no NaN, no lone surrogates, no integer that a JSON
reader may round), exactly the fields that a call has, clean names for attached files. From here on there is one parsed
object, deeply frozen, with one canonical form. It does not know which tools exist.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from toolcage.canonical import canonical_json
from toolcage.errors import Refused
from toolcage.types import JSON, InputFile, Refusal, ToolCall, claim_seal, freeze

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 32
MAX_NODES: Final = 50_000
MAX_INTEGER: Final = 2**53 - 1
MAX_FILES: Final = 32
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
MAX_FILE_NAME_BYTES: Final = 200
_FIELDS: Final = frozenset({"tool", "arguments"})
_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.:/*-]{1,200}")
_FILE_NAME_PART: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f/\\]{1,100}")
_BRACKET: Final = re.compile(rb"[\[\]{}]")
_QUOTED: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?')

_mint = claim_seal(ToolCall)


def parse(
    raw: bytes | str | Mapping[str, object],
    *,
    files: Mapping[str, bytes] | None = None,
    aliases: Mapping[str, str] | None = None,
    alias_arguments: Mapping[str, Mapping[str, JSON]] | None = None,
) -> ToolCall:
    """A `ToolCall` from raw JSON or from a mapping with `tool` and `arguments`.

    `files` maps relative names to contents that the host attaches. `aliases` is an exact table of other names for
    tools; `alias_arguments` are what a call by such a name means where it does not say. Raises Refused with status
    `malformed`.
    """
    value = decode(raw) if isinstance(raw, bytes | str) else raw
    if not isinstance(value, Mapping):
        _refuse("call.not_object", "a call must be a JSON object", "Send an object with `tool` and `arguments`.")
    unknown = sorted(str(key) for key in value.keys() - _FIELDS)
    if unknown:
        _refuse("call.unknown_field", f"a call has no field {_shown(unknown[0])}", "Send only `tool` and `arguments`.")
    tool = value.get("tool")
    if not isinstance(tool, str) or not _TOOL_NAME.fullmatch(tool):
        _refuse("call.tool_name", "the tool's name is missing or is not a plain name", "Name one of the listed tools.")
    arguments = value.get("arguments", {})
    if not isinstance(arguments, Mapping):
        _refuse("call.arguments", "`arguments` must be an object", "Send the arguments by name, in an object.")
    if tool in (alias_arguments or {}):
        arguments = {**(alias_arguments or {})[tool], **arguments}
    _Walk().check(arguments, 1)
    canonical = canonical_json(_plain(arguments))
    if len(canonical) > MAX_BYTES:
        _refuse_size()
    attached = _attach(files or {})
    return _mint(
        call_id=secrets.token_hex(12),
        tool=(aliases or {}).get(tool, tool),
        arguments=freeze(arguments),
        files=attached,
        canonical=canonical,
        digest=call_digest(canonical, attached),
    )


def call_digest(canonical: bytes, files: tuple[InputFile, ...]) -> str:
    """SHA-256, in hex, over the canonical arguments and each attached file's name and content digest."""
    digest = hashlib.sha256(canonical)
    for item in files:
        digest.update(b"\0" + item.name.encode() + b"\0" + hashlib.sha256(item.content).digest())
    return digest.hexdigest()


def decode(raw: bytes | str, *, named: str = "the call") -> Any:
    """The JSON value in `raw`, read strictly: bounded, UTF-8, I-JSON. Raises Refused with status `malformed`, which
    calls the text by the name that it is given."""
    if len(raw) > MAX_BYTES:
        _refuse_size()
    try:
        encoded = raw.encode() if isinstance(raw, str) else raw
        text = encoded.decode("utf-8")
    except UnicodeError:
        _refuse("call.encoding", f"{named} is not valid UTF-8", "Send UTF-8 text without lone surrogates.")
    _check_nesting(encoded)
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_whole)
    except (ValueError, RecursionError):
        _refuse("call.not_json", f"{named} is not valid JSON", "Send one JSON object with double-quoted strings.")


def _check_nesting(encoded: bytes) -> None:
    """Bounds the depth before the decoder recurses into it."""
    depth = 0
    for bracket in _BRACKET.findall(_QUOTED.sub(b"", encoded)):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH + 1:
            _refuse_depth()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        _refuse("call.duplicate_key", f"the key {_shown(twice)} stands twice in one object", "Give each key once.")
    return made


def _no_constant(word: str) -> NoReturn:
    _refuse("call.number", f"{word} is not a JSON number", "Send a finite number, or a string.")


def _whole(digits: str) -> int:
    if len(digits) > 17:
        _refuse_integer()
    return int(digits)


class _Walk:
    """Bounds and checks every value, whoever built it."""

    def __init__(self) -> None:
        self._nodes = 0
        self._characters = 0

    def check(self, value: object, depth: int) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            _refuse("call.too_many_values", "the arguments hold too many values", "Send less in one call.")
        if isinstance(value, str):
            self._text(value)
        elif isinstance(value, bool) or value is None:
            return
        elif isinstance(value, int):
            if not -MAX_INTEGER <= value <= MAX_INTEGER:
                _refuse_integer()
        elif isinstance(value, float):
            if not math.isfinite(value):
                _no_constant(str(value))
        elif isinstance(value, Mapping):
            self._object(value, depth)
        elif isinstance(value, list | tuple):
            self._deeper(depth)
            for item in value:
                self.check(item, depth + 1)
        else:
            kind = type(value).__name__
            _refuse("call.not_json", f"a value of type {kind} is not JSON", "Send strings, numbers, lists and objects.")

    def _object(self, value: Mapping[object, object], depth: int) -> None:
        self._deeper(depth)
        for key, item in value.items():
            if not isinstance(key, str):
                _refuse("call.key", "an object's key is not a string", "Use strings as keys.")
            self._text(key)
            self.check(item, depth + 1)

    def _text(self, value: str) -> None:
        self._characters += len(value)
        if self._characters > MAX_BYTES:
            _refuse_size()
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            _refuse("call.surrogate", "a string holds a lone surrogate", "Send whole characters.")

    @staticmethod
    def _deeper(depth: int) -> None:
        if depth > MAX_DEPTH:
            _refuse_depth()


def _plain(value: Any) -> Any:
    """Plain dicts and lists for the canonicaliser, whatever mapping or sequence types the host used."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _attach(files: Mapping[str, bytes]) -> tuple[InputFile, ...]:
    if len(files) > MAX_FILES:
        _refuse("file.too_many", f"more than {MAX_FILES} files are attached", "Attach fewer files.")
    if sum(len(content) for content in files.values()) > MAX_FILE_BYTES:
        _refuse("file.too_large", f"the attached files exceed {MAX_FILE_BYTES} bytes", "Attach less.")
    for name, content in files.items():
        _check_file_name(name)
        if not isinstance(content, bytes):
            _refuse("file.content", f"the content of {_shown(name)} is not bytes", "Attach bytes.")
    return tuple(InputFile(name=name, content=content) for name, content in sorted(files.items()))


def _check_file_name(name: str) -> None:
    parts = name.split("/")
    plain = all(_FILE_NAME_PART.fullmatch(part) and part not in (".", "..") for part in parts)
    encodable = not any("\ud800" <= character <= "\udfff" for character in name)
    if not (plain and encodable and len(parts) <= 8 and len(name.encode()) <= MAX_FILE_NAME_BYTES):
        _refuse("file.name", f"{_shown(name)} is not a relative file name", "Use names like data/input.csv.")


def _shown(text: str) -> str:
    return repr(text[:60])


def _refuse_size() -> NoReturn:
    _refuse("call.too_large", f"the call is larger than {MAX_BYTES} bytes", "Send less, or attach a file.")


def _refuse_depth() -> NoReturn:
    _refuse("call.too_deep", f"the call is nested deeper than {MAX_DEPTH} levels", "Flatten the arguments.")


def _refuse_integer() -> NoReturn:
    _refuse("call.integer", "an integer is beyond 2^53, where readers of JSON round", "Pass it as a string.")


def _refuse(code: str, message: str, hint: str) -> NoReturn:
    raise Refused(Refusal(status="malformed", code=code, message=message, hint=hint))
