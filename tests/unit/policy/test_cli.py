"""`toolcage policy`: exit codes and what a program reads, with the real tools and the real line."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from typer.testing import CliRunner

from toolcage.cage.images import ImageLock
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


RESOURCES = """version: 1
databases: {shop: {kind: sqlite, path: shop.sqlite}}
workspaces: {notes: {folder: n, access: ro}}
"""
QUERYING = """version: 1
role: team
tools:
  query_database: {resources: {database: [NAME]}, allow: [{sql: {tables: [t]}}]}
"""
WRITING = """version: 1
role: team
tools:
  write_file: {resources: {workspace: [notes]}, allow: [{path: {}}]}
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (QUERYING.replace("NAME", "shop"), None),
        (QUERYING.replace("NAME", "shpo"), "the database shpo, which the resources file does not have (it has: shop)"),
        (WRITING, "the workspace notes is `ro` in the resources file"),
    ],
    ids=["a name that is there", "a misspelt name", "a folder that may not be written"],
)
def test_check_with_a_resources_file_refuses_what_that_file_does_not_give(
    text: str, told: str | None, tmp_path: Path
) -> None:
    policy, resources = written(tmp_path, text), written(tmp_path, RESOURCES, "resources.yaml")
    assert run("check", policy)[0] == 0
    code, output = run("check", policy, "--resources", resources, "--json")
    assert code == (0 if told is None else 1)
    assert told is None or told in json.loads(output)[0]["problems"][0]


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


def test_check_says_loudly_what_is_weaker_and_what_is_above(tmp_path: Path) -> None:
    written(tmp_path, "version: 1\nrole: base\ntools: {execute_python: {allow: [{code: {}}], sandbox: {isolation: "
            "namespace}, accept_weaker: trusted code only}}\n", "base.yaml")  # fmt: skip
    low = written(tmp_path, "version: 1\nrole: low\nextends: [base.yaml]\ntools: {execute_python: {allow: "
                            "[{code: {}}]}}\n")  # fmt: skip
    code, output = run("check", tmp_path)
    assert code == 0
    assert "execute_python runs in a cage weaker than it declares (namespace): trusted code only" in output
    assert "never more than base.yaml" in output
    assert "calls share one container, each in namespaces of its own: execute_python" in output
    report = json.loads(run("check", low, "--json")[1])[0]
    assert (report["extends"], report["grants"]["execute_python"]["isolation"]) == (["base.yaml"], "container")


def test_check_names_every_choice_that_makes_a_grants_cage_weaker_and_is_silent_on_the_strongest(
    tmp_path: Path,
) -> None:
    tools = "tools: {execute_python: {allow: [{code: {}}], sandbox: {runtime: %s}}}\n"
    plain = written(tmp_path, "version: 1\nrole: plain\ntools: {execute_python: {allow: [{code: {}}]}}\n", "plain.yaml")
    strong = written(tmp_path, "version: 1\nrole: strong\n" + tools % "runsc", "strong.yaml")
    assert "the tool shares the host's kernel" in run("check", plain)[1]
    assert "weaker" not in run("check", strong)[1]
    reports = json.loads(run("check", plain, strong, "--json")[1])
    found = [report["grants"]["execute_python"]["weakenings"] for report in reports]
    assert [len(sentences) for sentences in found] == [1, 0]


# --- explain, diff, coverage, replay, JUnit ------------------------------------------------------------------------

MAILING = """version: 1
role: team
tools:
  calculate_expression:
    allow: [{expression: {const: "1+1"}}, {origin: {expression: [said]}}]
    deny: [{expression: {const: "6*6"}}]
"""


def test_explain_shows_every_rule_with_what_it_said_and_exits_by_the_decision(tmp_path: Path) -> None:
    path = written(tmp_path, MAILING)
    code, output = run("explain", path, "calculate_expression", "--args", '{"expression": "2+2"}')
    assert code == 1
    for part in ("deny policy.no_match", "allow[0]", "allow[1]", "deny[0]", "does not come from"):
        assert part in " ".join(output.split())
    assert run("explain", path, "calculate_expression", "--args", '{"expression": "1+1"}')[0] == 0
    said = run("explain", path, "calculate_expression", "--args", '{"expression": "a+b"}', "--said", "add a+b")
    assert said[0] == 0


def test_explain_as_json_is_the_decision_with_its_facts_and_rules(tmp_path: Path) -> None:
    path = written(tmp_path, MAILING)
    arguments = ["--args", '{"expression": "6*6"}', "--fact", "tenant=acme", "--used", "sends", "--json"]
    code, output = run("explain", path, "calculate_expression", *arguments)
    report = json.loads(output)
    assert (code, report["decision"]["code"]) == (1, "policy.denied")
    assert report["session_facts"] == {"effects": ["sends"], "host": {"tenant": "acme"}, "origins": {"text:6*6": []}}
    assert report["rules"][0]["children"][0]["children"][0]["outcome"] == "match"


def test_explain_tells_what_was_refused_before_any_rule(tmp_path: Path) -> None:
    path = written(tmp_path, MAILING)
    assert "tool.unknown" in run("explain", path, "nothing")[1]
    assert "arguments.schema" in run("explain", path, "calculate_expression", "--json")[1]
    assert "not_json" in run("explain", path, "calculate_expression", "--args", "{")[1]


def test_diff_says_what_was_gained_and_lost_and_exits_1_on_a_gain(tmp_path: Path) -> None:
    old = written(tmp_path, MAILING, "old.yaml")
    wider = MAILING.replace('    deny: [{expression: {const: "6*6"}}]\n', "    sandbox: {wall: 60s}\n")
    code, output = run("diff", old, written(tmp_path, wider, "new.yaml"))
    assert code == 1
    assert "gained calculate_expression: deny removed" in output
    assert "gained calculate_expression: wall_s" in output
    code, output = run("diff", tmp_path / "new.yaml", old, "--json")
    assert code == 0
    assert {change["direction"] for change in json.loads(output)} == {"lost"}
    assert run("diff", old, old) == (0, "no difference\n")


def recorded(folder: Path, policy: Path) -> Path:
    from toolcage import PoolTerms, Runtime

    terms = PoolTerms(min_idle=0)
    with Runtime.from_files(policy, state_dir=folder / "state", pool=terms) as runtime:
        session = runtime.session()
        for expression in ("6*6", "7*7"):
            session.call("calculate_expression", {"expression": expression})
    return folder / "state" / "audit"


def test_replay_and_coverage_read_a_real_log(tmp_path: Path) -> None:
    policy = written(tmp_path, MAILING)
    log = recorded(tmp_path, policy)
    code, output = run("replay", log, "--policy", policy)
    assert (code, output) == (0, "2 decisions follow, 0 do not\n")
    code, output = run("coverage", log, "--policy", policy, "--json")
    report = json.loads(output)[0]
    assert code == 1
    assert [item["decided"] for item in report["rules"]] == [1, 0, 0]
    assert (report["refused_by_none"], len(report["never"])) == (1, 2)
    written(tmp_path, MAILING + "description: another version\n")
    assert "2 not replayed: another policy" in run("replay", log, "--policy", policy)[1]
    assert "2 decisions of another version" in run("coverage", log, "--policy", policy)[1]


def test_diff_over_a_log_names_the_recorded_calls_that_would_be_decided_otherwise(tmp_path: Path) -> None:
    old = written(tmp_path, MAILING, "old.yaml")
    log = recorded(tmp_path, old)
    wider = written(tmp_path, MAILING.replace("1+1", "7*7"), "new.yaml")
    report = json.loads(run("diff", old, wider, "--log", log, "--json")[1])["calls"]
    changed = [(item["old"], item["new"]) for item in report["changed"]]
    assert changed == [("deny policy.no_match", "allow policy.allow")]
    assert (report["same"], report["skipped"]) == (1, {})
    assert f"calculate_expression call {report['changed'][0]['call_id']}: " in run("diff", old, wider, "--log", log)[1]
    assert json.loads(run("diff", old, old, "--log", log, "--json")[1])["calls"]["changed"] == []


def test_diff_over_a_log_guesses_no_origin_that_was_not_recorded(tmp_path: Path) -> None:
    old = written(tmp_path, MAILING.replace(", {origin: {expression: [said]}}", ""), "old.yaml")
    log = recorded(tmp_path, old)
    demanding = written(tmp_path, MAILING, "new.yaml")
    report = json.loads(run("diff", old, demanding, "--log", log, "--json")[1])["calls"]
    assert report["changed"] == []
    assert report["skipped"] == {"the log does not say where a value came from": 2}


def test_check_names_the_rules_that_never_decide(tmp_path: Path) -> None:
    text = """version: 1
role: team
tools:
  calculate_expression:
    ask: [{expression: {const: "1+1"}}]
    allow: [{}, {expression: {const: "2+2"}}, {expression: {const: "1+1"}}]
  execute_python:
    deny: [{}]
    allow: [{}]
"""
    path = written(tmp_path, text)
    warnings = json.loads(run("check", path, "--json")[1])[0]["warnings"]
    assert [line.split(":")[1].split(" ")[1] for line in warnings] == [
        "tools.calculate_expression.allow[1]",
        "tools.calculate_expression.allow[2]",
        "tools.execute_python.allow[0]",
    ]
    code, output = run("check", path)
    assert code == 0
    assert "tools.execute_python.allow[0] never decides: " in output
    assert json.loads(run("check", written(tmp_path, GOOD), "--json")[1])[0]["warnings"] == []


def test_junit_holds_a_test_for_each_case_and_what_failed(tmp_path: Path) -> None:
    import xml.etree.ElementTree as ElementTree

    text = GOOD.replace("expect: ok", "expect: blocked").replace("call: nothing", 'call: "<&\\x07\\"\'>"')
    text = text.replace("expect: denied, code: tool.unknown", "expect: malformed")
    report = tmp_path / "report.xml"
    assert run("test", written(tmp_path, text), "--junit", report)[0] == 1
    suite = ElementTree.parse(report).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert [case.get("name") for case in suite] == ["loads", "line 6: calculate_expression", "line 7: <&\\u0007\"'>"]
    run("test", written(tmp_path, "version: 2\n"), "--junit", report)
    assert ElementTree.parse(report).getroot()[0].get("failures") == "1"


WRITER = """version: 1
role: writer
tools:
  turn_around:
    allow: [{}]
tests:
  - {call: turn_around, args: {text: a}, expect: ok}
"""
THEIRS = """from toolcage import tool

@tool
def turn_around(text: str) -> str:
    'Turns a text around.'
    return text[::-1]
"""


def test_a_policy_of_a_strangers_tool_is_told_how_to_name_its_file(tmp_path: Path) -> None:
    (tmp_path / "writer.yaml").write_text(WRITER)
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["check", str(tmp_path / "writer.yaml")])
    assert done.exit_code == 1
    assert "--tools FILE" in done.output


@pytest.mark.docker
@pytest.mark.parametrize("command", ["check", "test"])
def test_a_policy_of_a_strangers_tool_loads_when_its_file_is_given(tmp_path: Path, command: str) -> None:
    (tmp_path / "writer.yaml").write_text(WRITER)
    (tmp_path / "theirs.py").write_text(THEIRS)
    arguments = [command, str(tmp_path / "writer.yaml"), "--tools", str(tmp_path / "theirs.py")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output


def test_a_resources_file_in_a_folder_of_policies_is_passed_over_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("version: 1\nrole: none\ntools: {}\n")
    (tmp_path / "resources.yaml").write_text("version: 1\nendpoints: {}\n")
    done = CliRunner().invoke(app, ["check", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "is a resources file, not a policy" in done.output
    assert CliRunner().invoke(app, ["check", str(tmp_path / "resources.yaml")]).exit_code == 1
    log = tmp_path / "log.jsonl"
    log.write_text("")
    for command in ("coverage", "replay"):
        done = CliRunner().invoke(app, [command, str(log), "--policy", str(tmp_path)])
        assert (done.exit_code, "passed over" in done.output) == (0, True), done.output


def test_an_image_that_nobody_built_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "version: 1\nrole: one\ntools:\n  execute_python:\n    allow: [{}]\n    sandbox: {image: dta}\n"
    (tmp_path / "one.yaml").write_text(text)
    monkeypatch.setenv("TOOLCAGE_STATE_DIR", str(tmp_path))
    assert CliRunner().invoke(app, ["check", str(tmp_path / "one.yaml")]).exit_code == 0  # nothing is built: unknown
    monkeypatch.setattr(ImageLock, "load", lambda _: _Lock())
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["check", str(tmp_path / "one.yaml")])
    assert done.exit_code == 1
    assert "one.yaml:4: tools.execute_python: there is no image `dta`; write one of data, python" in done.output


class _Lock:
    images = MappingProxyType({"python": object()})

    def names(self) -> tuple[str, ...]:
        return ("data", "python")
