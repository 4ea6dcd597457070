"""Lengths and control characters of texts."""

from toolcage.facts import identifier, text


def test_lengths_count_characters_bytes_and_lines() -> None:
    facts = text.read("aé\nb")
    assert (facts.characters, facts.utf8_bytes, facts.lines) == (4, 5, 2)
    assert text.read("\ud800").utf8_bytes == 3


def test_controls_are_counted_without_tab_and_line_ends() -> None:
    facts = text.read("a\tb\r\n\x1b[31m\x9b\x00")
    assert (facts.has_nul, facts.controls) == (True, 2)
    assert not text.read("plain").has_nul


def test_identifiers_say_whether_they_are_plain_and_stable() -> None:
    assert identifier.read("order_items").plain
    assert not identifier.read("orders; DROP").plain
    assert identifier.read("straße").stable
    assert not identifier.read("\uff4frders").stable
