"""The floor: what no grant can lift, one module per kind, judged on facts alone.

`screen_facts` raises `Refused` (status `blocked`) or returns nothing. A screen never reads the argument again and knows
no policy: whether these tables are granted is another stage's word.
"""

from __future__ import annotations

from toolcage.facts.address import AddressFacts
from toolcage.facts.html import HtmlFacts
from toolcage.facts.identifier import IdentifierFacts
from toolcage.facts.path import PathFacts
from toolcage.facts.python import PythonFacts
from toolcage.facts.shell import ShellFacts
from toolcage.facts.sql import SqlFacts
from toolcage.facts.text import TextFacts
from toolcage.facts.url import UrlFacts
from toolcage.screens import address, html, identifier, path, python, shell, sql, sql_change, text, url
from toolcage.types import Facts

__all__ = ["screen_facts"]


def screen_facts(facts: Facts) -> None:
    """Returns nothing when the floor holds. Raises Refused (blocked), also for facts that no screen knows."""
    match facts:
        case SqlFacts():
            (sql_change.screen_change if facts.purpose == "change" else sql.screen)(facts)
        case PythonFacts():
            python.screen(facts)
        case IdentifierFacts():
            identifier.screen(facts)
        case PathFacts():
            path.screen(facts)
        case UrlFacts():
            url.screen(facts)
        case ShellFacts():
            shell.screen(facts)
        case AddressFacts():
            address.screen(facts)
        case HtmlFacts():
            html.screen(facts)
        case TextFacts():
            text.screen(facts)
        case _:
            text.refuse_unknown(facts)
