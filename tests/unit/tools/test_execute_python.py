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


# --- what the last value shows of itself -----------------------------------------------------------------------------

SHOWS = """
class Shows:
    def __repr__(self): return "as text"
    {methods}
{last}
"""
PNG = b"\x89PNG\r\n\x1a\nrest"


def shown(methods: str, folder: pathlib.Path, last: str = "Shows()") -> Ran:
    return run(SHOWS.format(methods=methods, last=last), folder)


@pytest.mark.parametrize(
    ("methods", "name", "content"),
    [
        ("def _repr_html_(self): return '<b>é</b>'", "value.html", "<b>é</b>".encode()),
        ("def _repr_html_(self): return ('<b>1</b>', {'isolated': True})", "value.html", b"<b>1</b>"),
        ("def _repr_markdown_(self): return '*1*'", "value.md", b"*1*"),
        ("def _repr_svg_(self): return '<svg/>'", "value.svg", b"<svg/>"),
        ("def _repr_latex_(self): return '$x$'", "value.tex", b"$x$"),
        ("def _repr_json_(self): return {'a': [1]}", "value.json", b'{"a": [1]}'),
        (f"def _repr_png_(self): return {PNG!r}", "value.png", PNG),
        ("def _repr_mimebundle_(self, include=None, exclude=None): return {'text/html': 'b'}", "value.html", b"b"),
        ("def _repr_mimebundle_(self, **all):\n        import base64\n"
         f"        return {{'image/png': base64.b64encode({PNG!r}).decode()}}, {{}}", "value.png", PNG),
    ],
)  # fmt: skip
def test_what_a_value_shows_in_a_notebook_is_a_file_and_its_text_stays(
    methods: str, name: str, content: bytes, tmp_path: pathlib.Path
) -> None:
    ran = shown(methods, tmp_path)
    assert (ran.value, ran.stderr, ran.code) == ("as text", "", 0)
    assert {path.name for path in tmp_path.iterdir()} == {".value", name}
    assert (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize(
    "methods",
    [
        "def _repr_html_(self): raise RuntimeError('x')",
        "def _repr_html_(self): raise SystemExit(3)",
        "def _repr_html_(self): return 7",
        "def _repr_html_(self): return None",
        "def _repr_html_(self): return 'x' * 2_000_000",
        "def _repr_png_(self): return b'GIF8'",
        "def _repr_png_(self): return 'no base64 at all'",
        "def _repr_json_(self): return {'a': object()}",
        "def _repr_mimebundle_(self): return {}",
        "_repr_html_ = 'no method'",
        "def __getattr__(self, name): return lambda: 'everything'",
        "def _repr_html_(self):\n        import sys; sys.stderr = None; raise ValueError",
    ],
)
def test_a_value_that_shows_itself_badly_costs_the_file_and_nothing_else(methods: str, tmp_path: pathlib.Path) -> None:
    ran = shown(methods, tmp_path)
    assert (ran.value, ran.code) == ("as text", 0)
    assert {path.name for path in tmp_path.iterdir()} == {".value"}


def test_only_an_instance_in_the_last_expression_shows_itself_and_overwrites_no_file(tmp_path: pathlib.Path) -> None:
    html = "def _repr_html_(self): return '1'"
    shown(html, tmp_path, "Shows")
    shown(html, tmp_path, "x = Shows()")
    shown(html, tmp_path, "[Shows()]")
    assert {path.name for path in tmp_path.iterdir()} == {".value"}
    shown(html, tmp_path, "open('value.html', 'w').write('mine'); Shows()")
    assert (tmp_path / "value.html").read_text() == "mine"
    assert (tmp_path / "value_2.html").read_text() == "1"
