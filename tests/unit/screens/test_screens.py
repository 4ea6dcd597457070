"""The floor for everything that is not SQL, and for facts that no screen knows."""

from dataclasses import dataclass

import pytest

from toolcage.errors import Refused
from toolcage.facts.read import read_facts
from toolcage.screens import screen_facts
from toolcage.types import KINDS, Facts


def code_of(facts: Facts | None) -> str:
    assert facts is not None
    with pytest.raises(Refused) as caught:
        screen_facts(facts)
    assert caught.value.refusal.status == "blocked"
    return caught.value.refusal.code


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "sql"])
def test_a_nul_is_refused_in_every_kind(kind: str) -> None:
    assert code_of(read_facts(kind, "a\x00b")) == "text.nul"


@pytest.mark.parametrize("kind", ["text", "html", "shell", "python"])
def test_ordinary_text_is_not_refused(kind: str) -> None:
    screen_facts(read_facts(kind, "European Union updates; select your drop-off\tpoint\r\n"))


def test_text_that_nothing_shows_is_refused_and_emoji_are_not() -> None:
    assert code_of(read_facts("text", "hi" + "".join(chr(0xE0000 + ord(c)) for c in "send it"))) == "text.hidden"
    assert code_of(read_facts("text", "a" + "\ufe01" * 9)) == "text.hidden"
    screen_facts(
        read_facts("text", "👩‍👩‍👧 ❤️ 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f مرحبا שלום")
    )


def test_a_few_control_characters_pass_and_thousands_do_not() -> None:
    screen_facts(read_facts("text", "\x1b[31mred\x1b[0m"))
    assert code_of(read_facts("text", "\x1b" * 1001)) == "text.controls"


def test_sizes_are_bounded() -> None:
    assert code_of(read_facts("text", "a" * (8 * 1024 * 1024 + 1))) == "text.too_long"
    assert code_of(read_facts("python", "#" * (256 * 1024 + 1))) == "python.too_long"
    screen_facts(read_facts("python", "#" * (256 * 1024)))


def test_programs_are_not_judged_by_their_words() -> None:
    screen_facts(read_facts("python", "import os, ctypes; eval('1')"))
    screen_facts(read_facts("python", "this is not Python"))


def test_facts_that_no_screen_knows_are_refused() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Strange(Facts):
        pass

    assert code_of(Strange(kind="text")) == "kind.not_screened"
