"""Control characters made visible, never executed.

Danger: terminal sequences (CSI, OSC 8 and 52, DCS, 8-bit C1), backspace and carriage-return overwrites, NUL, DEL: they
repaint the screen, set the clipboard, or hide from a person what the model reads. Protects: terminals, logs, and
whoever compares what they see with what the model saw.

Nothing is deleted. The byte that would start an action becomes its picture (␛ ␇ ␍ ␀ …) or its code point, and the text
of the sequence stays. `\\n` and `\\t` stay, `\\r\\n` becomes `\\n`.
"""

from __future__ import annotations

from toolcage.cleaning.marks import CONTROLS, has_controls, mark

_SHOWN = {chr(code): chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)}
_SHOWN["\x7f"] = "\u2421"
_SHOWN.update({chr(code): mark(chr(code)) for code in range(0x80, 0xA0)})


def show_controls(text: str) -> tuple[str, int]:
    """The text with every control shown, and how many there were."""
    if "\r" in text:  # one character is found far faster than two
        text = text.replace("\r\n", "\n")
    if not has_controls(text):
        return text, 0
    count = 0
    control = CONTROLS.search(text)
    while control is not None:  # at most 64 kinds: replacing kind by kind is far cheaper than character by character
        count += text.count(control[0])
        text = text.replace(control[0], _SHOWN[control[0]])
        control = CONTROLS.search(text, control.start()) if has_controls(text) else None
    return text, count
