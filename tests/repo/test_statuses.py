"""docs/statuses.md holds every status and code of the source, and none that is not there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from toolcage.audit.report import Problem
from toolcage.types import STATUSES

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "runtime" / "toolcage"
TEXT = (ROOT / "docs" / "statuses.md").read_text()

CODE = re.compile(r"[a-z]+\.[a-z][a-z_]*")
# Strings of the same form that are no codes: files, modules, labels, a lock's name. A new one needs a decision.
NO_CODES = re.compile(
    r".*\.(?:json|jsonl|lock|tar|yaml|py|sqlite|txt)|toolcage\..*|matplotlib\.pyplot|images\.build"
    r"|example\.com|metadata\.goog|security\.capability|html\.parser"
)
REPAIRERS = {"model", "user", "program", "operator", "time", "–"}


def rows() -> Iterator[list[str]]:
    for line in TEXT.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def documented() -> dict[str, list[str]]:
    """code → the other cells of its row."""
    found: dict[str, list[str]] = {}
    for first, *rest in rows():
        for name in re.findall(r"`([^`]+)`", first):
            if "." in name:
                assert name not in found, f"{name} stands twice"
                found[name] = rest
    return found


def source_trees() -> Iterator[ast.Module]:
    for path in sorted(SOURCE.rglob("*.py")):
        if "demo" not in path.parts:
            yield ast.parse(path.read_text())


def codes_in(tree: ast.AST) -> Iterator[str]:
    """Strings that have the form of a code; `*.word` for one whose first part is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = node.values
            if len(parts) != 2 or isinstance(parts[0], ast.Constant) or not isinstance(parts[1], ast.Constant):
                continue
            if re.fullmatch(r"\.[a-z]+_[a-z_]+", str(parts[1].value)):
                yield f"*{parts[1].value}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
            yield node.value


def source_codes() -> set[str]:
    found = {code for tree in source_trees() for code in codes_in(tree)}
    return {code for code in found - set(get_args(Problem)) if not NO_CODES.fullmatch(code)}


def fits(code: str, patterns: set[str]) -> bool:
    return code in patterns or f"*.{code.partition('.')[2]}" in patterns


def test_every_code_of_the_source_has_its_row() -> None:
    known = documented().keys()
    missing = {code for code in source_codes() if not code.startswith("*")} - known
    assert missing == set()
    for pattern in (code for code in source_codes() if code.startswith("*")):
        assert [code for code in known if code.endswith(pattern[1:])], pattern


def test_every_row_is_a_code_of_the_source() -> None:
    codes = source_codes()
    assert [code for code in documented() if not fits(code, codes)] == []


def test_every_status_has_one_row_in_the_order_of_the_closed_set() -> None:
    statuses = [match[1] for row in rows() if (match := re.fullmatch(r"`([a-z_]+)`", row[0]))]
    assert statuses == list(STATUSES)


def test_every_row_names_real_statuses_and_says_who_can_repair_it() -> None:
    for code, (status, meaning, who) in documented().items():
        assert status == "–" or {*status.split(", ")} <= {*STATUSES}, code
        assert {*who.split(", ")} <= REPAIRERS, code
        assert meaning, code
    for first, *_, who in rows():
        assert {*who.split(", ")} <= REPAIRERS, first


def test_a_refusal_that_the_source_spells_out_has_the_status_of_its_row() -> None:
    table = documented()
    seen = 0
    for tree in source_trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Refusal":
                given = {item.arg: item.value for item in node.keywords}
                status, code = given.get("status"), given.get("code")
                if isinstance(status, ast.Constant) and isinstance(code, ast.Constant):
                    seen += 1
                    assert status.value in table[code.value][0].split(", "), code.value
    assert seen > 10


def test_what_a_tool_reports_itself_is_a_tool_error() -> None:
    table = documented()
    for tree in source_trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ToolFailure":
                code = getattr(node.args[0], "value", None)
                assert not isinstance(code, str) or "tool_error" in table[code][0].split(", "), code
