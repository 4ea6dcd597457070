"""An effect that a tool has only with an argument: flows ask about the calls that have it, and about no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcage import DeclarationError
from toolcage.policy.load import load_role
from toolcage.policy.model import Situation
from toolcage.policy_desk import declared_tools, judge_for
from toolcage.tools.admission import admit
from toolcage.tools.base import Tool, declaration_of

ROLE = """
version: 1
role: planner
tools:
  create_event:
    resources: {calendar: [team]}
    allow: [{}, {attendees: {}}]STATED
  read_email:
    resources: {mailbox: [team]}
    allow: [{}]
flows:
  - deny: sends
    after: [reads_untrusted]
"""
EVENT = {"title": "x", "start": "2026-05-04", "end": "2026-05-05"}
AFTER = Situation(used=frozenset({"reads_untrusted"}))


@pytest.mark.parametrize(("stated", "without"), [("", "ok"), ("\n    effects: [sends]", "denied")])
def test_a_flow_looks_at_what_the_call_does_unless_the_grant_says_always(
    tmp_path: Path, stated: str, without: str
) -> None:
    path = tmp_path / "role.yaml"
    path.write_text(ROLE.replace("STATED", stated))
    judge = judge_for(load_role(path, declared_tools()), declared_tools())
    assert judge("create_event", EVENT, AFTER)[0] == without
    assert judge("create_event", {**EVENT, "attendees": ["ada@example.com"]}, AFTER) == ("denied", "flow.denied")
    assert judge("create_event", {**EVENT, "attendees": ["ada@example.com"]})[0] == "ok"


def test_with_a_ceiling_that_says_always_the_narrower_role_has_it_always(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(ROLE.replace("STATED", "\n    effects: [sends]").replace("planner", "base"))
    path = tmp_path / "role.yaml"
    path.write_text(ROLE.replace("STATED", "").replace("role: planner", "role: planner\nextends: [base.yaml]"))
    judge = judge_for(load_role(path, declared_tools()), declared_tools())
    assert judge("create_event", EVENT, AFTER) == ("denied", "flow.denied")


class Post(Tool):
    name = "post_note"
    description = "Posts a note."
    effects = ("sends",)

    def execute(self, text: str, to: str = "") -> str:
        return text + to


@pytest.mark.parametrize("need", [{"writes": ["to"]}, {"sends": ["nowhere"]}, {"sends": ["text"]}, {"sends": []}])
def test_a_condition_that_could_not_mean_anything_is_no_declaration(need: dict[str, list[str]]) -> None:
    tool = Post()
    tool.effects_need = need
    with pytest.raises(DeclarationError, match="effects_need"):
        admit(declaration_of(tool))
    tool.effects_need = {"sends": ["to"]}
    declaration = admit(declaration_of(tool))
    assert declaration.effects_of({"text": "x"}) == frozenset()
    assert declaration.effects_of({"text": "x", "to": "y"}) == {"sends"}
