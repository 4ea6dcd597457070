"""Rules that never decide are named; a rule that may decide never is."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcage.policy.idle import idle_rules
from toolcage.policy.load import load_role
from toolcage.policy_desk import declared_tools

HEAD = "version: 1\nrole: team\ntools:\n"


def idle(folder: Path, text: str) -> list[str]:
    path = folder / "team.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return [item.rule.split(" ", 1)[1] for item in idle_rules(load_role(path, declared_tools()))]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("allow: [{expression: {const: a}}, {expression: {const: b}}]", []),
        ("allow: [{expression: {const: a}}, {expression: {const: a}}]", ["allow[1]"]),
        ("allow: [{}, {expression: {const: a}}]", ["allow[1]"]),
        ("allow: [{expression: {const: a}}, {}]", ["allow[0]"]),
        ("ask: [{}], allow: [{expression: {const: a}}]", ["allow[0]"]),
        ("ask: [{expression: {const: a}}], allow: [{}]", []),
        ("deny: [{expression: {const: a}}], allow: [{expression: {const: a}}]", ["allow[0]"]),
        ("deny: [{expression: {const: a}}], allow: [{}]", []),
        ("allow: [{arguments: {expression: {const: a}}}, {expression: {const: a}}]", ["allow[1]"]),
        ("allow: [{facts: {tenant: {const: a}}}, {facts: {tenant: {const: a}}, expression: {const: a}}]", ["allow[1]"]),
        ("allow: [{facts: {tenant: {const: a}}}, {facts: {tenant: {const: b}}}]", []),
        ("ask: [{origin: {expression: {not: [said]}}}], allow: [{origin: {expression: [said]}}]", []),
    ],
)
def test_an_entry_is_idle_exactly_when_another_demands_no_more_and_decides_first(
    tmp_path: Path, entries: str, expected: list[str]
) -> None:
    found = idle(tmp_path, f"  calculate_expression: {{{entries}}}\n")
    assert found == [f"tools.calculate_expression.{item}" for item in expected]


def test_a_denial_of_the_whole_file_makes_the_grants_entries_idle(tmp_path: Path) -> None:
    grant = "  calculate_expression: {allow: [{}]}\n  execute_python: {allow: [{}]}\n"
    assert idle(tmp_path, grant + "deny: [{tool: calculate_expression}]\n") == ["tools.calculate_expression.allow[0]"]
    assert idle(tmp_path, grant + 'deny: [{tool: "execute_*"}]\n') == ["tools.execute_python.allow[0]"]
    assert idle(tmp_path, grant + "deny: [{tool: calculate_expression, expression: {const: a}}]\n") == []


def test_bounds_of_a_statement_that_decide_first_are_not_idle(tmp_path: Path) -> None:
    grant = "  query_database: {{resources: {{database: [shop]}}, allow: [{}]}}\n"
    assert idle(tmp_path, grant.format("{sql: {max_rows: 5}}, {}")) == []
    assert idle(tmp_path, grant.format("{}, {sql: {max_rows: 5}}")) == ["tools.query_database.allow[1]"]


def test_an_entry_that_names_one_more_sink_decides_calls_that_the_other_does_not_permit(tmp_path: Path) -> None:
    grant = "  send_email: {resources: {mailbox: [team]}, allow: [ENTRIES]}\n"
    assert idle(tmp_path, grant.replace("ENTRIES", "{to: {}}, {to: {}, cc: {}}")) == []
    assert idle(tmp_path, grant.replace("ENTRIES", "{to: {}, cc: {}}, {to: {}}")) == []
    twice = grant.replace("ENTRIES", "{to: {}}, {to: {}, subject: {}}")
    assert idle(tmp_path, twice) == ["tools.send_email.allow[1]"]
