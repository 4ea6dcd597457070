"""What the audit log costs: durable records a second in groups, one record's latency, verified records a second.

A run takes a few seconds and about 100 MB in a temporary folder.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from toolcage.audit import AuditLog, Closing, Intent
from toolcage.audit.report import verify
from toolcage.types import Usage

RECORDS = 60_000
SINGLES = 400
IN_FLIGHT = 64


def an_intent(number: int) -> Intent:
    """A record of the usual size: some 700 bytes."""
    return Intent(
        call_id=f"call_{number:026d}",
        session="s_01hzy2m3n4p5q6r7s8t9v0w1x2",
        role="analyst",
        policy_digest="d" * 64,
        rule="analyst.yaml:14 query_database.allow[0]",
        tool="query_database",
        arguments='{"database":"shop","sql":"SELECT count(*) FROM orders WHERE month = 5"}',
        arguments_digest="e" * 64,
        facts='{"sql":{"tables":["orders"],"functions":["count"]}}',
    )


def a_closing(number: int, intent: int) -> Closing:
    """The end of the call of `an_intent(number)`."""
    usage = Usage(wall_s=0.004, cpu_s=0.003, memory_peak_bytes=12_000_000, bytes_out=40, duration_ms=6.2)
    return Closing(call_id=f"call_{number:026d}", intent=intent, status="ok", code="ok", usage=usage)


def write_groups(log: AuditLog) -> float:
    """Records a second, every one awaited, with at most `IN_FLIGHT` calls under way."""
    started = time.perf_counter()
    for first in range(0, RECORDS // 2, IN_FLIGHT):
        numbers = range(first, min(first + IN_FLIGHT, RECORDS // 2))
        intents = [log.append(an_intent(number)) for number in numbers]
        for ticket in intents:
            ticket.wait()
        closings = [log.append(a_closing(number, ticket.seq)) for number, ticket in zip(numbers, intents, strict=True)]
        for ticket in closings:
            ticket.wait()
    return RECORDS / (time.perf_counter() - started)


def write_singles(log: AuditLog) -> list[float]:
    """Milliseconds of one record at a time, append to durable."""
    times = []
    for number in range(SINGLES):
        started = time.perf_counter()
        log.append(an_intent(number)).wait()
        times.append((time.perf_counter() - started) * 1e3)
    return times


def sync_floor(folder: Path) -> float:
    """Milliseconds of a bare 800-byte append and fdatasync here, to read the latency against."""
    fd = os.open(folder / "floor", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    started = time.perf_counter()
    for _ in range(SINGLES):
        os.write(fd, b"x" * 800)
        os.fdatasync(fd)
    os.close(fd)
    return (time.perf_counter() - started) / SINGLES * 1e3


def run() -> dict[str, Any]:
    """Records a second written durably in groups and verified; milliseconds of one record, beside a bare fdatasync."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "audit")
        with AuditLog.open(folder, runtime_id="bench", key=b"k" * 32) as log:
            durable = write_groups(log)
        with AuditLog.open(folder, runtime_id="single") as log:
            times = write_singles(log)
        return {
            f"durable records/s, groups of {IN_FLIGHT}": round(durable),
            "one record durable, ms": {
                "p50": round(statistics.median(times), 3),
                "p99": round(statistics.quantiles(times, n=100)[98], 3),
                "bare fdatasync": round(sync_floor(Path(name)), 3),
            },
            "verified records/s": {
                "hashes": _verify_rate(folder / "bench.000001.jsonl", None),
                "hashes and macs": _verify_rate(folder / "bench.000001.jsonl", b"k" * 32),
            },
        }


def _verify_rate(path: Path, key: bytes | None) -> int:
    started = time.perf_counter()
    report = verify(path, key=key)
    if not report.ok:
        raise RuntimeError(f"the log that was measured does not verify: {report.errors}")
    return round(report.records / (time.perf_counter() - started))
