"""A folder as a workspace, with hostile things in it and hostile hands on it: nothing outside is read or written."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import stat
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from toolcage.errors import Refused
from toolcage.facts import beneath
from toolcage.workspaces import FolderStore, Quota, folder, seen
from toolcage.workspaces.store import FILE_BYTES, TEMPORARY

NO_QUOTA = Quota()
AT_FDCWD, RENAME_EXCHANGE = -100, 2


@pytest.fixture(params=["openat2", "component by component"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "openat2":
        monkeypatch.setattr(beneath, "_openat2", lambda *_: None)
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    (inside / "a").mkdir(parents=True)
    (inside / "a" / "b.txt").write_text("kept")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    return inside


@pytest.fixture
def outside(root: Path) -> Path:
    return root.parent / "outside"


@pytest.fixture
def store(root: Path) -> FolderStore:
    return FolderStore(root, NO_QUOTA)


@pytest.fixture(autouse=True)
def no_descriptor_left() -> Iterator[None]:
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) == before


def write(store: FolderStore, path: str, content: bytes = b"new") -> None:
    store.stage(path.split("/"), content, None).commit()


def code(call: Callable[[], Any]) -> str:
    with pytest.raises(Refused) as caught:
        call()
    assert "/" not in caught.value.refusal.message
    return caught.value.refusal.code


def tree(root: Path) -> dict[str, bytes | None]:
    """Every name below, links as they are, with the content of files."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in sorted(root.rglob("*"))
    }


def test_a_file_is_read_and_one_that_is_missing_is_none(store: FolderStore, way: str) -> None:
    assert store.read(("a", "b.txt")) == b"kept"
    assert store.read(("a", "missing")) is None
    assert store.read(("nowhere", "missing")) is None


def test_a_file_is_written_with_its_folders_for_this_user_alone(store: FolderStore, root: Path, way: str) -> None:
    write(store, "x/y/z.txt", b"content")
    assert (root / "x/y/z.txt").read_bytes() == b"content"
    assert stat.S_IMODE((root / "x/y/z.txt").stat().st_mode) == 0o600
    assert stat.S_IMODE((root / "x").stat().st_mode) == 0o700


def test_a_replaced_file_keeps_who_may_read_it_and_loses_execution(store: FolderStore, root: Path) -> None:
    (root / "a" / "b.txt").chmod(0o4755)
    write(store, "a/b.txt")
    assert stat.S_IMODE((root / "a" / "b.txt").stat().st_mode) == 0o644


def plant_link(root: Path, outside: Path) -> tuple[str, ...]:
    (root / "link").symlink_to(outside / "secret.txt")
    return ("link",)


def plant_folder_link(root: Path, outside: Path) -> tuple[str, ...]:
    (root / "up").symlink_to(outside)
    return ("up", "secret.txt")


def plant_inner_link(root: Path, outside: Path) -> tuple[str, ...]:
    (root / "within").symlink_to("a/b.txt")
    return ("within",)


def plant_proc_link(root: Path, outside: Path) -> tuple[str, ...]:
    (root / "self").symlink_to("/proc/self")
    return ("self", "fd", "0")


def plant_hard_link(root: Path, outside: Path) -> tuple[str, ...]:
    os.link(outside / "secret.txt", root / "second")
    return ("second",)


def plant_fifo(root: Path, outside: Path) -> tuple[str, ...]:
    os.mkfifo(root / "fifo")
    return ("fifo",)


def plant_socket(root: Path, outside: Path) -> tuple[str, ...]:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(root, os.O_RDONLY)
        made.bind(f"/proc/self/fd/{here}/sock")
        os.close(here)
    return ("sock",)


def plant_folder(root: Path, outside: Path) -> tuple[str, ...]:
    return ("a",)


PLANTED = [
    plant_link, plant_folder_link, plant_inner_link, plant_proc_link, plant_fifo, plant_socket, plant_folder,
]  # fmt: skip


@pytest.mark.parametrize("plant", [*PLANTED, plant_hard_link], ids=lambda plant: plant.__name__)
def test_what_is_no_plain_file_of_the_workspace_is_not_read(
    store: FolderStore, root: Path, outside: Path, way: str, plant: Callable[[Path, Path], tuple[str, ...]]
) -> None:
    names = plant(root, outside)
    assert code(lambda: store.read(names)).startswith("workspace.")


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_what_is_no_plain_file_of_the_workspace_is_not_written(
    store: FolderStore, root: Path, outside: Path, way: str, plant: Callable[[Path, Path], tuple[str, ...]]
) -> None:
    names = plant(root, outside)
    before = tree(root.parent)
    assert code(lambda: store.stage(names, b"new", None)).startswith("workspace.")
    assert tree(root.parent) == before


def test_writing_over_a_name_that_has_a_second_one_outside_leaves_that_as_it_was(
    store: FolderStore, root: Path, outside: Path
) -> None:
    names = plant_hard_link(root, outside)
    store.stage(names, b"new", None).commit()
    assert (root / "second").read_bytes() == b"new"
    assert (outside / "secret.txt").read_bytes() == b"secret"


@pytest.mark.parametrize(
    "names", [("..", "outside", "secret.txt"), ("a", "..", "..", "x"), ("a/b.txt",), ("/etc/passwd",), ("a\0b",), ("",)]
)
def test_names_that_are_no_names_are_a_mistake_of_the_caller(store: FolderStore, names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"."):
        store.read(names)
    with pytest.raises(ValueError, match=r"."):
        store.stage(names, b"new", None)


def test_a_link_put_there_between_check_and_use_is_replaced_and_not_followed(
    store: FolderStore, root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = store.stage(("a", "b.txt"), b"new", None)
    real = os.rename

    def swapped(*arguments: Any, **options: Any) -> None:
        (root / "a" / "b.txt").unlink()
        (root / "a" / "b.txt").symlink_to(outside / "secret.txt")
        real(*arguments, **options)

    monkeypatch.setattr(os, "rename", swapped)
    staged.commit()
    assert (outside / "secret.txt").read_bytes() == b"secret"
    assert not (root / "a" / "b.txt").is_symlink()
    assert (root / "a" / "b.txt").read_bytes() == b"new"


def test_a_folder_swapped_for_a_link_while_a_file_is_ready_is_noticed(
    store: FolderStore, root: Path, outside: Path
) -> None:
    staged = store.stage(("a", "new.txt"), b"new", None)
    (root / "a").rename(outside / "taken")
    (root / "a").symlink_to(outside)
    assert code(staged.commit) in ("workspace.link", "workspace.not_found")
    assert not (outside / "new.txt").exists()
    assert list((outside / "taken").iterdir()) == [outside / "taken" / "b.txt"]


def test_a_folder_moved_out_while_a_file_is_ready_is_noticed(store: FolderStore, root: Path, outside: Path) -> None:
    staged = store.stage(("a", "new.txt"), b"new", None)
    (root / "a").rename(outside / "taken")
    (root / "a").mkdir()
    assert code(staged.commit) == "workspace.conflict"
    assert not list((root / "a").iterdir())
    assert not (outside / "taken" / "new.txt").exists()


def test_links_swapped_in_and_out_by_another_program_never_lead_out(root: Path, outside: Path) -> None:
    store, over = FolderStore(root, NO_QUOTA), threading.Event()
    (root / "held").mkdir()
    (root / "held" / "secret.txt").write_text("inside")

    os.symlink(outside, root / "other")
    exchange = ctypes.CDLL(None).renameat2
    here, there = os.fsencode(root / "held"), os.fsencode(root / "other")

    def swap() -> None:
        while not over.is_set():
            exchange(AT_FDCWD, here, AT_FDCWD, there, RENAME_EXCHANGE)

    swapping = threading.Thread(target=swap)
    swapping.start()
    outcomes = set()
    for _ in range(300):
        try:
            outcomes.add(store.read(("held", "secret.txt")))
            store.stage(("held", "secret.txt"), b"inside", None).commit()
        except Refused as caught:
            outcomes.add(caught.refusal.code.encode())
    over.set()
    swapping.join()
    assert b"secret" not in outcomes
    assert b"inside" in outcomes
    assert len(outcomes) > 1
    assert (outside / "secret.txt").read_bytes() == b"secret"
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]


def test_a_discarded_file_leaves_nothing_not_even_its_folders(store: FolderStore, root: Path) -> None:
    before = tree(root)
    staged = store.stage(("x", "y", "z.txt"), b"new", None)
    staged.discard()
    staged.commit()
    assert tree(root) == before


def test_what_a_dead_host_left_is_cleared_and_never_shown(store: FolderStore, root: Path) -> None:
    left = root / "a" / f"{TEMPORARY}{'0' * 16}"
    left.write_text("half")
    assert [entry.names[-1] for entry in store.listing(("a",)).entries] == ["b.txt"]
    assert code(lambda: store.stage(("a", left.name), b"", None)) == "workspace.reserved_name"
    write(store, "a/c.txt")
    assert sorted(path.name for path in (root / "a").iterdir()) == ["b.txt", "c.txt"]


def test_a_change_made_meanwhile_is_a_conflict_and_is_kept(store: FolderStore, root: Path) -> None:
    before = seen(store.read(("a", "b.txt")))
    (root / "a" / "b.txt").write_text("KEPT")  # the same size
    assert code(lambda: store.stage(("a", "b.txt"), b"mine", before)) == "workspace.conflict"
    assert (root / "a" / "b.txt").read_text() == "KEPT"


def test_a_change_made_while_the_file_is_ready_is_a_conflict_too(store: FolderStore, root: Path) -> None:
    staged = store.stage(("a", "b.txt"), b"mine", seen(b"kept"))
    (root / "a" / "b.txt").write_text("theirs")
    assert code(staged.commit) == "workspace.conflict"
    assert (root / "a" / "b.txt").read_text() == "theirs"
    assert len(list((root / "a").iterdir())) == 1


def test_a_file_that_appeared_meanwhile_is_a_conflict(store: FolderStore, root: Path) -> None:
    before = seen(store.read(("new.txt",)))
    (root / "new.txt").write_text("theirs")
    assert code(lambda: store.stage(("new.txt",), b"mine", before)) == "workspace.conflict"


def test_of_many_writers_one_wins_whole(root: Path) -> None:
    contents = [bytes([letter]) * 200_000 for letter in b"abcdefgh"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: write(FolderStore(root, NO_QUOTA), "a/b.txt", content), contents))
    assert (root / "a" / "b.txt").read_bytes() in contents
    assert len(list((root / "a").iterdir())) == 1


APPENDING = """
import sys
from pathlib import Path
from toolcage.errors import Refused
from toolcage.workspaces import FolderStore, Quota, seen
store = FolderStore(Path(sys.argv[1]), Quota())
for number in range(10):
    while True:
        now = store.read(("log",))
        try:
            store.stage(("log",), (now or b"") + f"{sys.argv[2]}{number}\\n".encode(), seen(now)).commit()
            break
        except Refused as caught:
            assert caught.refusal.code == "workspace.conflict", caught.refusal
"""


def test_no_line_is_lost_between_processes_that_append(root: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", APPENDING, str(root), letter]) for letter in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    lines = (root / "log").read_text().splitlines()
    assert sorted(lines) == [f"{letter}{number}" for letter in "abc" for number in range(10)]


def test_a_workspace_that_somebody_holds_is_busy(
    store: FolderStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "LOCK_WAIT_S", 0.0)
    holder = os.open(root, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    assert code(lambda: store.stage(("x",), b"", None)) == "workspace.busy"
    assert store.read(("a", "b.txt")) == b"kept"
    os.close(holder)
    write(store, "x")


@pytest.mark.parametrize(
    ("quota", "path", "content", "fits"),
    [
        (Quota(size=10), "new", b"x" * 6, True),
        (Quota(size=10), "new", b"x" * 7, False),
        (Quota(size=10), "a/b.txt", b"x" * 10, True),
        (Quota(size=10), "a/b.txt", b"x" * 11, False),
        (Quota(files=2), "new", b"", True),
        (Quota(files=1), "new", b"", False),
        (Quota(files=1), "a/b.txt", b"longer", True),
    ],
)
def test_a_quota_is_what_all_files_together_may_be(
    root: Path, quota: Quota, path: str, content: bytes, fits: bool
) -> None:
    before = tree(root)
    if fits:
        write(FolderStore(root, quota), path, content)
        assert (root / path).read_bytes() == content
    else:
        assert code(lambda: write(FolderStore(root, quota), path, content)) == "workspace.quota"
        assert tree(root) == before


def test_writers_at_once_cannot_get_past_a_quota_together(root: Path) -> None:
    def attempt(number: int) -> str:
        try:
            write(FolderStore(root, Quota(size=100, files=6)), f"n{number}", b"x" * 24)
        except Refused as caught:
            return caught.refusal.code
        return "ok"

    with ThreadPoolExecutor(8) as pool:
        outcomes = Counter(pool.map(attempt, range(16)))
    assert outcomes == {"ok": 4, "workspace.quota": 12}
    assert sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) == 100


def test_a_file_beyond_the_size_of_one_is_neither_read_nor_written(store: FolderStore, root: Path) -> None:
    with (root / "huge").open("wb") as handle:
        handle.truncate(FILE_BYTES + 1)
    assert code(lambda: store.read(("huge",))) == "workspace.file_too_large"
    assert code(lambda: store.stage(("x",), b"x" * (FILE_BYTES + 1), None)) == "workspace.file_too_large"


def test_a_listing_names_links_and_follows_none(store: FolderStore, root: Path, outside: Path, way: str) -> None:
    plant_link(root, outside)
    plant_folder_link(root, outside)
    plant_fifo(root, outside)
    os.close(os.open(os.path.join(os.fsencode(root), b"\xff"), os.O_CREAT, 0o600))
    (root / "loop").symlink_to(".")
    listing = store.listing(())
    assert [("/".join(entry.names), entry.kind) for entry in listing.entries] == [
        ("a", "folder"), ("link", "link"), ("loop", "link"), ("up", "link"), ("a/b.txt", "file"),
    ]  # fmt: skip
    assert (listing.complete, listing.skipped) == (True, 2)
    assert code(lambda: store.listing(("up",))) in ("workspace.link", "workspace.not_found")
    assert code(lambda: store.listing(("a", "b.txt"))) == "workspace.not_found"


def test_a_listing_is_bounded_in_number_and_depth_and_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder.store, "MAX_LISTED", 5)
    for number in range(10):
        (root / f"f{number}").touch()
    listing = FolderStore(root, NO_QUOTA).listing(())
    assert (len(listing.entries), listing.complete) == (5, False)
    deep = root / "/".join("d" * 12)
    deep.mkdir(parents=True)
    listing = FolderStore(root, NO_QUOTA).listing(("d",))
    assert not listing.complete


def test_a_workspace_that_is_gone_is_unavailable_and_its_path_is_told_to_nobody(root: Path) -> None:
    with pytest.raises(Refused) as caught:
        FolderStore(root / "nowhere", NO_QUOTA).read(("a",))
    refusal = caught.value.refusal
    assert (refusal.status, refusal.code) == ("unavailable", "workspace.unusable")
    assert str(root) not in refusal.message + (refusal.hint or "")
    assert str(root) in (refusal.operator or "")


def test_letter_case_and_other_forms_of_a_character_are_other_names(store: FolderStore, root: Path) -> None:
    write(store, "cafe\u0301.txt", b"two characters")
    assert store.read(("caf\u00e9.txt",)) is None
    assert store.read(("A", "b.txt")) is None


def test_a_path_longer_than_the_door_takes_is_refused(store: FolderStore) -> None:
    assert code(lambda: store.stage(["d"] * 9, b"", None)) == "workspace.path_too_long"
    assert code(lambda: store.stage(["d" * 201], b"", None)) == "workspace.path_too_long"
