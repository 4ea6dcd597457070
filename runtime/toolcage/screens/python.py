"""The floor for programs: a size cap, and no NUL.

No list of forbidden names or calls: such lists are passed around in a hundred ways, and what a program may do is
decided by the cage that it runs in.
"""

from __future__ import annotations

from typing import Final

from toolcage.errors import Refused
from toolcage.facts.python import PythonFacts
from toolcage.screens import text
from toolcage.types import Refusal

MAX_BYTES: Final = 256 * 1024


def screen(facts: PythonFacts) -> None:
    """Raises Refused with `python.too_long` or `text.nul`."""
    text.refuse_nul(facts.has_nul)
    if facts.utf8_bytes > MAX_BYTES:
        raise Refused(
            Refusal(
                status="blocked",
                code="python.too_long",
                message=f"The program is longer than {MAX_BYTES} bytes.",
                hint="Pass data as attached files and keep the program short.",
            )
        )
