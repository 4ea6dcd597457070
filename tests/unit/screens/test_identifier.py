"""A name is what it looks like."""

import pytest

from toolcage.errors import Refused
from toolcage.facts.identifier import read
from toolcage.screens.identifier import screen


@pytest.mark.parametrize("text", ["orders", "order items", "größe", "имя_клиента", "数量", "a.b-c_1", "Total (EUR)"])
def test_names_in_any_one_alphabet_pass(text: str) -> None:
    screen(read(text))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("оrders", "identifier.confusable"),
        ("ｏrders", "identifier.confusable"),
        ("соре", "identifier.confusable"),
        ("ord\u200bers", "identifier.hidden"),
        ("a\nb", "identifier.hidden"),
        ("a\u202e", "identifier.hidden"),
        ("a" * 1001, "identifier.too_long"),
        ("a\x00", "text.nul"),
    ],
)
def test_names_that_look_like_others_or_hide_something_are_refused(text: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        screen(read(text))
    assert caught.value.refusal.code == code


def test_the_repair_is_the_name_that_was_meant() -> None:
    with pytest.raises(Refused) as caught:
        screen(read("оrders"))
    assert caught.value.refusal.hint == "Did you mean `orders`?"
