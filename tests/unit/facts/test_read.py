"""Each kind of argument goes to its reader, once, and what is no text has no facts."""

import pytest

from toolcage.errors import Refused
from toolcage.facts.address import AddressFacts
from toolcage.facts.html import HtmlFacts
from toolcage.facts.identifier import IdentifierFacts
from toolcage.facts.path import PathFacts
from toolcage.facts.python import PythonFacts
from toolcage.facts.read import read_facts
from toolcage.facts.shell import ShellFacts
from toolcage.facts.sql import SqlFacts
from toolcage.facts.text import TextFacts
from toolcage.facts.url import UrlFacts
from toolcage.types import KINDS, freeze


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_facts_of_that_kind(kind: str) -> None:
    facts = read_facts(kind, "SELECT 1")
    assert facts is not None
    assert facts.kind == kind


def test_kinds_go_to_their_readers() -> None:
    assert isinstance(read_facts("sql", "SELECT 1"), SqlFacts)
    assert isinstance(read_facts("python", "import os"), PythonFacts)
    assert isinstance(read_facts("identifier", "orders"), IdentifierFacts)
    assert isinstance(read_facts("url", "http://x"), UrlFacts)
    assert isinstance(read_facts("path", "x"), PathFacts)
    assert isinstance(read_facts("shell", "x"), ShellFacts)
    assert isinstance(read_facts("address", "x"), AddressFacts)
    assert isinstance(read_facts("html", "x"), HtmlFacts)
    assert isinstance(read_facts("text", "x"), TextFacts)


def test_the_dialect_is_passed_on() -> None:
    facts = read_facts("sql", "SELECT a::int FROM t", dialect="postgres")
    assert isinstance(facts, SqlFacts)
    assert facts.dialect == "postgres"


@pytest.mark.parametrize("value", [None, 1, 2.5, True, (), (1, 2)])
def test_what_holds_no_text_has_no_facts(value: object) -> None:
    assert read_facts("text", freeze(value)) is None


def test_texts_inside_lists_and_objects_are_read_too() -> None:
    facts = read_facts("text", freeze({"to": ["a@x", "b\x00@x"]}))
    assert isinstance(facts, TextFacts)
    assert facts.has_nul


def test_lists_of_paths_urls_and_addresses_are_read_each_for_itself() -> None:
    paths = read_facts("path", freeze(["a", "../b"]))
    urls = read_facts("url", freeze(["http://a.com", "http://b.com"]))
    addresses = read_facts("address", freeze(["a@x.com", "b@x.com, c@x.com"]))
    assert isinstance(paths, PathFacts)
    assert isinstance(urls, UrlFacts)
    assert isinstance(addresses, AddressFacts)
    assert (len(paths.paths), len(urls.urls), len(addresses.addresses)) == (2, 2, 3)


@pytest.mark.parametrize("kind", ["path", "url", "address"])
@pytest.mark.parametrize("value", [1, {"a": "b"}, ["a", 1], [["a"]]])
def test_what_could_carry_an_unread_text_is_refused_for_them(kind: str, value: object) -> None:
    with pytest.raises(Refused) as caught:
        read_facts(kind, freeze(value))  # type: ignore[arg-type]
    assert caught.value.refusal.code == f"{kind}.not_text"


@pytest.mark.parametrize("kind", ["path", "url", "address", "shell", "html", "text"])
def test_an_argument_that_was_left_out_has_no_facts(kind: str) -> None:
    assert read_facts(kind, None) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1, None, ["SELECT 1"], {"a": "SELECT 1"}])
def test_sql_that_is_not_one_text_is_refused(value: object) -> None:
    with pytest.raises(Refused) as caught:
        read_facts("sql", freeze(value))
    assert caught.value.refusal.code == "sql.not_text"
