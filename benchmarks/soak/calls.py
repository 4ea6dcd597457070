"""The calls of the soak, each with what it must answer: a success with any other answer is a wrong success.

Each call is made from its number alone, with a token of its own in it, so that an answer that belongs to another call
is seen. Some calls must never succeed: a role that lacks the tool, a statement that writes, a program without an end.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from toolcage import ToolResult

CODER: Final = """
version: 1
role: coder
tools:
  execute_python:
    allow: [{}]
    sandbox: {wall: 4s, memory: 128MiB, pids: 32, tmp: 16MiB, isolation: container}
    output: {max_bytes: 64KiB}
  run_shell:
    allow: [{}]
    sandbox: {wall: 4s, memory: 128MiB, pids: 32, tmp: 16MiB, isolation: container}
  calculate_expression:
    allow: [{}]
"""
ANALYST: Final = """
version: 1
role: analyst
tools:
  query_database:
    resources: {database: [shop]}
    allow: [{sql: {tables: [orders]}}]
  calculate_expression:
    allow: [{}]
"""
ROWS: Final = 40
Check = Callable[[ToolResult], bool]
REFUSALS: Final = frozenset({"unavailable", "busy", "cancelled", "timeout"})
"""How a call that is good may fail because of what happens around it: a frozen cage runs out of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One call. `right` says whether a success is the right one; None: no success is. `ends` are the statuses, beside
    those of a fault, with which a call that must not succeed may end."""

    kind: str
    role: str
    tool: str
    arguments: Mapping[str, object]
    right: Check | None
    ends: frozenset[str] = frozenset()
    files: Mapping[str, bytes] = field(default_factory=dict)


def plan(number: int, seed: int) -> Planned:
    """The call with that number."""
    rng = random.Random(f"{seed}/{number}")
    token = f"t{number}x{rng.getrandbits(64):016x}"
    return rng.choices([make for make, _ in _KINDS], [weight for _, weight in _KINDS])[0](rng, token)


def _python(kind: str, code: str, right: Check | None, ends: frozenset[str] = frozenset(), **files: bytes) -> Planned:
    return Planned(
        kind=kind, role="coder", tool="execute_python", arguments={"code": code}, right=right, ends=ends,
        files={f"{name}.bin": content for name, content in files.items()},
    )  # fmt: skip


def _prints(rng: random.Random, token: str) -> Planned:
    return _python("prints", f"print({token!r})", lambda result: result.stdout == f"{token}\n")


def _returns(rng: random.Random, token: str) -> Planned:
    number = rng.randrange(1, 10**9)
    code = f"value = sum(range({number % 2000}))\n[value + {number}, {token!r}]"
    expected = [sum(range(number % 2000)) + number, token]
    return _python("returns", code, lambda result: _plain(result.data) == expected)


def _file(rng: random.Random, token: str) -> Planned:
    content = rng.randbytes(rng.randrange(1, 60_000)) + token.encode()
    digest = hashlib.sha256(content).hexdigest()
    code = (
        "import hashlib\ncontent = open('given.bin', 'rb').read()\n"
        f"open('back.bin', 'wb').write(content[::-1])\nhashlib.sha256(content).hexdigest() + {token!r}"
    )

    def right(result: ToolResult) -> bool:
        back = {item.name: item.content for item in result.artifacts}
        return result.data == digest + token and back == {"back.bin": content[::-1]}

    return _python("file", code, right, given=content)


def _fresh(rng: random.Random, token: str) -> Planned:
    """Whether anything of an earlier call is to be seen."""
    code = (
        "import os\nfound = [name for folder in ('/tmp', '/workspace', '/dev/shm') for name in os.listdir(folder)]\n"
        f"for folder in ('/tmp', '/dev/shm'): open(folder + '/mark', 'w').write({token!r})\n[found, {token!r}]"
    )
    return _python("fresh", code, lambda result: _plain(result.data) == [[], token])


def _long_output(rng: random.Random, token: str) -> Planned:
    """More than the cap: the kept text must be the program's own and say that it was cut."""
    code = f"for number in range(6000): print({token!r}, number)"

    def right(result: ToolResult) -> bool:
        lines = result.stdout.splitlines()
        return lines[0] == f"{token} 0" and any(item.part == "stdout" for item in result.truncated)

    return _python("long output", code, right)


def _shell(rng: random.Random, token: str) -> Planned:
    command = f"printf %s {token} | sha256sum | cut -d' ' -f1; echo {token} | tr a-z A-Z"
    expected = f"{hashlib.sha256(token.encode()).hexdigest()}\n{token.upper()}\n"
    return Planned(
        kind="shell", role="coder", tool="run_shell", arguments={"command": command},
        right=lambda result: result.stdout == expected,
    )  # fmt: skip


def _sum(rng: random.Random, token: str) -> Planned:
    first, second = rng.randrange(10**12), rng.randrange(10**12)
    return Planned(
        kind="sum", role=rng.choice(["coder", "analyst"]), tool="calculate_expression",
        arguments={"expression": f"{first} + {second}"},
        right=lambda result: str(first + second) in str(_plain(result.data)),
    )  # fmt: skip


def _query(rng: random.Random, token: str) -> Planned:
    number = rng.randrange(ROWS)
    sql = f"SELECT total, '{token}' AS token FROM orders WHERE id = {number}"

    def right(result: ToolResult) -> bool:
        text = str(_plain(result.data))
        return token in text and str(number * 7919) in text

    return Planned(kind="query", role="analyst", tool="query_database",
                   arguments={"database": "shop", "sql": sql}, right=right)  # fmt: skip


def _denied(rng: random.Random, token: str) -> Planned:
    return Planned(
        kind="denied", role="analyst", tool="execute_python", arguments={"code": f"print({token!r})"}, right=None,
        ends=frozenset({"denied"}),
    )  # fmt: skip


def _writes(rng: random.Random, token: str) -> Planned:
    return Planned(
        kind="writes", role="analyst", tool="query_database",
        arguments={"database": "shop", "sql": "DELETE FROM orders"}, right=None, ends=frozenset({"denied", "blocked"}),
    )  # fmt: skip


def _endless(rng: random.Random, token: str) -> Planned:
    return _python("endless", "while True: pass", None, frozenset({"timeout"}))


def _greedy(rng: random.Random, token: str) -> Planned:
    code = "kept = []\nwhile True: kept.append(bytearray(1 << 20))"
    return _python("greedy", code, None, frozenset({"out_of_memory", "tool_error", "limit_exceeded"}))


def _fails(rng: random.Random, token: str) -> Planned:
    return _python("fails", f"import sys\nprint({token!r})\nsys.exit(3)", None, frozenset({"tool_error"}))


_Make = Callable[[random.Random, str], Planned]
_KINDS: Final[tuple[tuple[_Make, int], ...]] = (
    (_prints, 14), (_returns, 10), (_file, 8), (_fresh, 10), (_long_output, 4), (_shell, 10), (_sum, 16), (_query, 12),
    (_denied, 4), (_writes, 4), (_endless, 2), (_greedy, 2), (_fails, 4),
)  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def judged(planned: Planned, result: ToolResult) -> str | None:
    """What is wrong with this answer to that call, or None.

    `wrong success`: a success that is not the call's own, or that may not be. `misjudged`: a failure that blames the
    program, the policy or a limit for what a fault did.
    """
    if result.success:
        right = planned.right is not None and planned.right(result)
        return None if right else "wrong success"
    allowed = REFUSALS | planned.ends
    return None if result.status in allowed else "misjudged"
