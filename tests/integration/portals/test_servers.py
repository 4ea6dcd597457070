"""The servers that tests talk to are what they say they are."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

import pytest

from servers.mediawiki import INJECTION, MediaWiki
from servers.radicale import CALENDAR, RadicaleServer


def ask(wiki: MediaWiki, **query: str) -> Any:
    words = urllib.parse.urlencode({"action": "query", "format": "json", **query})
    with urllib.request.urlopen(f"{wiki.api}?{words}", timeout=20) as answer:
        return json.load(answer)["query"]


@pytest.mark.parametrize(
    ("language", "query", "title"), [("en", "Lovelace", "Ada Lovelace"), ("zh", "埃达·洛夫莱斯", "埃达·洛夫莱斯")]
)
def test_the_wikis_find_and_summarise_pages_in_two_languages(
    mediawiki: Mapping[str, MediaWiki], language: str, query: str, title: str
) -> None:
    wiki = mediawiki[language]
    assert title in [item["title"] for item in ask(wiki, list="search", srsearch=query)["search"]]
    (page,) = ask(wiki, prop="extracts", explaintext="1", exintro="1", titles=title)["pages"].values()
    assert page["extract"].startswith(title)


def test_the_wikis_have_a_redirect_a_disambiguation_page_an_instruction_and_gaps(
    mediawiki: Mapping[str, MediaWiki],
) -> None:
    wiki = mediawiki["en"]
    assert ask(wiki, titles="Countess of Lovelace", redirects="1")["redirects"][0]["to"] == "Ada Lovelace"
    (page,) = ask(wiki, titles="Mercury", prop="pageprops")["pages"].values()
    assert "disambiguation" in page["pageprops"]
    (page,) = ask(wiki, titles="Shipping rules", prop="extracts", explaintext="1")["pages"].values()
    assert INJECTION in page["extract"]
    assert list(ask(wiki, titles="No such page")["pages"]) == ["-1"]


def test_the_calendar_keeps_what_its_account_puts_there_and_nobody_else_reads_it(radicale: RadicaleServer) -> None:
    event = "\r\n".join(
        ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:t", "BEGIN:VEVENT", "UID:1", "DTSTAMP:20260501T090000Z",
         "DTSTART:20260501T090000Z", "SUMMARY:Stand-up", "END:VEVENT", "END:VCALENDAR", ""]
    )  # fmt: skip
    assert radicale.request("PUT", f"{CALENDAR}1.ics", event)[0] == 201
    assert "SUMMARY:Stand-up" in radicale.request("GET", f"{CALENDAR}1.ics")[1]
    assert radicale.request("GET", f"{CALENDAR}1.ics", user="eve")[0] == 401
    radicale.empty()
    assert radicale.request("GET", f"{CALENDAR}1.ics")[0] == 404
