"""What a policy states besides makes a call stricter: it opens no portal that the tool does not declare a use for."""

from __future__ import annotations

from pathlib import Path

import pytest

from servers.everything import UseEverything
from toolcage.line.authorize import authorize
from toolcage.line.parse import parse
from toolcage.line.portal_memory import Memory
from toolcage.line.portals import open_portals
from toolcage.line.validate import compile_schema, validate
from toolcage.policy.load import load_role
from toolcage.resources import load_resources
from toolcage.tools.registry import ToolRegistry, builtin_tools

RESOURCES = """
version: 1
mailboxes:
  team:
    address: bot@example.com
    user: bot
    password: {env: TOOLCAGE_TEST_PORTALS}
    smtp: {host: smtp.example.com, port: 465, tls: implicit}
    imap: {host: imap.example.com, port: 993, tls: implicit}
endpoints:
  team: {url: "https://api.example.com/v1"}
  other: {url: "https://other.example.com"}
calendars:
  team: {url: "https://dav.example.com/team"}
databases:
  team: {kind: postgresql, host: db.example.com, database: d, user: u, password: {env: TOOLCAGE_TEST_PORTALS}}
"""
POLICY = """
version: 1
role: assistant
tools:
  send_email:
    resources: {mailbox: [team]}
    allow: [{to: {}}]
    EFFECTS
"""


@pytest.mark.parametrize("effects", ["", "effects: [reads_private]", "effects: [reads_private, writes, spends]"])
def test_an_effect_that_a_policy_states_opens_no_further_portal(tmp_path: Path, effects: str) -> None:
    (tmp_path / "resources.yaml").write_text(RESOURCES, encoding="utf-8")
    (tmp_path / "role.yaml").write_text(POLICY.replace("EFFECTS", effects), encoding="utf-8")
    resources = load_resources(tmp_path / "resources.yaml")
    tools = builtin_tools()
    declarations = {name: tool.declaration for name, tool in tools.items()}
    role = load_role(tmp_path / "role.yaml", declarations)
    declaration = role.grants["send_email"].declaration
    assert ("reads_private" in declaration.effects) == bool(effects)
    compiled = compile_schema(declaration)
    call = parse({"tool": "send_email", "arguments": {"to": ["ada@example.com"], "subject": "s", "body": "b"}})
    valid = validate(call, view=role.view, validator=lambda _: compiled, dialect=lambda _: "sqlite")
    own = tools["send_email"].declaration.effects
    opened = open_portals(authorize(valid, role=role), resources, Memory(), own=own)
    assert [item.portal.kind for item in opened] == ["smtp"]


@pytest.mark.parametrize(
    ("second", "endpoints"), [("other", {"team": "/v1", "other": ""}), ("team", {"team": "/v1"})],
    ids=["two endpoints", "the same one twice"],
)  # fmt: skip
def test_resources_of_one_name_have_each_its_own_portal_and_a_resource_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: str, endpoints: dict[str, str]
) -> None:
    monkeypatch.setenv("TOOLCAGE_TEST_PORTALS", "canary-password")
    (tmp_path / "resources.yaml").write_text(RESOURCES, encoding="utf-8")
    granted = "first: [team, other], second: [team, other], calendar: [team], database: [team], mailbox: [team]"
    policy = f"version: 1\nrole: all\ntools:\n  use_everything: {{resources: {{{granted}}}, allow: [{{}}]}}\n"
    (tmp_path / "role.yaml").write_text(policy, encoding="utf-8")
    registry = ToolRegistry()
    registry.register(UseEverything())
    tool = registry.get_tool("use_everything")
    assert tool is not None
    role = load_role(tmp_path / "role.yaml", {"use_everything": tool.declaration})
    compiled = compile_schema(tool.declaration)
    call = parse({"tool": "use_everything", "arguments": {"first": "team", "second": second}})
    valid = validate(call, view=role.view, validator=lambda _: compiled, dialect=lambda _: "postgres")
    resources = load_resources(tmp_path / "resources.yaml")
    opened = open_portals(authorize(valid, role=role), resources, Memory(), own=tool.declaration.effects)
    of_kind = {item.portal.name: item.portal.kind for item in opened}
    assert of_kind == {
        **dict.fromkeys(endpoints, "http"), "team.caldav": "http", "team.postgres": "postgres", "team.smtp": "smtp",
        "team.imap": "imap",
    }  # fmt: skip
    assert len({item.portal.port for item in opened}) == len(opened) == len(of_kind)
    bases = {item.portal.name: item.base_path for item in opened if item.portal.kind == "http"}
    assert bases == {**endpoints, "team.caldav": "/team/"}
