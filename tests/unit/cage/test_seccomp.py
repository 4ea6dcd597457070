"""The seccomp profile as data: sound, narrow, and refused when somebody widens it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcage.cage.seccomp import CONDITIONAL, FORBIDDEN, NAMESPACE_ADDITIONS, _widened, load_profile, read_profile
from toolcage.errors import ImageError
from toolcage.shipped import shipped_dir

KNOWN = set(json.loads((Path(__file__).parents[2] / "data" / "syscall_numbers.json").read_text()))
FOLDER = shipped_dir("sandbox_images") / "seccomp"
SHIPPED = [FOLDER / "container.json"]


def edited(tmp_path: Path, edit: Callable[[dict[str, Any]], object]) -> Path:
    data = json.loads((FOLDER / "container.json").read_text())
    edit(data)
    path = tmp_path / "container.json"
    path.write_text(json.dumps(data))
    return path


def allow(*names: str, **more: Any) -> Callable[[dict[str, Any]], object]:
    return lambda data: data["syscalls"].append({"names": list(names), "action": "SCMP_ACT_ALLOW", **more})


def condition(index: int, value: int, op: str = "SCMP_CMP_EQ") -> dict[str, Any]:
    return {"index": index, "value": value, "op": op}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_profile_is_accepted_and_names_only_known_calls(path: Path) -> None:
    profile = read_profile(path)
    assert profile.allowed
    assert profile.allowed <= KNOWN
    assert not profile.allowed & FORBIDDEN


def test_namespace_adds_to_container_only_what_the_warden_needs_to_isolate_a_call() -> None:
    container, namespace = load_profile("container"), load_profile("namespace")
    assert namespace.allowed - container.allowed == {"capset", "mount", "unshare"}
    more = json.loads(namespace.text)["syscalls"][len(json.loads(container.text)["syscalls"]) :]
    assert {name for rule in more for name in rule["names"]} == NAMESPACE_ADDITIONS
    assert all(rule.get("args") for rule in more if set(rule["names"]) & CONDITIONAL)


@pytest.mark.parametrize("rule", [{"names": ["bpf"]}, {"names": ["ioctl"]}, {"names": ["mount"], "unknown": 1}])
def test_an_addition_that_is_not_one_of_those_is_refused(rule: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "additions.json"
    path.write_text(json.dumps({"syscalls": [{"action": "SCMP_ACT_ALLOW", **rule}]}))
    with pytest.raises(ImageError):
        _widened(load_profile("container"), path)


def test_the_shipped_numbers_are_those_of_the_tests_table() -> None:
    numbers = json.loads((FOLDER / "numbers.json").read_text())
    table = json.loads((Path(__file__).parents[2] / "data" / "syscall_numbers.json").read_text())
    assert numbers == {name: table[name] for name in numbers}


def test_the_text_for_the_engine_is_the_data_of_the_file() -> None:
    path = FOLDER / "container.json"
    assert json.loads(read_profile(path).text) == json.loads(path.read_text())


def test_every_forbidden_and_conditional_name_is_a_known_call() -> None:
    assert KNOWN | {"umount"} >= FORBIDDEN | CONDITIONAL  # 32-bit x86 only


def test_every_rule_with_a_condition_and_every_refusal_is_explained_in_the_readme() -> None:
    readme = (FOLDER / "README.md").read_text()
    rules = json.loads((FOLDER / "container.json").read_text())["syscalls"]
    named = {name for rule in rules if rule.get("args") or "errnoRet" in rule for name in rule["names"]}
    assert {name for name in named if f"`{name}`" not in readme} == set()


@pytest.mark.parametrize("name", sorted(FORBIDDEN))
def test_a_profile_that_allows_a_forbidden_call_is_refused_with_or_without_a_condition(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(ImageError, match="forbidden"):
        read_profile(edited(tmp_path, allow(name)))
    with pytest.raises(ImageError, match="forbidden"):
        read_profile(edited(tmp_path, allow(name, args=[condition(0, 0)])))


@pytest.mark.parametrize("name", sorted(CONDITIONAL))
def test_a_profile_that_lifts_the_condition_of_a_bounded_call_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="without a condition"):
        read_profile(edited(tmp_path, allow(name)))


def test_another_condition_on_a_bounded_call_is_accepted(tmp_path: Path) -> None:
    assert "prctl" in read_profile(edited(tmp_path, allow("prctl", args=[condition(0, 40)]))).allowed


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda data: data.update(defaultAction="SCMP_ACT_ALLOW"), "defaultAction"),
        (lambda data: data.update(defaultAction="SCMP_ACT_LOG"), "defaultAction"),
        (lambda data: data.update(flags=["SECCOMP_FILTER_FLAG_SPEC_ALLOW"]), "flags"),
        (lambda data: data["archMap"][0].update(subArchitectures=["SCMP_ARCH_X86"]), "subArchitectures"),
        (lambda data: data.update(archMap=[]), "archMap"),
        (allow("read"), "named twice"),
        (allow("acct", includes={"caps": ["CAP_SYS_PACCT"]}), "includes"),
        (allow("prctl", args=[condition(0, 1), condition(0, 2)]), "two conditions on one argument"),
        (allow("prctl", args=[condition(0, 35, "SCMP_CMP_NE")]), "op"),  # high bits pass a "not equal"
        (allow("read", args=[condition(0, 1)]), "bounded or refused by another"),
        (lambda data: data["syscalls"].append({"names": ["bpf"], "action": "SCMP_ACT_TRACE"}), "action"),
        (
            lambda data: data["syscalls"].append({"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}),
            "refused",
        ),
    ],
)
def test_a_profile_that_is_wider_or_ambiguous_is_refused(
    edit: Callable[[dict[str, Any]], object], why: str, tmp_path: Path
) -> None:
    with pytest.raises(ImageError, match=why):
        read_profile(edited(tmp_path, edit))


def test_a_missing_or_broken_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="cannot be read"):
        read_profile(tmp_path / "absent.json")
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ImageError, match="restore the shipped file"):
        read_profile(tmp_path / "broken.json")
