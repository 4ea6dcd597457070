"""Files above files: an ancestor is a ceiling, and what a file could not have under it does not load silently."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolcage.errors import PolicyError
from toolcage.facts import sql
from toolcage.policy.decide import decide
from toolcage.policy.load import load_role, load_roles
from toolcage.policy.model import Role, Situation
from toolcage.policy.narrow import narrowed
from toolcage.policy_desk import judge_for
from toolcage.types import SqlTerms, ToolDeclaration

Declarations = Mapping[str, ToolDeclaration]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"{name}.yaml"
        path.write_text(f"version: 1\nrole: {name}\n" + textwrap.dedent(text), encoding="utf-8")


def ends(role: Role, declarations: Declarations, tool: str = "search_web", **arguments: object) -> str:
    return judge_for(role, declarations)(tool, arguments or {"term": "x"}, Situation())[1]


def test_the_strictest_of_file_and_every_ancestor_decides(tmp_path: Path, declarations: Declarations) -> None:
    write(
        tmp_path,
        top="tools: {search_web: {allow: [{}], deny: [{term: {const: never}}]}}",
        middle="extends: [top.yaml]\ntools: {search_web: {allow: [{}], ask: [{term: {const: maybe}}]}}",
        low="extends: [middle.yaml]\ntools: {search_web: {allow: [{}]}}",
    )
    role = load_role(tmp_path / "low.yaml", declarations)
    assert ends(role, declarations, term="fine") == "ok"
    assert ends(role, declarations, term="maybe") == "approval.required"
    assert ends(role, declarations, term="never") == "policy.denied"
    assert [item.source for item in role.ceilings] == ["middle.yaml", "top.yaml"]


def test_terms_become_the_least_of_all(tmp_path: Path, declarations: Declarations) -> None:
    write(
        tmp_path,
        base="tools: {search_web: {allow: [{}], sandbox: {wall: 5s, memory: 128MiB, runtime: runsc},"
        " output: {max_bytes: 1KiB, html: escape, redact: [secrets, email]}, limits: {calls: 3/session}}}",
        low="extends: [base.yaml]\ntools: {search_web: {allow: [{}], sandbox: {memory: 64MiB, tmp: 8MiB},"
        " limits: {calls: 9/session}}}",
    )
    role = load_role(tmp_path / "low.yaml", declarations)
    grant = role.grants["search_web"]
    assert (grant.sandbox.wall_s, grant.sandbox.memory_bytes, grant.sandbox.runtime) == (5.0, 64 * 2**20, "runsc")
    assert (grant.output.max_bytes, grant.output.html, grant.output.redact) == (1024, "escape", ("secrets", "email"))
    assert [limit.amount for limit in role.limits_of("search_web")] == [9, 3]


@pytest.mark.parametrize(
    ("low", "told"),
    [
        ("tools: {search_web: {allow: [{}]}, read_notes: {allow: [{}]}}", "base.yaml does not grant read_notes"),
        ("tools: {search_web: {allow: [{}], sandbox: {wall: 6s}}}", "is more than base.yaml grants"),
        ("tools: {search_web: {allow: [{}], sandbox: {image: python}}}", "name one image"),
        ("tools: {search_web: {allow: [{}], sandbox: {runtime: crun}}}", "name one runtime"),
        ("tools: {search_web: {allow: [{}], output: {html: keep}}}", "is more than base.yaml grants"),
        ("tools: {search_web: {allow: [{}], kinds: {term: path}}}", "state one kind"),
    ],
)
def test_what_an_ancestor_takes_away_again_does_not_load(
    tmp_path: Path, declarations: Declarations, low: str, told: str
) -> None:
    write(
        tmp_path,
        base="tools: {search_web: {allow: [{}], sandbox: {wall: 5s, runtime: runsc}, kinds: {term: identifier}}}",
        low=f"extends: [base.yaml]\n{low}",
    )
    with pytest.raises(PolicyError, match=told):
        load_role(tmp_path / "low.yaml", declarations)


@pytest.mark.parametrize(
    ("extends", "told"),
    [
        ("[low.yaml]", "extends this file in turn"),
        ("[other.yaml]", "extends this file in turn"),
        ("[absent.yaml]", "cannot be read"),
        ("[/etc/base.yaml]", "relative to this file"),
        ("['~/base.yaml']", "relative to this file"),
        ("[]", "an empty list"),
        ("base.yaml", "write a list"),
        ("[broken.yaml]", "broken.yaml:3"),
    ],
)
def test_a_file_that_cannot_be_extended_is_told(
    tmp_path: Path, declarations: Declarations, extends: str, told: str
) -> None:
    write(tmp_path, low=f"extends: {extends}\ntools: {{}}", other="extends: [low.yaml]\ntools: {}", broken="tolls: {}")
    with pytest.raises(PolicyError, match=told):
        load_role(tmp_path / "low.yaml", declarations)


def test_the_number_of_files_above_one_another_is_bounded(tmp_path: Path, declarations: Declarations) -> None:
    write(tmp_path, role0="tools: {}")
    for number in range(1, 12):
        write(tmp_path, **{f"role{number}": f"extends: [role{number - 1}.yaml]\ntools: {{}}"})
    assert load_role(tmp_path / "role7.yaml", declarations)
    with pytest.raises(PolicyError, match="files above one another"):
        load_role(tmp_path / "role11.yaml", declarations)


def test_the_digest_changes_with_an_ancestor(tmp_path: Path, declarations: Declarations) -> None:
    write(tmp_path, base="tools: {search_web: {allow: [{}]}}",
          low="extends: [base.yaml]\ntools: {search_web: {allow: [{}]}}")  # fmt: skip
    before = load_role(tmp_path / "low.yaml", declarations).digest
    assert load_role(tmp_path / "low.yaml", declarations).digest == before
    write(tmp_path, base="tools: {search_web: {allow: [{}], deny: [{term: {const: x}}]}}")
    assert load_role(tmp_path / "low.yaml", declarations).digest != before


def test_an_ancestor_in_the_same_folder_is_a_role_of_its_own(tmp_path: Path, declarations: Declarations) -> None:
    write(tmp_path, base="tools: {search_web: {allow: [{}]}}",
          low="extends: [base.yaml]\ntools: {search_web: {allow: [{}]}}")  # fmt: skip
    assert load_roles([tmp_path], declarations).keys() == {"base", "low"}


def test_kinds_and_effects_that_any_file_states_hold_for_all(tmp_path: Path, declarations: Declarations) -> None:
    write(
        tmp_path,
        base="tools: {search_web: {allow: [{}], effects: [sends]}, read_page: {allow: [{}]}}\n"
        "flows: [{deny: sends, after: [reads_untrusted]}]",
        low="extends: [base.yaml]\ntools: {search_web: {allow: [{}]}}",
    )
    role = load_role(tmp_path / "low.yaml", declarations)
    judge = judge_for(role, declarations)
    assert judge("search_web", {"term": "x"}, Situation())[1] == "ok"
    used = Situation(used=frozenset({"reads_untrusted"}))
    assert judge("search_web", {"term": "x"}, used)[1] == "flow.denied"


def test_a_tool_that_a_ceiling_lacks_is_gone(tmp_path: Path, declarations: Declarations) -> None:
    write(tmp_path, a="tools: {search_web: {allow: [{}]}, read_notes: {allow: [{}]}}",
          b="tools: {search_web: {allow: [{}]}}")  # fmt: skip
    one, two = (load_role(tmp_path / f"{name}.yaml", declarations) for name in "ab")
    assert narrowed(one, [two]).view.keys() == {"search_web"}
    assert narrowed(one, []) is one


def test_a_statement_is_bound_by_every_file_together(tmp_path: Path, declarations: Declarations) -> None:
    head = "tools: {query_database: {resources: {database: [shop]}, allow: [{sql: "
    write(tmp_path, base=head + "{tables: [a, b], max_rows: 7}}]}}",
          low="extends: [base.yaml]\n" + head + "{tables: [b, c], columns_except: [b.x], max_rows: 99}}]}}",
    )  # fmt: skip
    role = load_role(tmp_path / "low.yaml", declarations)
    text = "SELECT y FROM b"
    made = decide(role, role.view["query_database"], {"database": "shop", "sql": text}, {"sql": sql.read(text)})
    assert made.effect == "allow"
    assert made.sql == SqlTerms(tables=frozenset({"b"}), columns_except=frozenset({"b.x"}), max_rows=7)
    assert ends(role, declarations, "query_database", database="shop", sql="SELECT y FROM a") == "policy.no_match"


def test_a_role_keeps_its_ancestors_when_it_is_delegated_to(tmp_path: Path, declarations: Declarations) -> None:
    write(
        tmp_path,
        base="tools: {search_web: {allow: [{}], deny: [{term: {const: never}}]}}",
        low="extends: [base.yaml]\ntools: {search_web: {allow: [{}]}}",
        chief="tools: {search_web: {allow: [{}], deny: [{term: {const: secret}}]}}",
    )
    low, chief = (load_role(tmp_path / f"{name}.yaml", declarations) for name in ("low", "chief"))
    for delegated in (narrowed(low, [chief]), narrowed(chief, [low])):
        assert ends(delegated, declarations, term="fine") == "ok"
        assert ends(delegated, declarations, term="never") == "policy.denied"
        assert ends(delegated, declarations, term="secret") == "policy.denied"
