"""`egress`: what a file may grant, what is left of it under ceilings, and what a reviewer and a model are told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolcage.policy.diff import compare
from toolcage.policy.explain import explain
from toolcage.policy.model import Role
from toolcage.policy.narrow import common_egress, narrowed
from toolcage.policy.places import egress_target
from toolcage.types import EgressTarget

Load = Callable[[str], Role]


@pytest.fixture
def role(load: Load) -> Callable[..., Role]:
    def made(*targets: str) -> Role:
        listed = f", egress: [{', '.join(repr(item) for item in targets)}]" if targets else ""
        return load(f"search_web: {{allow: [{{}}]{listed}}}")

    return made


def egress(found: Role) -> list[str]:
    return [str(target) for target in found.grants["search_web"].egress]


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (["a.example.com:443"], ["a.example.com:443"], ["a.example.com:443"]),
        (["a.example.com:443"], ["b.example.com:443"], []),
        (["a.example.com:443"], ["a.example.com:8443"], []),
        (["*.example.com:443"], ["a.example.com:443", "example.com:443"], ["a.example.com:443"]),
        (["a.example.com:443", "x.example.org:443"], ["*.example.com:443"], ["a.example.com:443"]),
        (["*.example.com:443"], ["*.b.example.com:443"], ["*.b.example.com:443"]),
        (["*.example.com:443"], [], []),
    ],
)
def test_under_a_ceiling_only_what_both_grant_is_left(first: list[str], second: list[str], both: list[str]) -> None:
    targets = [[egress_target(item) for item in side] for side in (first, second)]
    assert [str(item) for item in common_egress(*targets)] == both
    assert sorted(map(str, common_egress(targets[1], targets[0]))) == sorted(both)


def test_a_star_covers_what_is_below_its_domain_at_its_port_and_nothing_else() -> None:
    star = EgressTarget(host="*.example.com", port=443)
    assert star.covers(EgressTarget(host="a.b.example.com", port=443))
    assert not star.covers(EgressTarget(host="example.com", port=443))
    assert not star.covers(EgressTarget(host="evilexample.com", port=443))
    assert not star.covers(EgressTarget(host="a.example.com", port=80))
    assert not EgressTarget(host="a.example.com", port=443).covers(star)


def test_a_delegated_role_reaches_no_more_than_both(role: Callable[..., Role]) -> None:
    child = narrowed(role("a.example.com:443", "b.example.com:443"), [role("b.example.com:443")])
    assert egress(child) == ["b.example.com:443"]
    described = child.grants["search_web"].declaration.description
    assert "b.example.com:443" in described
    assert "a.example.com" not in described
    none = narrowed(role("a.example.com:443"), [role()])
    assert egress(none) == []
    assert "HTTPS_PROXY" not in none.grants["search_web"].declaration.description


def test_a_model_is_told_where_programs_may_connect(role: Callable[..., Role]) -> None:
    assert "api.example.com:443." in role("api.example.com:443").grants["search_web"].declaration.description
    assert "HTTPS_PROXY" not in role().grants["search_web"].declaration.description


def test_a_tool_with_a_way_out_counts_as_one_that_sends_and_reads_foreign_text(role: Callable[..., Role]) -> None:
    assert {"sends", "reads_untrusted"} <= role("api.example.com:443").grants["search_web"].declaration.effects
    assert "sends" not in role().grants["search_web"].declaration.effects


def test_a_reviewer_sees_what_a_change_opens_and_closes(role: Callable[..., Role]) -> None:
    def told(old: Role, new: Role) -> set[tuple[str, str]]:
        return {(item.direction, item.text) for item in compare(old, new) if "egress" in item.text}

    narrow, wide = role("a.example.com:443"), role("*.example.com:443")
    assert told(role(), narrow) == {("gained", "egress: a.example.com:443")}
    assert told(narrow, role()) == {("lost", "egress removed: a.example.com:443")}
    assert ("gained", "egress: *.example.com:443") in told(narrow, wide)
    assert not any(direction == "gained" for direction, _ in told(wide, narrow))


def test_an_explanation_lists_where_the_tool_s_cage_may_connect(role: Callable[..., Role]) -> None:
    found = role("api.example.com:443")
    explanation = explain(found, found.grants["search_web"].declaration, {"term": "x"}, {})
    (part,) = [node for node in explanation.branches[0].children if node.text == "egress"]
    assert [node.text for node in part.children] == ["api.example.com:443"]
