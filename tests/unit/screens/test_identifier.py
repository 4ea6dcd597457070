"""A name is what it looks like."""

import pytest

from toolcage.errors import Refused
from toolcage.facts.identifier import read
from toolcage.screens.identifier import screen


@pytest.mark.parametrize("text", ["orders", "order items", "größe", "имя_клиента", "数量", "a.b-c_1", "Total (EUR)"])
def test_names_in_any_one_alphabet_pass(text: str) -> None:
    screen(read(text))


@pytest.mark.parametrize(
    "text",
    ["Цена_USD", "клиент_id", "X-Координата", "сумма_с_НДС_EUR", "userИмя", "Δt", "ΔG°", "μs", "µg/L", "λmax", "TNF-α",
     "α_1", "ρ_air", "σ²", "CO₂", "m²", "½", "№_договора", "temp_℃", "価格（円）_USD", "ｶﾅ", "売上_USD"],
)  # fmt: skip
def test_alphabets_and_signs_may_meet_in_a_name(text: str) -> None:
    screen(read(text))


@pytest.mark.parametrize(
    "text",
    ["раypal", "customer_іd", "price_с", "ТEST", "Pасчёт", "Цeна", "αpple", "ѕсоре", "ᴀdmin", "ոame", "Ａ", "𝗼rders",
     "ﬁle", "cafe\u0301", "ｔable_名", "K_\u212a"],
)  # fmt: skip
def test_a_name_that_borrows_letters_for_their_looks_is_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        screen(read(text))
    assert caught.value.refusal.code == "identifier.confusable"


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
