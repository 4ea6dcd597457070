"""`toolcage audit`: exit codes, JSON, and nothing of a record ever live on the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolcage.audit import AuditLog, Closing, Event, Intent
from toolcage.cli.audit import app

NASTY = "\x1b]0;owned\x07\x1b[2J[red]x[/red]\u202e\n\x9b31m"
KEY = b"a key of the operator, 32 bytes."

runner = CliRunner(env={"COLUMNS": "200"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "audit"
    with AuditLog.open(folder, runtime_id="run", key=KEY) as log:
        log.append(Event(type="runtime_start"))
        intent = log.append(Intent(call_id="c1", role="analyst", tool=NASTY, arguments=NASTY))
        intent.wait()
        log.append(Closing(call_id="c1", intent=intent.seq, status="ok", code="ok"))
        log.append(Event(type="runtime_end")).wait()
        log.export_head(tmp_path / "head.json")
    (tmp_path / "key").write_bytes(KEY)
    return folder


def test_a_whole_log_verifies_with_exit_code_0(folder: Path) -> None:
    done = runner.invoke(app, ["verify", str(folder)])
    assert done.exit_code == 0
    assert "ok: 4 record(s)" in done.output
    assert "whoever owns the folder could have rewritten all of it" in done.output


def test_the_key_and_the_head_are_used(folder: Path, tmp_path: Path) -> None:
    anchors = ["--key-file", str(tmp_path / "key"), "--head", str(tmp_path / "head.json")]
    assert runner.invoke(app, ["verify", str(folder), *anchors]).exit_code == 0
    (tmp_path / "key").write_bytes(b"another key of 32 bytes or more.")
    done = runner.invoke(app, ["verify", str(folder), *anchors])
    assert done.exit_code == 1
    assert "mac.wrong" in done.output


def test_a_changed_log_verifies_with_exit_code_1_and_names_the_place(folder: Path) -> None:
    file = folder / "run.000001.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"role":"analyst"', b'"role":"another"'))
    done = runner.invoke(app, ["verify", str(file)])
    assert done.exit_code == 1
    assert "run.000001.jsonl:2 (seq 2): record.changed" in done.output
    report = json.loads(runner.invoke(app, ["verify", str(file), "--json"]).output)
    assert report["ok"] is False
    assert (report["errors"][0]["line"], report["errors"][0]["problem"]) == (2, "record.changed")


def test_a_path_with_nothing_to_verify_is_exit_code_1(tmp_path: Path) -> None:
    done = runner.invoke(app, ["verify", str(tmp_path)])
    assert done.exit_code == 1
    assert "no audit log" in done.output


@pytest.mark.parametrize("options", [[], ["--call", "c1"]])
def test_nothing_in_a_record_is_live_on_the_terminal(folder: Path, options: list[str]) -> None:
    done = runner.invoke(app, ["show", str(folder), *options])
    assert done.exit_code == 0
    assert done.output.replace("\n", "").isprintable()
    assert "\\x1b" in done.output
    assert "[red]" in done.output


def test_show_gives_the_last_records_or_those_of_one_call(folder: Path) -> None:
    last = runner.invoke(app, ["show", str(folder), "--last", "1", "--json"])
    assert json.loads(last.output)["type"] == "runtime_end"
    of_call = runner.invoke(app, ["show", str(folder), "--call", "c1", "--json"])
    assert [json.loads(line)["type"] for line in of_call.output.splitlines()] == ["intent", "closing"]
    assert of_call.output.isascii()


def test_without_a_path_the_users_own_log_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCAGE_STATE_DIR", str(folder.parent))
    assert "ok: 4 record(s)" in runner.invoke(app, ["verify"]).output
    assert "analyst" in runner.invoke(app, ["show"]).output


def test_a_call_is_found_by_the_beginning_of_its_id_and_a_miss_is_told(folder: Path) -> None:
    assert "analyst" in runner.invoke(app, ["show", str(folder), "--call", "c"]).output
    missed = runner.invoke(app, ["show", str(folder), "--call", "zz"])
    assert "no record of a call whose id begins with zz" in missed.output


def test_a_calls_connections_stand_between_its_records_with_tool_and_outcome(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path / "audit", runtime_id="run") as log:
        intent = log.append(Intent(call_id="c1", role="analyst", tool="call_api", arguments="{}"))
        for call in ("c1", "d2"):
            told = {"call_id": call, "tool": "call_api", "portal": NASTY, "verdict": "denied",
                    "reason": f"egress.{call}"}  # fmt: skip
            log.append(Event(type="connection", role="analyst", detail=told))
        log.append(Event(type="connection", role="analyst", detail=["no", "object"]))
        log.append(Closing(call_id="c1", intent=intent.seq, status="ok", code="ok")).wait()
    shown = runner.invoke(app, ["show", str(tmp_path / "audit"), "--call", "c1", "--json"]).output
    assert [json.loads(line)["type"] for line in shown.splitlines()] == ["intent", "connection", "closing"]
    table = runner.invoke(app, ["show", str(tmp_path / "audit")]).output
    assert table.count("call_api") == 3
    assert "denied egress.d2" in table
    assert table.replace("\n", "").isprintable()


def test_the_table_fits_80_columns_and_ids_are_cut_to_what_tells_them_apart(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path / "audit", runtime_id="run") as log:
        for name in ("0123456789axyz", "0123456789bxyz"):
            intent = log.append(Intent(call_id=name, role="analyst", tool="query_database", arguments="{}"))
            intent.wait()
            log.append(Closing(call_id=name, intent=intent.seq, status="denied", code="policy.no_match"))
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["show", str(tmp_path / "audit")])
    assert max(map(len, done.output.splitlines())) <= 80
    assert "0123456789a " in done.output
    assert "xyz" not in done.output
    assert "query_database" in done.output


def test_the_last_records_are_the_latest_of_all_runtimes(tmp_path: Path) -> None:
    for runtime_id in ("zz", "aa"):
        with AuditLog.open(tmp_path / "audit", runtime_id=runtime_id) as log:
            log.append(Event(type="note", note=f"by {runtime_id}")).wait()
    shown = json.loads(runner.invoke(app, ["show", str(tmp_path / "audit"), "--last", "1", "--json"]).output)
    assert shown["note"] == "by aa"
