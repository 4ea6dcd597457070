"""Programs in cages through the whole line: what comes back, what streams, which files go in and come out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from toolcage import ToolResult

pytestmark = pytest.mark.docker
Run = Callable[..., ToolResult]


# --- what comes back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "data", "stdout"),
    [
        ("6*7", 42, ""),
        ("print(6*7)", None, "42\n"),
        ("x = 6*7", None, ""),
        ("print('a'); {'b': [1, 2.5, None, True, 'ü']}", {"b": [1, 2.5, None, True, "ü"]}, "a\n"),
        ("import asyncio\nawait asyncio.sleep(0)\n'awaited'", "awaited", ""),
        ("{1, 2}.__class__.__name__", "set", ""),
        ("2**100", str(2**100), ""),
        ("float('nan')", "nan", ""),
        ("def f():\n  return __name__\nf()", "__main__", ""),
    ],
)
def test_a_program_gives_what_it_prints_and_the_value_of_its_last_expression(
    run: Run, code: str, data: object, stdout: str
) -> None:
    result = run(code)
    assert (result.status, result.data, result.stdout, result.stderr) == ("ok", data, stdout, "")
    assert result.exit_code == 0
    assert "untrusted" in result.labels


@pytest.mark.parametrize(
    ("code", "status", "exit_code"),
    [
        ("import sys; sys.exit(0)", "ok", 0),
        ("raise SystemExit", "ok", 0),
        ("import sys; sys.exit(3)", "tool_error", 3),
        ("import os; os._exit(7)", "tool_error", 7),
        ("raise SystemExit('reason')", "tool_error", 1),
        ("1/0", "tool_error", 1),
        ("def", "tool_error", 1),
        ("raise KeyboardInterrupt", "tool_error", 1),
        ("import os; os.kill(os.getpid(), 11)", "tool_error", -11),
        ("import os; os.abort()", "tool_error", -6),
        ("import os; os.kill(os.getpid(), 9)", "tool_error", -9),
    ],
)
def test_exit_codes_are_kept_and_137_alone_proves_nothing(run: Run, code: str, status: str, exit_code: int) -> None:
    result = run(f"print('before', flush=True)\n{code}")
    if code == "def":  # does not even begin
        assert "SyntaxError" in result.stderr
    else:
        assert result.stdout == "before\n"
    assert (result.status, result.exit_code, result.data) == (status, exit_code, None)


def test_a_failed_program_shows_its_own_traceback_and_nothing_of_the_host(run: Run, lasting: Any) -> None:
    result = run("def f():\n    raise ValueError('what went wrong')\nf()")
    assert result.code == "program.exit"
    assert result.stderr.splitlines()[-1] == "ValueError: what went wrong"
    assert "line 2, in f\n    raise ValueError('what went wrong')" in result.stderr
    for foreign in ("toolcage", "warden", str(lasting.folder)):
        assert foreign not in result.stderr


def test_output_that_is_not_utf_8_is_replaced_and_said(run: Run) -> None:
    result = run(r"import os; os.write(1, b'caf\xc3\xa9 \xff\xfe ok\n'); os.write(2, b'\xe2\x82'); None")
    assert result.success
    assert result.stdout == "café \ufffd\ufffd ok\n"
    assert "\ufffd" in result.stderr
    assert "encoding_replaced" in result.labels
    assert result.raw.stdout == b"caf\xc3\xa9 \xff\xfe ok\n"


def test_control_sequences_and_markup_come_out_inert(run: Run) -> None:
    result = run(r"print('\x1b]0;title\x07\x1b[2J<script>x</script>\u202e\u200b\U000e0041 AKIAIOSFODNN7EXAMPLE')")
    text = result.stdout
    assert not any(bad in text for bad in "\x1b\x07\u202e\u200b\U000e0041")
    assert "<script" not in text
    assert "AKIAIOSFODNN7EXAMPLE" not in text
    assert "secret_redacted" in result.labels


def test_usage_says_what_the_call_used(run: Run) -> None:
    used = run("x = bytearray(20_000_000)\nfor i in range(300_000): pass\nprint('y' * 1000)").usage
    assert 0 < used.wall_s < 10
    assert 0 < used.cpu_s <= used.wall_s * 4
    assert 20_000_000 < used.memory_peak_bytes < 256 * 1024 * 1024
    assert used.bytes_out >= 1001
    assert used.duration_ms > used.wall_s * 1000


@pytest.mark.threat("P33")
def test_nothing_of_a_call_is_there_in_the_next(run: Run) -> None:
    places = "['/tmp', '/workspace', '/dev/shm', '/var/tmp', '/run', '/dev/mqueue', '/data']"
    first = run(
        f"""
        import os, sys
        for place in {places}:
            try:
                open(place + '/canary', 'w').close()
            except OSError:
                pass
        os.environ['CANARY'] = '1'
        sys.canary = 1
        """
    )
    assert first.success
    for _ in range(3):
        second = run(
            f"""
            import os, sys
            [place for place in {places} if os.path.exists(place + '/canary')] + [
                'environment' for _ in [1] if 'CANARY' in os.environ] + ['sys' for _ in [1] if hasattr(sys, 'canary')]
            """
        )
        assert second.data == []


def test_many_calls_at_once_each_get_their_own_answer(coder: Any) -> None:
    results = coder.map([("execute_python", {"code": f"print({n})\n{n}*{n}"}) for n in range(10)], max_concurrent=4)
    assert [(item.data, item.stdout) for item in results] == [(n * n, f"{n}\n") for n in range(10)]


# --- streaming -----------------------------------------------------------------------------------------------------


def test_many_calls_show_how_far_they_are_where_that_is_asked_for(
    coder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = [("execute_python", {"code": "1"}), ("no_such_tool", {}), ("execute_python", {"code": "1 / 0"})]
    assert [result.status for result in coder.map(calls)] == ["ok", "denied", "tool_error"]
    assert capsys.readouterr().err == ""  # not a terminal, not asked for
    coder.map(iter(calls), progress=True)
    assert "3/3" in capsys.readouterr().err


def test_output_streams_while_the_program_runs(coder: Any) -> None:
    """The program waits for a file that only the watcher, seeing its first line, could make it stop waiting for: here
    the watcher cancels, so a result that were delivered whole at the end could never come."""
    from toolcage import CancelToken

    token, seen = CancelToken(), []

    def watch(name: str, text: str) -> None:
        seen.append((name, text))
        if len(seen) == 2:
            token.cancel()

    code = "import sys\nprint('one', flush=True)\nprint('two', file=sys.stderr, flush=True)\nwhile True: pass"
    result = coder.call("execute_python", {"code": code}, on_output=watch, cancel=token)
    assert result.status == "cancelled"
    assert sorted(seen) == [("stderr", "two\n"), ("stdout", "one\n")]


def test_what_streams_is_cleaned_and_is_the_same_text_as_the_result(coder: Any) -> None:
    seen: dict[str, list[str]] = {"stdout": [], "stderr": []}
    code = r"""
import os, sys
os.write(1, b'a\x1b[31mb\nk=AKIAIOSF'); os.write(1, b'ODNN7EXAMPLE\n<b'); os.write(1, b'>\xc3'); os.write(1, b'\xbc\n')
os.write(2, b'tail without newline')
"""
    result = coder.call("execute_python", {"code": code}, on_output=lambda name, text: seen[name].append(text))
    assert "".join(seen["stdout"]) == result.stdout
    assert "".join(seen["stderr"]) == result.stderr == "tail without newline"
    assert "AKIA" not in result.stdout
    assert "\x1b" not in result.stdout


def test_what_streams_is_capped_like_the_result(coder: Any) -> None:
    size = 0

    def watch(_name: str, text: str) -> None:
        nonlocal size
        size += len(text)

    result = coder.call("execute_python", {"code": "for i in range(3000): print('x' * 99)"}, on_output=watch)
    assert result.success
    assert size < 64 * 1024 + 200
    (cut,) = result.truncated
    assert (cut.part, cut.kept) == ("stdout", 65536)
    assert cut.dropped is not None
    assert 0 <= 300_000 - cut.kept - cut.dropped < 2048  # words that a border broke are neither


# --- files in ------------------------------------------------------------------------------------------------------


def test_attached_files_are_in_the_current_folder_and_only_changed_ones_come_back(run: Run) -> None:
    everything = bytes(range(256)) * 40
    result = run(
        """
        import os
        content = open('data/in.bin', 'rb').read()
        open('changed.txt', 'a').write(' and more')
        open('made.txt', 'w').write('new')
        [os.getcwd(), len(content), sum(content), sorted(os.listdir('.'))]
        """,
        files={"data/in.bin": everything, "same.txt": b"same", "changed.txt": b"old", "ünï code.txt": b"u"},
    )
    assert result.data == [
        "/workspace", len(everything), sum(everything), ["changed.txt", "data", "made.txt", "same.txt", "ünï code.txt"],
    ]  # fmt: skip
    assert {item.name: item.content for item in result.artifacts} == {
        "changed.txt": b"old and more", "made.txt": b"new",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../x", "a/../../x", "", ".", "a//b", "a\nb", "a\0b", "a\x1b[31m", "x" * 300, "a\\b", "\ud800"],
)
def test_an_attached_file_with_a_name_that_leaves_is_refused(run: Run, name: str) -> None:
    result = run("1", files={name: b""})
    assert (result.status, result.code) == ("malformed", "file.name")


def test_attached_files_are_bounded_in_count_and_size(run: Run) -> None:
    assert run("1", files={f"f{n}": b"" for n in range(33)}).code == "file.too_many"
    assert run("1", files={"f": bytes(16 * 1024 * 1024 + 1)}).code == "file.too_large"
    most = run("import os; os.path.getsize('f')", files={"f": bytes(16 * 1024 * 1024)})
    assert (most.status, most.data) == ("ok", 16 * 1024 * 1024)


def test_a_tool_that_takes_no_files_is_not_given_any(coder: Any) -> None:
    result = coder.call("calculate_expression", {"expression": "1"}, files={"f": b""})
    assert (result.status, result.code) == ("invalid", "files.not_accepted")


# --- files out -----------------------------------------------------------------------------------------------------


def test_files_of_the_workspace_come_out_exact_with_size_and_digest(run: Run) -> None:
    result = run("import os; os.makedirs('a/b'); open('a/b/c.bin', 'wb').write(bytes(range(256)) * 5000)")
    (artifact,) = result.artifacts
    assert (artifact.name, artifact.size, artifact.content) == ("a/b/c.bin", 1_280_000, bytes(range(256)) * 5000)
    assert len(artifact.sha256) == 64
    assert b"\x00\x01" not in repr(artifact).encode()


def test_files_are_kept_also_when_the_program_failed(run: Run) -> None:
    result = run("open('partial.csv', 'w').write('1,2')\n1/0")
    assert result.status == "tool_error"
    assert [item.name for item in result.artifacts] == ["partial.csv"]


@pytest.mark.threat("P34")
def test_special_files_and_links_neither_hang_the_collector_nor_come_out(run: Run) -> None:
    result = run(
        """
        import os, socket
        os.symlink('/etc/passwd', 'passwd.txt')
        os.symlink('/', 'root')
        os.symlink('.', 'loop')
        os.symlink('plain.txt', 'soft.txt')
        os.mkfifo('fifo')
        socket.socket(socket.AF_UNIX).bind('socket')
        open('plain.txt', 'w').write('plain')
        os.link('plain.txt', 'hard.txt')
        os.makedirs('locked'); open('locked/in.txt', 'w').write('x'); os.chmod('locked', 0)
        sorted(os.listdir('.'))
        """
    )
    assert len(result.data) == 9, result
    assert {item.name: item.content for item in result.artifacts} == {"plain.txt": b"plain", "hard.txt": b"plain"}


@pytest.mark.threat("P34")
def test_a_deep_tree_and_countless_files_are_bounded_and_said(run: Run) -> None:
    deep = run("import os\nos.makedirs('/'.join('d' * 60)); open('/'.join('d' * 60) + '/x', 'w').close()")
    assert deep.success
    assert deep.artifacts == ()
    many = run(
        """
        import errno
        made = 0
        try:
            for made in range(10**5):
                open(f'{made:06}', 'w').close()
        except OSError as error:
            print(errno.errorcode[error.errno])
        made
        """
    )
    assert many.success
    assert many.stdout == "ENOSPC\n"
    assert 1000 < many.data < 20_000
    assert len(many.artifacts) == 32
    assert [(cut.part, cut.kept) for cut in many.truncated] == [("artifacts", 32)]


@pytest.mark.threat("P34")
def test_names_cannot_carry_controls_or_leave_a_folder(run: Run) -> None:
    result = run(
        r"""
        import os
        for name in (b'line\nbreak', b'\x1b[2Jclear', b'\xff\xfe', '\u202egnp.exe'.encode(), b'..evil', b'a\\..\\b',
                     b'C:x', b'-rf', b'<img src=x>'):
            open(name, 'w').close()
        """
    )
    assert result.success
    assert len(result.artifacts) == 9
    names = [item.name for item in result.artifacts]
    assert len(set(names)) == 9
    for name in names:
        assert name.isprintable()
        assert not name.startswith(("/", ".."))
        assert not any(bad in name for bad in ("\n", "\x1b", "\u202e", "\\", "<"))
        assert ".." not in name.split("/")


def test_more_than_the_cap_of_file_bytes_is_left_behind_and_said(run: Run) -> None:
    result = run("for n in range(3): open(f'{n}.bin', 'wb').write(bytes(9_000_000))")
    assert [item.name for item in result.artifacts] == ["0.bin"]
    assert [(cut.part, cut.kept, cut.dropped) for cut in result.truncated] == [("artifacts", 1, 2)]


# --- what is left running ------------------------------------------------------------------------------------------


@pytest.mark.threat("P49")
def test_a_background_daemon_neither_delays_the_answer_nor_outlives_it(installation: Any) -> None:
    session = installation.session(
        "version: 1\nrole: r\ntools: {execute_python: {allow: [{}], sandbox: {wall: 60s}}}\n"
    )
    result = session.call(
        "execute_python",
        {
            "code": """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:  # holds every pipe of the call open and writes on
        os.write(1, b'daemon ')
        time.sleep(0.01)
time.sleep(0.2)
print('parent done', flush=True)
'value'
"""
        },
    )
    assert (result.status, result.data) == ("ok", "value")
    assert "parent done" in result.stdout
    assert result.usage.wall_s < 30  # the daemon never ends: only the deadline of 60 s would
    assert installation.gone()


def test_a_thread_that_still_runs_does_not_keep_the_call(run: Run) -> None:
    result = run("import threading, time\nthreading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n1")
    assert (result.status, result.data) == ("ok", 1)


def test_calls_from_many_threads_at_once_are_all_served(coder: Any) -> None:
    answers: list[Any] = []

    def one(number: int) -> None:
        answers.append((number, coder.call("execute_python", {"code": f"{number}"}).data))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answers) == [(number, number) for number in range(6)]


# --- what a failure says -------------------------------------------------------------------------------------------


def test_a_failed_program_says_its_last_line_in_the_error_and_names_itself_program_py(run: Run) -> None:
    result = run("def f():\n    return {}['<b>']\nf()")
    assert result.error == "the program ended with exit code 1: KeyError: '&lt;b>'"
    assert 'File "program.py", line 3, in &lt;module>' in result.stderr
    assert result.hint is None


def test_a_module_that_the_image_does_not_have_is_hinted_at(run: Run) -> None:
    result = run("import numpy")
    assert "No module named 'numpy'" in (result.error or "")
    assert "`data` has numpy" in (result.hint or "")


def test_a_program_that_only_exits_says_no_more_than_its_code(run: Run) -> None:
    assert run("raise SystemExit(3)").error == "the program ended with exit code 3"
