"""What `toolcage call` makes of its arguments and where it writes, without an engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolcage.cli.call import _attached, _raw_call, _save
from toolcage.errors import Refused, UsageError
from toolcage.line.parse import parse
from toolcage.types import Artifact


def artifact(name: str) -> Artifact:
    return Artifact(name=name, media_type="text/plain", size=3, sha256="0" * 64, content=b"new")


def test_arguments_reach_the_lines_own_parser_as_they_were_typed() -> None:
    assert parse(_raw_call("calculate_expression", '{"expression": "1"}')).arguments == {"expression": "1"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ('{"a": 1, "a": 2}', "call.duplicate_key"),
        ('{}, "tool": "execute_python"', "call.duplicate_key"),
        ('{}, "more": 1', "call.unknown_field"),
        ('{"a": NaN}', "call.number"),
        ("[1]", "call.arguments"),
        ("", "call.not_json"),
    ],
)
def test_arguments_that_are_no_object_or_try_to_be_more_are_refused(arguments: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(_raw_call("calculate_expression", arguments))
    assert refused.value.refusal.code == code


def test_a_tools_name_cannot_break_out_of_the_call() -> None:
    assert json.loads(_raw_call('x", "arguments": {}, "y": "', "{}"))["tool"] == 'x", "arguments": {}, "y": "'


def test_attached_files_go_by_their_names_and_two_of_one_name_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.csv").write_text("2")
    assert _attached([tmp_path / "a.csv"]) == {"a.csv": b"1"}
    with pytest.raises(UsageError, match=r"two attached files are called a\.csv"):
        _attached([tmp_path / "a.csv", tmp_path / "sub" / "a.csv"])


def test_files_that_came_out_never_replace_one_and_stay_in_their_folder(tmp_path: Path) -> None:
    _save([artifact("plot.svg"), artifact("../up/x.txt")], tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".._up_x.txt", "plot.svg"]
    (tmp_path / "out" / "plot.svg").write_text("old")
    with pytest.raises(UsageError, match="the call ran"):
        _save([artifact("plot.svg")], tmp_path / "out")
    assert (tmp_path / "out" / "plot.svg").read_text() == "old"
