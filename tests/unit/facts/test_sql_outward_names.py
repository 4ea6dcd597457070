"""Names that SQLite looks for further out, or takes from a text, stand in the facts without the cage's guard."""

import pytest

from toolcage.errors import Refused
from toolcage.facts.sql import read
from toolcage.screens import sql as screen


@pytest.mark.parametrize(
    "text",
    ["SELECT (SELECT customers.email FROM (SELECT 1 AS x) AS customers) FROM customers",
     "SELECT (SELECT c.email FROM orders AS c) FROM customers AS c",
     "WITH k AS (SELECT 1 AS x) SELECT (SELECT customers.email FROM k AS customers) FROM customers",
     "SELECT (SELECT (SELECT c.email FROM orders c) FROM (SELECT 2) c) FROM customers c"],
)  # fmt: skip
def test_a_column_that_the_inner_table_may_lack_is_the_outer_tables_too(text: str) -> None:
    assert ("customers", "email") in read(text).columns


def test_a_column_of_the_only_table_of_that_name_is_that_tables_alone() -> None:
    assert read("SELECT c.email FROM orders c").columns == {("orders", "email")}


@pytest.mark.parametrize("text", ["SELECT 'x' IN 'Emails'", "SELECT 1 WHERE 'x' NOT IN 'emails'"])
def test_a_text_after_in_is_a_table_that_is_read_whole(text: str) -> None:
    facts = read(text)
    assert (facts.tables, facts.star_tables) == ({"emails"}, {"emails"})


def test_texts_in_parentheses_are_values() -> None:
    assert read("SELECT 'x' IN ('emails')").tables == frozenset()


@pytest.mark.parametrize("text", ["SELECT 1 IN 'main'.'emails'", "SELECT 1 IN ?", "SELECT 1 IN 5"])
def test_anything_else_after_in_is_not_read(text: str) -> None:
    with pytest.raises(Refused):
        read(text)


@pytest.mark.parametrize(
    "text",
    ["SELECT id FROM c INDEXED BY ix", "SELECT id FROM c NOT INDEXED", "SELECT id FROM a, c AS d indexed by ix",
     "SELECT 1 WHERE EXISTS (SELECT 1 FROM c NOT INDEXED)"],
)  # fmt: skip
def test_a_statement_that_chooses_an_index_is_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        screen.screen(read(text))
    assert caught.value.refusal.code == "sql.index_choice"


@pytest.mark.threat("R17")
def test_a_table_that_is_searched_by_its_own_name_is_read_whole() -> None:
    assert read("SELECT title FROM docs WHERE docs MATCH 'x'").star_tables == {"docs"}
    facts = read("SELECT d.title FROM docs d WHERE d.body MATCH (SELECT pw FROM secret)")
    assert facts.columns >= {("docs", "title"), ("docs", "body"), ("secret", "pw")}
    assert facts.tables == {"docs", "secret"}
