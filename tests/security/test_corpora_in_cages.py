"""The public corpora through real cages: bound values come back verbatim, pasted ones read at most, no path leaves.

Kinds of attack, never single strings; skipped where `../shared/corpora` (or TOOLCAGE_CORPORA) is not there. Each layer
is looked at alone: values are bound, statements pass the screen and then the engine's own guard, and paths are opened
naively in a cage and beneath a folder on the host with the screen switched off.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from toolcage import PoolTerms
from toolcage.cli.scan import judge_of
from toolcage.facts.beneath import open_beneath

FOLDER = Path(os.environ.get("TOOLCAGE_CORPORA", Path(__file__).resolve().parents[3] / "shared" / "corpora"))
pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="no ../shared/corpora; set TOOLCAGE_CORPORA"),
]
IN_A_CALL = 60
ANALYST = """
version: 1
role: analyst
tools:
  query_database:
    resources: {database: [shop]}
    allow:
      - sql: {tables: [orders], max_rows: 50}
    sandbox: {isolation: namespace}
    output: {max_bytes: 8MiB}
"""
CODER = """
version: 1
role: coder
tools:
  execute_python:
    allow: [{}]
    output: {max_bytes: 4MiB}
"""
VALUES = ("sql_injection_fragments", "sql_lookalike_benign")


def corpus(name: str) -> list[str]:
    content = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line)["text"] for line in content.split("\n") if line.strip()]


@pytest.fixture
def analyst(installation: Any, shop: Path) -> Any:
    resources = installation.folder / "resources.yaml"
    resources.write_text("version: 1\ndatabases:\n  shop: {kind: sqlite, path: shop.sqlite}\n")
    return installation.runtime(ANALYST, resources=resources, pool=PoolTerms(min_idle=1)).session()


@pytest.mark.parametrize("name", VALUES)
def test_every_value_that_is_bound_comes_back_verbatim(analyst: Any, shop: Path, name: str) -> None:
    values, before = corpus(name), shop.read_bytes()
    for start in range(0, len(values), IN_A_CALL):
        part = values[start : start + IN_A_CALL]
        columns = ", ".join(f":v{number} AS c{number}" for number in range(len(part)))
        arguments = {"database": "shop", "sql": f"SELECT {columns} FROM orders WHERE id = 1 OR customer = :v0"}
        result = analyst.call(
            "query_database", {**arguments, "parameters": {f"v{number}": text for number, text in enumerate(part)}}
        )
        assert result.status == "ok", result
        assert result.raw.data["rows"] == [part]
    assert shop.read_bytes() == before


@pytest.mark.long
@pytest.mark.parametrize("name", VALUES)
def test_a_value_pasted_into_a_quoted_literal_reads_the_granted_table_at_most(
    analyst: Any, shop: Path, tmp_path: Path, name: str
) -> None:
    before = hashlib.sha256(shop.read_bytes()).digest()
    files = {path for path in tmp_path.iterdir() if path.name != "state"}
    statuses: dict[str, int] = {}
    for text in corpus(name):
        result = analyst.call(
            "query_database",
            {"database": "shop", "sql": f"SELECT id, customer, total FROM orders WHERE customer = '{text}'"},
        )
        statuses[result.status] = statuses.get(result.status, 0) + 1
        assert result.status in ("ok", "blocked", "denied", "tool_error", "invalid", "timeout"), result
        if result.status == "ok":  # one result set, of this table or of constants; nothing of `staff`
            assert len(result.data["columns"]) == 3
            assert 99 not in [cell for row in result.data["rows"] for cell in row]
    assert hashlib.sha256(shop.read_bytes()).digest() == before
    assert {path for path in tmp_path.iterdir() if path.name != "state"} == files
    assert statuses.get("ok", 0) > 0


def test_a_pasted_value_writes_nothing_with_the_screen_switched_off(tmp_path: Path) -> None:
    """The engine's guard alone, as the tool's body sets it: no write, no other file, one statement."""
    from toolcage.tools.base import ToolFailure, body_of
    from toolcage.tools.query_database import QueryDatabase

    shop = tmp_path / "shop.sqlite"
    with contextlib.closing(sqlite3.connect(shop)) as connection:
        connection.executescript(
            "CREATE TABLE orders (id, customer, total); INSERT INTO orders VALUES (1, 'Ada', 10);"
            "CREATE TABLE staff (id, salary); INSERT INTO staff VALUES (1, 99);"
        )
    before = shop.read_bytes()
    answered = 0
    for text in corpus("sql_injection_fragments"):
        tool = QueryDatabase()
        tool.context = {
            "resources": {"database": {"name": "shop", "kind": "sqlite", "path": str(shop)}},
            "sql": {"tables": ["orders"], "columns_except": [], "max_rows": 50},
            "limits": {"max_bytes": 65536, "wall_s": 0.5},
        }
        with contextlib.suppress(ToolFailure):
            answer = body_of(tool)(database="shop", sql=f"SELECT id, customer FROM orders WHERE customer = '{text}'")
            answered += 1
            assert 99 not in [cell for row in answer["rows"] for cell in row]
    assert answered > 0
    assert shop.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["shop.sqlite"]


def spellings(text: str) -> set[str]:
    """The path as it is, and as a careless program would decode it first."""
    once = unquote(text)
    return {text, once, unquote(once), text.replace("\\", "/"), once.replace("\\", "/")}


def test_no_path_opened_beneath_a_folder_reads_what_lies_outside(tmp_path: Path) -> None:
    inside, outside = tmp_path / "a" / "b" / "workspace", "outside: must not be read"
    inside.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):
        for name in ("passwd", "boot.ini", "secret", "etc", "win.ini"):
            (folder / name).write_text(outside) if name != "etc" else (folder / "etc").mkdir()
        (folder / "etc" / "passwd").write_text(outside)
    for name in ("link", "up", "etc"):
        (inside / name).symlink_to(tmp_path if name != "etc" else "/etc", target_is_directory=True)
    (inside / "own.txt").write_text("own")
    descriptor = os.open(inside, os.O_RDONLY | os.O_DIRECTORY)
    refused = 0
    try:
        for spelled in {spelling for text in corpus("path_traversal") for spelling in spellings(text)} | {"own.txt"}:
            names = spelled.split("/")
            try:
                opened = open_beneath(descriptor, names)
            except (ValueError, OSError):
                refused += 1
                continue
            with os.fdopen(opened) as file:
                assert file.read() == "own"
                assert spelled == "own.txt"
    finally:
        os.close(descriptor)
    assert refused > 1000


PROBE = """
import json, os, pathlib
os.chdir("/workspace") if os.path.isdir("/workspace") else os.chdir("/tmp")
root = os.getcwd()
shown = []
for text in json.load(open({paths!r})):
    try:
        place = os.path.realpath(os.path.join(root, text))
        inside = place == root or place.startswith(root + "/")
        if not inside:
            shown.append([text, place, open(place, "rb").read(200).decode("utf-8", "replace")])
        else:
            pathlib.Path(place).parent.mkdir(parents=True, exist_ok=True)
            open(place, "ab").close()
    except (OSError, ValueError):
        pass
print(json.dumps(shown))
"""


def test_in_a_cage_a_path_that_passes_stays_inside_and_one_that_does_not_finds_nothing_of_the_host(
    installation: Any, tmp_path: Path
) -> None:
    canary = "canary-of-the-host-4c1f"
    planted = tmp_path / "canary.txt"
    planted.write_text(canary)
    judge = judge_of("path")
    paths = corpus("path_traversal")
    passed = {text for text in paths if not judge(text).refused}
    everything = sorted({spelling for text in paths for spelling in spellings(text) if "\x00" not in spelling})
    climbing = ["../" * depth + str(planted).lstrip("/") for depth in range(1, 12)]
    session = installation.session(CODER)
    result = session.call(
        "execute_python",
        {"code": PROBE.format(paths="paths.json")},
        files={"paths.json": json.dumps([*everything, *climbing]).encode()},
    )
    assert result.status == "ok", result
    shown = json.loads(result.raw.stdout.decode())
    assert canary not in json.dumps(shown)
    # What the screen lets pass, no careless decoding takes outside.
    assert not [text for text, *_ in shown if text in {spelling for one in passed for spelling in spellings(one)}]
    # What the naive program read outside its folder is of the image: no account of the host, no secret of it.
    host = Path("/etc/shadow").read_text() if os.access("/etc/shadow", os.R_OK) else ""
    hashes = [line.split(":")[1] for line in host.splitlines() if line.count(":") > 1 and len(line.split(":")[1]) > 4]
    assert not [one for one in hashes if one in json.dumps(shown)]
    assert os.uname().nodename not in json.dumps([content for *_, content in shown])
