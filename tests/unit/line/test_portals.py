"""What a policy states besides makes a call stricter: it opens no portal that the tool does not declare a use for."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcage.broker.pace import Pace
from toolcage.line.authorize import authorize
from toolcage.line.parse import parse
from toolcage.line.portals import open_portals
from toolcage.line.validate import compile_schema, validate
from toolcage.policy.load import load_role
from toolcage.resources import load_resources
from toolcage.tools.registry import builtin_tools

RESOURCES = """
version: 1
mailboxes:
  team:
    address: bot@example.com
    user: bot
    password: {env: TOOLCAGE_TEST_PORTALS}
    smtp: {host: smtp.example.com, port: 465, tls: implicit}
    imap: {host: imap.example.com, port: 993, tls: implicit}
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
    opened = open_portals(authorize(valid, role=role), resources, Pace(), own=own)
    assert [item.portal.kind for item in opened] == ["smtp"]
