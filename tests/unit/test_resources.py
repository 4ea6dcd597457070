"""resources.yaml: what it names, what it refuses, and that nothing is touched before it is used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolcage.errors import ResourceError
from toolcage.resources import Resources, SqliteDatabase, Workspace, load_resources

GOOD = """
version: 1
databases:
  shop: {kind: sqlite, path: data/shop.sqlite, attach: door}
  archive: {kind: sqlite, path: /srv/archive.sqlite}
workspaces:
  scratch: {folder: ./scratch, access: rw}
  docs: {folder: ../docs, access: ro}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "resources.yaml"
    path.write_text(text.lstrip("\n"), encoding="utf-8")
    return path


def test_every_field_arrives_and_relative_paths_are_relative_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    write(tmp_path / "conf", GOOD)
    monkeypatch.chdir(tmp_path)
    resources = load_resources(Path("conf/resources.yaml"))
    assert resources.databases == {
        "shop": SqliteDatabase(name="shop", path=tmp_path / "conf/data/shop.sqlite"),
        "archive": SqliteDatabase(name="archive", path=Path("/srv/archive.sqlite")),
    }
    assert resources.workspaces == {
        "scratch": Workspace(name="scratch", folder=tmp_path / "conf/scratch", access="rw"),
        "docs": Workspace(name="docs", folder=tmp_path / "docs", access="ro"),
    }


def test_a_name_is_found_exactly_or_the_error_lists_the_names(tmp_path: Path) -> None:
    resources = load_resources(write(tmp_path, GOOD))
    assert resources.database("shop").name == "shop"
    assert resources.workspace("docs").access == "ro"
    assert resources.dialect("archive") == "sqlite"
    for name in ("Shop", "shop ", "payroll"):
        with pytest.raises(ResourceError, match="named there: archive, shop"):
            resources.database(name)
        with pytest.raises(ResourceError):
            resources.dialect(name)
    with pytest.raises(ResourceError, match="named there: docs, scratch"):
        resources.workspace("shop")


def test_without_a_file_there_is_nothing_to_reach() -> None:
    with pytest.raises(ResourceError, match="named there: none"):
        Resources.empty().database("shop")
    Resources.empty().check()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("databases: {}", 1, "version: missing"),
        ("version: 2", 1, "reads `version: 1`"),
        ("version: true", 1, "reads `version: 1`"),
        ("version: 1\ndatabase: {}", 2, "known are: version, databases, workspaces"),
        ("version: 1\nendpoints: {}", 2, "`endpoints` is not known here"),
        ("version: 1\ndatabases:", 2, "write a mapping"),
        ("version: 1\ndatabases:\n  Shop: {kind: sqlite, path: a}", 3, "write a name that matches"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite}", 3, "path: missing"),
        ("version: 1\ndatabases:\n  shop: {path: a}", 3, "kind: missing"),
        ("version: 1\ndatabases:\n  shop: {kind: mysql, path: a}", 3, "write sqlite"),
        ("version: 1\ndatabases:\n  shop: {kind: postgresql, path: a}", 3, "is not reached by this version"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite, path: a, attach: mount}", 3, "not enforced by this version"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite, path: a, attach: }", 3, "write door"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite, path: a, mode: rw}", 3, "known are: kind, path, attach"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite, path: ~/a}", 3, "neither ~ nor variables"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite, path: $HOME/a}", 3, "neither ~ nor variables"),
        ("version: 1\ndatabases:\n  shop: {kind: sqlite, path: ''}", 3, "write a path"),
        ("version: 1\nworkspaces:\n  w: {folder: a}", 3, "access: missing"),
        ("version: 1\nworkspaces:\n  w: {folder: a, access: rwx}", 3, "write ro or rw"),
        ("version: 1\nworkspaces:\n  w: {folder: /, access: ro}", 3, "the whole machine"),
        ("version: 1\nworkspaces:\n  w: {folder: /tmp/.., access: ro}", 3, "the whole machine"),
        ("version: 1\nworkspaces:\n  w: {folder: a, access: ro, quota: 1}", 3, "known are: folder, access"),
        ("version: 1\nversion: 1", 2, "stands twice"),
        ("version: 1\ndatabases: &a {}", 2, "anchor"),
        ("- a", 1, "write a mapping"),
    ],
)
def test_a_faulty_file_is_refused_with_line_and_what_to_write(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ResourceError) as caught:
        load_resources(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert said in str(caught.value)


def test_all_faults_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "version: 1\nhosts: {}\nworkspaces:\n  w: {folder: a, access: x}\n")
    with pytest.raises(ResourceError) as caught:
        load_resources(path)
    assert len(str(caught.value).splitlines()) == 2


def test_an_absent_file_is_an_error_and_not_empty_resources(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="cannot be read"):
        load_resources(tmp_path / "absent.yaml")
    with pytest.raises(ResourceError):
        load_resources(tmp_path)


def test_loading_touches_nothing_and_checking_names_the_resource_that_is_missing(tmp_path: Path) -> None:
    resources = load_resources(write(tmp_path, GOOD))
    assert sorted(item.name for item in tmp_path.iterdir()) == ["resources.yaml"]
    with pytest.raises(ResourceError, match="the database `shop`"):
        resources.databases["shop"].check()
    with pytest.raises(ResourceError, match="the workspace `scratch`"):
        resources.workspaces["scratch"].check()
    with pytest.raises(ResourceError):
        resources.check()


def test_what_is_there_and_of_the_right_type_passes_the_check(tmp_path: Path) -> None:
    database, folder = tmp_path / "a.sqlite", tmp_path / "w"
    database.write_bytes(b"")
    folder.mkdir()
    SqliteDatabase(name="a", path=database).check()
    Workspace(name="w", folder=folder, access="rw").check()
    with pytest.raises(ResourceError, match="is not a regular file"):
        SqliteDatabase(name="a", path=folder).check()
    with pytest.raises(ResourceError, match="is not a folder"):
        Workspace(name="w", folder=database, access="ro").check()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
def test_a_named_pipe_is_no_database(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ResourceError, match="is not a regular file"):
        SqliteDatabase(name="p", path=tmp_path / "pipe").check()
