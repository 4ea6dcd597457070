"""A session's own workspace: the same promises, on no disk, gone with the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolcage.errors import Refused
from toolcage.workspaces import SessionStores, memory, seen
from toolcage.workspaces.memory import MemoryStore
from toolcage.workspaces.store import FILE_BYTES, Quota


@pytest.fixture
def store() -> MemoryStore:
    made = SessionStores().of("one")
    made.stage(("a", "b.txt"), b"kept", None).commit()
    return made


def code(call: Callable[[], Any]) -> str:
    with pytest.raises(Refused) as caught:
        call()
    return caught.value.refusal.code


def test_what_was_written_is_read_and_listed(store: MemoryStore) -> None:
    assert store.read(("a", "b.txt")) == b"kept"
    assert store.read(("a", "c.txt")) is None
    listed = [(entry.names, entry.kind) for entry in store.listing(()).entries]
    assert listed == [(("a",), "folder"), (("a", "b.txt"), "file")]
    assert code(lambda: store.listing(("b",))) == "workspace.not_found"


def test_a_folder_is_no_file_and_a_file_no_folder(store: MemoryStore) -> None:
    assert code(lambda: store.read(("a",))) == "workspace.not_a_file"
    assert code(lambda: store.stage(("a",), b"", None)) == "workspace.not_a_file"
    assert code(lambda: store.stage(("a", "b.txt", "c"), b"", None)) == "workspace.not_found"


def test_a_discarded_file_is_not_there_and_holds_nobody_up(store: MemoryStore) -> None:
    store.stage(("x",), b"new", None).discard()
    assert store.read(("x",)) is None
    store.stage(("x",), b"new", None).commit()
    assert store.read(("x",)) == b"new"


def test_one_writer_at_a_time(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LOCK_WAIT_S", 0.0)
    first = store.stage(("x",), b"one", None)
    assert code(lambda: store.stage(("x",), b"two", None)) == "workspace.busy"
    first.commit()


def test_a_change_made_meanwhile_is_a_conflict(store: MemoryStore) -> None:
    assert code(lambda: store.stage(("a", "b.txt"), b"mine", seen(b"older"))) == "workspace.conflict"
    store.stage(("a", "b.txt"), b"mine", seen(b"kept")).commit()


def test_sessions_see_nothing_of_each_other_and_leave_nothing() -> None:
    stores = SessionStores()
    stores.of("one").stage(("x",), b"mine", None).commit()
    assert stores.of("two").read(("x",)) is None
    stores.end("one")
    assert stores.of("one").read(("x",)) is None


def test_a_session_and_all_of_them_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SESSION_QUOTA", Quota(size=10, files=2))
    monkeypatch.setattr(memory, "ALL_BYTES", 15)
    stores = SessionStores()
    one, two = stores.of("one"), stores.of("two")
    one.stage(("a",), b"x" * 10, None).commit()
    assert code(lambda: one.stage(("b",), b"x", None)) == "workspace.quota"
    two.stage(("a",), b"x" * 5, None).commit()
    assert code(lambda: two.stage(("b",), b"x", None)) == "workspace.quota"
    one.stage(("a",), b"", None).commit()
    one.stage(("b",), b"", None).commit()
    assert code(lambda: one.stage(("c",), b"", None)) == "workspace.quota"
    assert code(lambda: one.stage(("c",), b"x" * (FILE_BYTES + 1), None)) == "workspace.file_too_large"
