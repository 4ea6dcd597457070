"""How a screen refuses: status `blocked`, a code, the offending part in one printable line, and a repair."""

from __future__ import annotations

from typing import Final, NoReturn

from toolcage.errors import Refused
from toolcage.types import Refusal

_LONGEST_PART: Final = 80


def refuse(code: str, message: str, hint: str | None) -> NoReturn:
    """Raises Refused."""
    raise Refused(Refusal(status="blocked", code=code, message=message, hint=hint))


def part(text: str) -> str:
    """The offending part, quoted in ASCII and cut: it came from the model and goes back to it."""
    shown = text if len(text) <= _LONGEST_PART else text[:_LONGEST_PART] + "..."
    return "`" + "".join(c if c.isascii() and c.isprintable() and c != "`" else f"\\u{ord(c):04x}" for c in shown) + "`"
