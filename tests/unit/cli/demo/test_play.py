"""What the demo looks for in results, and which folders it writes to."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolcage.cli.demo.outside import POLICY
from toolcage.cli.demo.play import Row, brings_back, own_folder
from toolcage.cli.demo.script import STEPS
from toolcage.cli.demo.step import Step
from toolcage.cli.main import app
from toolcage.errors import UsageError
from toolcage.line.result import RawOutput, ToolResult
from toolcage.types import Artifact


@pytest.mark.parametrize(
    "result",
    [
        ToolResult(True, {"deep": ["a word here"]}),
        ToolResult(False, None, "the word"),
        ToolResult(True, None, stdout="word"),
        ToolResult(True, None, _raw=RawOutput(stdout=b"\xffword")),
        ToolResult(True, None, _raw=RawOutput(data=["word"])),
        ToolResult(
            True, None,
            artifacts=(Artifact(name="a", media_type="text/plain", size=4, sha256="0" * 64, content=b"word"),),
        ),
    ],
)  # fmt: skip
def test_a_word_is_found_wherever_a_result_can_hold_it(result: ToolResult) -> None:
    assert brings_back(result, "word")
    assert not brings_back(result, "another")


def test_a_folder_of_the_demos_own_is_used_again_and_any_other_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "shop.sqlite").write_text("precious")
    with pytest.raises(UsageError, match="holds other files"):
        own_folder(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["shop.sqlite"]
    made = own_folder(tmp_path / "new")
    (made / "shop.sqlite").write_text("an earlier demo's")
    assert own_folder(tmp_path / "new") == made


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        own_folder(tmp_path / "file" / "below")


@pytest.mark.parametrize(
    ("kind", "status", "problem", "verdict"),
    [
        ("work", "ok", None, "worked"),
        ("work", "ok", "no rows", "FAILED"),
        ("attack", "blocked", None, "stopped"),
        ("attack", "denied", None, "stopped"),
        ("attack", "malformed", None, "stopped"),
        ("attack", "timeout", None, "contained"),
        ("attack", "tool_error", None, "contained"),
        ("attack", "blocked", "another code", "FAILED"),
    ],
)
def test_a_verdict_says_whether_anything_ran(kind: str, status: str, problem: str | None, verdict: str) -> None:
    step = Step(name="x", role="coder", tool="execute_python", tried="x", kind=kind)  # type: ignore[arg-type]
    result = ToolResult(status == "ok", None, status=status)  # type: ignore[arg-type]
    assert Row(step=step, arguments="", result=result, reason="", problem=problem).verdict == verdict


def test_every_step_has_a_name_of_its_own_and_every_attack_an_end_that_is_demanded() -> None:
    assert len({step.name for step in STEPS}) == len(STEPS)
    undemanding = [step.name for step in STEPS if step.demand is None and step.witness is None]
    assert [step.name for step in STEPS if step.status == "ok" and step.name in undemanding] == []
    assert {step.role for step in STEPS} == {"analyst", "coder", "researcher"}


def test_a_row_that_could_not_be_shown_is_neither_good_nor_failed() -> None:
    step = Step(name="x", role="researcher", tool="send_email", tried="x")
    row = Row(step=step, arguments="", result=None, reason="no wiki", problem=None, absent="no wiki")
    assert row.verdict == "not shown"


def test_the_researchers_policy_holds_its_own_cases() -> None:
    tested = CliRunner().invoke(app, ["policy", "test", str(POLICY)])
    assert tested.exit_code == 0, tested.output
