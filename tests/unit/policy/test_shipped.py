"""The shipped roles, decided with the stand-in declarations: what each is for works, its neighbours do not.

Their own `tests` run through the real line elsewhere; here every case that is the policy's alone must already hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from toolcage.policy.load import load_role, load_roles
from toolcage.policy.model import Role
from toolcage.types import Decision, ToolDeclaration

POLICIES = Path(__file__).parents[3] / "policies"
ROLES = ["analyst", "coder", "deny_all"]


def test_the_folder_holds_exactly_the_shipped_roles(declarations: Mapping[str, ToolDeclaration]) -> None:
    assert list(load_roles([POLICIES], declarations)) == ROLES


@pytest.mark.parametrize("name", ROLES)
def test_the_policys_own_part_of_each_case_holds(
    declarations: Mapping[str, ToolDeclaration], judge: Callable[..., Decision], name: str
) -> None:
    role = load_role(POLICIES / f"{name}.yaml", declarations)
    assert role.cases
    for case in role.cases:
        if case.expect == "ok":
            assert judge(role, case.call, **case.args).effect == "allow", case
        if case.expect == "denied":
            decision = judge(role, case.call, **case.args)
            assert (decision.effect, decision.code) == ("deny", case.code), case


@pytest.mark.parametrize("name", ROLES)
def test_no_shipped_role_lets_an_unknown_argument_shape_pass_the_tool_list(
    declarations: Mapping[str, ToolDeclaration], judge: Callable[..., Decision], name: str
) -> None:
    role: Role = load_role(POLICIES / f"{name}.yaml", declarations)
    for tool in declarations.keys() - role.grants.keys():
        assert judge(role, tool).code == "tool.unknown"


def test_the_analyst_runs_no_code_and_the_coder_reaches_no_data(declarations: Mapping[str, ToolDeclaration]) -> None:
    roles = load_roles([POLICIES], declarations)
    assert "execute_python" not in roles["analyst"].grants
    assert not roles["coder"].resource_names()
    assert roles["deny_all"].grants == {}
