"""The floor for shell texts: a size, no NUL, no variable that loads other code.

No list of forbidden commands and no trust in a harmless look: `l\\s`, `$'\\x6cs'` and a hundred other spellings mean
the same. What a shell text may do is decided by the cage that it runs in. Variables of loaders and interpreters are
refused because a grant's command is no longer that command with them; this is for honest callers, the cage's empty
environment is the boundary.

For the host's own use there is `screen_environment`, for variables that a call may set, and `screen_argument`, for
words of an argument vector. The host never hands a text to a shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from toolcage.facts.shell import ShellFacts, environment_name, is_plain_value
from toolcage.screens import text
from toolcage.screens.refuse import part, refuse

MAX_BYTES: Final = 64 * 1024


def screen(facts: ShellFacts) -> None:
    """Raises Refused with `shell.too_long`, `shell.loader_variable` or `text.nul`."""
    text.refuse_nul(facts.has_nul)
    if facts.utf8_bytes > MAX_BYTES:
        refuse("shell.too_long", f"The shell text is longer than {MAX_BYTES} bytes.", "Pass data as attached files.")
    if facts.loaders:
        name = min(facts.loaders)
        refuse(
            "shell.loader_variable",
            f"The text sets {part(name)}, which makes programs load other code.",
            "Leave it out.",
        )


def screen_environment(environment: Mapping[str, str]) -> None:
    """Raises Refused unless every variable may be set by a call: an ASCII name, no loader's, a value without NUL."""
    for name, value in environment.items():
        if not (name.isascii() and name.isidentifier()):
            refuse("shell.variable_name", f"{part(name)} is not the name of a variable.", "Use A-Z, 0-9 and `_`.")
        if environment_name(name):
            refuse("shell.loader_variable", f"{part(name)} makes programs load other code.", "Leave it out.")
        text.refuse_nul("\x00" in value)


def screen_argument(word: str) -> None:
    """Raises Refused unless `word` can stand in an argument vector as data: not an option, nothing unprintable."""
    if not is_plain_value(word):
        refuse("shell.argument", f"{part(word)} would be taken for an option or holds a control character.", None)
