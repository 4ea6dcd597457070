"""The audit log of one runtime: records go in from any thread or task, a ticket says when each is durable.

Decides order (the seq is given under a lock, in the order of the queue) and durability (one writer thread commits all
that waits as one group: one write, one sync). Fails closed: when a group cannot be written its tickets and all later
ones raise, the chain stays at the last durable record, and an append succeeds again only after a new file could be
opened; the first record there says how many were lost. Records that were never awaited are lost without an exception,
so whatever must not happen unrecorded waits for its ticket.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from toolcage.audit.chain import MAX_LINE_BYTES, MIN_KEY_BYTES, Head, canonical, extend
from toolcage.audit.record import Event, Payload, Record, RecordType, payload_of, type_of
from toolcage.audit.sinks import FileSink
from toolcage.errors import AuditError, UsageError

_RUNTIME_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_GROUP_RECORDS: Final = 1024
_GROUP_BYTES: Final = 4 * 1024 * 1024
_ENVELOPE_BYTES: Final = 1024
_GROWTH: Final = 6  # one DEL byte becomes six on the line; every other character grows less


class Ticket:
    """One appended record: its place is known at once, its durability when `wait` or `durable` returns."""

    __slots__ = ("_callbacks", "_error", "_lock", "_settled", "audit_id", "seq")

    def __init__(self, audit_id: str, seq: int, lock: threading.Lock) -> None:
        self.audit_id: Final = audit_id
        self.seq: Final = seq
        self._lock = lock
        self._settled = False
        self._error: str | None = None
        self._callbacks: list[Callable[[], object]] = []

    def wait(self, timeout_s: float | None = None) -> None:
        """Returns when the record is durable.

        Raises:
            AuditError: it is not, and never will be; or `timeout_s` passed first.
        """
        if not self._settled:
            gate = threading.Event()
            self._when_settled(gate.set)
            if not gate.wait(timeout_s):
                raise AuditError(f"audit record {self.audit_id} is not durable after {timeout_s} s")
        self._raise_error()

    async def durable(self) -> None:
        """The same for a running event loop, which goes on meanwhile.

        Raises:
            AuditError: the record is not durable, and never will be.
        """
        if not self._settled:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            self._when_settled(lambda: _resolve(loop, future))
            await future
        self._raise_error()

    def _when_settled(self, callback: Callable[[], object]) -> None:
        with self._lock:
            if not self._settled:
                self._callbacks.append(callback)
                return
        callback()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise AuditError(self._error)


def _resolve(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
        loop.call_soon_threadsafe(_finish, future)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():  # it is done when the waiting task was cancelled
        future.set_result(None)


@dataclass(frozen=True, slots=True)
class _Pending:
    kind: RecordType
    time: str
    payload: Payload
    size: int
    ticket: Ticket
    reports_lost: int = 0


class AuditLog:
    """An append-only, hash-chained log in a folder of its owner's. Open it with `AuditLog.open`."""

    def __init__(self, sink: FileSink, runtime_id: str, key: bytes | None) -> None:
        self._sink = sink
        self._runtime_id = runtime_id
        self._key = key
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._head = Head(runtime=runtime_id)
        self._last_seq = 0
        self._failure: str | None = None
        self._lost = 0
        self._closed = False
        self._writer = threading.Thread(target=self._write_groups, name="toolcage-audit", daemon=True)
        self._writer.start()

    @classmethod
    def open(
        cls, directory: Path, *, runtime_id: str, key: bytes | None = None, max_file_bytes: int = 64 * 1024 * 1024
    ) -> AuditLog:
        """A fresh log in `directory`, which is made with mode 0700 where it is missing.

        Raises:
            AuditError: the folder is not the caller's own, or no file can be made in it.
            UsageError: the id is not a file name's, or the key is too short to be one.
        """
        if not _RUNTIME_ID.fullmatch(runtime_id):
            raise UsageError("runtime_id must be 1 to 64 letters, digits, '-' or '_'")
        if key is not None and len(key) < MIN_KEY_BYTES:
            raise UsageError(f"audit key is too short: {len(key)} bytes, at least {MIN_KEY_BYTES} are needed")
        try:
            sink = FileSink(directory, runtime_id, max_file_bytes)
        except OSError as error:
            raise AuditError(f"audit log cannot be opened in {directory}: {error.strerror or error}") from error
        return cls(sink, runtime_id, key)

    @property
    def path(self) -> Path:
        """The file that is written to now."""
        return self._sink.path

    def append(self, record: Record) -> Ticket:
        """Queues a record. Its place in the chain is fixed; wait for the ticket before relying on it.

        Raises:
            AuditError: the log is closed, or has failed and no new file can be opened.
            UsageError: a field holds what a record cannot.
        """
        payload = payload_of(record)
        size = len(canonical(payload)) * _GROWTH + _ENVELOPE_BYTES
        if size > MAX_LINE_BYTES:
            raise AuditError(f"audit record refused: {size // _GROWTH} bytes are more than one line may hold")
        if os.getpid() != self._pid:
            raise AuditError("audit log used in a forked process: open one log in each process")
        with self._lock:
            if self._closed:
                raise AuditError("audit log is closed")
            if self._failure is not None:
                self._recover(self._failure)
            return self._enqueue(type_of(record), payload, size)

    def head(self) -> Head:
        """The last durable record's seq and hash."""
        with self._lock:
            return self._head

    def export_head(self, path: Path) -> Head:
        """Writes the head to `path`, which belongs where the log's owner cannot change it.

        Raises:
            AuditError: the file cannot be written.
        """
        from toolcage.audit.anchors import write_head  # its model of the file costs more than all of this package

        head = self.head()
        write_head(path, head)
        return head

    def close(self) -> None:
        """Commits what is queued, then closes the file. A second call does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._writer.join()
        self._sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- under the lock ---

    def _enqueue(self, kind: RecordType, payload: Payload, size: int, reports_lost: int = 0) -> Ticket:
        self._last_seq += 1
        ticket = Ticket(f"{self._runtime_id}:{self._last_seq}", self._last_seq, self._lock)
        time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self._queue.put(_Pending(kind, time, payload, size, ticket, reports_lost))
        return ticket

    def _recover(self, failure: str) -> None:
        try:
            self._sink.reopen()
        except OSError as error:
            raise AuditError(f"audit log has failed ({failure}) and cannot go on: {error.strerror or error}") from error
        self._failure = None
        note = Event(type="note", detail={"lost_records": self._lost}, note=f"records were lost here: {failure}")
        self._enqueue(type_of(note), payload_of(note), _ENVELOPE_BYTES, reports_lost=self._lost)

    # --- the writer thread ---

    def _write_groups(self) -> None:
        while (first := self._queue.get()) is not None:
            group, last = self._gather(first)
            try:
                self._commit(group)
            except OSError as error:
                self._fail(group, f"audit log cannot be written: {error.strerror or error}")
            except Exception as error:  # noqa: BLE001 - the thread's outermost frame: a dead writer would hang every call
                self._fail(group, f"audit log cannot be written: {type(error).__name__}: {error}")
            if last:
                return

    def _gather(self, first: _Pending) -> tuple[list[_Pending], bool]:
        """What waits now, as one group. The second value: the log is being closed and this is the last one."""
        group, size = [first], first.size
        while len(group) < _GROUP_RECORDS and size < _GROUP_BYTES:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None:
                return group, True
            group.append(item)
            size += item.size
        return group, False

    def _commit(self, group: list[_Pending]) -> None:
        head, lines = self._head, []
        for item in group:
            head, line = extend(head, item.kind, item.time, item.payload, self._key)
            lines.append(line)
        self._sink.write(b"".join(lines))
        with self._lock:
            self._head = head
            self._lost -= sum(item.reports_lost for item in group)
            callbacks = _settle(group, None)
        _call(callbacks)

    def _fail(self, group: list[_Pending], reason: str) -> None:
        """Nothing of the group and nothing behind it exists: the next record follows the last durable one again."""
        with self._lock:
            group = group + self._drain()
            self._failure = reason
            self._lost += sum(not item.reports_lost for item in group)
            self._last_seq = self._head.seq
            callbacks = _settle(group, reason)
        _call(callbacks)

    def _drain(self) -> list[_Pending]:
        waiting: list[_Pending] = []
        while not self._queue.empty():
            item = self._queue.get()
            if item is None:
                self._queue.put(None)  # close() is waiting: nothing can be queued behind this mark
                break
            waiting.append(item)
        return waiting


def _settle(group: list[_Pending], error: str | None) -> list[Callable[[], object]]:
    callbacks: list[Callable[[], object]] = []
    for item in group:
        ticket = item.ticket
        ticket._error = error
        ticket._settled = True
        callbacks += ticket._callbacks
        ticket._callbacks = []
    return callbacks


def _call(callbacks: list[Callable[[], object]]) -> None:
    for callback in callbacks:
        callback()
