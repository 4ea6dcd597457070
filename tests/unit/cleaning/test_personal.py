"""Personal data is redacted where the policy asks for it, and numbers that only look like it stay."""

import pytest

from toolcage.cleaning import clean_json, clean_text
from toolcage.cleaning.personal import redact_personal
from toolcage.types import OutputTerms, freeze, thaw

ALL = ("email", "iban", "card", "phone")


@pytest.mark.parametrize(
    "address",
    ["a@example.com", "first.last+tag@mail.example.co.uk", "ü@beispiel.de", "ann%40example.com", "ann&#64;example.com",
     "ann\\u0040example.com", "ann[at]example.com", "ann (at) example (dot) com"],
)  # fmt: skip
def test_an_address_is_redacted(address: str) -> None:
    assert redact_personal(f"to {address}, now", ("email",)) == ("to [redacted:email], now", {"email": 1})


@pytest.mark.parametrize(
    "text",
    ["@decorator", "a @ b", "user@host", "1@2", "see @name.", "@example.com", "git@github.com:org/repo",
     "https://user@example.com/x", "look (at) page (dot)", "f(at) = 1"],
)  # fmt: skip
def test_other_uses_of_the_sign_stay(text: str) -> None:
    assert redact_personal(text, ("email",)) == (text, {"email": 0})


FOUND = {
    "iban": [
        "DE89 3704 0044 0532 0130 00", "DE89370400440532013000", "GB82 WEST 1234 5698 7654 32", "NO93 8601 1117 947",
        "FR14 2004 1010 0505 0001 3M02 606", "CH93-0076-2011-6238-5295-7", "nl91abna0417164300",
    ],
    "card": [
        "4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111", "5555555555554444", "2223003122003222",
        "378282246310005", "3782 822463 10005", "6011111111111117", "3056 930902 5904", "3530111333300000",
        "6759649826438453",
    ],
    "phone": [
        "+49 30 1234567", "+1 (415) 555-2671", "+44 20 7946 0958", "+33-1-23-45-67-89", "(415) 555-2671",
        "+7 495 123-45-67", "+14155552671", "(555) 123-4567", "415-555-2671", "1-800-555-0199", "0049 151 12345678",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in FOUND.items() for value in values])
@pytest.mark.parametrize("frame", ["is {} today", "é: {}.", '"{}"', "{}, {}"])
def test_personal_data_is_redacted_and_named(kind: str, value: str, frame: str) -> None:
    text, counts = redact_personal(frame.format(value, value), ALL)
    assert text == frame.format(*[f"[redacted:{kind}]"] * 2)
    assert sum(counts.values()) == counts[kind] == frame.count("{}")
    assert redact_personal(text, ALL)[0] == text


@pytest.mark.parametrize(("kind", "value"), [(kind, values[0]) for kind, values in FOUND.items()])
def test_personal_data_that_was_not_asked_for_stays(kind: str, value: str) -> None:
    others = [one for one in ALL if one != kind]
    assert redact_personal(f"is {value} today", others)[0] == f"is {value} today"


@pytest.mark.parametrize("value", [FOUND["iban"][0], FOUND["card"][0], "maria@example.com", "+49 30 1234567"])
@pytest.mark.parametrize("hidden", ["\u200b", "\u00ad", "\x1b[1m", "[U+200B]"])
def test_hidden_characters_do_not_hide_personal_data(value: str, hidden: str) -> None:
    assert "[redacted:" in redact_personal(f"is {value[:6]}{hidden}{value[6:]} today", ALL)[0]
    assert value[-4:] not in redact_personal(f"is {value[:6]}{hidden}{value[6:]} today", ALL)[0]


@pytest.mark.parametrize(
    "text",
    [
        "tel: 030 1234567", "Phone: 555-123-4567", "phone number 555 123 4567", "call me at 0171 1234567",
        "Телефон: 8 495 123-45-67", "电话：13800138000", "手机号码 138 0013 8000",
        "Mobile: 07700 900123", "Fax (030) 1234567",
        "Tel.: +44 (0)20 7946 0958", "téléphone : 01 23 45 67 89", "Tél : 01 23 45 67 89",
        "móvil 612 34 56 78", "celular: (11) 91234-5678", "GSM: 0475 12 34 56", "携帯 090-1234-5678",
        "휴대폰: 010-1234-5678", "☎ 030 1234567", "📞 030 123456", "Call 1.800.555.0199", '{"phone": "5551234567"}',
    ],
)  # fmt: skip
def test_a_number_that_the_text_calls_a_telephone_is_redacted(text: str) -> None:
    cleaned, counts = redact_personal(text, ("phone",))
    assert counts == {"phone": 1}
    assert not any(character.isdigit() for character in cleaned)


@pytest.mark.parametrize(
    "text",
    [
        "DE88 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130", "XX89370400440532013000", "ADE89370400440532013000",
        "4111111111111112", "0.4111111111111111", "1234567890123452", "4111111111111111.5", "id_4111111111111111",
        "550e8400-e29b-41d4-a716-446655440000", "1764446400000", "2026-01-17 09:30:00", "version 2026.11.29.1234",
        "+ 1234567 - 22", "+1 + 2 + 3", "\n+12345678901\n", "phone 2: see page 12", "fax machine", "10.20.30.40:8080",
        "978-3-16-148410-0", "12,345,678.90", "1111 1111 1111 1111", "call of duty 4", "tel aviv 2026", "ext. 12345",
        "0000000000000000", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "telemetry=123456789012", "icon@2x.png", "logo@1.5x.webp", "a1-415-555-2671", "415-555-2671-9", "123-456-7890",
        "10.415-555-2671", "415-555-267", "call on 2026-11-30", "portable 1.2.3.4567", "lat -122.4194155 +37.7749295",
        "1 0049 151 12345678", "00491 2",
    ],
)  # fmt: skip
def test_numbers_that_are_not_personal_stay(text: str) -> None:
    assert redact_personal(text, ALL)[0] == text


def test_the_name_of_a_column_makes_its_numbers_telephones() -> None:
    made = clean_json(freeze({"phone": "5551234567", "order": "5551234567", "mobile_no": "0171 1234567"}),
                      OutputTerms(redact=("phone",)))  # fmt: skip
    assert thaw(made.value) == {"phone": "[redacted:phone]", "order": "5551234567", "mobile_no": "[redacted:phone]"}
    assert made.findings["phone_redacted"] == 2


def test_a_word_that_cleaning_does_not_know_is_an_error_and_not_ignored() -> None:
    terms = OutputTerms(redact=("secrets", "emails"))
    with pytest.raises(ValueError, match="'emails'"):
        clean_text("", terms)
    with pytest.raises(ValueError, match="'emails'"):
        clean_json(freeze([]), terms)


def test_what_was_redacted_is_counted_by_kind() -> None:
    findings = clean_text("a@b.example, 4111 1111 1111 1111, +49 30 1234567", OutputTerms(redact=ALL))[1]
    assert findings == {"email_redacted": 1, "card_redacted": 1, "phone_redacted": 1}


def test_numbers_without_a_blank_between_are_all_redacted_at_once() -> None:
    glued = "415-555-2671" + "+49 30 1234567" * 9
    assert redact_personal(glued, ("phone",)) == ("[redacted:phone]" * 10, {"phone": 10})
