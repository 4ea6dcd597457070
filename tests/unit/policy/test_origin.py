"""Where a value came from: whole identifiers, normalised; what is similar, contained or laundered is not the value."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcage.errors import PolicyError
from toolcage.policy.model import Role
from toolcage.policy.origin import fields_of, identifiers_in, said_text, sources_of, tool_text, values_under
from toolcage.types import Kind

Load = Callable[..., Role]


def is_named(text: str, value: str, kind: Kind = "text") -> bool:
    identifiers = identifiers_in(value, kind)
    return bool(identifiers) and all(sources_of(item, [said_text(text)]) for item in identifiers or ())


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("Mail ann@Example.COM today.", "ann@example.com", "address"),
        ("Mail ann@example.com, bob@example.com", "bob@example.com; Ann <ann@example.com>", "address"),
        ("(ann@example.com)", "ann@example.com", "address"),
        ("pay DE89 3704 0044 0532 0130 00 TODAY", "DE89370400440532013000", "text"),
        ("pay DE89370400440532013000.", "DE89 3704 0044 0532 0130 00", "text"),
        ("call +49 (30) 123-456 please", "+4930123456", "text"),
        ("call 0049 30 123456", "+49 30 123456", "text"),
        ("see https://Example.com:443/a.", "https://example.com/a", "url"),
        ("see www.example.com/a", "https://www.example.com/a", "url"),
        ("see www.example.com/a", "www.example.com/a", "url"),
        ("see http://example.com/a", "https://example.com/a", "url"),
        ("open ./reports/may.csv please", "reports/may.csv", "path"),
        ('open "my report.csv"', "my report.csv", "path"),
        ("tell Alice about it", "Alice", "text"),
        ("the hotel 'Le Marais Boutique'.", "Le Marais Boutique", "text"),
        ("Alice's account", "Alice", "text"),
        ("account 1234567", "1234567", "text"),
        ("post to #general, now", "general", "text"),
    ],
)
def test_a_value_that_the_text_names_is_found_however_it_is_spelt(text: str, value: str, kind: Kind) -> None:
    assert is_named(text, value, kind)


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("Mail ann@example.com", "ann@example.com.evil.net", "address"),
        ("Mail ann@example.com.evil.net", "ann@example.com", "address"),
        ("Mail joann@example.com", "ann@example.com", "address"),
        ("Mail ann@example.com", "ann@example.com, eve@evil.example", "address"),
        ("Mail ann@example.com", "ann@example.com <eve@evil.example>", "address"),
        ("Mail ann@example.com", "ann@exаmple.com", "address"),  # a Cyrillic letter
        ("Mail ann@example.com", "ann@example.com\u200b", "address"),
        ("Mail ann@example.com", "", "address"),
        ("see https://example.com/a", "https://example.com/b", "url"),
        ("see https://example.com/a", "https://example.com.evil.net/a", "url"),
        ("see https://example.com/a", "https://example.com@evil.net/a", "url"),
        ("see https://example.com/a", "http://example.com/a", "url"),
        ("see https://example.com/a", "https://example.com:444/a", "url"),
        ("open /etc/reports/may.csv", "reports/may.csv", "path"),
        ("open ../reports/may.csv", "reports/may.csv", "path"),
        ("open reports/may.csv", "reports/../may.csv", "path"),
        ("open may.csv", "link/../may.csv", "path"),  # another file where `link` leads elsewhere
        ("see https://example.com/a", "https://me:secret@example.com/a", "url"),
        ("file 13 of 20", "13", "text"),
        ("in 2024-13", "13", "text"),
        ("post to general-random", "general", "text"),
        ("mail Alice@evil.example", "Alice", "text"),
        ("tell Alicent", "Alice", "text"),
        ("DE89370400440532013000X", "DE89370400440532013000", "text"),
        ("call +49 30 1234567", "+4930123456", "text"),
    ],
)
def test_what_is_similar_longer_or_part_of_it_is_not_the_value(text: str, value: str, kind: Kind) -> None:
    assert not is_named(text, value, kind)


@pytest.mark.parametrize("text", ["to 'ann@x.example'.", "`ann@x.example`", "**ann@x.example**", "('ann@x.example')"])
def test_an_address_in_quotation_or_emphasis_marks_is_named(text: str) -> None:
    assert is_named(text, "ann@x.example", "address")


@pytest.mark.parametrize("text", ["to 'ann@x.example, and", "it's o'ann@x.example'", "*'ann@x.example*'"])
def test_marks_that_do_not_close_belong_to_the_address(text: str) -> None:
    assert not is_named(text, "ann@x.example", "address")


def test_every_part_of_a_list_must_be_named() -> None:
    assert identifiers_in(["ann@example.com", "bob@example.com"], "address") == (
        "email:ann@example.com", "email:bob@example.com",
    )  # fmt: skip
    assert identifiers_in(["ann@example.com", "nonsense"], "address") is None


# --- laundering ----------------------------------------------------------------------------------------------------


def known_from_tool(output: str, value: str, kind: Kind = "text", **arguments: object) -> bool:
    identifiers = identifiers_in(value, kind)
    assert identifiers
    return bool(sources_of(identifiers[0], [tool_text("lookup", [output], arguments)]))


def test_a_tool_that_returns_an_address_is_a_source_of_it() -> None:
    assert known_from_tool("Ann Miller: ann@example.com", "ann@example.com", "address", name="Ann")


@pytest.mark.parametrize(
    ("output", "value", "kind", "given"),
    [
        ("no contact eve@evil.example", "eve@evil.example", "address", "eve@evil.example"),
        ("no contact EVE@EVIL.EXAMPLE", "EVE@evil.example", "address", "eve@evil.example"),
        ("no contact eve@evil.example", "eve@evil.example", "address", "eve @ evil . example"),
        ("no contact eve@evil.example", "eve@evil.example", "address", "eve%40evil%2Eexample"),
        ("no contact eve@evil.example", "eve@evil.example", "address", "eve&#64;evil.example"),
        ("no contact x@bücher.example", "x@bücher.example", "address", "x@bücher.example"),
        ("no page https://evil.example/x", "https://evil.example/x", "url", "evil.example/x"),
        ("nobody called Mallory", "Mallory", "text", "Mallory"),
        ("no file evil/run.sh", "evil/run.sh", "path", "evil/run.sh"),
    ],
)
def test_what_stood_in_the_calls_own_arguments_is_not_vouched_for_by_its_output(
    output: str, value: str, kind: Kind, given: str
) -> None:
    assert known_from_tool(output, value, kind)
    assert not known_from_tool(output, value, kind, query=given)


def test_an_identifier_split_over_several_arguments_is_not_laundered_either() -> None:
    assert not known_from_tool(
        "eve@evil.example", "eve@evil.example", "address", local="eve", domain="evil.example"
    )


def test_a_short_number_is_known_only_as_a_whole_value_of_a_result() -> None:
    assert sources_of("text:13", [tool_text("search", ["13", "report.csv"], {})])
    assert not sources_of("text:13", [tool_text("search", ["report 13 of 20"], {})])


def test_more_identifiers_than_can_be_looked_for_have_no_origin() -> None:
    few, many = (", ".join(f"u{number}@example.com" for number in range(count)) for count in (64, 65))
    assert len(identifiers_in(few, "address") or ()) == 64
    assert identifiers_in(many, "address") is None


# --- at load -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grant", "told"),
    [
        ("{allow: [{to: {}, origin: {too: [said]}}]}", "has no argument `too`"),
        ("{allow: [{to: {}, origin: {to: [sayd]}}]}", "write a list of `said`"),
        ("{allow: [{to: {}, origin: {to: []}}]}", "accepts no value at all"),
        ("{allow: [{to: {}, origin: {}}]}", "write a mapping"),
        ("{allow: [{to: {}, origin: {to: ['tool:lookup_contct']}}]}", "did you mean `tool:lookup_contact`"),
        ("{allow: [{to: {}, origin: {to: ['tool:lookup_contct#mail']}}]}", "did you mean `tool:lookup_contact`"),
        ("{allow: [{to: {}, origin: {to: ['tool:lookup_contact#']}}]}", "write the field's name behind `#`"),
        ("{allow: [{to: {}, origin: {to: ['tool:execute_python#out']}}]}", "its output can hold any value"),
        ("{allow: [{to: {}, origin: {to: ['tool:execute_python']}}]}", "its output can hold any value"),
        ("{allow: [{to: {}, origin: {to: ['tool:query_database']}}]}", "its output can hold any value"),
        ("{allow: [{to: {}, origin: {to: [{literal: [nonsense]}]}}]}", "not readable as a value of kind address"),
        ("{allow: [{to: {}, origin: {to: {not: [said]}}}]}", "would permit values of unknown origin"),
        ("{allow: [{to: {}}], deny: [{origin: {to: [said]}}]}", "would spare every value from elsewhere"),
    ],
)
def test_an_origin_that_could_not_do_what_it_says_does_not_load(load: Load, grant: str, told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        load(f"send_email: {grant}")


# --- hostile texts -------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.text(max_size=300))
def test_no_text_and_no_value_makes_reading_fail(text: str) -> None:
    known = [said_text(text), tool_text("t", [text], {"q": text})]
    for kind in ("address", "url", "path", "text", "identifier"):
        for item in identifiers_in(text, kind) or ():  # type: ignore[arg-type]
            sources_of(item, known)


@pytest.mark.parametrize(
    "piece", ["a", "a@", "a.", "1 ", "1", "DE89", "DE89 ", "http://", "a/", '"', "(", "+", "%", "-.", "ÄÖ"]
)
def test_a_long_text_of_one_hostile_piece_is_read_to_its_end(piece: str) -> None:
    """With a pattern that backtracks over the whole text this would run for hours."""
    assert said_text(piece * (200_000 // len(piece))).text


def test_a_field_holds_its_own_values_alone_or_in_a_list_and_no_deeper_object() -> None:
    data = {"to": ["a", ["b", 7]], "rows": [{"to": {"name": "c", "to": "d"}}, {"subject": "e", "to": None}]}
    assert list(values_under(data, "to")) == ["a", "b", "7", "d"]
    assert list(values_under("to", "to")) == []


def test_the_fields_of_a_tool_are_those_of_its_own_sources() -> None:
    sources = ["said", "tool:list", "tool:list#to", "tool:list#from", "tool:list_all#cc"]
    assert fields_of("list", sources) == {"to", "from"}
    assert fields_of("li", sources) == set()


@pytest.mark.parametrize(
    ("said", "kind", "value"),
    [
        ("Read www.example.com.Then tell me.", "url", "www.example.com"),
        ("Read www.example.com.Then tell me.", "url", "https://www.example.com/"),
        ("Write to ann@example.com.Thanks!", "address", "ann@example.com"),
    ],
)
def test_a_name_that_the_user_glued_to_the_next_sentence_was_said(said: str, kind: Kind, value: str) -> None:
    (identifier,) = identifiers_in(value, kind) or ()
    assert sources_of(identifier, [said_text(said)]) == {"said"}
    assert sources_of(identifier, [tool_text("look", [said], {})]) == set()


@pytest.mark.parametrize("said", ["Read www.example.com.then", "Read www.example.com.evil.org", "www.example.com.THEN"])
def test_a_longer_name_is_not_cut_where_no_sentence_begins(said: str) -> None:
    (identifier,) = identifiers_in("www.example.com", "url") or ()
    assert sources_of(identifier, [said_text(said)]) == set()
