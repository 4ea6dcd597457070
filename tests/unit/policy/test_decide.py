"""The semantics of a policy, one promise a test: what may pass and its neighbour that may not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcage.errors import PolicyError
from toolcage.facts.read import read_facts
from toolcage.facts.sql import SqlFacts
from toolcage.facts.sql_text import Dialect
from toolcage.policy.decide import decide
from toolcage.policy.load import load_role_text
from toolcage.policy.model import Entries, Entry, FragmentRule, Role, narrowest
from toolcage.types import Decision, Facts, SqlTerms, ToolDeclaration, freeze

Load = Callable[..., Role]
Judge = Callable[..., Decision]

SHOP = """
query_database:
  resources: {database: [shop]}
  allow:
    - sql: {tables: [orders, customers], columns_except: [customers.email], max_rows: 50}
"""


def shop(judge: Judge, role: Role, sql: str) -> Decision:
    return judge(role, "query_database", database="shop", sql=sql)


# --- 1. a tool that is not listed does not exist -------------------------------------------------------------------


def test_a_listed_tool_is_allowed_and_an_unlisted_one_is_unknown(load: Load, judge: Judge) -> None:
    role = load("calculate_expression: {allow: [{}]}")
    assert judge(role, "calculate_expression", expression="1").effect == "allow"
    refused = judge(role, "execute_python", code="1")
    assert (refused.effect, refused.code) == ("deny", "tool.unknown")
    assert refused.hint is not None
    assert "calculate_expression" in refused.hint


@pytest.mark.parametrize("name", ["Calculate_Expression", "calculate_expression ", "сalculate_expression", ""])
def test_tool_names_match_exactly_without_folding_or_homoglyphs(load: Load, judge: Judge, name: str) -> None:
    assert judge(load("calculate_expression: {allow: [{}]}"), name, expression="1").code == "tool.unknown"


# --- 2. matching and precedence ------------------------------------------------------------------------------------


def test_an_empty_entry_permits_every_valid_call(load: Load, judge: Judge) -> None:
    role = load("search_web: {allow: [{}]}")
    assert judge(role, "search_web", term="x", tags=["a"]).effect == "allow"


def test_what_no_entry_matches_is_denied(load: Load, judge: Judge) -> None:
    role = load("search_web: {allow: [{term: {const: x}}]}")
    assert judge(role, "search_web", term="x").effect == "allow"
    refused = judge(role, "search_web", term="y")
    assert (refused.effect, refused.code) == ("deny", "policy.no_match")
    assert refused.rule == "team.yaml:4 tools.search_web"


def test_an_entry_matches_only_when_all_it_says_holds(load: Load, judge: Judge) -> None:
    role = load("search_web: {allow: [{term: {const: x}, count: {const: 3}}]}")
    assert judge(role, "search_web", term="x", count=3).effect == "allow"
    assert judge(role, "search_web", term="x", count=4).effect == "deny"
    assert judge(role, "search_web", term="y", count=3).effect == "deny"


def test_an_argument_that_an_entry_names_must_be_present(load: Load, judge: Judge) -> None:
    role = load("search_web: {allow: [{tags: {}}]}")
    assert judge(role, "search_web", term="x", tags=[]).effect == "allow"
    assert judge(role, "search_web", term="x").code == "policy.no_match"


def test_each_entry_of_a_list_is_tried(load: Load, judge: Judge) -> None:
    role = load("search_web: {allow: [{term: {const: x}}, {term: {const: y}}]}")
    assert judge(role, "search_web", term="y").rule == "team.yaml:4 tools.search_web.allow[1]"


def test_deny_beats_ask_beats_allow_whatever_is_more_specific(load: Load, judge: Judge) -> None:
    role = load(
        """
        search_web:
          allow:
            - term: {enum: [plain, asked, denied]}
          ask:
            - term: {enum: [asked, denied]}
          deny:
            - term: {const: denied}
        """
    )
    assert judge(role, "search_web", term="plain").effect == "allow"
    asked = judge(role, "search_web", term="asked")
    assert (asked.effect, asked.code, asked.rule) == ("ask", "policy.ask", "team.yaml:8 tools.search_web.ask[0]")
    denied = judge(role, "search_web", term="denied")
    assert (denied.effect, denied.code) == ("deny", "policy.denied")
    assert denied.rule == "team.yaml:10 tools.search_web.deny[0]"


def test_ask_wins_over_an_allow_that_names_more_arguments(load: Load, judge: Judge) -> None:
    role = load("search_web: {allow: [{term: {const: x}, count: {const: 1}}], ask: [{}]}")
    assert judge(role, "search_web", term="x", count=1).effect == "ask"


def test_a_deny_of_the_whole_file_beats_the_grant_and_only_for_its_tool(load: Load, judge: Judge) -> None:
    role = load(
        """
        version: 1
        role: team
        tools:
          search_web: {allow: [{}]}
          calculate_expression: {allow: [{}]}
        deny:
          - tool: search_web
            term: {const: secret}
          - tool: calculate_expression
        """
    )
    assert judge(role, "search_web", term="open").effect == "allow"
    assert judge(role, "search_web", term="secret").rule == "team.yaml:7 deny[0]"
    assert judge(role, "calculate_expression", expression="1").code == "policy.denied"


def test_a_sink_that_no_entry_names_must_be_absent(load: Load, judge: Judge) -> None:
    role = load('send_email: {allow: [{to: {pattern: "^[a-z]+@example[.]com$"}}]}')
    assert judge(role, "send_email", to="ann@example.com", subject="hi").effect == "allow"
    refused = judge(role, "send_email", to="ann@example.com", subject="hi", cc="eve@evil.example")
    assert (refused.effect, refused.code) == ("deny", "policy.no_match")
    assert refused.hint is not None
    assert "cc" in refused.hint


def test_naming_the_sink_permits_it(load: Load, judge: Judge) -> None:
    role = load("send_email: {allow: [{to: {}}, {to: {}, cc: {const: boss@example.com}}]}")
    assert judge(role, "send_email", to="a@b.example", subject="s", cc="boss@example.com").effect == "allow"
    assert judge(role, "send_email", to="a@b.example", subject="s", cc="eve@evil.example").effect == "deny"


def test_a_long_list_decides_as_its_entries_do_one_by_one(load: Load, judge: Judge) -> None:
    """Eight entries and more are found by an index over fixed texts; it must not change what matches."""
    fixed = "".join(f"    - term: {{const: t{number}}}\n" for number in range(12))
    others = '    - term: {pattern: "^p[0-9]$"}\n    - term: {enum: [t3, e1]}\n'
    others += "    - tags: {}\n    - count: {const: 3}\n"
    role = load(f"search_web:\n  allow:\n{fixed}{others}{fixed}")
    calls: list[dict[str, Any]] = [
        {"term": "t0"}, {"term": "t11"}, {"term": "t3"}, {"term": "e1"}, {"term": "p7"}, {"term": "none"},
        {"term": "none", "tags": []}, {"term": "none", "count": 3}, {"term": "none", "count": 4}, {"term": 3}, {},
    ]  # fmt: skip
    for call in calls:
        entries = role.grants["search_web"].allow
        one_by_one = (entry.rule for entry in entries if entry.miss(call, {}) is None)
        expected = next(one_by_one, "team.yaml:4 tools.search_web")
        assert judge(role, "search_web", **call).rule == expected


# --- resources -----------------------------------------------------------------------------------------------------


def test_a_resource_is_reachable_only_when_granted_by_exact_name(load: Load, judge: Judge) -> None:
    role = load("describe_database: {resources: {database: [shop]}, allow: [{}]}")
    assert judge(role, "describe_database", database="shop").effect == "allow"
    for other in ("payroll", "Shop", "shop ", "", 3, ["shop"], None):
        refused = judge(role, "describe_database", database=other)
        assert (refused.effect, refused.code) == ("deny", "resource.not_granted")
        assert refused.hint == "Granted for `database`: shop."


def test_a_deny_entry_still_holds_for_a_granted_resource(load: Load, judge: Judge) -> None:
    role = load(
        "describe_database: {resources: {database: [shop]}, allow: [{}], deny: [{table: {const: staff}}]}",
    )
    assert judge(role, "describe_database", database="shop", table="orders").effect == "allow"
    assert judge(role, "describe_database", database="shop", table="staff").code == "policy.denied"


# --- the sql facet -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM orders",
        "SELECT o.id FROM Orders AS o JOIN customers c ON c.id = o.customer_id",
        "WITH recent AS (SELECT id FROM orders) SELECT * FROM recent",
        "SELECT 1",
        "SELECT name FROM customers",
        "SELECT * FROM orders",
    ],
)
def test_statements_within_the_bounds_are_allowed(load: Load, judge: Judge, sql: str) -> None:
    assert shop(judge, load(SHOP), sql).effect == "allow"


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT * FROM staff", "staff"),
        ("SELECT id FROM orders WHERE id IN (SELECT id FROM staff)", "staff"),
        ("WITH orders AS (SELECT * FROM staff) SELECT * FROM orders", "staff"),
        ("SELECT 1 FROM orders UNION SELECT 1 FROM sqlite_master", "sqlite_master"),
        ("SELECT email FROM customers", "email"),
        ("SELECT c.EMAIL FROM customers c", "email"),
        ("SELECT * FROM customers", "*"),
        ("SELECT c.* FROM orders o, customers c", "*"),
        ("SELECT name FROM customers ORDER BY email", "email"),
        ("SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM customers WHERE email = 'a')", "email"),
    ],
)
def test_statements_that_read_beyond_the_bounds_are_denied_and_say_what(
    load: Load, judge: Judge, sql: str, named: str
) -> None:
    refused = shop(judge, load(SHOP), sql)
    assert (refused.effect, refused.code) == ("deny", "policy.no_match")
    assert refused.hint is not None
    assert named in refused.hint


def facts(**more: Any) -> Mapping[str, Facts]:
    return {"sql": SqlFacts(**({"tables": frozenset({"customers"})} | more))}


@pytest.mark.parametrize(
    ("more", "effect"),
    [
        ({"columns": frozenset({("customers", "name")})}, "allow"),
        ({"columns": frozenset({("customers", "email")})}, "deny"),
        ({"columns": frozenset({(None, "email")})}, "deny"),
        ({"columns": frozenset({("orders", "email")})}, "allow"),
        ({"columns": frozenset({(None, "*")})}, "deny"),
        ({"star_tables": frozenset({"customers"})}, "deny"),
        ({"star_tables": frozenset({"orders"})}, "allow"),
        ({"tables": frozenset({"customers", "staff"})}, "deny"),
        ({"tables": frozenset()}, "allow"),
    ],
)
def test_an_unresolved_column_or_a_star_counts_as_reading_the_excepted_column(
    load: Load, declarations: Mapping[str, ToolDeclaration], more: dict[str, Any], effect: str
) -> None:
    arguments = {"database": "shop", "sql": "…"}
    assert decide(load(SHOP), declarations["query_database"], arguments, facts(**more)).effect == effect


def test_the_decision_carries_the_bounds_of_the_first_matching_entry(load: Load, judge: Judge) -> None:
    role = load(
        """
        query_database:
          resources: {database: [shop]}
          allow:
            - sql: {tables: [Staff]}
            - sql: {tables: [orders], columns_except: [Orders.Note], max_rows: 7}
            - sql: {tables: [orders], max_rows: 99}
        """
    )
    assert shop(judge, role, "SELECT id FROM orders").sql == SqlTerms(
        tables=frozenset({"orders"}), columns_except=frozenset({"orders.note"}), max_rows=7
    )
    assert shop(judge, role, "SELECT note FROM orders").sql == SqlTerms(tables=frozenset({"orders"}), max_rows=99)
    assert shop(judge, role, "SELECT id FROM staff").sql == SqlTerms(tables=frozenset({"staff"}))


def test_without_a_facet_the_decision_carries_no_bounds(load: Load, judge: Judge) -> None:
    role = load("query_database: {resources: {database: [shop]}, allow: [{}]}")
    assert shop(judge, role, "SELECT id FROM orders").sql is None


def test_an_asked_statement_carries_its_bounds_too(load: Load, judge: Judge) -> None:
    role = load("query_database: {resources: {database: [shop]}, ask: [{sql: {tables: [staff], max_rows: 3}}]}")
    asked = shop(judge, role, "SELECT id FROM staff")
    assert (asked.effect, asked.sql) == ("ask", SqlTerms(tables=frozenset({"staff"}), max_rows=3))


# --- 3. any error is a deny ----------------------------------------------------------------------------------------


def test_a_rule_without_the_facts_that_it_needs_denies(
    load: Load, declarations: Mapping[str, ToolDeclaration]
) -> None:
    arguments = {"database": "shop", "sql": "SELECT 1"}
    other_kind = SqlFacts(kind="text")  # type: ignore[arg-type]
    for missing in ({}, {"sql": Facts(kind="text")}, {"sql": Facts(kind="sql")}, {"sql": other_kind}):
        refused = decide(load(SHOP), declarations["query_database"], arguments, missing)
        assert (refused.effect, refused.code) == ("deny", "policy.error")


class _Panic(BaseException):
    """What a panic in a compiled library looks like: no Exception."""


@dataclasses.dataclass(frozen=True)
class _Broken:
    raised: BaseException

    def is_valid(self, _: Any) -> bool:
        raise self.raised


@pytest.mark.parametrize("where", ["deny", "ask"])
@pytest.mark.parametrize("raised", [ValueError("x"), RecursionError(), MemoryError(), _Panic()])
def test_a_failing_rule_is_never_skipped_in_favour_of_a_broad_allow(
    load: Load, judge: Judge, where: str, raised: BaseException
) -> None:
    role = load("search_web: {allow: [{}]}")
    broken = FragmentRule(argument="term", validator=_Broken(raised))  # type: ignore[arg-type]
    entry = Entry(effect=where, rule="r", arguments=(broken,))  # type: ignore[arg-type]
    grant = dataclasses.replace(role.grants["search_web"], **{where: (entry,)})
    role = dataclasses.replace(role, grants=MappingProxyType({"search_web": grant}))
    assert judge(role, "search_web", term="x").code == "policy.error"


def test_an_interrupt_is_not_swallowed(load: Load, judge: Judge) -> None:
    role = load("search_web: {allow: [{}]}")
    broken = FragmentRule(argument="term", validator=_Broken(KeyboardInterrupt()))  # type: ignore[arg-type]
    grant = dataclasses.replace(
        role.grants["search_web"], deny=Entries([Entry(effect="deny", rule="r", arguments=(broken,))])
    )
    role = dataclasses.replace(role, grants=MappingProxyType({"search_web": grant}))
    with pytest.raises(KeyboardInterrupt):
        judge(role, "search_web", term="x")


def test_a_tool_declared_otherwise_than_at_load_is_denied(
    load: Load, declarations: Mapping[str, ToolDeclaration]
) -> None:
    role, declared = load("search_web: {allow: [{}]}"), declarations["search_web"]
    changed = dataclasses.replace(declared, kinds={"term": "url"})
    assert decide(role, declared, {"term": "x"}, {}).effect == "allow"
    assert decide(role, changed, {"term": "x"}, {}).code == "policy.error"


# --- what the model is told ----------------------------------------------------------------------------------------


def test_the_model_is_told_neither_the_rule_nor_its_values(load: Load, judge: Judge) -> None:
    role = load(
        """
        search_web:
          allow: [{term: {pattern: "^launch-code-[0-9]+$"}}]
          deny: [{term: {const: launch-code-7}}]
        """
    )
    for term in ("other", "launch-code-7"):
        refused = judge(role, "search_web", term=term)
        told = f"{refused.message} {refused.hint}"
        assert "launch" not in told
        assert "team.yaml" not in told
        assert refused.rule is not None
        assert refused.rule.startswith("team.yaml:")


def test_a_final_refusal_says_so(load: Load, judge: Judge) -> None:
    role = load("search_web: {allow: [{}], deny: [{term: {const: x}}]}")
    hint = judge(role, "search_web", term="x").hint
    assert hint is not None
    assert "do not repeat" in hint


# --- for all input -------------------------------------------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NARROW = """
version: 1
role: team
tools:
  search_web:
    allow: [{term: {enum: [x, y]}, tags: {maxItems: 2}}]
    ask: [{count: {type: integer, minimum: 1}}]
    deny: [{term: {const: y}}]
"""


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(st.dictionaries(st.sampled_from(["term", "tags", "count", "filter", "other"]), JSON_VALUES))
def test_any_arguments_get_a_decision_and_only_matching_ones_pass(
    declarations: Mapping[str, ToolDeclaration], arguments: dict[str, Any]
) -> None:
    role = load_role_text(NARROW, "n.yaml", declarations)
    frozen = freeze(arguments)
    assert isinstance(frozen, Mapping)
    decision = decide(role, declarations["search_web"], frozen, {})
    assert decision == decide(role, declarations["search_web"], frozen, {})
    assert decision.code != "policy.error"
    if decision.effect == "allow":
        assert arguments["term"] == "x"
        assert "tags" in arguments


def test_a_change_is_granted_by_its_kind_its_table_and_the_columns_that_it_writes_or_tells(load: Load) -> None:
    role = load(
        "change_database: {resources: {database: [shop]}, allow: [{sql: {tables: [orders], columns_except: ["
        "orders.note], operations: [insert, update]}}]}"
    )
    declaration = role.grants["change_database"].declaration

    def effect(text: str) -> str:
        facts = read_facts("sql", text, dialect="postgres", purpose="change")
        assert facts is not None
        return decide(role, declaration, {"database": "shop", "sql": text}, {"sql": facts}).effect

    assert effect("UPDATE orders SET total = 1 WHERE id = 1") == "allow"
    assert effect("INSERT INTO public.orders (total) VALUES (1)") == "allow"
    for text in (
        "DELETE FROM orders WHERE id = 1",
        "UPDATE staff SET total = 1 WHERE id = 1",
        "UPDATE orders SET note = 1 WHERE id = 1",
        "UPDATE orders SET total = 1 WHERE note = 1",
        "UPDATE orders SET total = 1 WHERE id = 1 RETURNING *",
        "INSERT INTO orders VALUES (1)",
        "INSERT INTO orders (total) SELECT salary FROM staff",
    ):
        assert effect(text) == "deny", text


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_change_sets_only_the_columns_that_may_be_written_and_looks_at_any(load: Load, dialect: Dialect) -> None:
    role = load(
        "change_database: {resources: {database: [shop]}, allow: [{sql: {writes: [orders.status, orders.note]}}]}"
    )
    declaration = role.grants["change_database"].declaration

    def effect(text: str) -> str:
        facts = read_facts("sql", text, dialect=dialect, purpose="change")
        assert facts is not None
        return decide(role, declaration, {"database": "shop", "sql": text}, {"sql": facts}).effect

    for text in (
        "UPDATE orders SET status = 'paid' WHERE id = 1",
        "UPDATE orders AS o SET STATUS = o.total, note = 'x' WHERE o.id = 1 RETURNING o.total",
        "UPDATE orders SET (status, note) = ('a', 'b') WHERE total > 3",
        "INSERT INTO orders (status, note) VALUES ('a', 'b')",
    ):
        assert effect(text) == "allow", text
    for text in (
        "UPDATE orders SET id = 7 WHERE status = 'paid'",
        "UPDATE orders SET status = 'paid', total = 0 WHERE id = 1",
        "UPDATE orders SET (status, total) = ('a', 0) WHERE id = 1",
        "UPDATE staff SET status = 'paid' WHERE id = 1",
        "UPDATE staff AS orders SET status = 'paid' WHERE id = 1",
        "INSERT INTO orders (id, status) VALUES (1, 'a')",
        "INSERT INTO orders VALUES (1, 'a', 'b')",
        "INSERT INTO orders DEFAULT VALUES",
        "INSERT INTO orders (status) VALUES ('a') ON CONFLICT (id) DO UPDATE SET total = 0",
        "DELETE FROM orders WHERE id = 1",
    ):
        assert effect(text) == "deny", text


@pytest.mark.parametrize(
    "text",
    [
        'UPDATE orders SET "Status" = 1 WHERE id = 1',
        'UPDATE "Orders" SET status = 1 WHERE id = 1',
        "UPDATE orders SET total.status = 1 WHERE id = 1",
        "UPDATE orders SET total[1] = 1 WHERE id = 1",
        "UPDATE sales.orders SET status = 1 WHERE id = 1",
    ],
)
def test_another_column_that_is_spelled_alike_may_not_be_written(load: Load, text: str) -> None:
    role = load("change_database: {resources: {database: [shop]}, allow: [{sql: {writes: [orders.status]}}]}")
    facts = read_facts("sql", text, dialect="postgres", purpose="change")
    assert facts is not None
    declaration = role.grants["change_database"].declaration
    assert decide(role, declaration, {"database": "shop", "sql": text}, {"sql": facts}).effect == "deny"


def test_columns_to_write_that_can_never_be_written_do_not_load_and_ceilings_narrow_them(load: Load) -> None:
    grant = "change_database: {resources: {database: [shop]}, allow: [{sql: {%s}}]}"
    for facet, told in (
        ("writes: [a.b], columns_except: [a.b]", "columns_except"),
        ("writes: [a.b], tables: [c]", "none of `tables`"),
        ("writes: [a.b], operations: [delete]", "DELETE"),
    ):
        with pytest.raises(PolicyError, match=told):
            load(grant % facet)
    with pytest.raises(PolicyError, match="only reads"):
        load("query_database: {resources: {database: [shop]}, allow: [{sql: {writes: [a.b]}}]}")
    made = narrowest([SqlTerms(writes=frozenset({"a.b", "a.c"})), SqlTerms(writes=frozenset({"a.c"})), SqlTerms()])
    assert made.writes == {"a.c"}


def test_operations_stand_in_bounds_of_changes_alone_and_ceilings_narrow_them(load: Load) -> None:
    with pytest.raises(PolicyError, match="only reads"):
        load("query_database: {resources: {database: [shop]}, allow: [{sql: {operations: [insert]}}]}")
    with pytest.raises(PolicyError, match="truncate"):
        load("change_database: {resources: {database: [shop]}, allow: [{sql: {operations: [truncate]}}]}")
    made = narrowest([SqlTerms(operations=frozenset({"insert", "update"})), SqlTerms(operations=frozenset({"update"}))])
    assert made.operations == {"update"}
    assert narrowest([SqlTerms(), SqlTerms(operations=frozenset({"update"}))]).operations == {"update"}
