"""What a screen costs grows with the text, not with its square: repeating a sign does not keep the host busy."""

import time

import pytest

from toolcage.errors import Refused
from toolcage.facts.python_findings import findings
from toolcage.facts.read import read_facts
from toolcage.screens import screen_facts
from toolcage.types import KINDS

PIECES = [
    "<", "<a ", "<!--", "&#", "'", '"', "(", "[", "\\", "%25", "../", "\u200b", "\u202e", "\x1b[", "\n", "\t",
    "e\u0301", "аa", "a@", "a,", "a.", "=?utf-8?q?", "-- x\n", "/* ", "$a$", "{", '"""', "x=1;", "://a:", "env -a ",
]  # fmt: skip
SMALL = 6_000


def _screened(kind: str, text: str) -> None:
    try:
        facts = read_facts(kind, text)  # type: ignore[arg-type]
        assert facts is not None
        screen_facts(facts)
    except Refused:
        pass
    if kind == "python":
        findings(text)


def _seconds(kind: str, piece: str, size: int) -> float:
    """Processor time, the least of three."""
    spent = []
    for _ in range(3):
        begun = time.process_time()
        _screened(kind, piece * (size // len(piece)))
        spent.append(time.process_time() - begun)
    return min(spent)


@pytest.mark.parametrize("kind", KINDS)
def test_eight_times_the_text_costs_about_eight_times_as_much(kind: str) -> None:
    """With room for a slow machine: what grows with the square would cost sixty-four times as much."""
    _screened(kind, "warm")
    grown = {piece: (_seconds(kind, piece, SMALL), _seconds(kind, piece, 8 * SMALL)) for piece in PIECES}
    assert {piece: times for piece, times in grown.items() if times[1] > 30 * times[0] + 0.03} == {}
