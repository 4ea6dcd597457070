"""describe_database tells what the role's query_database may read of the same database, and nothing else."""

import pytest

from toolcage.policy.decide import decide
from toolcage.policy.load import load_role_text
from toolcage.policy.model import Role
from toolcage.policy.narrow import narrowed
from toolcage.policy_desk import declared_tools
from toolcage.types import SessionFacts, SqlTerms

DESCRIBE = "  describe_database: {resources: {database: [shop, other]}, allow: [{}]}\n"
NOTHING = frozenset[str]()


def role(query: str, more: str = "") -> Role:
    return load_role_text(f"version: 1\nrole: r\ntools:\n{DESCRIBE}{query}{more}", "r.yaml", declared_tools())


def query(allow: str, more: str = "") -> str:
    return f"  query_database: {{resources: {{database: [shop]}}, allow: [{allow}]{more}}}\n"


def told(made: Role, database: str = "shop") -> SqlTerms:
    declaration = made.grants["describe_database"].declaration
    decision = decide(made, declaration, {"database": database}, {}, SessionFacts())
    assert decision.effect == "allow"
    assert decision.sql is not None
    return decision.sql


def test_the_bounds_of_the_query_hold_for_the_description() -> None:
    made = role(query("{sql: {tables: [orders, customers], columns_except: [customers.email]}}"))
    assert told(made).tables == {"orders", "customers"}
    assert told(made).columns_except == {"customers.email"}


def test_an_unbounded_query_is_described_whole() -> None:
    assert told(role(query("{}"))).tables is None


@pytest.mark.parametrize(
    "text",
    ["", query("{sql: {tables: [orders]}}", ", deny: [{}]"),
     query("{sql: {tables: [orders]}, database: {const: other}}"),
     query("{sql: {tables: [orders]}, facts: {tenant: {const: acme}}}")],
)  # fmt: skip
def test_without_a_query_that_can_be_made_nothing_is_told(text: str) -> None:
    if "const: other" in text:
        text = text.replace("[shop]", "[shop, other]")
    assert told(role(text)).tables == NOTHING


def test_another_database_than_the_querys_is_not_told() -> None:
    made = role(query("{sql: {tables: [orders]}}"))
    assert told(made, "shop").tables == {"orders"}
    assert told(made, "other").tables == NOTHING


def test_a_deny_of_the_query_for_the_role_leaves_nothing() -> None:
    made = role(query("{sql: {tables: [orders]}}"), "deny: [{tool: query_database}]\n")
    assert told(made).tables == NOTHING


def test_a_column_is_told_when_some_entry_grants_it() -> None:
    entries = "{sql: {tables: [a, b], columns_except: [a.x, b.y]}}, {sql: {tables: [a]}, limit: {maximum: 5}}"
    made = role(query(entries))
    assert told(made).tables == {"a", "b"}
    assert told(made).columns_except == {"b.y"}


def test_a_ceiling_narrows_what_is_told() -> None:
    above = role(query("{sql: {tables: [orders], columns_except: [orders.note]}}"))
    made = narrowed(role(query("{}")), [above])
    assert told(made).tables == {"orders"}
    assert told(made).columns_except == {"orders.note"}
