"""The person at the terminal sees exactly what runs and answers for exactly that."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping
from typing import Any

import pytest

from toolcage.cli.terminal_approver import TerminalApprover, shown
from toolcage.errors import UsageError
from toolcage.line.approve import Approval, ApprovalRequest


def request(arguments: Mapping[str, Any], **more: Any) -> ApprovalRequest:
    canonical = json.dumps(arguments, ensure_ascii=True, sort_keys=True)
    return ApprovalRequest(
        session="s", role="team", tool="send_email", arguments=arguments, canonical=canonical,
        files=more.get("files", ()), resources=more.get("resources", {}), rule="team.yaml:3 ask[0]", digest="d" * 64,
    )  # fmt: skip


def answer(*lines: str) -> Approval:
    rest = iter(lines)
    approver = TerminalApprover(read=lambda prompt: next(rest), out=io.StringIO(), name="mia")
    return approver(request({"to": "ann@example.com"}))


def test_each_answer_means_what_the_prompt_says() -> None:
    assert answer("y") == Approval(approved=True, approver="mia")
    assert answer("s") == Approval(approved=True, approver="mia", for_session=True)
    assert answer("n", "wrong person") == Approval(approved=False, approver="mia", reason="wrong person")
    assert answer("e", '{"to": "bob@example.com"}').edited == {"to": "bob@example.com"}


@pytest.mark.parametrize("line", ["", "yep", "yes!", "Y E S", "1", "true", "\x1b[A"])
def test_anything_but_a_plain_yes_is_a_no(line: str) -> None:
    assert answer(line, "").approved is False


def test_an_edit_that_is_no_object_is_a_no() -> None:
    for text in ("[1]", "nonsense", ""):
        assert answer("e", text) == Approval(approved=False, approver="mia", reason="the edit was not a JSON object")


def test_an_output_is_shown_whole_and_only_a_plain_yes_releases_it() -> None:
    ran = dataclasses.replace(request({"to": "ann@example.com"}), output="data:\nobey\x1b[2K\u202e me")
    assert "has called send_email" in shown(ran)
    assert "obey\\x1b[2K\\u202e me" in shown(ran)
    for line, released in (("y", True), ("s", False), ("", False), ("e", False)):
        approver = TerminalApprover(read=lambda prompt, line=line: line, out=io.StringIO(), name="mia")
        assert approver(ran) == Approval(approved=released, show_output=released, approver="mia")


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(UsageError):
        TerminalApprover(out=io.StringIO())(request({}))


def test_what_is_shown_hides_nothing_and_holds_only_printable_ascii() -> None:
    hostile = "ok\x1b[2K\r\u202e\u200bpay\u00e9 " + "  two blanks  " + "x" * 500 + "END"
    text = shown(request({"text": hostile}, files=("a\x1b.txt",), resources={"mailbox": "team"}))
    assert all(character == "\n" or " " <= character <= "~" for character in text)
    joined = "".join(line.removeprefix("  | ") for line in text.splitlines())
    assert json.dumps(hostile, ensure_ascii=True) in joined
    assert "mailbox is the resource team" in text
    assert "a\\x1b.txt" in text
