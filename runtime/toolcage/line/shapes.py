"""A call as the common model APIs write it, turned into the one form that `parse` takes: `tool` and `arguments`.

Exact shapes only, told apart by their keys alone: `{"name", "arguments"}` and `{"function": {"name", "arguments"}}`
(arguments as an object or as JSON text, which the line's own strict decoder reads), and `{"name", "input"}`. Around the
last two may stand the `id` and the `type` that the API gives them. Everything else is handed on as it is, for `parse`
to accept or refuse: nothing is guessed, merged or dropped but an `id` and a fixed `type`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolcage.errors import Refused
from toolcage.line.parse import decode
from toolcage.types import Refusal

_ARGUMENTS: Final = frozenset({"name", "arguments"})
_INPUT: Final = frozenset({"name", "input"})
_FUNCTION: Final = frozenset({"function"})
_ENVELOPE: Final = frozenset({"id", "type"})


def plain_call(raw: bytes | str | Mapping[str, object]) -> Mapping[str, object]:
    """The call as a mapping for `parse`. Raises Refused (`malformed`) for text that is not one JSON object."""
    value = decode(raw) if isinstance(raw, bytes | str) else raw
    if not isinstance(value, Mapping):
        raise _malformed(
            "call.not_object", "a call must be a JSON object", "Send an object with `tool` and `arguments`."
        )
    if frozenset(value) == _ARGUMENTS:
        return _named(value["name"], value["arguments"])
    if _is(value, _INPUT, "tool_use"):
        return {"tool": value["name"], "arguments": value["input"]}
    if _is(value, _FUNCTION, "function"):
        inner = value["function"]
        if isinstance(inner, Mapping) and frozenset(inner) == _ARGUMENTS:
            return _named(inner["name"], inner["arguments"])
    return value


def _is(value: Mapping[str, object], keys: frozenset[str], kind: str) -> bool:
    """Whether the keys are these, with nothing around them but a text `id` and exactly this `type`."""
    around = value.keys() - keys
    return (
        keys <= value.keys()
        and around <= _ENVELOPE
        and value.get("type", kind) == kind
        and isinstance(value.get("id", ""), str)
    )


def _named(name: object, arguments: object) -> Mapping[str, object]:
    return {"tool": name, "arguments": _from_text(arguments) if isinstance(arguments, str) else arguments}


def _from_text(text: str) -> Any:
    value = decode(text, named="the text of `arguments`")
    if not isinstance(value, Mapping):  # text within text would be decoded by nobody
        raise _malformed(
            "call.arguments", "`arguments` must be an object", "Send the arguments by name, in an object."
        )
    return value


def _malformed(code: str, message: str, hint: str) -> Refused:
    return Refused(Refusal(status="malformed", code=code, message=message, hint=hint))
