"""A reference names where a secret is; it is read late, checked, and never shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolcage.errors import ResourceError
from toolcage.secret_reference import LONGEST, SecretRef

CANARY = "canary-7f3a-value"


def kept(path: Path, content: bytes, mode: int = 0o600) -> SecretRef:
    path.write_bytes(content)
    path.chmod(mode)
    return SecretRef(source="file", place=str(path))


@pytest.mark.parametrize("content", [b"canary-7f3a-value", b"canary-7f3a-value\n", b"canary-7f3a-value\r\n"])
def test_a_file_gives_its_one_line(tmp_path: Path, content: bytes) -> None:
    assert kept(tmp_path / "s", content).read() == CANARY


def test_a_variable_gives_its_value_as_it_is_at_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = SecretRef(source="env", place="TOOLCAGE_TEST_SECRET")
    monkeypatch.delenv("TOOLCAGE_TEST_SECRET", raising=False)
    with pytest.raises(ResourceError, match="is not set"):
        reference.read()
    monkeypatch.setenv("TOOLCAGE_TEST_SECRET", CANARY)
    assert reference.read() == CANARY
    monkeypatch.setenv("TOOLCAGE_TEST_SECRET", "rotated-value")
    assert reference.read() == "rotated-value"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n", b"short", b"canary-7f3a-value\n\n", b"canary-7f3a\nvalue", b"canary-7f3a\r\nX: y\n",
        b"canary-7f3a-value \n", b" canary-7f3a-value", b"canary-7f3a\x00value", b"canary-7f3a-\xff\xfe",
        b"canary-7f3a-\xe2\x80\xae", b"c" * (LONGEST + 1),
    ],
)  # fmt: skip
def test_a_value_that_could_become_more_than_one_line_is_refused_without_showing_it(
    tmp_path: Path, content: bytes
) -> None:
    with pytest.raises(ResourceError) as caught:
        kept(tmp_path / "s", content).read()
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601])
def test_a_file_that_others_have_access_to_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ResourceError, match="chmod 600"):
        kept(tmp_path / "s", CANARY.encode(), mode).read()


def test_a_pipe_a_folder_and_an_absent_file_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for place in (tmp_path / "pipe", tmp_path, tmp_path / "absent"):
        with pytest.raises(ResourceError):
            SecretRef(source="file", place=str(place)).read()


def test_neither_form_of_a_reference_shows_the_value(tmp_path: Path) -> None:
    reference = kept(tmp_path / "s", CANARY.encode())
    assert reference.read() == CANARY
    assert CANARY not in f"{reference} {reference!r} {vars(type(reference)).get('__dict__')}"
