"""Which workspace a call works on when it does not say: the one that the role's grant names, if it names one.

The tools' own schemas leave the argument out; the role's view of them fills it in. One granted workspace is the
default, of several one must be named. So what a model is shown, what is decided, recorded and run is always one
workspace by name, and never one that depends on anything but the policy. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from toolcage.types import JSON, ToolDeclaration, freeze, thaw


def with_workspaces(declaration: ToolDeclaration, granted: Mapping[str, frozenset[str]]) -> ToolDeclaration:
    """The declaration as a role with these grants has it."""
    arguments = [name for name, kind in declaration.resources.items() if kind == "workspace" and granted.get(name)]
    if not arguments:
        return declaration
    parameters = thaw(declaration.parameters)
    for argument in arguments:
        names = sorted(granted[argument])
        shown = parameters["properties"][argument]
        shown["description"] = f"{shown.get('description', '')} Yours: {', '.join(names)}.".strip()
        if len(names) == 1:
            shown["default"] = names[0]
        elif argument not in parameters.setdefault("required", []):
            parameters["required"].append(argument)
    frozen: JSON = freeze(parameters)
    assert isinstance(frozen, Mapping)
    return replace(declaration, parameters=frozen)
