"""Each example runs as it stands and prints what it is there to show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHOWN = {
    "quickstart.py": ["'rows': [[3, 68.75]]", "'value': 22.92", "policy.no_match", "sql.writes"],
    "own_tool.py": ["{'words': 2, 'characters': 9}", "policy.no_match", "desserts", "'words': 10", "session.none"],
    "files.py": ["orders.csv", "id,total", "'created': True", "policy.no_match", "path.leaves_root", "workspace.link",
                 "# May\nTwo orders"],
    "mail_and_calendar.py": [
        "sent", "sent_before", "denied policy.denied", "invalid arguments.schema", "created", "Planning with Ada",
        "asked about send_email", "ok sent", "['ada@example.com', 'ada@example.com']",
    ],
    "web_api.py": [
        "/v1/forecast/ulm?days=3 known: True key shown: False", "denied policy.no_match", "denied policy.no_match",
        "tool_error endpoint.refused",
    ],
    "own_portal.py": ["{'meaning': 'a place with one door'}", "tool.wiki.missing Try another.", "policy.no_match"],
    "approvals.py": ["ok 42", "rejected", "no files, please", "denied", "approval_required"],
}


@pytest.mark.docker
@pytest.mark.parametrize("name", SHOWN)
def test_the_example_runs_and_shows_its_point(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    rest = done.stdout
    for words in SHOWN[name]:
        _, found, rest = rest.partition(words)
        assert found, f"{words} does not follow in:\n{done.stdout}"


def test_no_example_stands_here_unrun() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == SHOWN.keys()
