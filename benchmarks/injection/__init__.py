"""The detector's own texts and how they are read: attacks and ordinary texts by source, with slots filled in.

Written for this project. A source is one kind of writing; training can leave whole sources out to see how it does on
what it has not seen. No training reads `held_out_*.txt`; all but `attacks` and `benign` of them were written by authors
who knew neither the rules nor the training texts: the first of each kind mean to be hard, `*_2`, `everyday` and
`about_models` to be like life, `alike_*` to be of the kinds of public sets, which their authors had read. Addresses and
names are made up anew for each text, so that none becomes a sign of an attack.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

FOLDER: Final = Path(__file__).parent
FILES: Final[dict[str, tuple[str, ...]]] = {
    kind: tuple(sorted(path.name for path in FOLDER.glob(f"{kind}*.txt"))) for kind in ("attacks", "benign")
}
"""What training reads, by kind."""
_SLOT: Final = re.compile(r"\{([a-z_]+)\}")
_FEWEST_TO_HALVE: Final = 6
_ENDINGS: Final = ("example", "com", "net", "org", "io", "de", "fr", "info", "co.uk", "shop", "app")


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


def has_slots(template: str) -> bool:
    return _SLOT.search(template) is not None


def filled(template: str, slots: Mapping[str, list[str]], chance: random.Random) -> str:
    """The template with every slot filled at random, and `\\n` as line ends."""
    for _ in range(4):
        if not _SLOT.search(template):
            break
        template = _SLOT.sub(lambda match: chance.choice(slots.get(match[1], [match[0]])), template)
    return template.replace("\\n", "\n")


def texts(name: str, each: int, seed: int, half: Literal[0, 1] | None = None) -> list[tuple[str, str, str]]:
    """(source, template, text): every line of the file, those with slots `each` times.

    `half`: fill slots with every second value only, the even or the odd ones."""
    chance, slots = random.Random(seed), sections("slots.txt")
    if half is not None:
        slots = {slot: values if len(values) < _FEWEST_TO_HALVE else values[half::2] for slot, values in slots.items()}
    made: list[tuple[str, str, str]] = []
    for source, lines in sections(name).items():
        for line in lines:
            times = each if _SLOT.search(line) else 1
            made += sorted({(source, line, filled(line, slots | _made_up(chance), chance)) for _ in range(times)})
    return made


def with_address(text: str, chance: random.Random) -> str:
    """The text with a made-up address beside it."""
    frame = chance.choice(("{text} {link}", "{text} ({link})", "{link}\n{text}", "{text}\n{mail}", "{link}: {text}"))
    return filled(frame, _made_up(chance), chance).replace("{text}", text)


def _made_up(chance: random.Random) -> dict[str, list[str]]:
    def word() -> str:
        return "".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(chance.choice((2, 3))))

    ending = chance.choice(_ENDINGS)
    first, last = word().title(), word().title()
    return {
        "mail": [f"{word()}.{word()}@{word()}.{ending}", f"{word()}@{word()}-{word()}.{ending}"],
        "link": [
            f"https://{word()}.{ending}/{word()}",
            f"http://www.{word()}-{word()}.{ending}/{word()}/{word()}",
            f"www.{word()}.{ending}",
            f"https://{word()}.{word()}.{ending}/{word()}?{word()}=",
        ],
        "name": [f"{first} {last}", first],
        "phone": [f"+{chance.randrange(1, 99)} {chance.randrange(100, 999)} {chance.randrange(1000, 99999)}"],
        "iban": [f"{chance.choice(('DE', 'GB', 'FR'))}{chance.randrange(10, 99)}{chance.randrange(10**15, 10**16)}"],
    }
