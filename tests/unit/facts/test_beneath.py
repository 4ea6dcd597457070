"""What is opened beneath a directory is a regular file beneath it, whatever lies there."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolcage.facts import beneath
from toolcage.facts.beneath import open_beneath


@pytest.fixture(params=["openat2", "component by component"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "openat2":
        monkeypatch.setattr(beneath, "_openat2", lambda *_: None)
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    inside = tmp_path / "inside"
    (inside / "a").mkdir(parents=True)
    (inside / "a" / "b.txt").write_text("kept")
    (tmp_path / "outside.txt").write_text("secret")
    (inside / "link").symlink_to(tmp_path / "outside.txt")
    (inside / "up").symlink_to("..")
    (inside / "within").symlink_to("a/b.txt")
    os.mkfifo(inside / "fifo")
    descriptor = os.open(inside, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_a_file_beneath_is_opened(root: int, way: str) -> None:
    opened = open_beneath(root, ("a", "b.txt"))
    assert os.read(opened, 10) == b"kept"
    os.close(opened)


def test_a_new_file_is_made_beneath_with_the_given_mode(root: int, way: str) -> None:
    opened = open_beneath(root, ("a", "new"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    assert stat.S_IMODE(os.fstat(opened).st_mode) == 0o600
    os.close(opened)


@pytest.mark.parametrize("names", [("link",), ("up", "outside.txt"), ("within",), ("fifo",), ("a",), ("missing",)])
def test_links_special_files_and_folders_are_refused(root: int, way: str, names: tuple[str, ...]) -> None:
    with pytest.raises(OSError, match=r"."):
        os.close(open_beneath(root, names))


@pytest.mark.parametrize(
    "names", [(), ("..", "outside.txt"), ("a", ".."), ("a/b.txt",), ("",), ("a\x00",), ("/etc/passwd",)]
)
def test_what_is_no_list_of_plain_names_is_refused(root: int, way: str, names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="plain names"):
        open_beneath(root, names)


def test_nothing_stays_open_when_it_is_refused(root: int, way: str) -> None:
    before = set(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else set()
    for names in (("fifo",), ("link",), ("a",)):
        with pytest.raises(OSError, match=r"."):
            open_beneath(root, names)
    after = set(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else set()
    assert len(after) == len(before)
