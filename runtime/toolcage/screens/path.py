"""The floor for paths: nothing leaves its root, in whatever spelling, for whichever program reads it.

A path is relative to the call's workspace (or spells `/workspace/…` out). If any reading of it (decoded, with
backslashes or look-alikes as separators) would go above the root or begin at another one, it is refused, even where the
program behind the tool would take it for a harmless name. Names that only some systems treat specially (devices,
trailing dots, letter case) are facts for rules and tools, not refusals.

It knows no file system: a link inside the workspace is stopped by what opens the file (`facts/beneath.py`) and by the
cage.
"""

from __future__ import annotations

from typing import Final

from toolcage.facts.path import Path, PathFacts
from toolcage.screens import text
from toolcage.screens.refuse import part, refuse

MAX_BYTES: Final = 4096
MAX_NAME_BYTES: Final = 255
MAX_PATHS: Final = 1000
_RELATIVE: Final = "Give a path relative to the workspace, such as `reports/may.csv`."


def screen(facts: PathFacts) -> None:
    """Returns nothing when every path stays beneath its root. Raises Refused with a code `path.…` or `text.nul`."""
    text.refuse_nul(facts.has_nul)
    if len(facts.paths) > MAX_PATHS:
        refuse("path.too_many", f"More than {MAX_PATHS} paths in one argument.", "Send fewer at a time.")
    for path in facts.paths:
        _screen_one(path)


def _screen_one(path: Path) -> None:
    shown = part(path.text)
    if path.utf8_bytes > MAX_BYTES or path.longest > MAX_NAME_BYTES:
        refuse("path.too_long", f"The path {shown} is longer than a file system takes.", "Use shorter names.")
    if path.leaves:
        refuse("path.leaves_root", f"The path {shown} leads out of the workspace.", _RELATIVE)
    if path.stream:
        refuse("path.stream", f"The path {shown} names a part of a file (`:$...`).", _RELATIVE)
    if path.drive:
        refuse("path.drive", f"The path {shown} names a drive.", _RELATIVE)
    if path.scheme:
        refuse("path.scheme", f"The path {shown} is a URL.", _RELATIVE)
    if path.rooted:
        refuse("path.absolute", f"The path {shown} is absolute.", _RELATIVE)
    if path.home:
        refuse("path.home", f"The path {shown} names a home directory.", _RELATIVE)
    if path.control:
        refuse("path.control", f"The path {shown} holds a control character.", "Use printable characters in names.")
    if path.undecodable:
        refuse(
            "path.encoding",
            f"The path {shown} is percent-encoded in a way that has no one reading.",
            "Write it plainly.",
        )
    if path.dots:
        refuse("path.dots", f"The path {shown} has a name of only dots and spaces.", _RELATIVE)
    if path.backslash:
        refuse("path.backslash", f"The path {shown} holds a backslash.", "Separate names with `/` and escape nothing.")
