"""For random policies, calls and sessions: what must hold whatever stands in them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcage.audit.record import facts_text, session_facts_text
from toolcage.errors import PolicyError, Refused
from toolcage.facts.read import read_facts
from toolcage.line.replay import replay, session_facts
from toolcage.line.validate import compile_schema
from toolcage.policy.decide import decide
from toolcage.policy.explain import explain
from toolcage.policy.load import load_role_text
from toolcage.policy.model import Role
from toolcage.policy.narrow import narrowed
from toolcage.types import EFFECTS, Decision, Facts, SessionFacts, ToolDeclaration, freeze

Declarations = Mapping[str, ToolDeclaration]
RANK = {"allow": 0, "ask": 1, "deny": 2}
SLOW = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

TERMS = ("a", "b", "c")
ADDRESSES = ("ann@example.com", "bob@example.org", "eve@evil.example", "ann@example.com, eve@evil.example", "nobody")

term_rules = st.sampled_from([{}, {"const": "a"}, {"enum": ["a", "b"]}, {"maxLength": 1, "type": "string"},
                              {"fact": "user"}])  # fmt: skip
to_rules = st.sampled_from([{}, {"const": "ann@example.com"}, {"addresses": {"domains": ["example.com"]}},
                            {"addresses": {"max": 1}}])  # fmt: skip
origins = st.sampled_from([["said"], ["tool:lookup_contact"], ["said", "tool:lookup_contact"],
                           [{"literal": ["bob@example.org"]}]])  # fmt: skip
fact_rules = st.sampled_from([{"tenant": {"const": "acme"}}, {"tenant": {"enum": ["acme", "other"]}}])


@st.composite
def entries(draw: st.DrawFn, effect: str, tool: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if tool == "search_web":
        if draw(st.booleans()):
            made["term"] = draw(term_rules)
    elif effect == "allow" or draw(st.booleans()):
        rule = draw(to_rules)
        bounds = rule.get("addresses", {})
        # neither loads: bounds under deny, and an ask on places beside an allow that is wider
        made["to"] = {} if bounds and (effect == "deny" or (effect == "ask" and "domains" in bounds)) else rule
    if tool == "send_email" and draw(st.booleans()):
        found = draw(origins)
        negated = effect == "deny" or (effect == "ask" and draw(st.booleans()))
        made["origin"] = {"to": {"not": found} if negated else found}
    if draw(st.integers(0, 3)) == 0:
        made["facts"] = draw(fact_rules)
    return made


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    tools: dict[str, Any] = {}
    for tool in draw(st.sets(st.sampled_from(["search_web", "send_email"]), min_size=1)):
        grant: dict[str, Any] = {
            effect: [draw(entries(effect, tool)) for _ in range(draw(st.integers(low, 3)))]
            for effect, low in (("allow", 1), ("ask", 0), ("deny", 0))
        }
        grant = {key: value for key, value in grant.items() if value}
        if draw(st.booleans()):
            grant["limits"] = {"calls": "2/session"}
        tools[tool] = grant
    made: dict[str, Any] = {"version": 1, "role": "team", "tools": tools | {"read_page": {"allow": [{}]}}}
    if "send_email" in tools and draw(st.booleans()):
        made["flows"] = [{draw(st.sampled_from(["ask", "deny"])): "sends", "after": ["reads_untrusted"]}]
    return made


calls = st.one_of(
    st.tuples(st.just("search_web"), st.fixed_dictionaries({"term": st.sampled_from(TERMS)})),
    st.tuples(st.just("send_email"), st.fixed_dictionaries({"to": st.sampled_from(ADDRESSES), "subject": st.just("s")},
                                                           optional={"cc": st.sampled_from(ADDRESSES)})),
)  # fmt: skip
sessions = st.builds(
    SessionFacts,
    origins=st.dictionaries(
        st.sampled_from([f"email:{item}" for item in ADDRESSES[:3]]),
        st.frozensets(st.sampled_from(["said", "tool:lookup_contact", "tool:read_page"])),
    ),
    effects=st.frozensets(st.sampled_from(EFFECTS)),
    host=st.sampled_from([{}, {"tenant": "acme"}, {"tenant": "other", "user": "a"}]),
    spent=st.sampled_from([frozenset(), frozenset({"everything"})]),
)


def role_of(policy: Mapping[str, Any], declarations: Declarations) -> Role:
    return load_role_text(json.dumps(policy), "team.yaml", declarations)


def facts_of(declaration: ToolDeclaration, arguments: Mapping[str, Any]) -> Mapping[str, Facts]:
    """What validate would hand on; empty for an argument that it would refuse to read."""
    found = {}
    for name, value in arguments.items():
        try:
            read = read_facts(declaration.kinds.get(name, "text"), value)
        except Refused:
            continue
        if read is not None:
            found[name] = read
    return MappingProxyType(found)


def judged(role: Role, call: tuple[str, dict[str, Any]], known: SessionFacts, declarations: Declarations) -> Decision:
    tool, arguments = call
    declaration = role.view.get(tool, declarations[tool])
    if "everything" in known.spent:
        known = SessionFacts(
            origins=known.origins, effects=known.effects, host=known.host,
            spent=frozenset(limit.rule for limit in role.limits_of(tool)),
        )  # fmt: skip
    frozen = freeze(arguments)
    assert isinstance(frozen, Mapping)
    return decide(role, declaration, frozen, facts_of(declaration, arguments), known)


@SLOW
@given(policies(), calls, sessions, st.data())
def test_adding_a_deny_never_turns_a_refusal_into_a_permission(
    declarations: Declarations, policy: dict[str, Any], call: Any, known: SessionFacts, data: st.DataObject
) -> None:
    before = judged(role_of(policy, declarations), call, known, declarations)
    stricter = copy.deepcopy(policy)
    tool = data.draw(st.sampled_from(sorted(policy["tools"])))
    if tool == "read_page" or data.draw(st.booleans()):
        stricter["deny"] = [{"tool": data.draw(st.sampled_from([tool, "s*", "*"]))}]
    else:
        entry = data.draw(entries("deny", tool))
        stricter["tools"][tool]["deny"] = [*stricter["tools"][tool].get("deny", []), entry]
    after = judged(role_of(stricter, declarations), call, known, declarations)
    assert RANK[after.effect] >= RANK[before.effect]


@SLOW
@given(policies(), policies(), calls, sessions)
def test_a_child_never_permits_what_an_ancestor_refuses_nor_unasked_what_it_asks(
    declarations: Declarations, child: dict[str, Any], parent: dict[str, Any], call: Any, known: SessionFacts
) -> None:
    own, above = role_of(child, declarations), role_of(parent, declarations)
    together = judged(narrowed(own, [above]), call, known, declarations)
    assert RANK[together.effect] >= RANK[judged(above, call, known, declarations).effect]
    assert RANK[together.effect] >= RANK[judged(own, call, known, declarations).effect]


@SLOW
@given(policies(), policies(), policies(), calls, sessions)
def test_narrowing_twice_is_narrowing_by_both(
    declarations: Declarations, a: dict[str, Any], b: dict[str, Any], c: dict[str, Any], call: Any, known: SessionFacts
) -> None:
    one, two, three = (role_of(policy, declarations) for policy in (a, b, c))
    step = narrowed(narrowed(one, [two]), [three])
    once = narrowed(one, [two, three])
    assert (
        judged(step, call, known, declarations).effect == judged(once, call, known, declarations).effect
    )


@SLOW
@given(policies(), calls, sessions)
def test_decide_is_a_function_of_its_input_and_explain_tells_the_same_decision(
    declarations: Declarations, policy: dict[str, Any], call: Any, known: SessionFacts
) -> None:
    role, (tool, arguments) = role_of(policy, declarations), call
    first = judged(role, call, known, declarations)
    assert first == judged(role_of(policy, declarations), call, known, declarations)
    if "everything" not in known.spent:
        declaration = role.view.get(tool, declarations[tool])
        frozen = freeze(arguments)
        assert isinstance(frozen, Mapping)
        told = explain(role, declaration, frozen, facts_of(declaration, arguments), known)
        assert told.decision == first


odd = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=True) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@SLOW
@given(policies(), st.sampled_from(["search_web", "send_email"]), st.dictionaries(
    st.sampled_from(["term", "to", "cc", "subject", "other"]), odd), sessions)
def test_decide_never_raises_whatever_the_arguments_are(
    declarations: Declarations, policy: dict[str, Any], tool: str, arguments: dict[str, Any], known: SessionFacts
) -> None:
    role = role_of(policy, declarations)
    frozen = freeze(arguments)
    assert isinstance(frozen, Mapping)
    assert decide(role, role.view.get(tool, declarations[tool]), frozen, {}, known).effect in RANK


@SLOW
@given(sessions)
def test_session_facts_survive_the_audit_log(known: SessionFacts) -> None:
    again = session_facts(session_facts_text(known))
    assert (again.origins, again.effects, again.spent) == (dict(known.origins), known.effects, known.spent)
    assert dict(again.host) == dict(known.host)


def recorded(role: Role, call: tuple[str, dict[str, Any]], known: SessionFacts, made: Decision) -> dict[str, Any]:
    tool, arguments = call
    declaration = role.view[tool]
    return {
        "type": "closing", "seq": 1, "call_id": "c", "policy_digest": role.digest, "tool": tool,
        "arguments": json.dumps(arguments), "facts": facts_text(facts_of(declaration, arguments)),
        "session_facts": session_facts_text(known), "decision": f"{made.effect} {made.code}", "rule": str(made.rule),
    }  # fmt: skip


@SLOW
@given(policies(), calls, sessions)
def test_replay_equals_the_record_and_notices_a_record_that_was_changed(
    declarations: Declarations, policy: dict[str, Any], call: Any, known: SessionFacts
) -> None:
    role = role_of(policy, declarations)
    if call[0] not in role.grants or set(facts_of(role.view[call[0]], call[1])) != set(call[1]):
        return  # validate would have refused it, so no decision would be recorded
    declaration, frozen = role.view[call[0]], freeze(call[1])
    assert isinstance(frozen, Mapping)
    made = decide(role, declaration, frozen, facts_of(declaration, call[1]), known)
    record = recorded(role, call, known, made)
    assert replay([record], [role], compile_schema).same == 1
    for changed in ({"decision": "allow other.code"}, {"rule": "other.yaml:1"}, {"facts": "{}"}):
        assert replay([record | changed], [role], compile_schema).divergences
    assert replay([record | {"policy_digest": "other"}], [role], compile_schema).skipped == {"another policy": 1}


WORDS = (
    "version", "role", "tools", "search_web", "send_email", "allow", "ask", "deny", "to", "term", "origin", "facts",
    "limits", "calls", "flows", "after", "extends", "sandbox", "tests", "const", "addresses", "kinds", "effects",
    "fact", "not",
)  # fmt: skip
contents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=20,
)


@SLOW
@given(contents)
def test_any_file_loads_or_is_a_policy_error(declarations: Declarations, content: Any) -> None:
    if isinstance(content, dict):
        content = {"version": 1, "role": "r", "tools": {}} | content
    try:
        role = load_role_text(json.dumps(content), "team.yaml", declarations)
    except PolicyError:
        return
    assert isinstance(role, Role)
