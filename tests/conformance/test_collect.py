"""Collecting files: a folder that resists costs its own files, never the call or the cage."""

from typing import Any

import pytest

pytestmark = pytest.mark.docker


@pytest.mark.parametrize(
    ("resisting", "collected"),
    [
        ("os.mkdir('d'); open('d/in', 'w').close(); os.chmod('d', 0o444)", ["out"]),
        ("os.mkdir('d'); open('d/in', 'w').close(); os.chmod('d', 0o000)", ["out"]),
        ("os.mkdir('d'); open('d/in', 'w').close(); os.chmod('d', 0o111)", ["out"]),
        ("os.chmod('/workspace', 0o444)", []),
        ("os.chmod('/workspace', 0o000)", []),
    ],
)
def test_a_folder_that_resists_costs_its_own_files_only(
    installation: Any, resisting: str, collected: list[str]
) -> None:
    code = f"import os\nopen('out', 'w').write('x')\n{resisting}\n7"
    result = installation.session().call("execute_python", {"code": code})
    assert (result.status, result.data) == ("ok", 7)
    assert [item.name for item in result.artifacts] == collected
