"""No markup but what the mode allows, and data that only looks like it survives."""

from html.parser import HTMLParser

import bleach
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcage.cleaning import html

PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "</title><script>x</script>",
    "<!--[if gte IE 4]><script>x</script><![endif]-->",
    "<!DOCTYPE html [<!ENTITY x 'y'>]>",
    "<?xml-stylesheet href='javascript:x'?>",
    "<![CDATA[<b>]]>",
    "<a href='jav\tascript:x'>y</a>",
    "<math><mtext><table><mglyph><style><img src=x onerror=y>",
    "<",
    "x <sc",
]


class Seen(HTMLParser):
    """Records everything that is not text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self.markup: list[str] = []
        self.feed(text + "script>x")  # as if something were appended
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.markup.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.markup.append(tag)

    def handle_comment(self, data: str) -> None:
        self.markup.append(data)

    def handle_decl(self, decl: str) -> None:
        self.markup.append(decl)

    def handle_pi(self, data: str) -> None:
        self.markup.append(data)

    def unknown_decl(self, data: str) -> None:
        self.markup.append(data)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_inert_text_has_no_markup_for_a_parser(payload: str) -> None:
    inert, count = html.make_inert(payload)
    assert Seen(inert).markup == []
    assert count > 0
    assert inert.replace("&lt;", "<") == payload


@given(st.text(alphabet="<>/!?-[]&;='\" abscriptSVG\n\t\0", max_size=60))
def test_no_text_at_all_becomes_markup_when_inert(text: str) -> None:
    inert, _ = html.make_inert(text)
    assert Seen(inert).markup == []
    assert html.make_inert(inert) == (inert, 0)


@pytest.mark.parametrize("text", ["a < b", "if (a<1 && c>2)", "x <- y", "1 <= 2 << 3", "<3", "a && b", "-> \"'"])
def test_inert_leaves_text_that_cannot_open_markup(text: str) -> None:
    assert html.make_inert(text) == (text, 0)


def test_inert_keeps_generic_types_readable_where_a_sanitiser_deletes_them() -> None:
    assert html.make_inert("List<int> x")[0] == "List&lt;int> x"
    assert "int" not in html.sanitise("List<int> x")[0]


def test_escape_escapes_all_five() -> None:
    assert html.escape_all("<a href='x'>\"&")[0] == "&lt;a href=&#x27;x&#x27;&gt;&quot;&amp;"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_sanitised_html_holds_nothing_active_for_a_second_sanitiser_either(payload: str) -> None:
    kept, _ = html.sanitise(f"<p>before</p>{payload}<p>after</p>")
    assert not any(
        word in kept for word in ("<script", "<img", "<svg", "onerror", "onload", "<math", "<style", "<?", "<!")
    )
    allowed = {"a": ["href", "title", "rel"]}
    assert bleach.clean(kept, tags={"p", "a"}, attributes=allowed, protocols=["https"]) == kept


@pytest.mark.parametrize(
    ("address", "stays"),
    [
        ("https://example.com/a?b=c", True),
        ("mailto:a@example.com", True),
        ("javascript:x", False),
        ("jav\u200bascript:x", False),
        ("jav[U+200B]ascript:x", False),
        ("//evil.example", False),
        ("/relative", False),
        ("data:text/html,x", False),
        ("https://exa\tmple.com", False),
    ],
)
def test_only_plain_absolute_addresses_stay_in_links(address: str, stays: bool) -> None:
    assert ("href" in html.sanitise(f'<a href="{address}">text</a>')[0]) is stays
