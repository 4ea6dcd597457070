"""The demo, played for real once, and what makes it fail."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from toolcage.audit.report import read_records, verify
from toolcage.cli import demo
from toolcage.cli.demo import outside, play, programs, report, table, wiki
from toolcage.cli.demo.research import RESEARCHER
from toolcage.cli.demo.script import ANALYST, STEPS
from toolcage.cli.demo.step import Step
from toolcage.line.result import ToolResult
from toolcage.state import default_state_dir

pytestmark = pytest.mark.docker

CANARY = re.compile(r"canary-[0-9a-f]{24}")
DROP = next(step for step in ANALYST if step.name == "drop")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One whole run of the command."""

    code: int
    text: str
    page: str
    folder: Path
    log: Path


@pytest.fixture(scope="module", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state directory of this file's own, which knows the built images."""
    folder = tmp_path_factory.mktemp("state")
    folder.chmod(0o700)
    shutil.copy(default_state_dir() / "images.lock", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLCAGE_STATE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def shown(state: Path) -> Shown:
    """The whole script, once, as `toolcage demo` plays it when no terminal reads it."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = demo.show(state / "toolcage-demo", STEPS)
    (log,) = (state / "audit").glob("*.jsonl")
    folder = state / "toolcage-demo"
    return Shown(code=code, text=printed.getvalue(), page=(folder / "report.html").read_text(), folder=folder, log=log)


def played_by(folder: Path, *steps: Step) -> play.Played:
    return play.play(play.own_folder(folder), steps, warm_calls=0)


def test_every_call_works_or_is_stopped_or_contained_and_the_demo_ends_with_0(shown: Shown) -> None:
    assert shown.code == 0, shown.text
    assert "FAILED" not in shown.text
    assert "Audit log verifies" in shown.text


def test_every_row_of_the_script_stands_in_the_table_and_in_the_report(shown: Shown) -> None:
    flat = " ".join(shown.text.split())
    for step in STEPS:
        assert f'<tr id="{step.name}">' in shown.page
        assert step.tried in flat
        assert step.code is None or step.code in shown.text


def test_the_table_is_100_columns_wide_and_holds_no_escape_when_no_terminal_reads_it(shown: Shown) -> None:
    body = shown.text.partition("Audit log")[0].rpartition("\n")[0].rpartition("\n")[0]
    assert max(map(len, body.splitlines())) <= table.PLAIN_COLUMNS
    assert "\x1b" not in shown.text


def test_the_canary_of_the_host_stands_in_no_output_and_not_in_the_audit_log(shown: Shown) -> None:
    files = [path for path in shown.folder.rglob("*") if path.is_file()]
    assert [path for path in (*files, shown.log) if CANARY.search(path.read_bytes().decode("latin-1"))] == []
    assert CANARY.search(shown.text) is None
    assert play.CANARY_VARIABLE not in os.environ


def test_the_chart_that_a_cage_drew_is_saved_on_the_host(shown: Shown) -> None:
    assert (shown.folder / "files" / "revenue.svg").read_text().startswith("<svg ")


def test_the_report_fetches_nothing_runs_nothing_and_escapes_what_came_back(shown: Shown) -> None:
    assert "default-src 'none'" in shown.page
    assert "<script" not in shown.page.lower()
    assert not re.search(r"<(?:img|link|iframe|a|svg|object)\b", shown.page)
    assert "&lt;script&gt;" in shown.page


def test_the_log_holds_the_whole_run_and_verifies_alone(shown: Shown) -> None:
    assert verify(shown.log).ok
    closings = [record for record in read_records(shown.log) if record["type"] == "closing"]
    assert len(closings) == len(STEPS) + play.WARM_CALLS


def test_a_row_that_does_not_end_as_it_must_makes_the_demo_end_with_1_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.show(tmp_path / "good", [DROP], warm_calls=0) == 0
    broken = dataclasses.replace(DROP, code="sql.attach")
    assert demo.show(tmp_path / "broken", [broken], warm_calls=0) == 1
    told = "FAILED: drop (drop a table): expected blocked sql.attach, got blocked sql.defines"
    assert told in capsys.readouterr().out
    assert "FAILED: drop" in (tmp_path / "broken" / "report.html").read_text()


def test_an_attack_that_reaches_the_canary_fails_even_where_its_status_is_the_expected_one(tmp_path: Path) -> None:
    def leak(result: ToolResult) -> str:
        return "all is well"

    def tell(scene: object) -> dict[str, object]:
        return {"code": f"print({os.environ[play.CANARY_VARIABLE]!r})"}

    step = Step(name="leak", role="coder", tool="execute_python", tried="tell it", arguments=tell, demand=leak)
    (row,) = (played := played_by(tmp_path / "output", step)).rows
    assert row.verdict == "FAILED"
    assert row.problem == "the canary of the host came out"
    assert "audit log: the canary of the host stands in it" in played.problems
    assert not played.passed


def test_an_attack_whose_program_breaks_on_the_way_is_not_taken_for_contained(tmp_path: Path) -> None:
    network = next(step for step in STEPS if step.name == "network")
    fewer = dataclasses.replace(network, arguments={"code": "{'metadata': 'refused: OSError'}"})
    reached = {"code": "{str(n): 'refused: OSError' if n else 'reached: 200' for n in range(6)}"}
    rows = played_by(tmp_path / "output", fewer, dataclasses.replace(network, arguments=reached)).rows
    assert [row.problem for row in rows] == ["the program did not make all its attempts", "reached: 0"]


def test_a_step_whose_groundwork_failed_is_named_and_not_called(tmp_path: Path) -> None:
    share = next(step for step in STEPS if step.name == "share")
    played = played_by(tmp_path / "output", share)
    assert [row.result for row in played.rows] == [None]
    assert not played.passed
    assert "not called" in table.problems(played)[0]
    assert "not called" in report.page(played)


# --- the researcher ------------------------------------------------------------------------------------------------


def test_the_table_names_the_flow_rule_by_its_line_and_the_label_of_the_page_that_was_read(shown: Shown) -> None:
    lines = outside.POLICY.read_text().splitlines()
    line = lines.index("  - deny: sends") + 1
    said = f"researcher.yaml:{line} flows[0]: it read the injection_suspected page and private rows"
    assert said in shown.page
    assert "the mail server has it: to ann@example.com" in shown.page
    assert f"researcher.yaml:{line} flows[0]" in shown.text
    assert "injection_suspected page" in shown.text


def test_connections_of_the_researcher_are_on_record_the_refused_ones_too(shown: Shown) -> None:
    noted = [json.loads(str(record["detail"])) for record in read_records(shown.log) if record["type"] == "connection"]
    used = {note["portal"] for note in noted if note["verdict"] in ("closed", "cancelled") and note["bytes_down"] > 0}
    assert {"en", "research.smtp"} <= used  # cancelled: the call was over before its connection was
    refused = {note["target"] for note in noted if note.get("reason") == "egress.host_not_granted"}
    assert refused == {f"CONNECT {host}" for host in programs.OTHER_HOSTS}


def test_without_the_flow_rule_the_list_leaves_and_the_demo_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "researcher.yaml"
    policy.write_text(re.sub(r"\nflows:\n.*?\ntests:.*", "\n", outside.POLICY.read_text(), flags=re.DOTALL))
    monkeypatch.setattr(outside, "POLICY", policy)
    played = played_by(tmp_path / "output", *RESEARCHER)
    assert {row.step.name: row.problem for row in played.rows if row.problem} == {
        "mail_list": "expected denied flow.denied, got ok"
    }
    assert not played.passed


def test_where_mediawiki_is_missing_each_row_of_the_researcher_says_so_and_the_rest_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wiki, "ROOT", tmp_path / "absent")
    assert demo.show(tmp_path / "output", [DROP, *RESEARCHER], warm_calls=0) == 1
    told = capsys.readouterr().out
    assert f"NOT SHOWN: the {len(RESEARCHER)} rows of the researcher: MediaWiki is not installed" in told
    assert " ".join(told.split()).count("not shown: MediaWiki is not installed") == len(RESEARCHER)
    assert "1 stopped" in told
    assert "FAILED" not in told
    assert (tmp_path / "output" / "report.html").read_text().count("not shown</td>") == len(RESEARCHER)


def test_a_demo_that_is_told_to_end_leaves_no_wiki(state: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="demo-") as name:
        here = Path(name)
        here.chmod(0o711)
        ended = _started(here, state)
        ended.terminate()
        assert ended.wait(60) == 128 + signal.SIGTERM
        assert list(here.glob("toolcage-demo-wiki-*")) == []
        assert _processes_in(here) == []


def test_a_demo_that_is_killed_leaves_no_process(state: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="demo-") as name:
        here = Path(name)
        here.chmod(0o711)
        ended = _started(here, state)
        ended.kill()
        ended.wait(60)
        end = time.monotonic() + 20
        while (left := _processes_in(here)) and time.monotonic() < end:
            time.sleep(0.02)
        assert left == []


def _started(here: Path, state: Path) -> subprocess.Popen[bytes]:
    """The command, at the moment when a process of its wiki runs."""
    run = "from toolcage.cli.main import main; main()"
    command = [sys.executable, "-c", run, "demo", "--role", "researcher", "--output", str(here / "out")]
    environment = {**os.environ, "TMPDIR": str(here), "TOOLCAGE_STATE_DIR": str(state)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not _processes_in(here):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    return process


def _processes_in(here: Path) -> list[int]:
    """Processes that work in a wiki's folder below `here`, zombies aside."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str((entry / "cwd").readlink()).startswith(f"{here}/toolcage-demo-wiki-"):
                found.append(int(entry.name))
    return found
