"""A name stays inside its folder and shows what it is; a type is believed only when the bytes agree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcage.cleaning.artifacts import artifact_name, media_type


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("plot.png", "plot.png"),
        ("out/table 1.csv", "out/table 1.csv"),
        ("отчёт.csv", "отчёт.csv"),
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("..\\..\\win.ini", "win.ini"),
        ("C:\\x", "C_/x"),
        (".bashrc", "bashrc"),
        ("-rf", "rf"),
        ("photo\u202egnp.exe", "photognp.exe"),
        ("a\x1b[31m\nb.txt", "a_31m_b.txt"),
        ("<img src=x>.png", "_img src=x_.png"),
        ("nul.txt", "_nul.txt"),
        ("..", "file"),
        ("", "file"),
        ("ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5.txt", "_redacted-github_token_.txt"),
    ],
)
def test_a_name_becomes_a_harmless_relative_one(name: str, cleaned: str) -> None:
    assert artifact_name(name) == cleaned


def test_names_that_become_equal_are_numbered() -> None:
    assert artifact_name("A.txt", {"a.txt"}) == "A-2.txt"
    assert artifact_name("a", {"a", "a-2"}) == "a-3"


def test_an_exact_secret_in_a_name_is_redacted() -> None:
    assert "hunter2" not in artifact_name("hunter2.txt", (), ["hunter2"])


@given(st.text(max_size=300))
def test_no_name_escapes(name: str) -> None:
    cleaned = artifact_name(name)
    parts = cleaned.split("/")
    assert all(part and part not in (".", "..") and part[0] not in ".-~ " for part in parts)
    assert "\\" not in cleaned
    assert cleaned.isprintable()
    assert all(len(part.encode()) <= 121 for part in parts)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\nxx", "image/png"),
        ("a.png", b"<script>", "application/octet-stream"),
        ("a.csv", b"a,b\n1,2\n", "text/csv"),
        ("a.csv", b"a\x00b", "application/octet-stream"),
        ("a.json", b"{}", "application/json"),
        ("a.html", b"<script>", "application/octet-stream"),
        ("a.svg", b"<svg onload=x>", "application/octet-stream"),
        ("a", b"x", "application/octet-stream"),
        ("a.pdf", b"%PDF-1.7", "application/pdf"),
    ],
)
def test_a_type_needs_the_name_and_the_bytes(name: str, content: bytes, kind: str) -> None:
    assert media_type(name, content) == kind
