"""The body becomes bash itself. Harmless commands only: they run in a process of the test's own."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolcage.tools import run_shell
from toolcage.tools.base import ToolFailure, body_of
from toolcage.tools.run_shell import MAX_CHARACTERS, RunShell

RUNNER = """
import json, sys
from toolcage.tools import run_shell
from toolcage.tools.base import body_of
run_shell.WORKSPACE = sys.argv[1]
body_of(run_shell.RunShell())(command=sys.argv[2])
print("still Python")
"""


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUNNER, str(folder), command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        env={"LD_LIBRARY_PATH": "/nonexistent", "BASH_ENV": str(folder / "login"), "SECRET": "s3cret", "PATH": "/"},
    )


def test_output_errors_and_exit_code_are_bashs_own(tmp_path: Path) -> None:
    ran = run("echo out; echo err >&2; exit 7", tmp_path)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("out\n", "err\n", 7)


@pytest.mark.parametrize(
    ("command", "code"),
    [("true", 0), ("false", 1), ("no-such-program 2>&-", 127), ("if", 2), ("kill -TERM $$", -15), ("kill -9 $$", -9)],
)
def test_exit_codes_and_signals_are_exact(command: str, code: int, tmp_path: Path) -> None:
    assert run(command, tmp_path).returncode == code


def test_a_broken_pipe_ends_its_writer_silently_as_in_any_shell(tmp_path: Path) -> None:
    ran = run('yes | head -n 1; echo "${PIPESTATUS[0]}"', tmp_path)
    assert (ran.stdout, ran.stderr) == (f"y\n{128 + signal.SIGPIPE}\n", "")


def test_the_environment_is_a_constant_and_no_start_up_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "login").write_text("echo from a file of the environment's choice\n")
    for name in (".bashrc", ".profile", ".bash_profile"):
        (tmp_path / name).write_text("echo login\n")
    ran = run("env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= | sort; pwd; shopt -q login_shell || echo no login", tmp_path)
    expected = sorted(f"{name}={value}" for name, value in run_shell.ENVIRONMENT.items())
    assert ran.stdout.splitlines() == [*expected, str(tmp_path), "no login"]


def test_quotes_newlines_and_options_in_the_text_are_only_text(tmp_path: Path) -> None:
    assert run("echo \"a'b\" '$HOME'\nprintf '%s\\n' é", tmp_path).stdout == "a'b $HOME\né\n"
    assert "--version" in run("--version", tmp_path).stderr


@pytest.mark.parametrize(("command", "code"), [("echo \0", "shell.nul"), ("echo \ud800", "shell.text")])
def test_text_that_no_program_can_be_given_is_refused_with_a_hint(command: str, code: str) -> None:
    with pytest.raises(ToolFailure) as failed:
        body_of(RunShell())(command=command)
    assert failed.value.code == code
    assert failed.value.hint


def test_the_longest_text_fits_into_one_argument_whatever_its_characters(tmp_path: Path) -> None:
    assert len(("😀" * MAX_CHARACTERS).encode()) + 1 < 128 * 1024


def test_without_bash_the_answer_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_shell, "BASH", "/nonexistent/bash")
    monkeypatch.setattr(run_shell, "WORKSPACE", "/nonexistent")
    kept = {number: signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGXFSZ)}
    try:
        with pytest.raises(ToolFailure, match="bash could not be started"):
            body_of(RunShell())(command="true")
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
