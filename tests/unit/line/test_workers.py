"""Threads that are kept for the next call."""

from __future__ import annotations

import gc
import threading
import weakref

from toolcage.line.workers import MOST_IDLE, Workers


class _Data:
    pass


def _thread_of(workers: Workers) -> threading.Thread:
    """The thread that did a piece of work, which is over when this returns."""
    done, threads = threading.Event(), list[threading.Thread]()
    workers.run(lambda: (threads.append(threading.current_thread()), done.set()))
    assert done.wait(30)
    return threads[0]


def _wait_until_idle(workers: Workers, count: int) -> None:
    gate = threading.Event()
    assert any(workers._idle == count or gate.wait(0.005) for _ in range(6000))


def test_one_call_after_another_is_served_by_one_thread() -> None:
    workers = Workers()
    first = _thread_of(workers)
    _wait_until_idle(workers, 1)
    assert _thread_of(workers) is first
    workers.close()
    first.join(30)
    assert not first.is_alive()


def test_no_call_waits_behind_another() -> None:
    workers, meeting = Workers(), threading.Barrier(2 * MOST_IDLE + 1)
    for _ in range(2 * MOST_IDLE):
        workers.run(lambda: meeting.wait(30))
    meeting.wait(30)  # passes only when all of them run at once
    assert not meeting.broken
    workers.close()


def test_no_more_threads_are_kept_than_the_bound() -> None:
    workers, meeting, threads = Workers(), threading.Barrier(MOST_IDLE + 5), list[threading.Thread]()
    for _ in range(MOST_IDLE + 4):
        workers.run(lambda: (threads.append(threading.current_thread()), meeting.wait(30)))
    meeting.wait(30)
    _wait_until_idle(workers, MOST_IDLE)
    workers.close()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


def test_a_thread_that_waits_holds_nothing_of_the_call_before() -> None:
    workers, data = Workers(), _Data()
    gone = weakref.ref(data)
    done = threading.Event()

    def give(held: _Data) -> None:
        workers.run(lambda: (repr(held), done.set()))

    give(data)
    assert done.wait(30)
    _wait_until_idle(workers, 1)
    del data
    gc.collect()
    assert gone() is None
    workers.close()


def test_work_is_done_also_after_the_end_and_its_thread_is_not_kept() -> None:
    workers = Workers()
    workers.close()
    thread = _thread_of(workers)
    thread.join(30)
    assert not thread.is_alive()
