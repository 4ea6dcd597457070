"""Addresses are redacted where the policy asks for it."""

import pytest

from toolcage.cleaning.personal import redact_emails


@pytest.mark.parametrize("address", ["a@example.com", "first.last+tag@mail.example.co.uk", "ü@beispiel.de"])
def test_an_address_is_redacted(address: str) -> None:
    assert redact_emails(f"to {address}, now") == ("to [redacted:email], now", 1)


@pytest.mark.parametrize("text", ["@decorator", "a @ b", "user@host", "1@2", "see @name.", "@example.com"])
def test_other_uses_of_the_sign_stay(text: str) -> None:
    assert redact_emails(text) == (text, 0)
