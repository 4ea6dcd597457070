"""Ordinary things that carry a text to a model: markup, mail, code, data, subtitles, addresses.

What a detector finds in a text by itself it has to find in each of these. Layout, quotation marks and encodings of the
carriers are as tools return them.
"""

from __future__ import annotations

import html
import json
import quopri
import textwrap
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, quote_plus


def _each(text: str, change: Callable[[str], str], every: int) -> str:
    return " ".join(change(word) if n % every == 1 else word for n, word in enumerate(text.split(" ")))


CARRIERS: Final[dict[str, Callable[[str], str]]] = {
    "comment of HTML": lambda a: f"<p>Some text of the page</p><!-- {a} --><p>More of it.</p>",
    "text for a picture": lambda a: f'<p>Text.</p><img src="a.png" alt="{html.escape(a)}" width="20"><p>More.</p>',
    "attribute of a link": lambda a: f"<a class='btn' title='{html.escape(a)}' href='/x'>go there</a>",
    "field of a form": lambda a: f'<form><input type="hidden" name="n" value="{html.escape(a)}"/></form>',
    "meta": lambda a: f'<head><meta name="description" content="{html.escape(a)}"><title>Shop</title></head>',
    "inline tags": lambda a: f"<p>{_each(a, lambda word: f'<b>{word}</b>', 4)}</p>",
    "broken lines": lambda a: "<p>" + "<br>".join(textwrap.wrap(a, 50)) + "</p>",
    "references": lambda a: _each(a, lambda word: f"{word}[1]", 9),
    "mail": lambda a: f"Subject: hi\n\nDear all,\n\n{textwrap.fill(a, 60)}\n\nAnn",
    "quoted mail": lambda a: "On Monday, Ann wrote:\n\n" + textwrap.indent(textwrap.fill(a, 60), "> "),
    "encoded mail": lambda a: "Subject: hi\n\n" + quopri.encodestring(a.encode("ascii", "ignore")).decode(),
    "comment of code": lambda a: "/**\n" + textwrap.indent(textwrap.fill(a, 60), " * ") + "\n */\nclass A {}",
    "block of YAML": lambda a: "name: x\nnotes: |\n" + textwrap.indent(textwrap.fill(a, 50), "  ") + "\nversion: 3\n",
    "difference": lambda a: "@@ -1,2 +1,9 @@\n line\n" + textwrap.indent(textwrap.fill(a, 60), "+") + "\n other\n",
    "subtitles": lambda a: "\n\n".join(
        f"{n}\n00:00:{n:02},000 --> 00:00:{n:02},900\n{line}" for n, line in enumerate(textwrap.wrap(a, 40), 1)
    ),
    "query": lambda a: f"GET /search?page=2&q={quote(a)}",
    "query with plus signs": lambda a: f"https://shop.example/?q={quote_plus(a)}&page=2",
    "JSON": lambda a: json.dumps({"id": 3, "note": a}),
    "cell": lambda a: f"| id | note |\n|---|---|\n| 1 | ok |\n| 2 | {a} |\n",
}  # fmt: skip
