"""A role whose programs a person must approve. Here the person is a function that reads the program first.

    python examples/approvals.py

An approval is for exactly the call that was shown, is used once and expires. Without an approver such a call is
`approval_required` and nothing runs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from toolcage import Approval, ApprovalRequest, Runtime

POLICY = """
version: 1
role: careful_coder
tools:
  execute_python:
    ask:
      - code: {maxLength: 200}
"""


def person(request: ApprovalRequest) -> Approval:
    """Says yes to what only prints. `canonical` is the arguments as ASCII text that no terminal acts upon."""
    print(f"  {request.role} wants to call {request.tool} with {request.canonical}")
    if "open(" in request.canonical:
        return Approval(approved=False, approver="Pia", reason="no files, please")
    return Approval(approved=True, approver="Pia")


def main(folder: Path) -> None:
    policy = folder / "careful_coder.yaml"
    policy.write_text(POLICY)
    programs = ("print(6 * 7)", "open('notes.txt', 'w').write('hello')", "print('" + "x" * 300 + "')")
    with Runtime.from_files(policy, approver=person) as runtime, runtime.session() as session:
        for code in programs:
            result = session.call("execute_python", {"code": code})
            print(result.status, result.stdout.strip() or result.error)
    with Runtime.from_files(policy) as runtime, runtime.session() as session:
        result = session.call("execute_python", {"code": programs[0]})
        print(result.status, result.error)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
