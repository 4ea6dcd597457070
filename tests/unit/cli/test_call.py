"""What `toolcage call` makes of its arguments and where it writes, without an engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolcage.cli.call import _attached, _json_fault, _raw_call, _save, for_people
from toolcage.cli.main import app
from toolcage.errors import Refused, UsageError
from toolcage.line.parse import parse
from toolcage.line.result import ToolResult
from toolcage.types import Artifact


def artifact(name: str) -> Artifact:
    return Artifact(name=name, media_type="text/plain", size=3, sha256="0" * 64, content=b"new")


def test_arguments_reach_the_lines_own_parser_as_they_were_typed() -> None:
    assert parse(_raw_call("calculate_expression", '{"expression": "1"}')).arguments == {"expression": "1"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ('{"a": 1, "a": 2}', "call.duplicate_key"),
        ('{}, "tool": "execute_python"', "call.duplicate_key"),
        ('{}, "more": 1', "call.unknown_field"),
        ('{"a": NaN}', "call.number"),
        ("[1]", "call.arguments"),
        ("", "call.not_json"),
    ],
)
def test_arguments_that_are_no_object_or_try_to_be_more_are_refused(arguments: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(_raw_call("calculate_expression", arguments))
    assert refused.value.refusal.code == code


def test_a_tools_name_cannot_break_out_of_the_call() -> None:
    assert json.loads(_raw_call('x", "arguments": {}, "y": "', "{}"))["tool"] == 'x", "arguments": {}, "y": "'


def test_attached_files_go_by_their_names_and_two_of_one_name_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.csv").write_text("2")
    assert _attached([tmp_path / "a.csv"]) == {"a.csv": b"1"}
    with pytest.raises(UsageError, match=r"two attached files are called a\.csv"):
        _attached([tmp_path / "a.csv", tmp_path / "sub" / "a.csv"])


def test_files_that_came_out_never_replace_one_and_stay_in_their_folder(tmp_path: Path) -> None:
    _save([artifact("plot.svg"), artifact("../up/x.txt")], tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".._up_x.txt", "plot.svg"]
    (tmp_path / "out" / "plot.svg").write_text("old")
    with pytest.raises(UsageError, match="the call ran"):
        _save([artifact("plot.svg")], tmp_path / "out")
    assert (tmp_path / "out" / "plot.svg").read_text() == "old"


def test_a_person_is_shown_status_value_streams_and_files_without_the_markers_for_a_model() -> None:
    made = ToolResult(True, {"a": 1}, status="ok", stdout="hello\n", artifacts=(artifact("plot.svg"),))
    assert for_people(made) == 'ok\n{\n  "a": 1\n}\n--- stdout\nhello\nfile: plot.svg (3 bytes)'
    failed = ToolResult(False, None, "no such table", status="blocked", code="sql.unknown", hint="Name another.")
    assert for_people(failed) == "blocked (sql.unknown): no such table\nhint: Name another."


@pytest.mark.parametrize(("text", "place"), [("{a: 1}", "line 1, column 2"), ('{"a": 1}, 2', "line 1, column 9")])
def test_arguments_that_are_not_json_are_told_with_their_place(text: str, place: str) -> None:
    assert place in str(_json_fault(text))
    assert _json_fault('{"a": 1}') is None


@pytest.mark.parametrize(
    ("request_text", "code"), [("", "policy.no_match"), ("What is 6 * 7?", "approval.required")]
)
def test_rules_about_where_a_value_comes_from_know_the_request(
    request_text: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCAGE_STATE_DIR", str(tmp_path / "state"))
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "version: 1\nrole: r\ntools:\n  calculate_expression:\n"
        "    ask: [{expression: {}, origin: {expression: [said]}}]\n"
    )
    arguments = ["call", "calculate_expression", "--policy", str(policy), "--args", '{"expression": "6 * 7"}', "--json"]
    done = CliRunner().invoke(app, [*arguments, "--request", request_text])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["code"] == code
