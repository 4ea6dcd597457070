"""Links in a text: what leads somewhere is found however it is spelt, and its origin is demanded whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcage.errors import PolicyError
from toolcage.policy.links import MAX_TEXT_CHARS, links_in
from toolcage.policy.model import Role

Load = Callable[..., Role]


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("See https://Example.com:443/a?b=c,d, b.org.", {"url:https://example.com/a?b=c,d", "url:://b.org/"}),
        ("[here](https://example.com/a)", {"url:https://example.com/a"}),
        ("[here](//example.com/a)", {"url:://example.com/a"}),
        ("<a href='//example.com'>x</a>", {"url:://example.com/"}),
        ("https://a.example/?u=https://b.example/x", {"url:https://a.example/?u=", "url:https://b.example/x"}),
        ("https&#58;//evil.example/a", {"url:://evil.example/a"}),
        ("%2F%2Fevil.example%2Fa", {"url:://evil.example/a"}),
        ("evil。example", {"url:://evil.example/"}),
        ("ｅｖｉｌ.example/a", {"url:://evil.example/a"}),
        (r"\\evil.example\share", {"url:://evil.example/"}),
        ("https:evil.example", {"url:://evil.example/"}),
        ("192.0.2.1/a or http://3221225985/", {"url:://192.0.2.1/a", "url:http://3221225985/"}),
        ("javascript:fetch('//evil.example/')", {"url:://evil.example/"}),
    ],
)
def test_a_link_is_found_however_it_is_spelt(text: str, links: set[str]) -> None:
    assert links <= set(links_in(text) or ())


@pytest.mark.parametrize("text", ["", "Hello. How?", "Mail ann@example.com, 3.5 times.", "1,000.50 EUR", "a/b/c"])
def test_a_text_without_links_has_none(text: str) -> None:
    assert links_in(text) == ()


@pytest.mark.parametrize(
    "text",
    ["e\u200bvil.example", "https://me@evil.example/", "//a.example@b.example", "x\x1b[2K", "a" * (MAX_TEXT_CHARS + 1)],
)
def test_a_text_that_hides_something_cannot_be_read(text: str) -> None:
    assert links_in(text) is None


def test_more_links_than_can_be_looked_for_cannot_be_read() -> None:
    assert len(links_in(" ".join(f"h{number}.example" for number in range(64))) or ()) == 64
    assert links_in(" ".join(f"h{number}.example" for number in range(65))) is None


@settings(deadline=None)
@given(st.text(max_size=300))
def test_no_text_makes_reading_fail(text: str) -> None:
    links_in(text)


@pytest.mark.parametrize("piece", ["a.", "//", "http://", "a.b/", "1.", "-.", "0x1.", "&#47;", "%2F", "a@", "]("])
def test_a_long_text_of_one_hostile_piece_is_read_to_its_end(piece: str) -> None:
    links_in(piece * (MAX_TEXT_CHARS // len(piece)))


@pytest.mark.parametrize(
    ("grant", "told"),
    [
        ("{allow: [{to: {}, origin: {to: {links: [said]}}}]}", "is of kind address, so its whole value"),
        ("{allow: [{to: {}, origin: {subject: {links: []}}}]}", "accepts no value at all"),
        ("{allow: [{to: {}, origin: {subject: {links: {not: [said]}}}}]}", "would permit values of unknown origin"),
        ("{allow: [{to: {}}], deny: [{origin: {subject: {links: [said]}}}]}", "would spare every value from elsewhere"),
        ("{allow: [{to: {}, origin: {subject: {links: [sayd]}}}]}", "write a list of `said`"),
        ("{allow: [{to: {}, origin: {subject: {link: [said]}}}]}", "write a list of `said`"),
        ("{ask: [{to: {}, origin: {subject: {links: [said], not: [said]}}}]}", "write a list of `said`"),
    ],
)
def test_links_that_could_not_do_what_they_say_do_not_load(load: Load, grant: str, told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        load(f"send_email: {grant}")


def test_many_long_texts_are_no_way_around_the_bound_of_one() -> None:
    half = "a " * (MAX_TEXT_CHARS // 4)
    assert links_in([half, half]) == ()
    assert links_in([half, half, "a"]) is None
