"""Read one YAML file into plain data and remember the line of every part of it.

The subset is small on purpose: a file means the same to every reader, to a person and to this program. Refused, with
the line and what to write instead: duplicate keys, anchors, aliases, merge keys, tags, directives, a second document,
keys that are not text, and plain scalars that YAML versions read differently (`yes`, `012`, `1_000`, `.inf`). Refused
as well: invisible and direction-changing characters, which make a file read otherwise than it looks, and files that
are not UTF-8, too large or too deep. Trusts nothing in the file. It knows nothing of policies or resources: what keys
mean is for the caller, who reports its own findings through `Document.line` in the same `file:line: text` form.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from toolcage.errors import ToolcageError

MAX_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 32
MAX_NODES: Final = 20_000
_MAX_INTEGER: Final = 2**53 - 1

KeyPath: TypeAlias = tuple[str | int, ...]
"""Where a value stands: keys and list positions from the root. `()` is the whole document."""

_NULL: Final = frozenset({"", "~", "null"})
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_FLOAT: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})\.[0-9]{1,18}")
_LOOKS_BOOLEAN: Final = frozenset({"yes", "no", "on", "off", "true", "false", "null"})
_LOOKS_NUMERIC: Final = re.compile(
    r"[+-]?(([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)(e[+-]?[0-9]+)?"  # 1_000, 012, 1e5, .5
    r"|0[xob][0-9a-f_]+|[0-9]+(:[0-9]{1,2})+(\.[0-9]*)?|\.(inf|nan))",  # 0x1F, 1:30, .inf
    re.IGNORECASE,
)
_LINE_BREAKS_OF_YAML_1_1: Final = "\x85\u2028\u2029"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A parsed file: plain data, and the line (from 1) of each value by its path."""

    name: str
    data: Any
    lines: Mapping[KeyPath, int]

    def line(self, path: KeyPath) -> int:
        """The line of the value at `path`, or of the nearest enclosing part that the file really has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_document(path: Path, error: type[ToolcageError]) -> Document:
    """The file at `path`, read once. Raises `error` when it cannot be read or is outside the strict subset."""
    try:
        raw = _read_regular_file(path)
    except OSError as cause:
        raise error(f"{path}: cannot be read: {cause.strerror or cause}; give the path of a readable file") from cause
    if raw is None:
        raise error(f"{path}: not a regular file; give the path of a YAML file")
    return parse_document(raw, str(path), error)


def parse_document(raw: bytes, name: str, error: type[ToolcageError]) -> Document:
    """The document in `raw`; `name` stands in messages. Raises `error` when it is outside the strict subset."""
    try:
        return _parse(raw, name)
    except _Problem as problem:
        raise error(f"{name}:{problem.line}: {visible(problem.text)}") from None


def visible(text: str) -> str:
    """`text` fit for a terminal and a log: what a file can put into a message by an escape is shown, not obeyed."""
    return "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in text)


class _Problem(Exception):
    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text


def _read_regular_file(path: Path) -> bytes | None:
    # O_NONBLOCK: a named pipe put where a file should be must not hang the loader
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # before fdopen, which would keep a folder open and raise
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_BYTES + 1)


def _parse(raw: bytes, name: str) -> Document:
    if len(raw) > MAX_BYTES:
        raise _Problem(1, f"larger than {MAX_BYTES // 1024} KiB; split the file")
    text = _decode(raw)
    try:
        return _Builder(YAML(typ="safe", pure=True).parse(text)).build(name)
    except MarkedYAMLError as cause:
        mark = cause.problem_mark or cause.context_mark
        raise _Problem(mark.line + 1 if mark else 1, f"not YAML: {_yaml_fault(cause)}") from None
    except YAMLError as cause:
        raise _Problem(1, f"not YAML: {cause}") from None
    except RecursionError:
        raise _Problem(1, f"nested deeper than {MAX_DEPTH} levels") from None


def _yaml_fault(cause: MarkedYAMLError) -> str:
    text = str(cause.problem or cause.context)
    return "a line begins with a tab; indent with spaces" if "'\\t'" in text else text


def _decode(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as cause:
        raise _Problem(raw.count(b"\n", 0, cause.start) + 1, "not UTF-8; save the file as UTF-8") from None
    for position, character in enumerate(text):
        if character in "\n\t" or (character == "\r" and text[position + 1 : position + 2] == "\n"):
            continue
        if unicodedata.category(character) in ("Cc", "Cf") or character in _LINE_BREAKS_OF_YAML_1_1:
            line = text.count("\n", 0, position) + 1
            raise _Problem(line, f"holds the invisible character U+{ord(character):04X}; remove it")
    return text


class _Builder:
    """Turns parser events into data. Events, not nodes: an alias is refused before anything could be expanded."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._lines: dict[KeyPath, int] = {}
        self._nodes = 0

    def build(self, name: str) -> Document:
        next(self._events)  # stream start
        start = next(self._events)
        if isinstance(start, StreamEndEvent):
            raise _Problem(1, "empty; write at least `version: 1`")
        self._check_document_start(start)
        data = self._value(next(self._events), ())
        next(self._events)  # document end
        following = next(self._events)
        if not isinstance(following, StreamEndEvent):
            raise _Problem(_line(following), "a second document; write one document per file, without `---` between")
        return Document(name=name, data=data, lines=self._lines)

    def _check_document_start(self, event: DocumentStartEvent) -> None:
        if event.version is not None or event.tags:
            raise _Problem(1, "a % directive; remove it")

    def _value(self, event: Any, path: KeyPath) -> Any:
        self._admit(event, path)
        if isinstance(event, ScalarEvent):
            return _scalar(event)
        if isinstance(event, MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(path)
        raise _Problem(_line(event), "not a value")  # pragma: no cover - the parser yields nothing else here

    def _admit(self, event: Any, path: KeyPath) -> None:
        line = _line(event)
        self._lines.setdefault(path, line)
        self._nodes += 1
        if isinstance(event, AliasEvent):
            raise _Problem(line, f"the alias `*{event.anchor}`; write the value out")
        if event.anchor is not None:
            raise _Problem(line, f"the anchor `&{event.anchor}`; remove it and write each value out")
        if event.tag is not None:
            raise _Problem(line, f"the tag `{event.tag}`; remove it and quote the value if it is text")
        if len(path) > MAX_DEPTH:
            raise _Problem(line, f"nested deeper than {MAX_DEPTH} levels")
        if self._nodes > MAX_NODES:
            raise _Problem(line, f"more than {MAX_NODES} values; split the file")

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            key = self._key(event, path)
            if key in made:
                first = self._lines[(*path, key)]
                raise _Problem(_line(event), f"the key `{key}` stands twice, first in line {first}; keep one")
            self._lines[(*path, key)] = _line(event)
            made[key] = self._value(next(self._events), (*path, key))
        return made

    def _key(self, event: Any, path: KeyPath) -> str:
        if isinstance(event, AliasEvent):
            self._admit(event, path)
        if not isinstance(event, ScalarEvent):
            raise _Problem(_line(event), "a key that is a list or a mapping; write a plain name")
        self._admit(event, path)
        if event.value == "<<" and event.style is None:
            raise _Problem(_line(event), "the merge key `<<`; write the keys out")
        key = _scalar(event)
        if not isinstance(key, str):
            raise _Problem(_line(event), f"the key `{event.value}` is not text; write it in quotes")
        return key

    def _sequence(self, path: KeyPath) -> list[Any]:
        made: list[Any] = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            made.append(self._value(event, (*path, len(made))))
        return made


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _scalar(event: ScalarEvent) -> Any:
    text: str = event.value
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise _Problem(_line(event), "half a character (a lone surrogate); write the whole character")
    if event.style is not None:
        return text
    if text in _NULL:
        return None
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        return _integer(event)
    if _FLOAT.fullmatch(text):
        return float(text)
    if text.lower() in _LOOKS_BOOLEAN or _LOOKS_NUMERIC.fullmatch(text):
        _ambiguous(event)
    return text


def _integer(event: ScalarEvent) -> int:
    value = int(event.value)
    if abs(value) > _MAX_INTEGER:
        raise _Problem(_line(event), f"the number {event.value} is beyond 2^53-1; write a smaller one")
    return value


def _ambiguous(event: ScalarEvent) -> NoReturn:
    raise _Problem(
        _line(event),
        f"`{event.value}` means different things to different YAML readers; write true, false or a plain decimal"
        " number, or put it in quotes if it is text",
    )
