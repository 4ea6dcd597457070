"""A seccomp profile compiled to the kernel's filter program, for a process that loads it on itself.

The engine compiles the profile of a whole container; in `namespace` isolation the call's own first process loads the
`container` profile once it has set up its mounts. Pure: from the profile's rules and a table of system call numbers to
bytes. One straight list of comparisons, which is easy to check; the kernel caches the answer of calls that need no
argument. A call that is not named, or comes over another architecture's entry, gets the profile's default refusal.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from toolcage.cage.seccomp import load_profile
from toolcage.shipped import shipped_dir

AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN: Final = {"x86_64": 0, "aarch64": 1}
_INSTRUCTION: Final = struct.Struct("=HBBI")
MAX_INSTRUCTIONS: Final = 4096

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06  # ld [k]; and #k; ret #k
_EQUAL, _GREATER, _GREATER_EQUAL = 0x15, 0x25, 0x35
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_NEXT_RULE: Final = -1

_Step = tuple[int, int, int, int]
"""code, jump if true, jump if false, operand; a jump of `_NEXT_RULE` leaves the rule."""


@cache
def filters(*, internet: bool = True) -> Mapping[str, bytes]:
    """The `container` profile's program for each machine that the images are built for, as `struct sock_filter[]`."""
    profile = json.loads(load_profile("container", internet=internet).text)
    numbers = json.loads((shipped_dir("sandbox_images") / "seccomp" / "numbers.json").read_bytes())
    return {machine: compile_filter(profile, numbers, machine) for machine in AUDIT_ARCH}


def compile_filter(profile: Mapping[str, Any], numbers: Mapping[str, Sequence[int | None]], machine: str) -> bytes:
    """The program for one machine. Raises ValueError when a named call has no known number or the program is too long.

    `numbers` maps a call's name to its numbers on x86_64 and aarch64, None where that machine does not have it.
    """
    refuse = _ERRNO | (profile.get("defaultErrnoRet", 1) & 0xFFFF)
    program: list[_Step] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
    ]
    for rule in profile["syscalls"]:
        action = _action(rule)
        for name in rule["names"]:
            if name not in numbers:
                raise ValueError(f"the seccomp profile names {name}, whose number is not known")
            number = numbers[name][_COLUMN[machine]]
            if number is not None:
                program += _rule(number, rule.get("args") or (), action)
    program.append((_RETURN, 0, 0, refuse))
    if len(program) > MAX_INSTRUCTIONS:
        raise ValueError("the seccomp profile is longer than the kernel takes")
    return b"".join(_INSTRUCTION.pack(*step) for step in program)


def _action(rule: Mapping[str, Any]) -> int:
    if rule["action"] == "SCMP_ACT_ALLOW":
        return _ALLOW
    if rule["action"] == "SCMP_ACT_ERRNO":
        return _ERRNO | (int(rule.get("errnoRet", 1)) & 0xFFFF)
    raise ValueError(f"the seccomp action {rule['action']} is not known")


def _rule(number: int, conditions: Sequence[Mapping[str, Any]], action: int) -> list[_Step]:
    """If the call has this number and every condition holds, the action; otherwise on to the next rule."""
    steps: list[_Step] = [(_LOAD, 0, 0, _NUMBER), (_EQUAL, 0, _NEXT_RULE, number)]
    for condition in conditions:
        steps += _condition(condition)
    steps.append((_RETURN, 0, 0, action))
    return [_resolved(step, len(steps) - place - 1) for place, step in enumerate(steps)]


def _resolved(step: _Step, to_next_rule: int) -> _Step:
    code, if_true, if_false, operand = step
    return (
        code,
        to_next_rule if if_true == _NEXT_RULE else if_true,
        to_next_rule if if_false == _NEXT_RULE else if_false,
        operand,
    )


def _condition(condition: Mapping[str, Any]) -> list[_Step]:
    """One comparison of a whole 64-bit argument: high half, then low half. Falls through when it holds."""
    low = _ARGUMENTS + 8 * condition["index"]
    value, second = condition["value"], condition.get("valueTwo", 0)
    match condition["op"]:
        case "SCMP_CMP_EQ":
            return [
                (_LOAD, 0, 0, low + 4),
                (_EQUAL, 0, _NEXT_RULE, value >> 32),
                (_LOAD, 0, 0, low),
                (_EQUAL, 0, _NEXT_RULE, value & 0xFFFFFFFF),
            ]
        case "SCMP_CMP_MASKED_EQ":
            return [
                (_LOAD, 0, 0, low + 4),
                (_AND, 0, 0, value >> 32),
                (_EQUAL, 0, _NEXT_RULE, second >> 32),
                (_LOAD, 0, 0, low),
                (_AND, 0, 0, value & 0xFFFFFFFF),
                (_EQUAL, 0, _NEXT_RULE, second & 0xFFFFFFFF),
            ]
        case "SCMP_CMP_LT":
            return [
                (_LOAD, 0, 0, low + 4),
                (_GREATER, _NEXT_RULE, 0, value >> 32),
                (_EQUAL, 0, 2, value >> 32),  # a smaller high half is enough
                (_LOAD, 0, 0, low),
                (_GREATER_EQUAL, _NEXT_RULE, 0, value & 0xFFFFFFFF),
            ]
    raise ValueError(f"the seccomp comparison {condition['op']} is not known")
