"""HTML is readable and passive, or the facts say what stands against it."""

from time import process_time

import pytest

from toolcage.facts.html import read


@pytest.mark.parametrize(
    "text",
    [
        "<p>Hello <b>Ana</b>, <a href='https://example.com/a?b=1' title=x>here</a><br/></p>",
        '<table width=100%><tr><td colspan="2" style="color: #fff; margin:0">1 &lt; 2</td></tr></table>',
        '<!-- note --><a href="mailto:a@b.com">m</a><a href="#top">t</a><a href=/x/y>r</a><img src="cid:1" alt="a">',
        "a < b and c > d, List<",
        "plain",
        "<!DOCTYPE html><html><body><h1>T</h1></body></html>",
    ],
)
def test_passive_html_has_nothing_active_or_unreadable(text: str) -> None:
    facts = read(text)
    assert (facts.active, facts.unreadable) == ("", "")


@pytest.mark.parametrize(
    "text",
    [
        "<script>x</script>",
        "<SCRIPT/SRC=x>",
        "<svg onload=x>",
        "<img src=x onerror=alert(1)>",
        "<a href=javascript:x>",
        "<a href=' java\tscript:x'>",
        "<a href=&#106;avascript:x>",
        "<a href='data:text/html,x'>",
        "<iframe src=x>",
        "<form action=x>",
        "<p style='background:url(x)'>",
        "<meta http-equiv=refresh>",
        "<base href=//x>",
        "<a href='//evil.com'>",
        "<a href='/\\evil.com'>",
        "<a href='x:y'>",
        '<p style="width:expression(x)">',
        "<object data=x>",
        "<math>",
        "<body background=x onload=y>",
    ],
)
def test_what_acts_or_loads_code_is_named(text: str) -> None:
    facts = read(text)
    assert facts.active or facts.unreadable


@pytest.mark.parametrize(
    "text",
    [
        "<img/src=x>",
        "<a href=`x`>",
        "<!--[if IE]><p><![endif]-->",
        "<p",
        "<?php x?>",
        '<p title="<b>">',
        "<a\x0bhref=x>",
    ],
)
def test_tags_that_are_not_plainly_written_are_unreadable(text: str) -> None:
    facts = read(text)
    assert facts.unreadable or facts.active


def test_pictures_from_elsewhere_are_remote() -> None:
    assert read('<img src="https://x.example/a.png">').remote
    assert not read('<img src="cid:a">').remote


LONG = [
    "<a " + "x=1 " * 50_000,
    "<" * 200_000,
    "<!--" * 50_000,
    "<p " * 100_000,
    f"<p style={'a' * 200_000}>",
    f"<style>{'a' * 200_000}</style>",
    f"<style>{'/*a' * 70_000}</style>",
    f"<style>{'/**a' * 50_000}</style>",
    "<style>" + "\"'" * 100_000 + "</style>",
    f"<img srcset='{' ' * 200_000}'>",
    f"<img srcset='{' 1x' * 70_000}'>",
    f"<img alt='{'&#1;' * 50_000}'>",
]


@pytest.mark.parametrize("text", LONG)
def test_it_is_linear(text: str) -> None:
    """The processor's time: milliseconds each, where anything that grows with the square takes minutes."""
    started = process_time()
    read(text)
    assert process_time() - started < 5


def test_a_number_of_thousands_of_digits_is_no_character() -> None:
    assert read(f'<p title="&#{"9" * 5_000};">').unreadable
    assert not read('<p title="&#128512;&#x1F600;">').unreadable
