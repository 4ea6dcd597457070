"""What is believed of compiled modules that were kept: only what nobody else could have put there."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcage.cage import compiled, wire
from toolcage.cage.compiled import CODE_BYTES, KEPT_FILES, CompiledModules
from toolcage.cage.door import Door, DoorMalformed
from toolcage.cage.live import LiveCage

IMAGE, OTHER_IMAGE = "sha256:" + "1" * 64, "sha256:" + "2" * 64
SOURCES = {"toolcage.warden.main": b"print(1)\n", "toolcage.tools.base": b"print(2)\n"}
CODE = {"toolcage.warden.main": b"code of main", "toolcage.tools.base": b"code of base"}


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The one file of a state directory in which CODE was kept."""
    CompiledModules(tmp_path).keep(IMAGE, SOURCES, CODE)
    (found,) = (tmp_path / "compiled").iterdir()
    return found


def read(state_dir: Path, image: str = IMAGE, sources: dict[str, bytes] = SOURCES) -> object:
    """As a later process finds it."""
    return CompiledModules(state_dir).get(image, sources)


def test_what_a_cage_told_is_there_for_the_same_image_and_sources(tmp_path: Path, kept: Path) -> None:
    assert read(tmp_path) == CODE
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700


def test_it_is_there_for_no_other_image(tmp_path: Path, kept: Path) -> None:
    assert read(tmp_path, image=OTHER_IMAGE) is None


@pytest.mark.parametrize(
    "changed",
    [
        {**SOURCES, "toolcage.tools.base": b"print(3)\n"},
        {**SOURCES, "toolcage.tools.more": b""},
        {"toolcage.warden.main": b"print(1)\n"},
        {"toolcage.warden.main": b"print(2)\n", "toolcage.tools.base": b"print(1)\n"},
    ],
    ids=["other text", "one module more", "one module less", "texts swapped"],
)
def test_it_is_there_for_no_other_sources(tmp_path: Path, kept: Path, changed: dict[str, bytes]) -> None:
    assert read(tmp_path, sources=changed) is None


def test_a_file_of_another_image_under_this_ones_name_is_not_believed(tmp_path: Path, kept: Path) -> None:
    CompiledModules(tmp_path).keep(OTHER_IMAGE, SOURCES, dict.fromkeys(SOURCES, b"planted"))
    (other,) = set(kept.parent.iterdir()) - {kept}
    os.replace(other, kept)
    assert read(tmp_path) is None


@pytest.mark.parametrize("place", [0, 40, -1])
def test_a_file_with_a_changed_byte_is_not_believed(tmp_path: Path, kept: Path, place: int) -> None:
    content = bytearray(kept.read_bytes())
    content[place] ^= 1
    kept.write_bytes(content)
    assert read(tmp_path) is None


@pytest.mark.parametrize("length", [0, 31, 33, 100])
def test_a_torn_file_is_not_believed(tmp_path: Path, kept: Path, length: int) -> None:
    kept.write_bytes(kept.read_bytes()[:length])
    assert read(tmp_path) is None


def _link(kept: Path) -> None:
    kept.rename(kept.parent.parent / "elsewhere")
    kept.symlink_to(kept.parent.parent / "elsewhere")


def _linked_folder(kept: Path) -> None:
    kept.parent.rename(kept.parent.parent / "elsewhere")
    kept.parent.symlink_to(kept.parent.parent / "elsewhere")


@pytest.mark.parametrize(
    "expose",
    [
        pytest.param(lambda kept: kept.chmod(0o620), id="the group may write the file"),
        pytest.param(lambda kept: kept.chmod(0o602), id="anybody may write the file"),
        pytest.param(lambda kept: kept.parent.chmod(0o777), id="anybody may write the folder"),
        pytest.param(_link, id="the file is a link"),
        pytest.param(_linked_folder, id="the folder is a link"),
    ],
)
def test_what_another_user_could_have_put_there_is_not_believed(
    tmp_path: Path, kept: Path, expose: Callable[[Path], None]
) -> None:
    assert read(tmp_path) == CODE
    expose(kept)
    assert read(tmp_path) is None


def test_a_folder_that_takes_the_place_of_the_one_that_was_looked_at_is_not_read(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CompiledModules(tmp_path / "theirs").keep(IMAGE, SOURCES, dict.fromkeys(SOURCES, b"planted"))
    check = compiled._check_ours

    def swapping(*given: Any) -> None:
        check(*given)
        if kept.parent.exists() and (tmp_path / "theirs").exists():
            kept.parent.rename(tmp_path / "away")
            (tmp_path / "theirs" / "compiled").rename(kept.parent)
            (tmp_path / "theirs").rmdir()

    monkeypatch.setattr(compiled, "_check_ours", swapping)
    assert read(tmp_path) == CODE
    monkeypatch.undo()
    assert read(tmp_path) == dict.fromkeys(SOURCES, b"planted")  # it did lie there


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_believed(tmp_path: Path, kept: Path) -> None:
    os.chown(kept, 12345, 12345)
    assert read(tmp_path) is None


def test_what_was_kept_first_stays(tmp_path: Path) -> None:
    store = CompiledModules(tmp_path)
    store.keep(IMAGE, SOURCES, CODE)
    store.keep(IMAGE, SOURCES, dict.fromkeys(SOURCES, b"later"))
    assert store.get(IMAGE, SOURCES) == CODE
    assert read(tmp_path) == CODE


def test_where_the_disk_takes_nothing_the_process_still_has_it(tmp_path: Path) -> None:
    (tmp_path / "compiled").write_text("in the way")
    store = CompiledModules(tmp_path)
    store.keep(IMAGE, SOURCES, CODE)
    assert store.get(IMAGE, SOURCES) == CODE
    assert read(tmp_path) is None


def test_a_handful_of_files_is_kept(tmp_path: Path) -> None:
    store = CompiledModules(tmp_path)
    for number in range(KEPT_FILES + 3):
        store.keep(f"sha256:{number:064}", SOURCES, CODE)
    assert len(list((tmp_path / "compiled").iterdir())) == KEPT_FILES


# --- how a cage tells it -------------------------------------------------------------------------------------------


def told(*frames: bytes) -> Any:
    """What is made of a new cage that says this."""
    ours, theirs = socket.socketpair()
    content = b"".join(frames)
    theirs.sendall(bytes((1, 0, 0, 0)) + len(content).to_bytes(4, "big") + content)
    door = Door(ours)
    nothing: Any = None
    try:
        return LiveCage(nothing, nothing, "none", door)._receive_code(("a", "b"), time.monotonic() + 10)
    finally:
        door.close()
        theirs.close()


def announced(sizes: object) -> bytes:
    return wire.encode_control(op="compiled", sizes=sizes)


def test_code_is_taken_apart_by_the_announced_sizes() -> None:
    assert told(announced([2, 3]), wire.encode_stream(wire.CODE, b"aabbb")) == {"a": b"aa", "b": b"bbb"}


@pytest.mark.parametrize(
    "frames",
    [
        (announced([2]), wire.encode_stream(wire.CODE, b"aa")),
        (announced([2, 3, 1]), wire.encode_stream(wire.CODE, b"aabbbc")),
        (announced([2, -3]), wire.encode_stream(wire.CODE, b"aa")),
        (announced([2, 0]), wire.encode_stream(wire.CODE, b"aa")),
        (announced([2, True]), wire.encode_stream(wire.CODE, b"aab")),
        (announced([2, CODE_BYTES]), wire.encode_stream(wire.CODE, b"aab")),
        (announced({"a": 2, "b": 3}), wire.encode_stream(wire.CODE, b"aabbb")),
        (announced([2, 3]), wire.encode_stream(wire.CODE, b"aabb")),
        (announced([2, 3]), wire.encode_stream(wire.CODE, b"aabbbc")),
        (announced([2, 3]), wire.encode_stream(wire.STDOUT, b"aabbb")),
        (announced([2, 3]), wire.encode_control(op="ready")),
        (wire.encode_control(op="ready"),),
        (wire.encode_stream(wire.CODE, b"aabbb"),),
    ],
)
def test_code_in_any_other_shape_ends_the_cage(frames: tuple[bytes, ...]) -> None:
    with pytest.raises(DoorMalformed):
        told(*frames)
