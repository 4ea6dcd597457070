"""The shipped roles with the real tools: what each is for works, its neighbours do not, and the README names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcage.policy.cases import run_cases
from toolcage.policy.coverage import rules_of
from toolcage.policy.load import load_role, load_roles
from toolcage.policy.model import Situation
from toolcage.policy_desk import declared_tools, judge_for
from toolcage.tools.registry import ALIASES

POLICIES = Path(__file__).parents[3] / "policies"
ROLES = ["analyst", "assistant", "coder", "deny_all", "operator", "read_only", "researcher"]


def test_the_folder_holds_exactly_the_shipped_roles() -> None:
    assert list(load_roles([POLICIES], declared_tools())) == ROLES


@pytest.mark.parametrize("name", ROLES)
def test_every_case_of_the_file_holds(name: str) -> None:
    role = load_role(POLICIES / f"{name}.yaml", declared_tools())
    assert role.cases
    for result in run_cases(role, judge_for(role, declared_tools())):
        assert result.passed, (result.case, result.status, result.code)


@pytest.mark.parametrize("name", ROLES)
def test_every_tool_that_a_role_grants_is_shown_to_work_by_one_of_its_cases(name: str) -> None:
    role = load_role(POLICIES / f"{name}.yaml", declared_tools())
    shown = {ALIASES.get(case.call, case.call) for case in role.cases if case.expect in ("ok", "approval_required")}
    assert shown == role.grants.keys()
    assert bool(rules_of(role)) is bool(role.grants)


@pytest.mark.parametrize("name", ROLES)
def test_a_tool_that_is_not_granted_does_not_exist(name: str) -> None:
    role = load_role(POLICIES / f"{name}.yaml", declared_tools())
    judge = judge_for(role, declared_tools())
    for tool in declared_tools().keys() - role.grants.keys():
        assert judge(tool, {}) == ("denied", "tool.unknown")


def test_reading_roles_run_no_code_and_the_coder_reaches_no_data() -> None:
    roles = load_roles([POLICIES], declared_tools())
    programs = {name for name, tool in declared_tools().items() if {"python", "shell"} & set(tool.kinds.values())}
    for name in ("analyst", "assistant", "read_only", "deny_all"):
        assert not programs & roles[name].grants.keys()
    assert roles["coder"].resource_names() == {("workspace", "session")}
    assert roles["deny_all"].grants == {}


def test_the_operator_runs_no_program_unasked() -> None:
    operator = load_role(POLICIES / "operator.yaml", declared_tools())
    judge = judge_for(operator, declared_tools())
    assert judge("execute_python", {"code": "1"})[0] == "approval_required"
    assert judge("run_shell", {"command": "ls"})[0] == "approval_required"


@pytest.mark.parametrize("name", ROLES)
def test_no_shipped_role_sends_unasked_what_it_read(name: str) -> None:
    role = load_role(POLICIES / f"{name}.yaml", declared_tools())
    judge = judge_for(role, declared_tools())
    letter = {"to": ["ada@example.com"], "subject": "Hi", "body": "Hi"}
    after = Situation(said=("Write to ada@example.com",), used=frozenset({"reads_private", "reads_untrusted"}))
    assert judge("send_email", letter, after)[0] in ("denied", "approval_required")


def test_the_readme_has_a_row_and_a_paragraph_of_what_is_left_for_each_role() -> None:
    text = (POLICIES / "README.md").read_text(encoding="utf-8")
    for name in ROLES:
        assert f"| `{name}.yaml` |" in text
        assert f"**{name}.**" in text
