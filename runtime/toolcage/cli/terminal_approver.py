"""An approver that asks the person at this terminal. What is shown is what runs, with nothing hidden.

Arguments are shown as the canonical JSON that is bound by the approval's digest, every other character than printable
ASCII spelled out, so that no control sequence, bidi override or look-alike can change what the person reads. Without
a terminal nobody is asked and nothing runs: an unattended program must not hang, and must not be taken for a yes.
"""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Callable, Iterator
from typing import Final, TextIO

from toolcage.errors import UsageError
from toolcage.line.approve import Approval, ApprovalRequest

_CHOICES: Final = "[y]es once, [s]ame call for this session, [e]dit, anything else is no: "
_SHOW: Final = "let the model read this output? [y]es, anything else is no: "
_WIDTH: Final = 100


class TerminalApprover:
    """Pass one as `approver=` to a Runtime. Raises UsageError when asked without a terminal, which refuses the call."""

    def __init__(
        self,
        *,
        read: Callable[[str], str] | None = None,
        out: TextIO | None = None,
        name: str | None = None,
    ) -> None:
        """`read` asks for a line and `out` is written to, for programs that draw their own terminal."""
        self._read = read
        self._out = out
        self._name = name

    def __call__(self, request: ApprovalRequest) -> Approval:
        """The person's answer."""
        name = self._name or getpass.getuser()
        read = self._read or self._terminal()
        print(shown(request), file=self._out or sys.stderr, flush=True)
        if request.output is not None:
            yes = read(_SHOW).strip().lower() in ("y", "yes")
            return Approval(approved=yes, show_output=yes, approver=name)
        answer = read(_CHOICES).strip().lower()
        if answer in ("y", "yes"):
            return Approval(approved=True, approver=name)
        if answer in ("s", "same"):
            return Approval(approved=True, approver=name, for_session=True)
        if answer in ("e", "edit"):
            return self._edited(read, name)
        reason = read("why not (the agent is told; may be empty): ").strip()
        return Approval(approved=False, approver=name, reason=reason or None)

    def _terminal(self) -> Callable[[str], str]:
        if not sys.stdin.isatty():
            raise UsageError("nobody can be asked: standard input is no terminal")
        return input

    def _edited(self, read: Callable[[str], str], name: str) -> Approval:
        try:
            arguments = json.loads(read("the arguments as one line of JSON: "))
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            return Approval(approved=False, approver=name, reason="the edit was not a JSON object")
        return Approval(approved=False, approver=name, edited=arguments)


def shown(request: ApprovalRequest) -> str:
    """The request as lines for a terminal: printable ASCII only."""
    arguments = json.dumps(json.loads(request.canonical), indent=2, ensure_ascii=True)
    ran = request.output is not None
    lines = [
        f"--- {request.role} {'has called' if ran else 'wants to call'} {request.tool}",
        *(line for text in arguments.splitlines() for line in _cut(text)),
        *(f"file: {name} (sha256 {digest[:16]})" for name, digest in _files(request)),
        *(f"{argument} is the resource {name}" for argument, name in sorted(request.resources.items())),
        *(["its output, which speaks to the model:"] if ran else []),
        *(line for text in (request.output or "").splitlines() for line in _cut(text)),
        f"asked because of {'on_injection' if ran else request.rule}; call {request.digest[:16]}",
    ]
    return "\n".join(_ascii(line) for line in lines)


def _files(request: ApprovalRequest) -> list[tuple[str, str]]:
    digests = request.files_sha256 or ("unknown",) * len(request.files)
    return list(zip(request.files, digests, strict=True))


def _cut(text: str) -> Iterator[str]:
    """A long line in pieces, every character kept: wrapping at words would drop blanks."""
    for start in range(0, max(1, len(text)), _WIDTH):
        yield ("" if start == 0 else "  | ") + text[start : start + _WIDTH]


def _ascii(text: str) -> str:
    return "".join(char if " " <= char <= "~" else char.encode("unicode_escape").decode() for char in text)
