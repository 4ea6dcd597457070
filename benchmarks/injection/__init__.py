"""The detector's own texts and how they are read: attacks and ordinary texts by source, with slots filled in.

Written for this project. A source is one kind of writing; training leaves whole sources out to see how it does on what
it has not seen.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
_SLOT: Final = re.compile(r"\{([a-z_]+)\}")


def sections(name: str) -> dict[str, list[str]]:
    """The lines of a file of this folder by the `[heading]` that they stand under."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.endswith("]") and " " not in line:
            current = found.setdefault(line[1:-1], [])
        elif line and not line.startswith("# "):
            current.append(line)
    return found


def filled(template: str, slots: Mapping[str, list[str]], chance: random.Random) -> str:
    """The template with every slot filled at random, and `\\n` as line ends."""
    for _ in range(4):
        if not _SLOT.search(template):
            break
        template = _SLOT.sub(lambda match: chance.choice(slots.get(match[1], [match[0]])), template)
    return template.replace("\\n", "\n")


def texts(name: str, each: int, seed: int) -> list[tuple[str, str, str]]:
    """(source, template, text): every line of the file, those with slots `each` times."""
    chance, slots = random.Random(seed), sections("slots.txt")
    made: list[tuple[str, str, str]] = []
    for source, lines in sections(name).items():
        for line in lines:
            times = each if _SLOT.search(line) else 1
            made += sorted({(source, line, filled(line, slots, chance)) for _ in range(times)})
    return made
