"""`write_file`: writes one text file of a workspace, whole or at its end.

The body runs in a cage, on a copy; the host takes exactly the file of the call's path back and puts it in its place in
one step, when the call ended well and is on record. In `append` mode it is put there only over what was read.
"""

import os
from typing import Any, Final

from toolcage.tools.base import Tool, ToolFailure

PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "minLength": 1,
            "maxLength": 400,
            "description": "The file, relative to the workspace, such as reports/may.txt. Missing folders are made.",
        },
        "content": {"type": "string", "maxLength": 1_000_000, "description": "The text to write, as UTF-8."},
        "mode": {
            "type": "string",
            "enum": ["write", "append"],
            "default": "write",
            "description": "`write` replaces the whole file, `append` adds to its end. Both make a missing file.",
        },
        "workspace": {"type": "string", "minLength": 1, "maxLength": 64, "description": "Name of the workspace."},
    },
    "required": ["path", "content"],
    "additionalProperties": False,
}
_KINDS: Final = {"path": "path"}
_RESOURCES: Final = {"workspace": "workspace"}
_FILE_USES: Final = {"path": "by_mode"}


class WriteFile(Tool):
    """Writes a text file."""

    name = "write_file"
    description = (
        "Writes text to one file of a workspace. Use it to save a report, notes or code, to replace a file after you "
        "read and changed its text, or to add lines to the end of a log. Do not use it to answer the user (just "
        "answer), to change a part in the middle (read the file, then write it whole), or for files outside the "
        "workspace: it cannot. Input: `path` relative to the workspace, the whole `content`, and `mode` write or "
        "append. Output: path, size in bytes after writing, and created, whether the file was new."
    )
    parameters = PARAMETERS
    kinds = _KINDS
    effects = frozenset({"writes"})
    resources = _RESOURCES
    file_uses = _FILE_USES
    isolation = "namespace"
    wall_s = 10.0

    def execute(self, path: str, content: str, mode: str = "write", workspace: str | None = None) -> dict[str, Any]:
        """Leaves the file in the cage's workspace, for the host to take. Raises ToolFailure."""
        try:
            data = content.encode("utf-8")
        except UnicodeEncodeError:
            raise ToolFailure(
                "content.encoding", "The text holds half a character.", "Write whole characters."
            ) from None
        told = self.context["workspace"]["path"]
        name = told["path"]
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "ab" if mode == "append" else "wb") as handle:
            handle.write(data)
        os.utime(name)  # also where nothing was added: the file that came in is told from the one that goes out
        return {"path": name, "size": os.path.getsize(name), "created": not told["exists"]}
