"""What users of other sandboxes report and no other test here attacks; docs/peers.md maps every report to its test."""

from __future__ import annotations

import gc
import os
import re
import resource
from pathlib import Path
from typing import Any

import pytest

from toolcage import PoolTerms

pytestmark = pytest.mark.docker
ROOT = Path(__file__).parents[2]
ROLE = """
version: 1
role: coder
tools: {execute_python: {allow: [{}], sandbox: {%s}}}
"""


def test_a_timed_out_program_keeps_everything_that_it_printed(installation: Any) -> None:
    session = installation.session(ROLE % "wall: 1s")
    result = session.call("execute_python", {"code": "for n in range(1000): print(n)\nwhile True: pass"})
    assert result.status == "timeout"
    assert result.stdout == "".join(f"{number}\n" for number in range(1000))


@pytest.mark.parametrize("terms", [PoolTerms(min_idle=0), PoolTerms(min_idle=2)], ids=["cold", "warm"])
def test_no_byte_is_missing_from_the_beginning_or_the_end_however_short_the_program(
    terms: PoolTerms, installation: Any
) -> None:
    session = installation.session(pool=terms)
    for number in range(15):
        result = session.call("execute_python", {"code": f"import os; os.write(1, b'<{number}>'); os._exit(0)"})
        assert (result.stdout, result.exit_code) == (f"<{number}>", 0), result


def test_the_least_number_of_processes_that_a_policy_may_say_is_enough_to_answer(installation: Any) -> None:
    least = min(pids for pids in range(1, 65) if _loads(installation, pids))
    session = installation.session(ROLE % f"pids: {least}")
    result = session.call("execute_python", {"code": "6 * 7"})
    assert (result.status, result.data) == ("ok", 42)


def _loads(installation: Any, pids: int) -> bool:
    from toolcage.errors import PolicyError

    try:
        installation.runtime(ROLE % f"pids: {pids}")
    except PolicyError:
        return False
    return True


def test_temporary_files_folders_and_the_home_work_although_the_root_is_read_only(run: Any) -> None:
    result = run(
        """
        import os, pathlib, tempfile
        with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as folder:
            file.write(b"x"); pathlib.Path(folder, "y").write_text("y")
        pathlib.Path.home().joinpath("z").write_text("z")
        [tempfile.gettempdir(), os.getcwd(), os.access("/", os.W_OK)]
        """
    )
    assert result.data == ["/tmp", "/workspace", False]


def test_the_host_does_not_grow_with_refused_calls(installation: Any) -> None:
    session = installation.session()

    def refuse(times: int) -> None:
        for number in range(times):
            assert session.call("send_money", {"to": f"x{number}"}).status == "denied"
            assert session.call("execute_python", {"kode": number}).status == "invalid"

    refuse(200)
    gc.collect()
    files, peak = len(os.listdir("/proc/self/fd")), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refuse(500)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= files
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 8 * 1024  # KiB


def test_every_test_that_the_map_of_reports_names_exists_and_every_report_is_in_it() -> None:
    text = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    named = set(re.findall(r"tests/[\w/]+(?:\.py)?", text))
    assert {path for path in named if not (ROOT / path).exists()} == set()
    rows = [line.split("|")[1].split(":")[0] for line in text.splitlines() if line.startswith("| ")]
    assert {int(number) for row in rows for number in re.findall(r"\d+", row)} == set(range(1, 76))
