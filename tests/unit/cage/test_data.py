"""Snapshots: consistent, current, openable on a read-only folder, and free when nothing was written."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolcage.cage import data
from toolcage.cage.data import Snapshot, Snapshots
from toolcage.errors import ResourceError


@pytest.fixture
def snapshots() -> Iterator[Snapshots]:
    made = Snapshots()
    yield made
    made.close()


def database(path: Path, *, wal: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    if wal:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE items (name TEXT)")
    connection.execute("INSERT INTO items VALUES ('first')")
    return connection


def names(snapshot: Snapshot, folder: Path) -> list[str]:
    """What a reader of a read-only folder sees in it."""
    folder.mkdir(exist_ok=True)
    path = folder / "copy.sqlite"
    path.write_bytes(snapshot.content)
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    found = [row[0] for row in reader.execute("SELECT name FROM items")]
    reader.close()
    assert [item.name for item in folder.iterdir()] == ["copy.sqlite"]
    path.unlink()
    return found


@pytest.mark.parametrize("wal", [False, True])
def test_a_snapshot_holds_what_was_committed_and_opens_read_only(
    tmp_path: Path, snapshots: Snapshots, wal: bool
) -> None:
    writer = database(tmp_path / "shop.db", wal=wal)
    assert names(snapshots.current("shop", tmp_path / "shop.db"), tmp_path / "out") == ["first"]
    writer.execute("BEGIN")
    writer.execute("INSERT INTO items VALUES ('not committed')")
    assert names(snapshots.current("shop", tmp_path / "shop.db"), tmp_path / "out") == ["first"]
    writer.execute("COMMIT")
    assert names(snapshots.current("shop", tmp_path / "shop.db"), tmp_path / "out") == ["first", "not committed"]
    writer.close()


def test_an_unchanged_database_costs_no_second_copy_and_a_changed_one_gets_another_digest(
    tmp_path: Path, snapshots: Snapshots
) -> None:
    writer = database(tmp_path / "shop.db")
    first = snapshots.current("shop", tmp_path / "shop.db")
    assert snapshots.current("shop", tmp_path / "shop.db") is first
    writer.execute("UPDATE items SET name = 'other'")
    second = snapshots.current("shop", tmp_path / "shop.db")
    assert second.file.sha256 != first.file.sha256
    assert names(second, tmp_path / "out") == ["other"]
    writer.close()


def test_a_database_that_was_replaced_is_read_anew(tmp_path: Path, snapshots: Snapshots) -> None:
    database(tmp_path / "shop.db").close()
    snapshots.current("shop", tmp_path / "shop.db")
    other = database(tmp_path / "new.db")
    other.execute("UPDATE items SET name = 'replaced'")
    other.close()
    (tmp_path / "new.db").replace(tmp_path / "shop.db")
    assert names(snapshots.current("shop", tmp_path / "shop.db"), tmp_path / "out") == ["replaced"]


def test_taking_a_snapshot_never_changes_the_database(tmp_path: Path, snapshots: Snapshots) -> None:
    database(tmp_path / "shop.db").close()
    before = (tmp_path / "shop.db").read_bytes()
    snapshots.current("shop", tmp_path / "shop.db")
    assert (tmp_path / "shop.db").read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["shop.db"]


def test_a_path_with_uri_characters_is_only_a_path(tmp_path: Path, snapshots: Snapshots) -> None:
    path = tmp_path / "a?mode=rwc&x#%41.db"
    database(path).close()
    assert names(snapshots.current("shop", path), tmp_path / "out") == ["first"]


def test_a_missing_or_broken_database_is_an_error_that_names_the_resource_and_not_the_path(
    tmp_path: Path, snapshots: Snapshots
) -> None:
    (tmp_path / "text.db").write_text("this is no database, it only has the name of one" * 50)
    for name in ("missing.db", "text.db"):
        with pytest.raises(ResourceError, match="database shop could not be read"):
            snapshots.current("shop", tmp_path / name)
    assert not (tmp_path / "missing.db").exists()


def test_a_database_above_the_limit_is_refused_before_it_is_copied(
    tmp_path: Path, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    database(tmp_path / "shop.db").close()
    monkeypatch.setattr(data, "MAX_BYTES", 4096)
    with pytest.raises(ResourceError, match="larger than 4096 bytes"):
        snapshots.current("shop", tmp_path / "shop.db")


def test_a_snapshot_knows_whether_anybody_has_written_since_and_a_doubt_is_a_yes(
    tmp_path: Path, snapshots: Snapshots
) -> None:
    path = tmp_path / "shop.sqlite"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("CREATE TABLE t (x)")
    digest = snapshots.current("shop", path).file.sha256
    assert snapshots.unchanged("shop", path, digest)
    assert not snapshots.unchanged("shop", path, "0" * 64)
    assert not snapshots.unchanged("other", path, digest)
    writer.execute("BEGIN IMMEDIATE")
    assert snapshots.unchanged("shop", path, digest)
    writer.execute("INSERT INTO t VALUES (1)")
    writer.execute("COMMIT")
    assert not snapshots.unchanged("shop", path, digest)
    assert snapshots.unchanged("shop", path, snapshots.current("shop", path).file.sha256)
    writer.close()
    path.rename(tmp_path / "away.sqlite")
    assert not snapshots.unchanged("shop", path, digest)


DIES = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size=5")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE items SET name = replace(name, 'a', 'b')")
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("mode", ["delete", "truncate", "persist", "wal"])
def test_what_a_writer_that_died_left_half_done_is_undone_where_the_file_may_be_written_and_never_read(
    tmp_path: Path, snapshots: Snapshots, mode: str
) -> None:
    path = tmp_path / "shop.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute(f"PRAGMA journal_mode={mode}")
    writer.execute("CREATE TABLE items (name TEXT)")
    writer.execute("BEGIN")
    writer.executemany("INSERT INTO items VALUES (?)", [("a" * 1000,)] * 500)
    writer.execute("COMMIT")
    writer.close()
    subprocess.run([sys.executable, "-c", DIES, str(path)], check=False)
    if mode != "wal":  # it had begun to write into the file itself
        with pytest.raises(ResourceError):
            snapshots.current("shop", path)
    assert set(names(snapshots.current("shop", path, mends=True), tmp_path / "out")) == {"a" * 1000}


BROKEN = """
PRAGMA writable_schema = ON;
INSERT INTO sqlite_master VALUES ('table', CAST(x'62ff64' AS TEXT), CAST(x'62ff64' AS TEXT), 2, 'CREATE TABLE broken(');
"""


def test_a_broken_schema_that_is_no_text_is_an_error_like_every_other(tmp_path: Path, snapshots: Snapshots) -> None:
    writer = database(tmp_path / "shop.db")
    writer.executescript(BROKEN)
    writer.close()
    with pytest.raises(ResourceError, match="shop"):
        snapshots.current("shop", tmp_path / "shop.db")


def test_a_writer_that_locks_the_file_under_a_copy_and_stays_ends_the_copy(
    tmp_path: Path, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "LOCKED_S", 0.0)
    path = tmp_path / "shop.db"
    writer = database(path)
    source = sqlite3.connect(path, timeout=0)

    def lock(statement: str) -> None:
        if "page_size" in statement:
            writer.execute("BEGIN EXCLUSIVE")

    source.set_trace_callback(lock)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        data._take("shop", source)
    source.set_trace_callback(None)
    writer.execute("ROLLBACK")
    assert data._take("shop", source).content
    source.close()
    writer.close()
