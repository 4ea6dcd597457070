"""A bar is for people: on a terminal or when asked for, never on standard output."""

from __future__ import annotations

import io
import sys

import pytest

from toolcage.progress import bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "wanted", "shows"),
    [
        (Terminal, None, True), (io.StringIO, None, False), (Terminal, False, False), (io.StringIO, True, True),
    ],
)  # fmt: skip
def test_a_bar_is_shown_on_a_terminal_or_when_asked_for(
    stream: type[io.StringIO], wanted: bool | None, shows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, output = stream(), Terminal()
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setattr(sys, "stdout", output)
    with bar(3, wanted) as done:
        for _ in range(3):
            done()
    assert ("3/3" in error.getvalue()) is shows
    assert output.getvalue() == ""


def test_without_a_standard_error_nothing_is_shown_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with bar(1, None) as done:
        done()
