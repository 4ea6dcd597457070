"""E-mail addresses redacted, where the policy asks for it (`redact: [email]`).

Danger: personal data of third parties that a role needs to compute with but not to see. Protects: the model, logs.
Names, numbers and postal addresses are not found here.
"""

from __future__ import annotations

import re

_DOMAIN = re.compile(r"@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}")
_LOCAL_END = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}\Z")
_MARK = "[redacted:email]"


def redact_emails(text: str) -> tuple[str, int]:
    """The text without e-mail addresses, and how many there were.

    Anchored at the `@` and looking back at most 64 characters, so a long word costs nothing.
    """
    if "@" not in text:
        return text, 0
    pieces, position, count = [], 0, 0
    for match in _DOMAIN.finditer(text):
        local = _LOCAL_END.search(text[max(position, match.start() - 64) : match.start()])
        if local is None:
            continue
        pieces += [text[position : match.start() - len(local[0])], _MARK]
        position = match.end()
        count += 1
    return "".join([*pieces, text[position:]]), count
