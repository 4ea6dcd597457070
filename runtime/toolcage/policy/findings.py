"""Everything that is wrong with one policy file, collected and reported at once as `file:line: text`.

A person who mends a file wants all its faults, not the first; a loader that goes on after a fault must never build a
role from it, so `raise_if_any` stands before every use of what was read.
"""

from __future__ import annotations

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from toolcage.errors import PolicyError
from toolcage.policy.file_format import PATTERN_WORDS, model_at
from toolcage.policy.fragments import nearest
from toolcage.strict_yaml import Document, KeyPath, visible


class Findings:
    """The faults of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._found: list[tuple[int, str]] = []

    def add(self, path: KeyPath, text: str) -> None:
        """One fault of the value at `path`: what it is and what to write instead."""
        self._found.append((self._document.line(path), f"{_dotted(path)}: {text}" if path else text))

    def add_shape_faults(
        self, cause: ValidationError, start: KeyPath = (), model: type[BaseModel] | None = None
    ) -> None:
        """The faults that a model of the file format found, in our words. `start` and `model`: a part of the file."""
        for fault in cause.errors(include_url=False):
            where = tuple(fault["loc"])
            self.add((*start, *where), _text_of(fault, model or model_at(where[:-1])))

    def raise_if_any(self) -> None:
        """Raises PolicyError with every fault, by line."""
        if self._found:
            name = self._document.name
            lines = dict.fromkeys(f"{name}:{line}: {visible(text)}" for line, text in sorted(self._found))
            raise PolicyError("\n".join(lines))


def _text_of(fault: ErrorDetails, model: type[BaseModel]) -> str:
    match fault["type"]:
        case "extra_forbidden":
            return _unknown_key(str(fault["loc"][-1]), model)
        case "missing":
            return _missing(str(fault["loc"][-1]))
        case "value_error":
            return fault["msg"].removeprefix("Value error, ")
        case "list_type":
            return "write a list, each item on a line that starts with `- `"
        case "dict_type" | "model_type":
            return "write a mapping of keys, or {} for none"
        case "string_type":
            return "write text"
        case "too_short":
            return "an empty list grants nothing; name at least one, or remove the key"
        case "string_pattern_mismatch":
            return _no_match(fault["input"], fault["ctx"]["pattern"])
        case _:
            return fault["msg"]


def _no_match(given: object, pattern: str) -> str:
    what = PATTERN_WORDS.get(pattern)
    refused = f"`{str(given)[:60]}` is not {what}; " if what else ""
    return f"{refused}write text that matches {pattern}"


def _unknown_key(key: str, model: type[BaseModel]) -> str:
    near = nearest(key, model.model_fields)
    meant = f"did you mean `{near}`? " if near else ""
    return f"the key `{key}` is not known here; {meant}known are: {', '.join(model.model_fields)}"


def _missing(key: str) -> str:
    if key == "tools":
        return "missing; write `tools: {}` for a role that may call nothing"
    return f"missing; write `{key}: …`"


def _dotted(path: KeyPath) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
