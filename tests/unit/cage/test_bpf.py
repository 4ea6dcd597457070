"""The compiled filter: interpreted instruction by instruction, it answers as the profile's rules say."""

import errno
import json
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcage.cage import bpf
from toolcage.cage.seccomp import load_profile
from toolcage.shipped import shipped_dir

ALLOW, EPERM, ENOSYS, ENOTSUP, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x0005005F, 0x80000000
PROFILE = json.loads(load_profile("container").text)
NUMBERS = json.loads((shipped_dir("sandbox_images") / "seccomp" / "numbers.json").read_bytes())
X86 = bpf.AUDIT_ARCH["x86_64"]


def interpret(program: bytes, number: int, arguments: Sequence[int] = (), architecture: int = X86) -> int:
    """What the kernel's classic BPF machine returns for one call."""
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *[*arguments, *[0] * 6][:6])
    steps = list(struct.iter_unpack("=HBBI", program))
    place, accumulator = 0, 0
    while True:
        code, if_true, if_false, operand = steps[place]
        place += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == 0x54:
            accumulator &= operand
        elif code == 0x06:
            return operand
        else:
            holds = {0x15: accumulator == operand, 0x25: accumulator > operand, 0x35: accumulator >= operand}[code]
            place += if_true if holds else if_false


def call(name: str, *arguments: int) -> int:
    return interpret(bpf.filters()["x86_64"], NUMBERS[name][0], arguments)


def expected(number: int, arguments: Sequence[int]) -> int:
    """The profile read as its rules say, without any compiling."""
    for rule in PROFILE["syscalls"]:
        for name in rule["names"]:
            if NUMBERS[name][0] != number:
                continue
            if all(holds(condition, arguments) for condition in rule.get("args") or ()):
                return ALLOW if rule["action"] == "SCMP_ACT_ALLOW" else 0x00050000 | rule["errnoRet"]
    return EPERM


def holds(condition: dict[str, Any], arguments: Sequence[int]) -> bool:
    argument, value = arguments[condition["index"]], condition["value"]
    if condition["op"] == "SCMP_CMP_EQ":
        return argument == value
    if condition["op"] == "SCMP_CMP_LT":
        return argument < value
    return (argument & value) == condition["valueTwo"]


def test_allowed_calls_pass_and_the_neighbours_of_conditions_do_not() -> None:
    assert call("read") == call("mmap") == call("futex") == ALLOW
    assert call("clone", 0) == ALLOW
    assert call("clone", 0x10000000) == EPERM
    assert call("socket", 1, 1, 0) == call("socket", 2, 1, 6) == ALLOW
    assert call("socket", 16, 3, 0) == call("socket", 2, 3, 1) == call("socket", 2, 2, 17) == EPERM
    assert call("prlimit64", 0) == ALLOW
    assert call("prlimit64", 1) == call("prlimit64", 1 << 32) == EPERM
    assert call("clone3") == call("memfd_create") == ENOSYS
    assert call("setxattr") == call("fremovexattr") == ENOTSUP


def test_the_calls_that_isolate_are_refused_once_the_filter_is_loaded() -> None:
    known = json.loads((shipped_dir("sandbox_images").parent / "tests/data/syscall_numbers.json").read_bytes())
    for name in ("unshare", "mount", "capset", "setns", "pivot_root", "ptrace", "bpf", "seccomp", "keyctl"):
        assert interpret(bpf.filters()["x86_64"], known[name][0]) == EPERM, name
    assert call("prctl", 22) == call("prctl", 24) == call("ioctl", 0, 0x8914) == EPERM


def test_another_architecture_s_entry_is_killed_and_x32_numbers_are_refused() -> None:
    assert interpret(bpf.filters()["x86_64"], NUMBERS["read"][0], architecture=0x40000003) == KILL
    assert interpret(bpf.filters()["x86_64"], 0x40000000 | NUMBERS["read"][0]) == EPERM
    assert interpret(bpf.filters()["aarch64"], NUMBERS["read"][0]) == KILL


CONDITIONED = sorted({name for rule in PROFILE["syscalls"] if rule.get("args") for name in rule["names"]})
INTERESTING = sorted(
    {near & (2**64 - 1) for rule in PROFILE["syscalls"] for item in rule.get("args") or ()
     for base in (item["value"], item.get("valueTwo", 0)) for near in (base - 1, base, base + 1, base + (1 << 32))}
)  # fmt: skip


@given(
    st.sampled_from(CONDITIONED) | st.sampled_from(sorted(NUMBERS)),
    st.lists(st.sampled_from(INTERESTING) | st.integers(0, 2**64 - 1), min_size=6, max_size=6),
)
def test_every_call_gets_the_answer_that_the_rules_give(name: str, arguments: list[int]) -> None:
    number = NUMBERS[name][0]
    if number is not None:
        assert interpret(bpf.filters()["x86_64"], number, arguments) == expected(number, arguments)


def test_a_call_whose_number_is_not_known_and_an_unknown_comparison_do_not_compile() -> None:
    rule = {"names": ["read"], "action": "SCMP_ACT_ALLOW"}
    with pytest.raises(ValueError, match="number is not known"):
        bpf.compile_filter({"syscalls": [{**rule, "names": ["new_call"]}]}, NUMBERS, "x86_64")
    with pytest.raises(ValueError, match="comparison"):
        bpf.compile_filter({"syscalls": [{**rule, "args": [{"index": 0, "value": 1, "op": "X"}]}]}, NUMBERS, "x86_64")
    with pytest.raises(ValueError, match="action"):
        bpf.compile_filter({"syscalls": [{**rule, "action": "SCMP_ACT_LOG"}]}, NUMBERS, "x86_64")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_call_without_a_portal_has_no_internet_and_one_with_a_portal_what_reaches_it(machine: str) -> None:
    number, architecture = NUMBERS["socket"][machine == "aarch64"], bpf.AUDIT_ARCH[machine]
    unknown = 0x00050000 | errno.EAFNOSUPPORT
    for internet, tcp, udp in ((True, ALLOW, EPERM), (False, unknown, unknown)):
        program = bpf.filters(internet=internet)[machine]
        assert interpret(program, number, [2, 1, 0], architecture) == tcp
        assert interpret(program, number, [2, 2, 0], architecture) == udp
        for kind in (1, 2):
            assert interpret(program, number, [10, kind, 0], architecture) == unknown
        assert interpret(program, number, [1, 1, 0], architecture) == ALLOW
        assert interpret(program, number, [16, 3, 0], architecture) == EPERM
