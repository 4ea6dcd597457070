"""A call that names no workspace works on the one that its role has, or on none."""

from __future__ import annotations

import pytest

from toolcage.errors import PolicyError
from toolcage.policy.load import load_role_text
from toolcage.policy_desk import declared_tools, judge_for


def role(names: str) -> object:
    text = f"version: 1\nrole: r\ntools: {{read_file: {{resources: {{workspace: [{names}]}}, allow: [{{}}]}}}}\n"
    return load_role_text(text, "r.yaml", declared_tools())


def judged(names: str, **arguments: str) -> tuple[str, str]:
    return judge_for(role(names), declared_tools())("read_file", {"path": "a.txt", **arguments})  # type: ignore[arg-type]


def test_one_granted_workspace_is_the_default_and_no_other_can_be_named() -> None:
    assert judged("docs") == ("ok", "ok")
    assert judged("docs", workspace="docs") == ("ok", "ok")
    assert judged("docs", workspace="session") == ("denied", "resource.not_granted")


def test_of_several_granted_workspaces_one_must_be_named() -> None:
    assert judged("docs, session") == ("invalid", "arguments.schema")
    assert judged("docs, session", workspace="session") == ("ok", "ok")


def test_a_model_is_told_its_workspaces_and_no_others() -> None:
    (shown,) = role("docs, session").shown()  # type: ignore[attr-defined]
    assert shown.parameters["properties"]["workspace"]["description"].endswith("Yours: docs, session.")
    assert "default" not in shown.parameters["properties"]["workspace"]


@pytest.mark.parametrize(
    ("grant", "says"),
    [
        ("", "no workspace is granted"),
        ("resources: {workspace: []}, ", "an empty list grants nothing"),
        (
            "resources: {workspace: [docs]}, sandbox: {isolation: session}, accept_weaker: only for a test, ",
            "would keep those",
        ),
    ],
)
def test_a_grant_without_a_workspace_or_with_files_that_stay_does_not_load(grant: str, says: str) -> None:
    text = f"version: 1\nrole: r\ntools: {{read_file: {{{grant}allow: [{{}}]}}}}\n"
    with pytest.raises(PolicyError, match=says):
        load_role_text(text, "r.yaml", declared_tools())
