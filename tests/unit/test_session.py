"""What a session knows and may hand on, what a reload changes, what an approval covers: the real line, no cage.

Calls that may run are stopped at the approver or end as `unavailable`, because no engine is reached.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from toolcage import Approval, ApprovalRequest, PolicyError, PoolTerms, Runtime, RuntimeClosedError, Session, UsageError
from toolcage.audit.report import read_records
from toolcage.cage.engine import Engine
from toolcage.errors import EngineError
from toolcage.line.replay import replay
from toolcage.line.validate import compile_schema
from toolcage.policy_desk import declared_tools

Make = Callable[..., Runtime]
ALLOW = "tools: {calculate_expression: {allow: [{}]}}"
ASK = "tools: {calculate_expression: {ask: [{}]}}"
SUM = {"expression": "1+1"}


@pytest.fixture(autouse=True)
def _no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Engine:
        raise EngineError("no engine in this test")

    monkeypatch.setattr(Engine, "connect", refuse)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """A runtime for `name=text` roles; `rewrite` changes a file."""
    made: list[Runtime] = []

    def make(*, approver: Any = None, shadow: Mapping[str, str] | None = None, **roles: str) -> Runtime:
        for name, text in roles.items():
            write(tmp_path / "policies", name, text)
        for name, text in (shadow or {}).items():
            write(tmp_path / "shadow", name, text)
        runtime = Runtime.from_files(
            tmp_path / "policies",
            shadow=[tmp_path / "shadow"] if shadow else [],
            approver=approver,
            state_dir=tmp_path / "state",
            pool=PoolTerms(min_idle=0),
        )
        made.append(runtime)
        return runtime

    yield make
    for runtime in made:
        runtime.close()


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(f"version: 1\nrole: {name}\n{text}\n", encoding="utf-8")


def closings(runtime: Runtime) -> list[Mapping[str, Any]]:
    return [record for record in read_records(runtime.audit_path) if record["type"] == "closing"]


def test_large_arguments_of_a_call_refused_before_the_policy_are_recorded_by_digest(make: Make) -> None:
    runtime = make(team="tools: {calculate_expression: {allow: [{expression: {const: '1'}}]}}")
    session = runtime.session()
    assert session.call("calculate_expression", {"expression": "1", "other": "x" * 100_000}).status == "invalid"
    assert session.call("calculate_expression", {"expression": "1", "other": "x"}).status == "invalid"
    assert session.call("calculate_expression", {"expression": "2" * 400}).status == "denied"
    large, small, denied = closings(runtime)
    assert "arguments" not in large
    assert len(str(large["arguments_digest"])) == 64
    assert json.loads(small["arguments"])["other"] == "x"
    assert json.loads(denied["arguments"])["expression"] == "2" * 400


# --- origins -------------------------------------------------------------------------------------------------------

SAID = "tools: {calculate_expression: {allow: [{origin: {expression: [said]}}]}}"


LINKS = """tools:
  calculate_expression:
    allow: [{origin: {expression: {links: [said]}}}]
"""


def test_a_text_is_free_as_long_as_its_links_were_said(make: Make) -> None:
    runtime = make(team=LINKS)
    session = runtime.session("Send them https://shop.example/may, please.")

    def ends(text: str) -> str:
        return session.call("calculate_expression", {"expression": text}).status

    assert ends("Dear all, look at https://shop.example/may and reply.") == "unavailable"
    assert ends("No link at all.") == "unavailable"
    assert ends("Look at https://shop.example/may?secret=4711") == "denied"
    assert ends("Look at https://shop.example/may and //evil.example/?q=4711") == "denied"
    assert ends("Look at e\u200bvil.example") == "denied"
    records = list(read_records(runtime.audit_path))
    report = replay(records, runtime._policies.roles.values(), compile_schema)
    assert (report.same, report.divergences) == (5, [])


def test_what_the_user_said_in_any_turn_counts_and_what_nobody_said_does_not(make: Make) -> None:
    session = make(team=SAID).session("Please add alpha+beta.")
    assert session.call("calculate_expression", {"expression": "alpha+beta"}).status == "unavailable"
    refused = session.call("calculate_expression", {"expression": "gamma+delta"})
    assert (refused.status, refused.code) == ("denied", "policy.no_match")
    assert "ask the user" in (refused.hint or "")
    session.user_said("And gamma+delta too.")
    assert session.call("calculate_expression", {"expression": "gamma+delta"}).status == "unavailable"


def test_another_session_has_not_heard_it(make: Make) -> None:
    runtime = make(team=SAID)
    runtime.session("alpha+beta")
    assert runtime.session("").call("calculate_expression", {"expression": "alpha+beta"}).status == "denied"


def test_facts_of_the_host_reach_the_policy_and_cannot_be_changed_afterwards(make: Make) -> None:
    runtime = make(team="tools: {calculate_expression: {allow: [{facts: {tenant: {const: acme}}}]}}")
    facts = {"tenant": "acme"}
    session = runtime.session(facts=facts)
    facts["tenant"] = "other"
    assert session.call("calculate_expression", SUM).status == "unavailable"
    assert runtime.session(facts={"tenant": "other"}).call("calculate_expression", SUM).status == "denied"
    assert runtime.session().call("calculate_expression", SUM).status == "denied"
    with pytest.raises(UsageError):
        runtime.session(facts={"tenant": object()})


def test_a_deny_on_a_host_fact_that_nobody_gave_denies(make: Make) -> None:
    runtime = make(team="tools: {calculate_expression: {allow: [{}], deny: [{facts: {user: {const: eve}}}]}}")
    assert runtime.session(facts={"user": "ann"}).call("calculate_expression", SUM).status == "unavailable"
    assert runtime.session(facts={"user": "eve"}).call("calculate_expression", SUM).code == "policy.denied"
    assert runtime.session().call("calculate_expression", SUM).code == "policy.error"


# --- limits --------------------------------------------------------------------------------------------------------


def test_a_limit_ends_with_limit_exceeded_and_denied_calls_do_not_count(make: Make) -> None:
    runtime = make(
        team="tools: {calculate_expression: {allow: [{expression: {const: 1+1}}], limits: {calls: 2/session}}}"
    )
    session = runtime.session()
    for _ in range(5):
        assert session.call("calculate_expression", {"expression": "2+2"}).status == "denied"
    assert [session.call("calculate_expression", SUM).status for _ in range(3)] == [
        "unavailable", "unavailable", "limit_exceeded",
    ]  # fmt: skip
    assert session.call("calculate_expression", SUM).code == "policy.budget"
    assert runtime.session().call("calculate_expression", SUM).status == "unavailable"


def test_many_calls_at_once_do_not_pass_a_limit_together(make: Make) -> None:
    session = make(team="tools: {calculate_expression: {allow: [{}], limits: {rate: 3/minute}}}").session()
    results = session.map([("calculate_expression", SUM)] * 12)
    assert sum(result.status == "unavailable" for result in results) == 3
    assert {result.code for result in results if result.status == "limit_exceeded"} == {"policy.rate"}
    assert all(result.retryable for result in results if result.status == "limit_exceeded")


def test_many_calls_at_once_are_pairs_or_none_of_them_runs(make: Make) -> None:
    session = make(team="tools: {calculate_expression: {allow: [{}], limits: {calls: 1/session}}}").session()
    for wrong in (("calculate_expression",), "calculate_expression", {"tool": "calculate_expression"}):
        with pytest.raises(UsageError, match=r"call 1 of map .* \(tool, arguments\)"):
            session.map([("calculate_expression", SUM), wrong])  # type: ignore[list-item]
    assert session.map([("calculate_expression", SUM)])[0].status == "unavailable"  # the limit was not touched


def test_a_session_ends_with_its_async_block(make: Make) -> None:
    runtime = make(team="tools: {calculate_expression: {allow: [{}]}}")

    async def agent() -> Session:
        async with runtime.session() as session, session:
            assert (await session.acall("calculate_expression", SUM)).status == "unavailable"
        with pytest.raises(RuntimeClosedError):
            await session.acall("calculate_expression", SUM)
        return session

    ended = asyncio.run(agent())
    with ended:  # entered again, it is open
        assert ended.call("calculate_expression", SUM).status == "unavailable"


# --- delegation ----------------------------------------------------------------------------------------------------


def test_a_delegated_session_may_do_only_what_both_roles_may(make: Make) -> None:
    runtime = make(
        chief="tools: {calculate_expression: {allow: [{expression: {const: 1+1}}]}}",
        helper="tools: {calculate_expression: {allow: [{}]}, execute_python: {allow: [{code: {}}]}}",
    )
    delegated = runtime.session(role="chief").delegate("helper")
    assert [tool.name for tool in delegated.tools()] == ["calculate_expression"]
    assert delegated.call("calculate_expression", SUM).status == "unavailable"
    assert delegated.call("calculate_expression", {"expression": "2+2"}).status == "denied"
    assert delegated.call("execute_python", {"code": "1"}).code == "tool.unknown"
    direct = runtime.session(role="helper")
    assert direct.call("calculate_expression", {"expression": "2+2"}).status == "unavailable"
    with pytest.raises(UsageError):
        delegated.delegate("nobody")


def test_a_delegated_session_shares_words_and_limits_and_not_approvals(make: Make) -> None:
    asked: list[str] = []

    def approver(request: ApprovalRequest) -> Approval:
        asked.append(request.session)
        return Approval(approved=True, for_session=True)

    runtime = make(
        approver=approver,
        chief="tools: {calculate_expression: {ask: [{}], limits: {calls: 3/session}}}",
        helper="tools: {calculate_expression: {allow: [{origin: {expression: [said]}}]}}",
    )
    session = runtime.session("alpha+beta", role="chief")
    delegated = session.delegate("helper")
    assert delegated.call("calculate_expression", {"expression": "alpha+beta"}).status == "unavailable"
    assert session.call("calculate_expression", {"expression": "alpha+beta"}).status == "unavailable"
    assert asked == [delegated.id, session.id]
    assert delegated.id.startswith(session.id)
    assert session.call("calculate_expression", {"expression": "alpha+beta"}).status == "unavailable"
    assert delegated.call("calculate_expression", {"expression": "alpha+beta"}).status == "limit_exceeded"


# --- approvals -----------------------------------------------------------------------------------------------------


def test_why_an_approver_failed_is_told_to_the_operator_and_not_to_the_model(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    def approver(request: ApprovalRequest) -> Approval:
        raise OSError("the chat server is down")

    role = "tools: {calculate_expression: {ask: [{}]}}"
    result = make(approver=approver, team=role).session().call("calculate_expression", SUM)
    assert (result.status, result.code) == ("approval_required", "approval.required")
    assert "chat server" not in str(result.to_dict())
    assert f"approval.required, call {result.call_id}: OSError: the chat server is down" in caplog.messages
    caplog.clear()
    assert make(team=role).session().call("calculate_expression", SUM).code == "approval.required"
    assert caplog.messages == []  # nobody was to be asked: the result says so


def test_a_yes_for_the_session_covers_this_same_call_only(make: Make) -> None:
    asked: list[str] = []

    def approver(request: ApprovalRequest) -> Approval:
        asked.append(request.canonical)
        return Approval(approved=True, approver="mia", for_session=True)

    runtime = make(approver=approver, team=ASK)
    session = runtime.session()
    for expression in ("1+1", "1+1", "2+2"):
        session.call("calculate_expression", {"expression": expression})
    assert len(asked) == 2
    runtime.session().call("calculate_expression", SUM)
    assert len(asked) == 3
    assert [record.get("approver") for record in closings(runtime)] == [
        "mia (for this session)", "mia (earlier, for this session)", "mia (for this session)", "mia (for this session)",
    ]  # fmt: skip


def test_a_yes_once_is_asked_for_again(make: Make) -> None:
    asked: list[str] = []
    session = make(approver=lambda request: asked.append(request.digest) or True, team=ASK).session()
    session.call("calculate_expression", SUM)
    session.call("calculate_expression", SUM)
    assert len(asked) == 2


def test_an_edit_is_a_new_call_that_passes_the_whole_line_again(make: Make) -> None:
    answers = iter([Approval(approved=False, edited={"expression": "3+3"}), Approval(approved=False, reason="no")])
    seen: list[Mapping[str, Any]] = []

    def approver(request: ApprovalRequest) -> Approval:
        seen.append(dict(request.arguments))
        return next(answers)

    runtime = make(approver=approver, team=ASK)
    result = runtime.session().call("calculate_expression", SUM)
    assert result.status == "rejected"
    assert [item["expression"] for item in seen] == ["1+1", "3+3"]
    assert [record["code"] for record in closings(runtime)] == ["approval.edited", "approval.rejected"]


@pytest.mark.parametrize(
    ("edited", "status"), [({"expression": "9+9"}, "denied"), ({"nonsense": 1}, "invalid"), ({}, "invalid")]
)
def test_an_edit_into_what_the_policy_refuses_is_refused(make: Make, edited: dict[str, Any], status: str) -> None:
    runtime = make(
        approver=lambda request: Approval(approved=False, edited=edited),
        team="tools: {calculate_expression: {ask: [{}], deny: [{expression: {const: 9+9}}]}}",
    )
    assert runtime.session().call("calculate_expression", SUM).status == status


def test_an_edit_that_also_says_yes_and_edits_without_end_run_nothing(make: Make) -> None:
    both = make(approver=lambda request: Approval(approved=True, edited=SUM), team=ASK)
    assert both.session().call("calculate_expression", SUM).status == "approval_required"
    endless = make(approver=lambda request: Approval(approved=False, edited=SUM), team=ASK)
    assert endless.session().call("calculate_expression", SUM).code == "approval.edited"


@pytest.mark.parametrize("approved", ["no", 1, None, "yes"])
def test_an_approval_that_is_not_exactly_true_is_no_approval(make: Make, approved: Any) -> None:
    runtime = make(approver=lambda request: Approval(approved=approved), team=ASK)
    assert runtime.session().call("calculate_expression", SUM).status == "rejected"


# --- reload --------------------------------------------------------------------------------------------------------


def test_a_reload_is_in_force_at_once_for_running_sessions(make: Make, tmp_path: Path) -> None:
    runtime = make(team=ALLOW)
    session = runtime.session()
    assert session.call("calculate_expression", SUM).status == "unavailable"
    write(tmp_path / "policies", "team", "tools: {}")
    assert session.call("calculate_expression", SUM).status == "unavailable"
    runtime.reload()
    assert session.call("calculate_expression", SUM).code == "tool.unknown"
    assert session.tools() == ()


def test_a_bad_file_keeps_all_policies_in_force_and_says_so(make: Make, tmp_path: Path) -> None:
    runtime = make(other="tools: {}", team="tools: {calculate_expression: {allow: [{}], deny: [{}]}}")
    session = runtime.session(role="team")
    write(tmp_path / "policies", "other", "tolls: {}")
    write(tmp_path / "policies", "team", ALLOW)
    with pytest.raises(PolicyError, match=r"other.yaml:3"):
        runtime.reload()
    assert session.call("calculate_expression", SUM).code == "policy.denied"
    notes = [record["note"] for record in read_records(runtime.audit_path) if record["type"] == "note"]
    assert len(notes) == 1
    assert "stay in force" in str(notes[0])


def test_a_role_that_is_gone_after_a_reload_may_do_nothing(make: Make, tmp_path: Path) -> None:
    runtime = make(team=ALLOW, other=ALLOW)
    session, delegated = runtime.session(role="team"), runtime.session(role="other").delegate("team")
    (tmp_path / "policies" / "other.yaml").unlink()
    runtime.reload()
    assert session.call("calculate_expression", SUM).status == "unavailable"
    assert delegated.call("calculate_expression", SUM).code == "tool.unknown"


def test_a_call_that_waits_for_approval_does_not_run_under_a_policy_that_changed(make: Make, tmp_path: Path) -> None:
    def approver(request: ApprovalRequest) -> bool:
        write(tmp_path / "policies", "team", "tools: {}")
        runtime.reload()
        return True

    runtime = make(approver=approver, team=ASK)
    assert runtime.session().call("calculate_expression", SUM).code == "policy.changed"


# --- shadow and replay ---------------------------------------------------------------------------------------------


def test_a_shadow_policy_is_recorded_and_never_decides(make: Make) -> None:
    runtime = make(team="tools: {calculate_expression: {allow: [{expression: {const: 1+1}}]}}",
                   shadow={"team": "tools: {calculate_expression: {ask: [{}]}, describe_database: {allow: [{}], "
                                   "resources: {database: [shop]}}}"})  # fmt: skip
    session = runtime.session()
    assert session.call("calculate_expression", SUM).status == "unavailable"
    assert session.call("calculate_expression", {"expression": "2+2"}).status == "denied"
    assert session.call("describe_database", {"database": "shop"}).code == "tool.unknown"
    assert session.call("execute_python", {"code": "1"}).code == "tool.unknown"
    assert [record["shadow"] for record in closings(runtime)] == [
        "ask policy.ask", "ask policy.ask", "allow policy.allow", "denied tool.unknown",
    ]  # fmt: skip


def test_a_role_that_the_shadow_does_not_have_is_recorded_as_refused(make: Make) -> None:
    runtime = make(team=ALLOW, shadow={"other": ALLOW})
    runtime.session().call("calculate_expression", SUM)
    assert closings(runtime)[0]["shadow"] == "denied tool.unknown"


def test_a_log_replays_and_a_changed_policy_or_record_does_not_pass_for_it(make: Make) -> None:
    runtime = make(
        approver=lambda request: False,
        chief="tools: {calculate_expression: {allow: [{origin: {expression: [said]}}], ask: [{expression: "
        "{const: 2+2}}], limits: {calls: 3/session}}}",
        helper=ALLOW,
    )
    session = runtime.session("alpha+beta", role="chief", facts={"tenant": "acme"})
    delegated = session.delegate("helper")
    for caller in (session, delegated):
        for expression in ("alpha+beta", "gamma+delta", "2+2", "alpha+beta", "9"):
            caller.call("calculate_expression", {"expression": expression})
    session.call("calculate_expression", {})
    session.call("no_such_tool", {})
    records = list(read_records(runtime.audit_path))
    report = replay(records, runtime._policies.roles.values(), compile_schema)
    assert (report.same, report.divergences) == (10, [])
    assert report.skipped == {"before the policy": 2}
    assert "limit_exceeded" in {record.get("status") for record in records}
    replay_of_changed = [
        {**record, "decision": "allow policy.allow"} if record.get("status") == "denied" else record
        for record in records
    ]
    assert replay(replay_of_changed, runtime._policies.roles.values(), compile_schema).divergences
    unknown = replay(records, [], compile_schema)
    assert (unknown.same, unknown.skipped["another policy"]) == (0, 10)


def test_the_audit_keeps_what_a_decision_was_made_from(make: Make) -> None:
    runtime = make(team=SAID)
    session = runtime.session("alpha+beta", facts={"tenant": "acme"})
    session.call("calculate_expression", {"expression": "alpha+beta"})
    session.call("calculate_expression", {"expression": "gamma+delta"})
    first, second = (json.loads(record["session_facts"]) for record in closings(runtime))
    assert first == {"host": {"tenant": "acme"}, "origins": {"text:alpha+beta": ["said"]}}
    assert second == {"host": {"tenant": "acme"}, "origins": {"text:gamma+delta": []}}
    assert [record["decision"] for record in closings(runtime)] == ["allow policy.allow", "deny policy.no_match"]
    assert set(declared_tools()) >= {"calculate_expression"}
