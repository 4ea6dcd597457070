"""`toolcage policy`: exit codes and what a program reads, with the real tools and the real line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from toolcage.cli.policy import app
from toolcage.policy.schema import role_schema

GOOD = """version: 1
role: team
tools:
  calculate_expression: {allow: [{}], sandbox: {memory: 64MiB}}
tests:
  - {call: calculate_expression, args: {expression: "1+1"}, expect: ok}
  - {call: nothing, expect: denied, code: tool.unknown}
"""


def run(*arguments: str | Path) -> tuple[int, str]:
    outcome = CliRunner().invoke(app, [str(item) for item in arguments])
    return outcome.exit_code, outcome.output


def written(folder: Path, text: str, name: str = "team.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_file_checks_with_exit_0_and_a_bad_one_with_exit_1(tmp_path: Path) -> None:
    assert run("check", written(tmp_path, GOOD))[0] == 0
    code, output = run("check", written(tmp_path, GOOD + "denny: []\n"))
    assert code == 1
    assert "team.yaml:8: denny: the key `denny` is not known here" in output


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    assert run("check", tmp_path / "absent.yaml")[0] == 2
    assert run("check")[0] == 2
    assert run("unknown")[0] == 2


def test_a_folder_without_policies_fails(tmp_path: Path) -> None:
    assert run("check", tmp_path)[0] == 1


def test_check_as_json_tells_grants_and_problems_per_file(tmp_path: Path) -> None:
    written(tmp_path, GOOD, "a.yaml")
    written(tmp_path, "version: 2\nrole: b\ntools: {}\n", "b.yaml")
    code, output = run("check", tmp_path, "--json")
    good, bad = json.loads(output)
    assert code == 1
    assert (good["ok"], good["role"]) == (True, "team")
    assert good["grants"]["calculate_expression"]["memory_bytes"] == 64 * 1024 * 1024
    assert bad["ok"] is False
    assert "b.yaml:1: version" in bad["problems"][0]


def test_two_files_with_one_role_fail_the_check(tmp_path: Path) -> None:
    written(tmp_path, GOOD, "a.yaml")
    written(tmp_path, GOOD, "b.yaml")
    code, output = run("check", tmp_path, "--json")
    assert code == 1
    assert [item["ok"] for item in json.loads(output)] == [True, False]


def test_test_exits_0_when_every_case_holds_and_1_when_one_fails(tmp_path: Path) -> None:
    assert run("test", written(tmp_path, GOOD))[0] == 0
    code, output = run("test", written(tmp_path, GOOD.replace("expect: ok", "expect: blocked")))
    assert code == 1
    assert "line 6: calculate_expression: expected blocked, got ok ok" in output


def test_test_as_json_tells_each_case(tmp_path: Path) -> None:
    code, output = run("test", written(tmp_path, GOOD.replace("tool.unknown", "other.code")), "--json")
    report: dict[str, Any] = json.loads(output)[0]
    assert code == 1
    assert [case["passed"] for case in report["cases"]] == [True, False]


def test_a_file_that_does_not_load_fails_the_test_command(tmp_path: Path) -> None:
    assert run("test", written(tmp_path, GOOD + "denny: []\n"))[0] == 1


def test_control_characters_and_markup_of_a_file_do_not_reach_the_terminal(tmp_path: Path) -> None:
    hostile = 'version: 1\nrole: r\ntools: {"\\e]0;x\\a[red]evil[/red]": {allow: [{}]}}\n'
    _, output = run("check", written(tmp_path, hostile))
    assert "\x1b" not in output
    assert "\x07" not in output
    assert "[red]evil[/red]" in output


def test_schema_prints_the_schema() -> None:
    code, output = run("schema")
    assert (code, json.loads(output)) == (0, role_schema())
    assert "calculate_expression" in run("schema", "--tools")[1]
