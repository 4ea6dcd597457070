"""Declarations to write policies against, and short ways to load and decide."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from toolcage.facts import sql
from toolcage.policy.decide import decide
from toolcage.policy.load import load_role_text
from toolcage.policy.model import Role
from toolcage.types import EFFECTS, Decision, ToolDeclaration, freeze

STRING = {"type": "string"}


def declare(name: str, properties: dict[str, Any], required: list[str], **more: Any) -> ToolDeclaration:
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return ToolDeclaration(name=name, description=f"The tool {name}.", parameters=freeze(parameters), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def declarations() -> Mapping[str, ToolDeclaration]:
    made = (
        declare("execute_python", {"code": STRING}, ["code"], kinds={"code": "python"}),
        declare(
            "calculate_expression",
            {"expression": STRING, "mode": {"enum": ["exact", "decimal"], "default": "exact"}},
            ["expression"],
            isolation="namespace",
            wall_s=2.0,
        ),
        declare(
            "query_database",
            {
                "database": STRING,
                "sql": STRING,
                "parameters": {"type": ["array", "object"]},
                "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
            },
            ["database", "sql"],
            kinds={"sql": "sql"},
            resources={"database": "database"},
            isolation="namespace",
        ),
        declare(
            "change_database",
            {"database": STRING, "sql": STRING},
            ["database", "sql"],
            kinds={"sql": "sql"},
            effects=frozenset({"reads_private", "writes"}),
            resources={"database": "database"},
        ),
        declare(
            "describe_database", {"database": STRING, "table": STRING}, ["database"], resources={"database": "database"}
        ),
        declare(
            "send_email",
            {"to": STRING, "cc": STRING, "subject": STRING},
            ["to", "subject"],
            kinds={"to": "address", "cc": "address"},
            effects=frozenset({"sends"}),
        ),
        declare(
            "search_web",
            {
                "term": STRING,
                "tags": {"type": "array", "items": STRING},
                "filter": {"type": "object", "properties": {"site": STRING}, "additionalProperties": False},
                "count": {"type": ["integer", "null"]},
            },
            ["term"],
            image="web",
        ),
        declare("lookup_contact", {"name": STRING}, ["name"], effects=frozenset({"reads_private"})),
        declare("read_notes", {}, [], effects=frozenset({"reads_private"})),
        declare(
            "read_page", {"url": STRING}, [], kinds={"url": "url"}, effects=frozenset({"reads_untrusted"})
        ),
        declare(
            "write_file",
            {"path": STRING, "text": STRING},
            ["path", "text"],
            kinds={"path": "path"},
            effects=frozenset({"writes"}),
        ),
        declare("book_flight", {"origin": STRING}, ["origin"]),
        declare("strange_tool", {"value": STRING}, [], effects=frozenset(EFFECTS), trusted=False),
    )
    return {item.name: item for item in made}


@pytest.fixture
def load(declarations: Mapping[str, ToolDeclaration]) -> Callable[..., Role]:
    """A role from its `tools:` part (indented as written), or from a whole file when that starts with `version`."""

    def load(text: str, name: str = "team.yaml") -> Role:
        text = textwrap.dedent(text).lstrip("\n")
        if not text.startswith("version"):
            text = "version: 1\nrole: team\ntools:\n" + textwrap.indent(text, "  ")
        return load_role_text(text, name, declarations)

    return load


@pytest.fixture
def judge(declarations: Mapping[str, ToolDeclaration]) -> Callable[..., Decision]:
    """The decision for a call whose SQL arguments are read by the real reader."""

    def judge(role: Role, tool: str, **arguments: Any) -> Decision:
        declaration = declarations.get(tool) or declare(tool, {}, [])
        kinds = declaration.kinds
        facts = {name: sql.read(value) for name, value in arguments.items() if kinds.get(name) == "sql"}
        return decide(role, declaration, freeze(arguments), facts)  # type: ignore[arg-type]

    return judge
