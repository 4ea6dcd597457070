"""A program runs as Python itself would run it. Harmless programs only: they run in a process of the test's own."""

import json
import pathlib
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from toolcage.tools.base import body_of
from toolcage.tools.execute_python import ExecutePython

RUNNER = """
import json, sys
from toolcage.tools import execute_python
from toolcage.tools.base import ToolFailure, body_of
folder, code = sys.argv[1:]
execute_python.WORKSPACE = folder
try:
    value = body_of(execute_python.ExecutePython())(code=code)
except ToolFailure as failed:
    value = {"failed": failed.code}
open(folder + "/.value", "w").write(json.dumps(value))
"""


@dataclass
class Ran:
    value: Any
    stdout: str
    stderr: str
    code: int


def run(code: str, folder: pathlib.Path) -> Ran:
    done = subprocess.run([sys.executable, "-c", RUNNER, str(folder), code], capture_output=True, text=True, timeout=60)
    told = folder / ".value"
    value = json.loads(told.read_text()) if told.exists() else None
    return Ran(value, done.stdout, done.stderr, done.returncode)


def test_output_and_the_value_of_the_last_expression_come_back(tmp_path: pathlib.Path) -> None:
    ran = run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7", tmp_path)
    assert (ran.value, ran.stdout, ran.stderr, ran.code) == (42, "out\n", "err\n", 0)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("x = 1", None),
        ("", None),
        ("None", None),
        ("[1, 'a', {'b': [None, True, 1.5]}]", [1, "a", {"b": [None, True, 1.5]}]),
        ("(1, 2)", "(1, 2)"),
        ("{1: 2}", "{1: 2}"),
        ("2 ** 53 + 1", "9007199254740993"),
        ("float('nan')", "nan"),
        ("'\\ud800'", "\ud800…"),
        ("import enum\nclass E(enum.IntEnum):\n    A = 1\nE.A", "<E.A: 1>"),
        ("x = []\nx.append(x)\nx", "[[...]]"),
        ("def f(): pass\nf.__module__", "__main__"),
        ("await __import__('asyncio').sleep(0, 'later')", "later"),
        ("import asyncio\nt = asyncio.ensure_future(asyncio.sleep(0, 5))\nawait t", 5),
        ("async def f():\n    return 3\nx = await f()\nx", 3),
        ("__name__", "__main__"),
        ("import __main__\n__main__.x = 4\nx", 4),
    ],
)
def test_values_come_natively_where_json_gives_back_the_same(code: str, value: object, tmp_path: pathlib.Path) -> None:
    ran = run(code, tmp_path)
    assert (ran.value, ran.code, ran.stderr) == (value, 0, "")


def test_large_values_are_cut(tmp_path: pathlib.Path) -> None:
    assert len(run("'x' * 10**6", tmp_path).value) == 4097
    assert len(run("list(range(10**6))", tmp_path).value) == 4097


def test_an_error_prints_an_ordinary_traceback_with_source_lines_and_without_our_frames(tmp_path: pathlib.Path) -> None:
    ran = run("def f():\n    return 1 / 0\nprint('before')\nf()", tmp_path)
    assert (ran.code, ran.value, ran.stdout) == (1, None, "before\n")
    assert ran.stderr.startswith('Traceback (most recent call last):\n  File "program.py", line 4, in <module>\n')
    assert "return 1 / 0" in ran.stderr
    assert ran.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    assert "execute_python" not in ran.stderr


def test_a_syntax_error_is_shown_with_its_line(tmp_path: pathlib.Path) -> None:
    ran = run("x = 1\ny = = 2", tmp_path)
    assert ran.code == 1
    assert 'File "program.py", line 2' in ran.stderr
    assert "y = = 2" in ran.stderr
    assert "execute_python" not in ran.stderr


@pytest.mark.parametrize(
    ("code", "exit_code", "stderr"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit('bye')", 1, "bye\n"),
        ("raise SystemExit(7)", 7, ""),
        ("exit = 1\nawait __import__('asyncio').sleep(0)\nraise SystemExit(5)", 5, ""),
    ],
)
def test_exit_codes_are_kept(code: str, exit_code: int, stderr: str, tmp_path: pathlib.Path) -> None:
    ran = run(code, tmp_path)
    assert (ran.code, ran.stderr) == (exit_code, stderr)


@pytest.mark.parametrize(
    "code",
    [
        "raise KeyboardInterrupt",
        "class E(Exception):\n    def __str__(self): raise SystemExit(0)\nraise E",
        "class R:\n    def __repr__(self): raise ValueError('no repr')\nR()",
        "import sys\nsys.stderr = None\n1 / 0",
        "import sys\nsys.stdout.close()\n1 / 0",
    ],
)
def test_a_program_that_fails_strangely_still_ends_with_one(code: str, tmp_path: pathlib.Path) -> None:
    ran = run(code, tmp_path)
    assert (ran.code, ran.value) == (1, None)


def test_files_are_read_from_and_written_to_the_workspace(tmp_path: pathlib.Path) -> None:
    (tmp_path / "in.txt").write_text("hello")
    (tmp_path / "helper.py").write_text("answer = 5")
    ran = run("import helper\nopen('out.txt', 'w').write(open('in.txt').read().upper())\nhelper.answer", tmp_path)
    assert ran.value == 5
    assert (tmp_path / "out.txt").read_text() == "HELLO"


def test_a_program_with_a_nul_is_a_clear_error() -> None:
    from toolcage.tools.base import ToolFailure

    with pytest.raises(ToolFailure) as caught:
        body_of(ExecutePython())(code="a\x00")
    assert caught.value.code == "python.nul"


def test_the_tool_hides_nothing_of_our_own_in_the_programs_names(tmp_path: pathlib.Path) -> None:
    assert run("sorted(name for name in globals() if not name.startswith('__'))", tmp_path).value == []
