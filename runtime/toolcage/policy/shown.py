"""A tool as the model of one role is shown it: its declaration, and what the grant's isolation means for its state.

Whether a program finds what an earlier one left depends on the grant, not on the tool, so a tool's own description says
nothing of it and the sentence is added here. Only tools whose work can leave something behind get one. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from toolcage.types import Isolation, Kind, ToolDeclaration

_AFRESH: Final = "State: every call starts afresh; nothing is kept from earlier calls."
_ENDS: Final = "until a limit, a timeout or a long pause ends them, which the result then says (session_restarted)."
_KEPT: Final[Mapping[Kind, str]] = MappingProxyType({
    "python": f"State: as in a notebook, variables, imports and files stay for your next calls, {_ENDS}",
    "shell": f"State: files in the current folder stay for your next calls, shell variables do not, {_ENDS}",
})  # fmt: skip


def shown(declaration: ToolDeclaration, isolation: Isolation) -> ToolDeclaration:
    """The declaration with a sentence on state, where its arguments hold a program."""
    kind = next((kind for kind in declaration.kinds.values() if kind in _KEPT), None)
    if kind is None:
        return declaration
    note = _KEPT[kind] if isolation == "session" else _AFRESH
    return replace(declaration, description=f"{declaration.description} {note}")
