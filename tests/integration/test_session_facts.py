"""What a session learns from calls that really ran: origins, effects, and what they used up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.docker

HEAD = (
    "version: 1\nrole: team\ntools:\n"
    "  query_database: {resources: {database: [shop]}, allow: [{}]}\n"
    "  describe_database: {resources: {database: [shop]}, allow: [{}]%s}\n"
)
CALCULATE = "  calculate_expression: {%s}\n"
SHOP = {"database": "shop"}


@pytest.fixture
def session(installation: Any, shop: Path) -> Callable[[str], Any]:
    text = "version: 1\ndatabases: {shop: {kind: sqlite, path: shop.sqlite}}\n"
    (installation.folder / "resources.yaml").write_text(text)
    return lambda policy: installation.session(policy, resources=installation.folder / "resources.yaml")


def test_what_a_tool_returned_counts_as_its_own_and_what_it_did_not_return_does_not(
    session: Callable[[str], Any],
) -> None:
    policy = HEAD % "" + CALCULATE % "allow: [{origin: {expression: ['tool:describe_database']}}]"
    made = session(policy)
    assert made.call("calculate_expression", {"expression": "customer"}).status == "denied"
    assert made.call("describe_database", SHOP | {"table": "no_such_table"}).status != "ok"
    assert made.call("calculate_expression", {"expression": "no_such_table"}).status == "denied"
    assert made.call("describe_database", SHOP).status == "ok"
    assert made.call("calculate_expression", {"expression": "customer"}).status != "denied"
    assert made.call("calculate_expression", {"expression": "custom"}).status == "denied"


def test_a_field_of_what_a_tool_returned_counts_and_the_rest_of_it_does_not(session: Callable[[str], Any]) -> None:
    policy = HEAD % "" + CALCULATE % "allow: [{origin: {expression: ['tool:describe_database#name']}}]"
    made = session(policy)
    assert made.call("calculate_expression", {"expression": "customer"}).status == "denied"
    assert made.call("describe_database", SHOP).status == "ok"
    assert made.call("calculate_expression", {"expression": "customer"}).status != "denied"
    assert made.call("calculate_expression", {"expression": "table"}).status == "denied"  # a table's `kind`


def test_an_effect_counts_from_the_call_that_really_ran(session: Callable[[str], Any]) -> None:
    flows = "flows: [{deny: sends, after: [reads_private]}]\n"
    made = session(HEAD % "" + CALCULATE % "allow: [{}], effects: [sends]" + flows)
    one = {"expression": "1+1"}
    assert made.call("describe_database", {"database": "other"}).status == "denied"
    assert made.call("calculate_expression", one).status == "ok"
    assert made.call("describe_database", SHOP).status == "ok"
    assert made.call("calculate_expression", one).code == "flow.denied"


def test_time_that_a_call_really_ran_uses_up_a_limit(session: Callable[[str], Any]) -> None:
    made = session(HEAD % ", limits: {seconds: 1/session}")
    assert made.call("describe_database", SHOP).status == "ok"
    refused = made.call("describe_database", SHOP)
    assert (refused.status, refused.code) == ("limit_exceeded", "policy.budget")
