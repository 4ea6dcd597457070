"""`analyze_file` through the whole line in real cages: the four formats, and files made to break what reads them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from toolcage import PoolTerms

pytestmark = pytest.mark.docker

ROLE = """
version: 1
role: reader
tools:
  analyze_file:
    resources: {workspace: [docs]}
    allow: [{}]
    sandbox: {memory: 512MiB}
  execute_python:
    allow: [{}]
    sandbox: {image: data, memory: 512MiB}
"""
CSV = "day,price,city\n2026-05-01,1.5,Bern\n2026-05-02,2.5,Bern\n2026-05-03,,Zürich\n2026-05-03,,Zürich\n"
MAKE = """
import polars
frame = polars.read_csv("t.csv", try_parse_dates=True)
frame.write_parquet("t.parquet")
import openpyxl
book = openpyxl.Workbook()
book.active.append(frame.columns)
for row in frame.rows():
    book.active.append(row)
book.create_sheet("second")
book.save("t.xlsx")
"""


@pytest.fixture
def reader(installation: Any, tmp_path: Path) -> Any:
    (tmp_path / "docs").mkdir()
    resources = tmp_path / "resources.yaml"
    resources.write_text("version: 1\nworkspaces:\n  docs: {folder: docs, access: ro}\n")
    return installation.session(ROLE, resources=resources, pool=PoolTerms(min_idle=1))


def analyze(reader: Any, name: str, kind: str = "summary", **more: Any) -> Any:
    return reader.call("analyze_file", {"file_path": name, "analysis_type": kind, **more})


def test_the_four_formats_give_the_same_answers(reader: Any, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "t.csv").write_text(CSV)
    rows = [line.split(",") for line in CSV.splitlines()[1:]]
    objects = [{"day": day, "price": float(price) if price else None, "city": city} for day, price, city in rows]
    (docs / "t.jsonl").write_text("".join(json.dumps(item) + "\n" for item in objects))
    made = reader.call("execute_python", {"code": MAKE}, files={"t.csv": CSV.encode()})
    assert made.status == "ok", made
    for artifact in made.artifacts:
        (docs / artifact.name).write_bytes(artifact.content)
    for name in ("t.csv", "t.jsonl", "t.parquet", "t.xlsx"):
        summary = analyze(reader, name)
        assert summary.status == "ok", (name, summary, summary.stderr)
        assert summary.data["columns"] == ["day", "price", "city"]
        assert (summary.data["rows_analyzed"], summary.data["more_rows"]) == (4, False)
        assert summary.data["first_rows"][0][1:] == [1.5, "Bern"]
        statistics = analyze(reader, name, "statistics").data["columns"]
        assert (statistics[1]["mean"], statistics[1]["nulls"], statistics[2]["distinct"]) == (2.0, 2, 2)
        quality = analyze(reader, name, "quality").data
        assert (quality["duplicate_rows"], quality["columns"][1]["null_share"]) == (1, 0.5)
        schema = analyze(reader, name, "schema", max_rows=2).data
        assert (schema["rows_analyzed"], schema["more_rows"]) == (2, True)
        assert [column["nullable"] for column in schema["columns"]] == [False, False, False]
    assert analyze(reader, "t.xlsx").data["sheets"] == ["Sheet", "second"]


def bomb(path: Path) -> None:
    """A workbook whose one sheet unpacks to 256 MiB."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet,
    ):
        for _ in range(256):
            sheet.write(b"0" * (1024 * 1024))


def lying(path: Path) -> None:
    """The same, with a directory that says 10 bytes."""
    bomb(path)
    content = path.read_bytes()
    at = content.rindex(b"PK\x01\x02")
    path.write_bytes(content[: at + 24] + (10).to_bytes(4, "little") + content[at + 28 :])


HOSTILE = {
    "bomb.xlsx": bomb,
    "lying.xlsx": lying,
    "claims.parquet": lambda path: path.write_bytes(b"PAR1" + b"\xff" * 64 + b"\xff\xff\xff\x7fPAR1"),
    "noise.parquet": lambda path: path.write_bytes(bytes(range(256)) * 100),
    "noise.xlsx": lambda path: path.write_bytes(bytes(range(256)) * 100),
    "deep.jsonl": lambda path: path.write_bytes(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "empty.csv": lambda path: path.write_bytes(b""),
    "old.xls": lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_made_to_break_its_reader_ends_the_call_and_nothing_else(
    reader: Any, tmp_path: Path, name: str
) -> None:
    HOSTILE[name](tmp_path / "docs" / name)
    result = analyze(reader, name)
    assert result.status in ("tool_error", "out_of_memory", "timeout", "limit_exceeded"), result
    if result.status == "tool_error":
        assert result.code.startswith("content."), (result, result.stderr)
    (tmp_path / "docs" / "t.csv").write_text(CSV)
    assert analyze(reader, "t.csv").status == "ok"


def test_one_enormous_line_is_bounded(reader: Any, tmp_path: Path) -> None:
    (tmp_path / "docs" / "line.csv").write_bytes(b"a,b\n" + b"x" * (15 * 1024 * 1024))
    result = analyze(reader, "line.csv")
    assert result.status in ("ok", "tool_error", "out_of_memory"), result
    assert len(result.to_text()) < 100_000
    (tmp_path / "docs" / "larger.csv").write_bytes(b"x" * (100 * 1024 * 1024))
    assert analyze(reader, "larger.csv").code == "workspace.file_too_large"
