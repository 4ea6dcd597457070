"""AgentDojo's functions as declarations: their names, their texts and their schemas, and nothing that we think of them.

Kinds and effects are not in AgentDojo. They are stated in the role files, where the operator of such tools would state
them, and an absent statement is a load error for a role with flows.
"""

from __future__ import annotations

from typing import Any

from agentdojo.functions_runtime import Function

from toolcage.tools.admission import admit
from toolcage.tools.annotations import untitled
from toolcage.types import ToolDeclaration


def declared(functions: list[Function[Any, Any]]) -> dict[str, ToolDeclaration]:
    """Name → declaration, for the functions of one suite."""
    return {function.name: _declared(function) for function in functions}


def _declared(function: Function[Any, Any]) -> ToolDeclaration:
    schema = untitled(function.parameters.model_json_schema())
    schema.setdefault("properties", {})
    return admit(
        {
            "name": function.name,
            "description": function.description,
            "parameters": schema | {"additionalProperties": False},
            "kinds": {},
            "effects": [],
            "resources": {},
            "image": "python",
            "isolation": "container",
            "wall_s": 10.0,
            "idempotent": False,
            "accepts_files": False,
        }
    )
