"""`read_file`: lines of one text file of a workspace.

The host opened the file beneath the workspace and sent a copy; the body runs in a cage and sees nothing else. Text is
decoded strictly: what is not text in the given encoding is an error with a hint, never a guess. Long files are read in
pages by line, long lines are cut and counted.
"""

import re
from typing import Any, Final

from toolcage.tools.base import Tool, ToolFailure

ENCODINGS: Final = (
    "utf-8", "utf-8-sig", "utf-16", "ascii", "latin-1", "cp1252", "cp1251", "koi8-r", "gb18030", "gbk", "big5",
    "shift_jis", "euc-jp", "euc-kr",
)  # fmt: skip
DEFAULT_LINES: Final = 500
MAX_LINES: Final = 5000
MAX_LINE_CHARACTERS: Final = 4000
_ROOM_FOR_THE_REST: Final = 1024

PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "minLength": 1,
            "maxLength": 400,
            "description": "The file, relative to the workspace, such as reports/may.txt.",
        },
        "encoding": {
            "type": "string",
            "enum": list(ENCODINGS),
            "default": "utf-8",
            "description": "How the file's bytes are text.",
        },
        "start_line": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100_000_000,
            "default": 1,
            "description": "The first line to return, counted from 1.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_LINES,
            "default": DEFAULT_LINES,
            "description": "How many lines to return at most.",
        },
        "workspace": {"type": "string", "minLength": 1, "maxLength": 64, "description": "Name of the workspace."},
    },
    "required": ["path"],
    "additionalProperties": False,
}
_KINDS: Final = {"path": "path"}
_RESOURCES: Final = {"workspace": "workspace"}
_FILE_USES: Final = {"path": "read"}


class ReadFile(Tool):
    """Returns lines of a text file."""

    name = "read_file"
    description = (
        "Reads lines of one text file of a workspace. Use it to read notes, source code, logs or configuration, or to "
        "look at a file before changing it. Do not use it for tables of data (use analyze_file), to find files (use "
        "list_files), or for files outside the workspace: it cannot. Input: `path` relative to the workspace, and for "
        "long files `start_line` and `limit`. Output: text, first_line, lines, total_lines, size in bytes, "
        "next_start_line to read on (null at the end), and cut_lines where lines were too long to show whole."
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
        path: str,
        encoding: str = "utf-8",
        start_line: int = 1,
        limit: int = DEFAULT_LINES,
        workspace: str | None = None,
    ) -> dict[str, Any]:
        """Lines of the file. Raises ToolFailure with a `content.*` code."""
        with open(self.context["workspace"]["path"]["path"], "rb") as handle:
            content = handle.read()
        lines = [line for line in re.split(r"(?<=\n)", decoded(content, encoding)) if line]
        room = max(1024, int((self.context.get("limits") or {}).get("max_bytes") or 64 * 1024)) - _ROOM_FOR_THE_REST
        shown, cut_lines = _page(lines[start_line - 1 : start_line - 1 + limit], room)
        following = start_line + len(shown)
        return {
            "text": "".join(shown),
            "first_line": start_line,
            "lines": len(shown),
            "total_lines": len(lines),
            "size": len(content),
            "next_start_line": following if shown and following <= len(lines) else None,
            "cut_lines": cut_lines,
        }


def decoded(content: bytes, encoding: str) -> str:
    """The bytes as text. Raises ToolFailure."""
    if b"\0" in content[:8192] and encoding != "utf-16":
        raise ToolFailure(
            "content.binary",
            "The file holds NUL bytes, so it is no text in this encoding.",
            "For a table or spreadsheet use analyze_file; for UTF-16 text pass encoding utf-16.",
        )
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise ToolFailure(
            "content.encoding",
            f"The file is not {encoding} text (byte {error.start}).",
            "Pass the encoding that it has, such as latin-1, gb18030 or utf-16.",
        ) from None


def _page(lines: list[str], room: int) -> tuple[list[str], int]:
    """As many lines as fit, at least one, and how many of them were cut."""
    shown: list[str] = []
    cut = 0
    for line in lines:
        text, was_cut = line, len(line) > MAX_LINE_CHARACTERS
        if was_cut:
            text = f"{line[:MAX_LINE_CHARACTERS]} … [{len(line) - MAX_LINE_CHARACTERS} more characters]\n"
        room -= len(text.encode("utf-8", "replace")) + text.count("\n")
        if room < 0 and shown:
            break
        shown.append(text)
        cut += was_cut
    return shown, cut
