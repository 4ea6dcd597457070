"""`search_wikipedia` through the whole line, in a real cage, against real MediaWikis in two languages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from servers.https import HttpsServer, Respond, Response
from servers.mediawiki import MediaWiki
from toolcage.tools import WikipediaTool

pytestmark = pytest.mark.docker

POLICY = """
version: 1
role: reader
tools:
  search_wikipedia:
    resources: {language: [en, zh]}
    allow: [{}]
"""
NOTHING = "No Wikipedia articles found for the query."


def _resource(wiki: MediaWiki) -> str:
    return f"  {wiki.language}:\n    url: {wiki.api}\n"


@pytest.fixture
def look_up(open_session: Callable[..., Any], mediawiki: Mapping[str, MediaWiki]) -> Callable[..., Any]:
    session = open_session(POLICY, *(_resource(wiki) for wiki in mediawiki.values()))
    return lambda query, **more: session.call("search_wikipedia", {"query": query, **more})


def test_the_first_article_comes_with_title_and_summary(look_up: Any) -> None:
    result = look_up("Analytical Engine")
    assert result.status == "ok", result
    assert result.data == (
        "Title: Analytical Engine\n"
        "Summary: The Analytical Engine was a proposed mechanical computer by Charles Babbage."
    )
    assert "untrusted" in result.labels
    assert (result.stdout, result.stderr) == ("", "")


def test_each_language_is_asked_in_its_own_wiki(look_up: Any) -> None:
    assert look_up("洛夫莱斯", language="zh").data == (
        "Title: 埃达·洛夫莱斯\nSummary: 埃达·洛夫莱斯是英国数学家，被认为是第一位程序员。"
    )
    assert look_up("水星", language="zh").data.endswith("\n- 水星 (行星)")
    assert look_up("洛夫莱斯").data == NOTHING
    assert look_up("Analytical Engine", language="zh").data == NOTHING


def test_a_language_that_is_not_granted_is_denied_and_one_that_is_no_code_is_invalid(look_up: Any) -> None:
    denied = look_up("Mercury", language="fr")
    assert (denied.status, denied.code) == ("denied", "resource.not_granted")
    for language in ("EN", "en.evil.example/", "", "../en", "e"):
        assert look_up("Mercury", language=language).status == "invalid", language


def test_a_long_summary_is_cut_and_said_and_a_short_one_is_whole(look_up: Any) -> None:
    summary = look_up("Ada Lovelace").data.partition("Summary: ")[2]
    assert summary.endswith("...")
    assert len(summary) == 503
    longer = look_up("Ada Lovelace", max_chars=8000).data.partition("Summary: ")[2]
    assert len(longer) > 800
    assert longer.endswith("could do more.")
    assert longer.startswith(summary[:500])


def test_a_redirect_is_followed_to_its_article(look_up: Any) -> None:
    assert look_up("Countess of Lovelace").data.startswith("Title: Ada Lovelace\n")
    assert look_up("爱达", language="zh").data.startswith("Title: 埃达·洛夫莱斯\n")


def test_a_title_with_several_meanings_lists_them_and_each_can_be_searched(look_up: Any) -> None:
    result = look_up("Mercury")
    assert result.success
    assert result.data.splitlines()[0] == "Title: Mercury"
    assert result.data.splitlines()[2:] == ["- Mercury (planet)", "- Mercury (element)"]
    assert look_up("Mercury (planet)").data == (
        "Title: Mercury (planet)\nSummary: Mercury is the first planet from the Sun."
    )
    assert result.stderr == ""


@pytest.mark.parametrize("query", ["qqqqzz", "de:Zürich", "Special:Search", "()", "a|b", "x" * 300])
def test_nothing_found_is_a_success_that_says_so(query: str, look_up: Any) -> None:
    result = look_up(query)
    assert (result.status, result.data) == ("ok", NOTHING)


def test_without_words_nothing_is_asked(look_up: Any) -> None:
    result = look_up("  ")
    assert (result.code, result.error) == ("search.no_query", "No query provided")


def test_markup_arrives_as_inert_text(look_up: Any) -> None:
    assert look_up("List of markup").data.startswith("Title: List of markup\nSummary: A bold word, &lt;script>alert(1)")


def test_an_article_that_speaks_to_the_model_is_flagged(look_up: Any) -> None:
    result = look_up("Shipping rules")
    assert result.success
    assert "injection_suspected" in result.labels


def test_the_tutorials_names_reach_the_same_tool(
    open_session: Callable[..., Any], mediawiki: Mapping[str, MediaWiki]
) -> None:
    with open_session(POLICY, *(_resource(wiki) for wiki in mediawiki.values())) as session:
        assert session.call("wikipedia_search", {"query": "Ada"}).data.startswith("Title: Ada Lovelace\n")
        assert WikipediaTool().execute(query="Ada").data.startswith("Title: Ada Lovelace\n")


FAILURES: dict[str, tuple[Response, str]] = {
    "503": (Response(503, b"", {"Retry-After": "5"}), "endpoint.failed"),
    "403": (Response(403, b"Please set a user-agent"), "endpoint.unauthorized"),
    "no JSON": (Response(200, b"<!doctype html>"), "endpoint.bad_answer"),
    "an error with status 200": (Response.of({"error": {"code": "maxlag", "info": "x"}}), "endpoint.rate_limited"),
    "another error": (Response.of({"error": {"code": "toolong", "info": "too long"}}), "endpoint.bad_request"),
    "something else": (Response.of({"hello": 1}), "endpoint.bad_answer"),
    "no search": (Response.of({"query": {}}), "endpoint.bad_answer"),
    "a search of another form": (Response.of({"query": {"search": [7]}}), "endpoint.bad_answer"),
    "another form": (Response.of({"query": []}), "endpoint.bad_answer"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_each_failure_of_a_wiki_has_its_code(
    name: str, open_session: Callable[..., Any], https: Callable[[Respond], HttpsServer]
) -> None:
    response, code = FAILURES[name]
    server = https(lambda _: response)
    endpoint = f"  en:\n    url: {server.origin}/api.php\n    ca: ca.pem\n"
    session = open_session(POLICY.replace("[en, zh]", "[en]"), endpoint)
    result = session.call("search_wikipedia", {"query": "x"})
    assert (result.status, result.code) == ("tool_error", code), result
    assert server.requests[0].headers["user-agent"].startswith("toolcage")
    assert server.requests[0].path == "/api.php"
