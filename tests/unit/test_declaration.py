"""A tool as each model API wants it described: plain JSON, a copy, nothing of the cage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolcage.policy_desk import declared_tools
from toolcage.types import ToolDeclaration

PYTHON = declared_tools()["execute_python"]


@pytest.mark.parametrize("rendered", [PYTHON.to_openai()["function"], PYTHON.to_anthropic(), PYTHON.to_mcp()])
def test_a_model_is_told_the_name_the_description_and_the_schema(rendered: dict[str, Any]) -> None:
    schema = next(value for key, value in rendered.items() if key in ("parameters", "input_schema", "inputSchema"))
    assert (rendered["name"], rendered["description"]) == (PYTHON.name, PYTHON.description)
    assert schema["required"] == ["code"]
    assert json.loads(json.dumps(rendered)) == rendered
    assert len(rendered) == 3


def test_every_field_of_a_declaration_is_in_its_dict_as_json() -> None:
    for declaration in declared_tools().values():
        assert declaration.to_dict().keys() == set(ToolDeclaration.__slots__)
        assert json.loads(json.dumps(declaration.to_dict())) == declaration.to_dict()


def test_changing_a_rendering_changes_no_declaration() -> None:
    PYTHON.to_openai()["function"]["parameters"]["properties"].clear()
    assert PYTHON.to_dict()["parameters"]["properties"]
