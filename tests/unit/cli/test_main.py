"""The version, and which images the commands take when none is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolcage import __version__
from toolcage.cage.images import ImageLock
from toolcage.cli import images
from toolcage.cli.main import app
from toolcage.errors import ImageError


def test_the_version_is_printed() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"toolcage {__version__}\n")


def test_without_names_the_images_of_the_built_in_tools_are_built_and_those_that_were_built_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert images._usual(tmp_path) == ["python", "shell", "data", "web"]

    class Lock:
        images = {"plots": None, "python": None}  # noqa: RUF012

    monkeypatch.setattr(ImageLock, "load", lambda _: Lock())
    assert images._usual(tmp_path) == ["python", "shell", "data", "web", "plots"]


def test_a_lock_that_cannot_be_read_is_no_reason_to_build_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Path) -> ImageLock:
        raise ImageError("broken")

    monkeypatch.setattr(ImageLock, "load", broken)
    assert images._usual(tmp_path) == ["python", "shell", "data", "web"]
