"""The editors' schema: the committed file is the generated one, and it agrees with the loader on what it can see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from ruamel.yaml import YAML

from toolcage.policy.reference import field_table
from toolcage.policy.schema import role_schema
from toolcage.policy_desk import declared_tools
from toolcage.types import ToolDeclaration

POLICIES = Path(__file__).parents[3] / "policies"


def test_the_committed_schema_is_the_generated_one() -> None:
    committed = json.loads((POLICIES / "schema.json").read_text(encoding="utf-8"))
    assert committed == role_schema(), "write the output of `toolcage policy schema` to policies/schema.json"


@pytest.mark.parametrize("name", ["deny_all", "analyst", "coder", "read_only", "operator"])
def test_the_shipped_files_fit_the_schema(name: str) -> None:
    data = YAML(typ="safe", pure=True).load((POLICIES / f"{name}.yaml").read_text(encoding="utf-8"))
    for schema in (role_schema(), role_schema(declared_tools())):
        jsonschema_rs.Draft202012Validator(schema, offline=True).validate(data)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"version": 2, "role": "r", "tools": {}},
        {"version": 1, "role": "r", "tools": {}, "denny": []},
        {"version": 1, "role": "r", "tools": {"t": {}}},
        {"version": 1, "role": "r", "tools": {"t": {"allow": []}}},
        {"version": 1, "role": "r", "tools": {"t": {"allow": [{}], "sandbox": {"memory": "256MB"}}}},
        {"version": 1, "role": "r", "tools": {"t": {"allow": [{}], "sandbox": {"memory": None}}}},
        {"version": 1, "role": "r", "tools": {"t": {"allow": [{}], "sandbox": {"isolation": "none"}}}},
        {"version": 1, "role": "r", "tools": {}, "tests": [{"call": "t"}]},
    ],
)
def test_what_the_loader_refuses_the_schema_underlines(data: dict[str, Any]) -> None:
    assert not jsonschema_rs.Draft202012Validator(role_schema(), offline=True).is_valid(data)


def test_with_declarations_the_schema_knows_tools_and_arguments(declarations: Mapping[str, ToolDeclaration]) -> None:
    validator = jsonschema_rs.Draft202012Validator(role_schema(declarations), offline=True)

    def fits(tool: str, entry: dict[str, Any]) -> bool:
        return validator.is_valid({"version": 1, "role": "r", "tools": {tool: {"allow": [entry]}}})

    assert fits("search_web", {"term": {"const": "x"}})
    assert not fits("search_web", {"trem": {"const": "x"}})
    assert not fits("serch_web", {})


def test_the_reference_holds_the_generated_table_of_every_key() -> None:
    text = (POLICIES.parent / "docs" / "policy-reference.md").read_text(encoding="utf-8")
    assert field_table() in text, "put the output of `toolcage policy schema --markdown` between the marks"
    for key in ("tools.TOOL.limits.rate", "flows[].after", "ENTRY.ARGUMENT.hosts.names"):
        assert f"| `{key}` |" in text
