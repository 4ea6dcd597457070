"""`list_files`: what lies in a workspace, by name pattern and in pages.

The host walked the folder beneath the workspace and sent the names; the body, in a cage, filters and pages. Links are
named and never followed, special files are counted only.
"""

import fnmatch
from typing import Any, Final

from toolcage.tools.base import Tool

DEFAULT_ENTRIES: Final = 100
MAX_ENTRIES: Final = 1000

PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "minLength": 1,
            "maxLength": 400,
            "default": ".",
            "description": "The folder, relative to the workspace.",
        },
        "pattern": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "default": "*",
            "description": "Which names: * any characters, ? one, ** any folders between; such as *.csv or **/*.md.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_ENTRIES,
            "default": DEFAULT_ENTRIES,
            "description": "How many entries to return at most.",
        },
        "after": {
            "type": "string",
            "minLength": 1,
            "maxLength": 400,
            "description": "Go on after this path, the `next_after` of an earlier answer.",
        },
        "workspace": {"type": "string", "minLength": 1, "maxLength": 64, "description": "Name of the workspace."},
    },
    "additionalProperties": False,
}
_KINDS: Final = {"path": "path"}
_RESOURCES: Final = {"workspace": "workspace"}
_FILE_USES: Final = {"path": "list"}


class ListFiles(Tool):
    """Lists files and folders."""

    name = "list_files"
    description = (
        "Lists files and folders of a workspace. Use it to see what there is, to find files by name or ending, or to "
        "check that a file was written. Do not use it to read contents (use read_file or analyze_file), or for "
        "folders outside the workspace: it cannot. Input: `path` of a folder, a name `pattern` (*.csv; **/*.csv for "
        "all folders below), `limit`, and `after` for the next page. Output: entries (path, type, size in bytes, "
        "modified), total that match, next_after (null at the end), and complete, false where there was too much "
        "to look at."
    )
    parameters = PARAMETERS
    kinds = _KINDS
    effects = frozenset({"reads_private"})
    resources = _RESOURCES
    file_uses = _FILE_USES
    isolation = "namespace"
    wall_s = 10.0
    idempotent = True

    def execute(
        self,
        path: str = ".",
        pattern: str = "*",
        limit: int = DEFAULT_ENTRIES,
        after: str | None = None,
        workspace: str | None = None,
    ) -> dict[str, Any]:
        """The entries that match, sorted by path."""
        told = self.context["workspace"]["path"]
        prefix = f"{told['path']}/" if told["path"] else ""
        wanted = _Pattern(pattern)
        found = [entry for entry in told["entries"] if wanted.matches(entry["path"][len(prefix) :])]
        found.sort(key=lambda entry: entry["path"])
        left = [entry for entry in found if after is None or entry["path"] > after]
        shown = left[:limit]
        return {
            "entries": shown,
            "total": len(found),
            "next_after": shown[-1]["path"] if len(left) > len(shown) else None,
            "complete": told["complete"],
            "skipped": told["skipped"],
        }


class _Pattern:
    """A name pattern. Each pair of a part of it and a part of a path is looked at once, so no pattern is slow."""

    def __init__(self, pattern: str) -> None:
        self._parts = pattern.removeprefix("./").split("/")

    def matches(self, path: str) -> bool:
        """Whether the whole path fits."""
        names = path.split("/")
        reached = {0}  # how many names the parts so far may have used up
        for part in self._parts:
            if part == "**":
                reached = set(range(min(reached, default=len(names) + 1), len(names) + 1))
            else:
                reached = {n + 1 for n in reached if n < len(names) and fnmatch.fnmatchcase(names[n], part)}
        return len(names) in reached
