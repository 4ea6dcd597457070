"""A tool's name from an operation: verb_noun, in lower case. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

MAX_NAME: Final = 60
VERBS: Final = frozenset(
    """
    accept activate add approve archive assign authorize book calculate cancel change charge check clear clone
    close compare complete compute confirm connect convert copy count create deactivate delete deploy describe
    disable disconnect download edit enable execute export fetch filter find generate get import insert
    install invite list lock login logout lookup make mark merge modify move notify open order patch pause pay
    ping play post predict preview process publish purchase put query read receive refresh refund register
    reject release remove rename replace request reserve reset resolve restart restore resume retrieve return
    revoke run save schedule search select send set share show sign start stop submit subscribe summarize swap
    sync track transfer translate trigger unlock unsubscribe update upload validate verify view write
    """.split()  # noqa: SIM905 - a list of words reads better than a list of quotes
)
_VERB_OF: Final = {
    "GET": "get", "HEAD": "check", "OPTIONS": "describe", "POST": "create", "PUT": "replace", "PATCH": "update",
    "DELETE": "delete",
}  # fmt: skip
_EDGE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER: Final = re.compile(r"[^a-z0-9]+")


def tool_name(operation_id: object, method: str, path: str, taken: Collection[str]) -> str:
    """A name that no other tool of `taken` has. An operation without a usable id is named by its path."""
    words = _words(operation_id) if isinstance(operation_id, str) else []
    if not words or not words[0][0].isalpha():
        words = _words(re.sub(r"\{([^}]*)\}", r"/by/\1", path)) or ["root"]
    if words[0] not in VERBS:
        words = [_VERB_OF[method], *words]
    if len(words) == 1:
        words = [*words, *(_words(path.split("{")[0]) or ["item"])]
    name = "_".join(words)[:MAX_NAME].rstrip("_")
    return _free(name, taken)


def argument_name(name: str, taken: Collection[str], place: str) -> str:
    """A name that a schema and a policy can have, different from the others'."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:60].strip("_") or place
    return plain if plain not in taken else _free(f"{place}_{plain}", taken)


def _words(text: str) -> list[str]:
    return [word for word in _OTHER.split(_EDGE.sub(" ", text[:500]).lower()) if word]


def _free(name: str, taken: Collection[str]) -> str:
    number, made = 2, name
    while made in taken:
        made, number = f"{name}_{number}", number + 1
    return made
