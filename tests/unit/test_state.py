"""Which folder is the state folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcage.state import default_state_dir


@pytest.mark.parametrize(
    ("own", "xdg", "expected"),
    [
        ("/own", "/xdg", "/own"),
        ("", "/xdg", "/xdg/toolcage"),
        ("relative", "/xdg", "/xdg/toolcage"),
        ("", "relative", "/home/someone/.local/state/toolcage"),
        ("", "", "/home/someone/.local/state/toolcage"),
    ],
)
def test_the_most_particular_absolute_setting_wins(
    monkeypatch: pytest.MonkeyPatch, own: str, xdg: str, expected: str
) -> None:
    monkeypatch.setenv("TOOLCAGE_STATE_DIR", own)
    monkeypatch.setenv("XDG_STATE_HOME", xdg)
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_state_dir() == Path(expected)
