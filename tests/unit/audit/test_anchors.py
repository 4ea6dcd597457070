"""The key and the exported head: read exactly or refused."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from toolcage.audit.anchors import key_from_environment, load_key, read_head, write_head
from toolcage.audit.chain import Head
from toolcage.errors import AuditError

HEAD = Head(runtime="run", seq=7, hash="ab" * 32)


def test_a_head_reads_back_as_it_was_written(tmp_path: Path) -> None:
    write_head(tmp_path / "head.json", HEAD)
    write_head(tmp_path / "head.json", HEAD)
    assert read_head(tmp_path / "head.json") == HEAD
    assert stat.S_IMODE((tmp_path / "head.json").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["head.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"runtime":"run","seq":-1,"hash":"' + "ab" * 32 + '"}',
        '{"runtime":"run","seq":"7","hash":"' + "ab" * 32 + '"}',
        '{"runtime":"run","seq":7,"hash":"zz"}',
        '{"runtime":"../run","seq":7,"hash":"' + "ab" * 32 + '"}',
        '{"runtime":"run","seq":7,"hash":"' + "ab" * 32 + '","more":1}',
    ],
)
def test_a_file_that_is_no_head_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "head.json").write_text(text)
    with pytest.raises(AuditError, match="not an exported head"):
        read_head(tmp_path / "head.json")


def test_a_head_that_is_missing_or_cannot_be_written_is_an_audit_error(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="cannot be read"):
        read_head(tmp_path / "head.json")
    with pytest.raises(AuditError, match="cannot be written"):
        write_head(tmp_path / "missing" / "head.json", HEAD)


def test_a_key_is_the_files_bytes_less_one_newline(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\x00" * 16 + b"\n\n")
    assert load_key(tmp_path / "key") == b"\x00" * 16 + b"\n"


def test_a_key_too_short_or_missing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_bytes(b"x" * 15 + b"\n")
    with pytest.raises(AuditError, match="too short"):
        load_key(tmp_path / "key")
    with pytest.raises(AuditError, match="cannot be read"):
        load_key(tmp_path / "missing")
    monkeypatch.setenv("AUDIT_KEY", "short")
    with pytest.raises(AuditError, match="too short"):
        key_from_environment("AUDIT_KEY")
    monkeypatch.delenv("AUDIT_KEY")
    with pytest.raises(AuditError, match="not set"):
        key_from_environment("AUDIT_KEY")


def test_a_key_from_the_environment_is_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDIT_KEY", "sixteen or more é")
    assert key_from_environment("AUDIT_KEY") == "sixteen or more é".encode()
