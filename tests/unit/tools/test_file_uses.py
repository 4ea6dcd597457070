"""What a tool says of the files that it works on is complete, or the tool is not taken."""

from __future__ import annotations

from typing import Any

import pytest

from toolcage.errors import DeclarationError
from toolcage.tools.admission import Declared as Described
from toolcage.tools.admission import admit, admit_stranger
from toolcage.types import FileUse

TEXT = {"type": "string"}


def declared(**changes: Any) -> dict[str, Any]:
    properties = {"path": TEXT, "other": TEXT, "workspace": TEXT, "mode": TEXT}
    return {
        "name": "copy_file", "description": "Copies.", "isolation": "container", "image": "python", "wall_s": 1.0,
        "parameters": {"type": "object", "properties": properties, "additionalProperties": False},
        "kinds": {"path": "path", "other": "path"}, "effects": ["writes"], "resources": {"workspace": "workspace"},
        "idempotent": False, "accepts_files": False, "file_uses": {"path": "read", "other": "write"}, **changes,
    }  # fmt: skip


@pytest.mark.parametrize("use", ["read", "list", "write", "update", "by_mode"])
def test_one_workspace_with_paths_and_at_most_one_file_to_write_is_taken(use: FileUse) -> None:
    made = admit(declared(file_uses={"path": use}))
    assert made.file_uses == {"path": use}
    assert made.writes_files is (use not in ("read", "list"))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"resources": {}}, "go together"),
        ({"file_uses": {}}, "go together"),
        ({"resources": {"folder": "workspace"}}, "go together"),
        ({"kinds": {"path": "path"}}, "no text of kind path"),
        ({"file_uses": {"missing": "read"}}, "no text of kind path"),
        ({"file_uses": {"path": "write", "other": "update"}}, "split the tool"),
        ({"effects": []}, "declare the effect writes"),
        ({"file_uses": {"path": "execute"}}, "cannot be used"),
    ],
)
def test_what_is_incomplete_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        admit(declared(**changes))


def test_a_stranger_works_on_no_workspace() -> None:
    made = admit_stranger(Described.model_validate(declared()))
    assert (made.file_uses, made.resources) == ({}, {})
