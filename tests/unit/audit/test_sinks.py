"""Faults of the disk: full for real, limited, vanished, replaced. Never a wrong chain, never a silent loss."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolcage.audit import AuditLog, Event, Intent
from toolcage.audit.report import read_records, verify
from toolcage.audit.sinks import FileSink, file_name
from toolcage.errors import AuditError


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", str(disk)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"a tmpfs cannot be mounted here: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(log: AuditLog) -> int:
    """Appends until the log refuses; how many records were durable."""
    for durable in range(1000):
        try:
            log.append(Intent(call_id=str(durable), arguments="x" * 3000)).wait()
        except AuditError:
            return durable
    pytest.fail("the disk never filled")


def test_a_full_disk_raises_keeps_the_chain_and_the_log_goes_on_once_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 20_000)
    folder = small_disk / "audit"
    with AuditLog.open(folder, runtime_id="run") as log:
        durable = fill(log)
        assert durable > 2
        assert verify(folder).records == durable
        with pytest.raises(AuditError, match="No space left"):
            log.append(Intent(call_id="still full", arguments="x" * 3000)).wait()
        ballast.unlink()
        log.append(Event(type="note", note="there is room again")).wait()
    report = verify(folder)
    assert report.ok, report.errors
    assert not [warning for warning in report.warnings if warning.problem == "line.torn"]
    *_, note, last = read_records(folder)
    assert (last["note"], last["seq"]) == ("there is room again", durable + 2)
    assert note["detail"] == '{"lost_records":2}'


def test_every_record_that_waits_behind_a_failed_one_fails_too(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(b"x" * 50_000)

    async def run(log: AuditLog) -> list[BaseException | None]:
        tickets = [log.append(Intent(call_id=str(number), arguments="x" * 3000)) for number in range(40)]
        return await asyncio.gather(*(ticket.durable() for ticket in tickets), return_exceptions=True)

    with AuditLog.open(small_disk / "audit", runtime_id="run") as log:
        outcomes = asyncio.run(run(log))
    durable = sum(outcome is None for outcome in outcomes)
    assert all(isinstance(outcome, AuditError) for outcome in outcomes[durable:])
    assert [record["call_id"] for record in read_records_or_none(small_disk / "audit")] == [
        str(number) for number in range(durable)
    ]


def read_records_or_none(folder: Path) -> list[dict[str, str | int]]:
    """The records of a folder, which may hold no file when none was durable."""
    return [dict(record) for record in read_records(folder)] if any(folder.iterdir()) else []


LIMITED = """
import resource, sys
from pathlib import Path
from toolcage.audit import AuditLog, Intent
from toolcage.errors import AuditError
log = AuditLog.open(Path(sys.argv[1]), runtime_id="run")
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
durable = 0
try:
    while True:
        log.append(Intent(call_id=str(durable), arguments="x" * 3000)).wait()
        durable += 1
except AuditError:
    pass
log.append(Intent(call_id="after")).wait()
log.close()
print(durable)
"""


def test_a_partial_write_is_cut_back_and_the_chain_goes_on_in_a_new_file(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True)
    durable = int(done.stdout)
    assert durable == 3
    assert (tmp_path / file_name("run", 1)).read_bytes().endswith(b"\n")
    report = verify(tmp_path)
    assert report.ok, report.errors
    assert (report.files, report.records) == (2, durable + 2)


def test_a_log_deleted_under_the_runtime_stops_it_instead_of_swallowing_records(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path, runtime_id="run") as log:
        log.append(Event(type="note")).wait()
        log.path.unlink()
        with pytest.raises(AuditError, match="No such file"):
            log.append(Event(type="note")).wait()
        log.append(Event(type="note")).wait()
    assert verify(tmp_path).errors[0].problem == "record.missing"


def test_a_log_replaced_under_the_runtime_stops_it(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path, runtime_id="run") as log:
        log.append(Event(type="note")).wait()
        copy = log.path.read_bytes()
        log.path.unlink()
        log.path.write_bytes(copy)
        with pytest.raises(AuditError, match="replaced"):
            log.append(Event(type="note")).wait()


def test_a_log_that_someone_else_appends_to_stops_it(tmp_path: Path) -> None:
    with AuditLog.open(tmp_path, runtime_id="run") as log:
        log.append(Event(type="note")).wait()
        with log.path.open("ab") as other:
            other.write(b"{}\n")
        with pytest.raises(AuditError, match="changed by someone else"):
            log.append(Event(type="note")).wait()


def test_while_no_new_file_can_be_opened_every_append_raises_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    with AuditLog.open(folder, runtime_id="run") as log:
        log.append(Event(type="note")).wait()
        log.path.unlink()
        folder.rmdir()
        with pytest.raises(AuditError):
            log.append(Event(type="note")).wait()
        for _ in range(3):
            with pytest.raises(AuditError, match="cannot go on"):
                log.append(Event(type="note"))
        folder.mkdir(mode=0o700)
        log.append(Event(type="note")).wait()


class FailingDisk:
    """`os.fdatasync` of a disk that fails when told to: the write before it may or may not have reached the platter."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failures = 0
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        self._sync = os.fdatasync
        monkeypatch.setattr(os, "fdatasync", self.fdatasync)

    def fdatasync(self, fd: int) -> None:
        self.reached.set()
        self.go_on.wait()
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EIO, "Input/output error")
        self._sync(fd)


def test_a_record_whose_sync_failed_is_not_durable_and_not_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FailingDisk(monkeypatch)
    with AuditLog.open(tmp_path, runtime_id="run") as log:
        log.append(Event(type="note", note="first")).wait()
        disk.failures = 1
        with pytest.raises(AuditError, match="Input/output error"):
            log.append(Event(type="note", note="second")).wait()
        assert [record["note"] for record in read_records(tmp_path)] == ["first"]
        log.append(Event(type="note", note="third")).wait()
    assert verify(tmp_path).ok


def test_what_was_queued_behind_a_failed_group_fails_and_the_next_ticket_names_its_true_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FailingDisk(monkeypatch)
    with AuditLog.open(tmp_path, runtime_id="run") as log:
        disk.go_on.clear()
        disk.failures = 1
        tickets = [log.append(Event(type="note", note="in the group"))]
        assert disk.reached.wait(30)
        tickets += [log.append(Event(type="note", note="behind it")) for _ in range(5)]
        disk.go_on.set()
        for ticket in tickets:
            with pytest.raises(AuditError):
                ticket.wait()
        after = log.append(Event(type="note", note="after"))
        after.wait()
    records = {record["note"]: record for record in read_records(tmp_path)}
    assert records["after"]["seq"] == after.seq == 2
    assert "behind it" not in records
    assert verify(tmp_path).ok


def test_each_loss_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FailingDisk(monkeypatch)
    with AuditLog.open(tmp_path, runtime_id="run") as log:
        for failures in (3, 1):
            for _ in range(failures):
                disk.failures = 1
                with pytest.raises(AuditError):
                    log.append(Event(type="note", note="lost")).wait()
            log.append(Event(type="note", note="kept")).wait()
    details = [record["detail"] for record in read_records(tmp_path) if "detail" in record]
    assert details == ['{"lost_records":3}', '{"lost_records":1}']


class _UncuttableSink(FileSink):
    """A disk on which a bad write cannot be taken back."""

    def _cut_back(self) -> None:
        self._torn = True


def test_while_a_bad_write_cannot_be_taken_back_no_second_successor_is_written(tmp_path: Path) -> None:
    sink = _UncuttableSink(tmp_path, "run", 1 << 20)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            sink.write(b"0123456789 and more\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(OSError, match="cut back") as raised:
        sink.reopen()
    assert raised.value.errno == errno.EIO
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.000001.jsonl"]
    sink.close()
