"""Appending: order, durability, files, many threads, event loops, and a writer that is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from toolcage.audit import AuditLog, Closing, Event, Intent
from toolcage.audit.anchors import read_head
from toolcage.audit.report import read_records, verify
from toolcage.errors import AuditError, UsageError


def test_a_record_is_in_the_file_when_its_ticket_returns(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path / "a", runtime_id="r1") as log:
        ticket = log.append(Intent(call_id="c1", tool="t"))
        assert ticket.audit_id == "r1:1"
        ticket.wait()
        assert b'"call_id":"c1"' in log.path.read_bytes()


def test_the_folder_is_the_owners_alone_and_so_is_the_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with AuditLog.open(tmp_path / "state" / "audit", runtime_id="r1") as log:
            assert stat.S_IMODE(log.path.parent.stat().st_mode) == 0o700
            assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o770)
    with pytest.raises(AuditError, match="others can write"):
        AuditLog.open(tmp_path / "open", runtime_id="r1")


def test_an_existing_file_is_never_appended_to(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path, runtime_id="r1") as log:
        log.append(Event(type="note")).wait()
    with pytest.raises(AuditError, match="File exists"):
        AuditLog.open(tmp_path, runtime_id="r1")


def test_a_link_in_the_files_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o700)
    (tmp_path / "a" / "r1.000001.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AuditError):
        AuditLog.open(tmp_path / "a", runtime_id="r1")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a:b", "x" * 65, "a\nb"])
def test_a_runtime_id_that_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="runtime_id"):
        AuditLog.open(tmp_path, runtime_id=name)


def test_a_key_too_short_to_be_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="too short"):
        AuditLog.open(tmp_path, runtime_id="r1", key=b"short")


def test_a_log_without_any_record_leaves_no_file(tmp_path: Path) -> None:
    AuditLog.open(tmp_path, runtime_id="r1").close()
    assert list(tmp_path.iterdir()) == []


def test_after_close_nothing_can_be_appended_and_what_was_queued_is_there(tmp_path: Path) -> None:
    log = AuditLog.open(tmp_path, runtime_id="r1")
    tickets = [log.append(Event(type="note", note=str(number))) for number in range(500)]
    log.close()
    log.close()
    for ticket in tickets:
        ticket.wait()
    assert verify(tmp_path).records == 500
    with pytest.raises(AuditError, match="closed"):
        log.append(Event(type="note"))


def test_many_threads_make_one_chain_without_a_gap(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path, runtime_id="r1", max_file_bytes=40_000) as log:

        def calls(worker: int) -> None:
            for number in range(100):
                call = f"{worker}-{number}"
                intent = log.append(Intent(call_id=call))
                intent.wait()
                log.append(Closing(call_id=call, intent=intent.seq, status="ok", code="ok")).wait()

        threads = [threading.Thread(target=calls, args=(worker,)) for worker in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    report = verify(tmp_path)
    assert report.ok, report.errors
    assert report.records == 1600
    assert report.files > 5
    assert not [warning for warning in report.warnings if warning.problem == "intent.open"]


def test_an_event_loop_goes_on_while_it_waits_for_a_ticket(tmp_path: Path) -> None:
    async def run(log: AuditLog) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(200):
                tasks.create_task(log.append(Event(type="note", note=str(number))).durable())
        await log.append(Event(type="note")).durable()

    with AuditLog.open(tmp_path, runtime_id="r1") as log:
        asyncio.run(run(log))
        assert log.head().seq == 201


def test_a_cancelled_wait_loses_no_record(tmp_path: Path) -> None:
    async def run(log: AuditLog) -> None:
        task = asyncio.ensure_future(log.append(Event(type="note")).durable())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with AuditLog.open(tmp_path, runtime_id="r1") as log:
        asyncio.run(run(log))
        log.append(Event(type="note")).wait()
    assert verify(tmp_path).records == 2


def test_files_rotate_by_size_and_the_chain_goes_on_over_them(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path, runtime_id="r1", max_file_bytes=1000) as log:
        for number in range(10):
            log.append(Event(type="note", note="x" * 200, detail={"n": number})).wait()
    files = sorted(tmp_path.iterdir())
    assert len(files) > 2
    assert all(file.stat().st_size <= 1000 for file in files)
    heads = [verify(file).heads[0] for file in files]
    firsts = [next(iter(read_records(file))) for file in files]
    assert [first["prev"] for first in firsts[1:]] == [head.hash for head in heads[:-1]]
    assert verify(tmp_path).ok


def test_a_record_larger_than_a_file_still_gets_one_of_its_own(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path, runtime_id="r1", max_file_bytes=500) as log:
        log.append(Event(type="note")).wait()
        log.append(Event(type="note", note="x" * 5000)).wait()
    assert verify(tmp_path).records == 2


def test_a_record_too_large_for_any_reader_is_refused_and_the_log_goes_on(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path, runtime_id="r1") as log:
        with pytest.raises(AuditError, match="more than one line"):
            log.append(Intent(call_id="c", arguments="x" * 12_000_000))
        log.append(Event(type="note")).wait()
    assert verify(tmp_path).records == 1


def test_the_exported_head_is_the_last_durable_record(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path / "a", runtime_id="r1") as log:
        log.append(Event(type="note")).wait()
        exported = log.export_head(tmp_path / "head.json")
    assert read_head(tmp_path / "head.json") == exported == verify(tmp_path / "a").heads[0]
    assert exported.seq == 1


def test_a_forked_process_cannot_append(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path, runtime_id="r1") as log:
        log._pid += 1
        with pytest.raises(AuditError, match="forked"):
            log.append(Event(type="note"))
        log._pid -= 1


WRITER = """
import sys
from pathlib import Path
from toolcage.audit import AuditLog, Closing, Intent
log = AuditLog.open(Path(sys.argv[1]), runtime_id="killed", max_file_bytes=200_000)
for number in range(1_000_000):
    intent = log.append(Intent(call_id=str(number), arguments="x" * 500))
    log.append(Closing(call_id=str(number), intent=intent.seq, status="ok", code="ok"))
    if number % 50 == 0:
        intent.wait()
        print(intent.seq, flush=True)
"""


def test_a_writer_killed_in_mid_stream_leaves_a_log_that_verifies_up_to_what_it_called_durable(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        durable = [int(writer.stdout.readline()) for _ in range(40)][-1]
        writer.send_signal(signal.SIGKILL)
        durable = max([durable, *(int(line) for line in writer.stdout.read().split("\n")[:-1])])
    report = verify(tmp_path)
    assert report.ok, report.errors
    assert report.records >= durable
    assert {warning.problem for warning in report.warnings} <= {"line.torn", "intent.open", "runtime.no_end"}
