"""The floor for texts: no NUL, few control characters, a bounded size.

A NUL ends a string for some of the programs behind a tool and not for others, so that what was checked is not what is
used. Control characters beyond tab and line ends are allowed in small numbers: logs and mails carry them, and results
are cleaned on the way out. Text that nothing shows (tag characters, runs of variation selectors) is refused: who reads
what is sent would not read it. Overrides of the writing direction are a fact; whoever shows a text shows them. Nothing
here judges meaning.
"""

from __future__ import annotations

from typing import Final, NoReturn

from toolcage.errors import Refused
from toolcage.facts.text import TextFacts
from toolcage.types import Facts, Refusal

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_CONTROLS: Final = 1000


def screen(facts: TextFacts) -> None:
    """Raises Refused with `text.nul`, `text.too_long`, `text.controls` or `text.hidden`."""
    refuse_nul(facts.has_nul)
    if facts.utf8_bytes > MAX_BYTES:
        _refuse("text.too_long", f"A text argument is longer than {MAX_BYTES} bytes.", "Pass large data as a file.")
    if facts.controls > MAX_CONTROLS:
        _refuse("text.controls", "A text argument holds too many control characters.", "Pass binary data as a file.")
    if facts.tags:
        message = "A text argument holds text in characters that nothing shows."
        _refuse("text.hidden", message, "Send only visible text.")


def refuse_nul(has_nul: bool) -> None:
    """Raises Refused with `text.nul` when `has_nul`."""
    if has_nul:
        _refuse("text.nul", "A text argument holds a NUL character.", "Remove U+0000 from the text.")


def refuse_unknown(facts: Facts) -> NoReturn:
    """Raises Refused: there are facts, but no screen that knows their kind."""
    _refuse("kind.not_screened", f"Arguments of kind {facts.kind} cannot be checked here.", None)


def _refuse(code: str, message: str, hint: str | None) -> NoReturn:
    raise Refused(Refusal(status="blocked", code=code, message=message, hint=hint))
