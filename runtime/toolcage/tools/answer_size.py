"""How much of a list, or of a text, goes into one answer: what is beyond would be cut where nobody could read on.

The bound is the grant's `output.max_bytes`, less some room for what stands around. The first item is always given, so
that reading on gets on. Standard library only; shipped into cages.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

ROOM: Final = 6 * 1024
LEAST: Final = 2 * 1024


def budget(context: Mapping[str, Any]) -> int:
    """The bytes that an answer's items may have together."""
    return max(LEAST, int((context.get("limits") or {}).get("max_bytes") or 64 * 1024) - ROOM)


def fitting(items: Sequence[Any], most_bytes: int) -> list[Any]:
    """As many of the items, from the first on, as fit as JSON."""
    fit: list[Any] = []
    for item in items:
        most_bytes -= len(json.dumps(item, ensure_ascii=False).encode("utf-8", "replace")) + 2
        if fit and most_bytes < 0:
            break
        fit.append(item)
    return fit


def beginning(text: str, most_bytes: int) -> str:
    """As much of the text, from its beginning on, as fits; whole characters."""
    room = most_bytes - len(text.encode("utf-8", "replace"))
    return text if room >= 0 else text.encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")
