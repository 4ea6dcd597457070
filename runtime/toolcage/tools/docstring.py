"""What a docstring says: the text before its first section, and one description per parameter.

Reads the Google, NumPy and reST forms. Standard library only: shipped into cages as `toolcage.tools.docstring`.
Trusts nothing and fails on nothing: a line that it cannot place is left out.
"""

from __future__ import annotations

import re
from typing import Final

_SECTION: Final = re.compile(
    r"^(args|arguments|parameters|params|returns?|raises|yields?|examples?|notes?|attributes|see also|warnings?)\s*:?$",
    re.IGNORECASE,
)
_PARAMETER_SECTIONS: Final = ("args", "arguments", "parameters", "params")
_REST: Final = re.compile(r"^:(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)$")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """What a docstring says: the text before its first section, and one description per parameter.

    Reads Google, NumPy and reST forms.
    """
    summary: list[str] = []
    described: dict[str, str] = {}
    section: str | None = None
    current: str | None = None
    indent: int | None = None
    for line in text.splitlines():
        stripped = line.strip()
        depth = len(line) - len(line.lstrip())
        rest = _REST.match(stripped)
        if rest is not None:
            section, indent, current = "rest", depth, rest[1]
            described[current] = rest[2]
        elif depth == 0 and (_SECTION.match(stripped) or (stripped.startswith(":") and ":" in stripped[1:])):
            section, indent, current = stripped.rstrip(": ").lower(), None, None
        elif section is None:
            summary.append(line)
        elif not stripped or set(stripped) == {"-"}:
            continue
        elif section in _PARAMETER_SECTIONS:
            indent = depth if indent is None else indent
            entry = _entry(stripped) if depth <= indent else None
            if entry is not None:
                current, described[entry[0]] = entry
            elif current is not None:
                described[current] = f"{described[current]} {stripped}".strip()
        elif section == "rest" and current is not None and indent is not None and depth > indent:
            described[current] = f"{described[current]} {stripped}".strip()
    return "\n".join(summary).strip(), {name: text for name, text in described.items() if text}


def _entry(line: str) -> tuple[str, str] | None:
    """`name (type): text` or `name: text` (Google); `name : type` or `name` (NumPy, text on the next lines)."""
    numpy = re.match(r"^(\*{0,2}\w+)(?:\s+:\s.*)?$", line)
    if numpy is not None:
        return numpy[1].lstrip("*"), ""
    google = re.match(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?:\s*(.*)$", line)
    return (google[1].lstrip("*"), google[2]) if google is not None else None
