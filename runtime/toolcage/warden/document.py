"""A tool's answer as one JSON document, whatever its body returned: written as a stream, bounded while it is written.

Values that JSON has stay as they are. Others become what a reader would expect: dataclasses, models and named tuples
are objects; sets, tuples and iterators are lists; times are ISO 8601; decimals and integers beyond 2**53 are strings;
NaN and infinities are null; bytes are text where they are UTF-8 and `{"base64": …}` where not; lone surrogates are
replaced. The rest is its repr. Nothing is built first and measured then: a value that is too large or too deep stops
where the cap is.

Standard library only; runs in the cage, in the process of the tool, so the host still takes the document for hostile.
"""

from __future__ import annotations

import binascii
import enum
import importlib
import io
import json
import json.encoder
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set, ValuesView
from typing import Any, Final

MAX_CHARS: Final = 8 * 1024 * 1024
MAX_DEPTH: Final = 64
_REPR_CHARS: Final = 1_000
_EXACT: Final = 2**53
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_quote: Final = json.encoder.encode_basestring


class Unwritable(Exception):
    """The value does not fit a document; says which bound it crossed."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def encode(value: Any) -> bytes:
    """`value` as UTF-8 JSON. Raises: Unwritable when it is larger or deeper than the caps."""
    writer = _Writer()
    writer.value(value, 0)
    return writer.out.getvalue().encode("utf-8")


class _Writer:
    def __init__(self) -> None:
        self.out = io.StringIO()
        self.left = MAX_CHARS

    def emit(self, text: str) -> None:
        self.left -= len(text)
        if self.left < 0:
            raise Unwritable(
                "result.too_large",
                f"the tool's result is larger than {MAX_CHARS // 1024 // 1024} MiB",
                "return less, or write it to a file",
            )
        self.out.write(text)

    def value(self, value: Any, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Unwritable(
                "result.too_deep",
                f"the tool's result is nested deeper than {MAX_DEPTH} levels, or contains itself",
                "return a flatter value",
            )
        if value is None or value is True or value is False:
            self.emit("null" if value is None else "true" if value else "false")
        elif type(value) is str:
            self.text(value)
        elif type(value) is int:
            self.integer(value)
        elif type(value) is float:
            self.emit(repr(value) if math.isfinite(value) else "null")
        elif isinstance(value, Mapping):
            self.mapping(value.items(), depth)
        elif isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            self.items(value, depth)
        else:
            self.other(value, depth)

    def text(self, value: str) -> None:
        if len(value) > self.left:
            self.emit(value)  # over the cap: refused before it is copied
        self.emit(_quote(value if value.isascii() else _SURROGATES.sub("�", value)))

    def integer(self, value: int) -> None:
        if -_EXACT <= value <= _EXACT:
            self.emit(repr(value))
        elif value.bit_length() < 10_000:
            self.emit(f'"{value}"')
        else:
            self.emit(f'"{value:#x}"')  # decimal digits of a huge integer cost quadratic time

    def items(self, items: Iterable[Any], depth: int) -> None:
        self.emit("[")
        for index, item in enumerate(items):
            if index:
                self.emit(",")
            self.value(item, depth + 1)
        self.emit("]")

    def mapping(self, items: Iterable[tuple[Any, Any]], depth: int) -> None:
        written: set[str] = set()
        self.emit("{")
        for key, item in items:
            if written:
                self.emit(",")
            name = first = _SURROGATES.sub("�", key if isinstance(key, str) else _key(key))
            copy = 1
            while name in written:  # 1 and "1" are two keys in Python and one in JSON
                copy += 1
                name = f"{first} ({copy})"
            written.add(name)
            self.text(name)
            self.emit(":")
            self.value(item, depth + 1)
        self.emit("}")

    def other(self, value: Any, depth: int) -> None:
        """A value that JSON does not have."""
        kind = type(value)
        root = kind.__module__.partition(".")[0]
        if isinstance(value, enum.Enum):
            self.value(value.value, depth + 1)
        elif hasattr(kind, "__dataclass_fields__"):
            dataclasses = importlib.import_module("dataclasses")  # loaded already: the value's class was made with it
            self.mapping(((item.name, getattr(value, item.name)) for item in dataclasses.fields(value)), depth)
        elif isinstance(value, tuple):
            self.mapping(zip(getattr(value, "_fields", ()), value, strict=False), depth)
        elif hasattr(kind, "model_dump"):
            self.value(value.model_dump(), depth + 1)
        elif isinstance(value, bytes | bytearray | memoryview):
            self.binary(bytes(value), depth)
        elif isinstance(value, Set):
            self.items(_ordered(value), depth)
        elif isinstance(value, deque | range | ValuesView | Iterator):
            self.items(value, depth)
        elif root in ("numpy", "pandas"):
            self.array(value, depth)
        elif isinstance(value, str | int | float):
            self.value(_plain(value), depth + 1)
        else:
            self.text(_written(value))

    def binary(self, value: bytes, depth: int) -> None:
        if len(value) > self.left:
            self.emit(" " * (self.left + 1))
        try:
            self.text(value.decode("utf-8"))
        except UnicodeDecodeError:
            self.mapping([("base64", binascii.b2a_base64(value, newline=False).decode("ascii"))], depth)

    def array(self, value: Any, depth: int) -> None:
        """Arrays and tables, by what they can do: neither library is imported for this."""
        if getattr(value, "size", 0) > self.left:
            self.emit(" " * (self.left + 1))
        if hasattr(value, "to_dict"):
            table = getattr(value, "ndim", 1) == 2
            self.value(value.to_dict(orient="records") if table else value.to_dict(), depth + 1)
        elif hasattr(value, "tolist"):
            self.value(value.tolist(), depth + 1)
        else:
            self.text(_written(value))


def _plain(value: Any) -> Any:
    """What an instance of a subclass of str, int or float holds, as the plain type."""
    if isinstance(value, str):
        return str.__str__(value)
    return int(value) if isinstance(value, int) else float(value)


def _key(key: Any) -> str:
    if key is None or isinstance(key, bool):
        return json.dumps(key)
    if isinstance(key, enum.Enum):
        key = key.value
    return str(_plain(key)) if isinstance(key, str | int | float) else _written(key)


def _ordered(value: Set[Any]) -> Iterable[Any]:
    try:
        return sorted(value)
    except TypeError:
        return value


def _written(value: Any) -> str:
    """The text of a value: ISO 8601 for times, the plain form of what has one, else its repr, shortened."""
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    kind = type(value)
    if f"{kind.__module__}.{kind.__qualname__}" in ("decimal.Decimal", "fractions.Fraction", "uuid.UUID"):
        return str(value)
    if hasattr(value, "__fspath__"):
        return str(value)
    if isinstance(value, BaseException):
        return f"{kind.__name__}: {value}"[:_REPR_CHARS]
    try:
        return repr(value)[:_REPR_CHARS]
    except Exception:  # noqa: BLE001 - a repr may raise anything
        return f"<{kind.__name__}>"
