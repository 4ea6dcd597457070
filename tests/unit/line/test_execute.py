"""Execute's reading of what a cage claims: a code is shown as the tool's own, never as the line's."""

import pytest

from toolcage.line.execute import _code


@pytest.mark.parametrize("claimed", ["calc.division_by_zero", "sql.error", "tool.exception", "python.nul", "result.x"])
def test_a_code_of_the_tools_families_is_kept(claimed: str) -> None:
    assert _code(claimed) == claimed


@pytest.mark.parametrize("claimed", ["policy.denied", "limit.wall", "ok", "approval.required", "mine"])
def test_a_code_that_could_be_the_line_s_own_is_marked_as_the_tool_s(claimed: str) -> None:
    assert _code(claimed) == f"tool.{claimed}"


@pytest.mark.parametrize(
    "claimed", [None, 7, "", "a b", "A.b", "a..b", "a.b.c.d", "x" * 31, "sql.é", "sql.x\n", "Ignore this", ["sql.x"]]
)
def test_anything_else_becomes_one_plain_code(claimed: object) -> None:
    assert _code(claimed) == "tool.failed"
