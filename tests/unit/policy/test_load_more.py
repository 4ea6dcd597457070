"""More of what must not load, or not silently: patterns, flows, kinds, effects, weaker cages, unenforced keys."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolcage.errors import PolicyError
from toolcage.policy.load import matches_pattern
from toolcage.policy.model import Role
from toolcage.types import EFFECTS

Load = Callable[..., Role]
HEAD = "version: 1\nrole: team\n"


@pytest.mark.parametrize(
    ("tool", "pattern", "fits"),
    [
        ("mcp:files/delete_all", "mcp:*/delete_*", True),
        ("mcp:files/read", "mcp:*/delete_*", False),
        ("mcp:files/delete_", "mcp:*/delete_*", True),
        ("xmcp:files/delete_a", "mcp:*/delete_*", False),
        ("MCP:files/delete_a", "mcp:*/delete_*", False),
        ("anything", "*", True),
        ("aXbXc", "a*b*c", True),
        ("ab", "a*b*b", False),
        ("aba", "ab*ba", False),
        ("search.web", "search?web", False),
        ("search_web", "search_[a-z]*", False),
    ],
)
def test_a_pattern_is_exact_but_for_its_stars(tool: str, pattern: str, fits: bool) -> None:
    assert matches_pattern(tool, pattern) is fits


def test_a_pattern_with_many_stars_is_matched_in_one_pass() -> None:
    assert not matches_pattern("a" * 5000, "*a" * 500 + "*b")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tools: {'search_*': {allow: [{}]}}", "patterns stand under `deny` only"),
        ("tools: {}\ndeny: [{tool: 'search_*', term: {const: x}}]", "arguments beside a tool pattern"),
        ("tools: {send_email: {allow: [{to: {}}]}}\nflows: [{deny: spends, after: [sends]}]", "never applies"),
        ("tools: {send_email: {allow: [{to: {}}]}}\nflows: [{deny: sends, after: [reads_private]}]", "never applies"),
        ("tools: {send_email: {allow: [{to: {}}]}}\nflows: [{deny: sends, ask: sends, after: [sends]}]",
         "write either"),
        ("tools: {send_email: {allow: [{to: {}}]}}\nflows: [{after: [sends]}]", "write either"),
        ("tools: {send_email: {allow: [{to: {}}]}}\nflows: [{deny: sends, after: []}]", "an empty list"),
        ("tools: {send_email: {allow: [{to: {}}]}}\nflows: [{deny: send, after: [sends]}]", "is not known here"),
        ("tools: {send_email: {allow: [{to: {}}]}, strange_tool: {allow: [{}]}}\nflows: [{deny: sends, "
         "after: [sends]}]",
         "its own word is not trusted"),
    ],
)  # fmt: skip
def test_a_rule_that_could_not_apply_does_not_load(load: Load, text: str, told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        load(HEAD + text)


def test_a_strangers_tool_takes_part_in_flows_once_its_effects_are_stated(load: Load) -> None:
    text = "tools: {send_email: {allow: [{to: {}}]}, strange_tool: {allow: [{}], effects: []}}\n"
    assert load(HEAD + text + "flows: [{deny: sends, after: [sends]}]").flows


@pytest.mark.parametrize(
    ("stated", "counted"),
    [(", effects: []", set()), (", effects: [writes]", {"writes"}), ("", set(EFFECTS)),
     (', effects: [], egress: ["api.example.com:443"]', {"sends", "reads_untrusted"})],
)  # fmt: skip
def test_a_strangers_tool_has_every_effect_until_the_operator_states_which(
    load: Load, stated: str, counted: set[str]
) -> None:
    role = load(HEAD + "tools: {strange_tool: {allow: [{}]" + stated + "}}")
    assert role.grants["strange_tool"].declaration.effects == counted


def test_a_trusted_tool_keeps_its_effects_whatever_the_grant_states(load: Load) -> None:
    role = load(HEAD + "tools: {send_email: {allow: [{to: {}}], effects: []}}")
    assert role.grants["send_email"].declaration.effects == {"sends"}


def test_a_resource_for_a_strangers_tool_does_not_load_and_the_error_says_how_a_tool_gets_one(load: Load) -> None:
    with pytest.raises(PolicyError, match=r"given by its path reaches none; .* pass it itself"):
        load(HEAD + "tools: {strange_tool: {allow: [{}], resources: {endpoint: [wiki]}}}")
    with pytest.raises(PolicyError, match=r"of search_web; arguments that do: none$"):
        load(HEAD + "tools: {search_web: {allow: [{}], resources: {endpoint: [wiki]}}}")


@pytest.mark.parametrize(
    ("grant", "told"),
    [
        ("search_web: {allow: [{}], kinds: {trem: url}}", "has no argument `trem`"),
        ("search_web: {allow: [{}], kinds: {term: python}}", "is for the tool itself to declare"),
        ("send_email: {allow: [{to: {}}], kinds: {to: text}}", "a grant only tightens"),
        ("send_email: {allow: [{to: {}}], kinds: {to: address}}", "declares it as address already"),
        ("search_web: {allow: [{}], effects: [reads]}", "is not known here"),
        ("search_web: {allow: [{}], sandbox: {isolation: namespace}}", "say under `accept_weaker` why"),
        ("search_web: {allow: [{}], accept_weaker: because I say so}", "nothing in this grant is weaker"),
        ("search_web: {allow: [{}], sandbox: {isolation: namespace}, accept_weaker: ok}", "at least 10"),
        ("search_web: {allow: [{}], placement: host}", "which this version never does"),
        ("search_web: {allow: [{}], egress: [api.example.com]}", "names no port"),
        ("search_web: {allow: [{}], egress: ['*:443']}", "is not a host"),
        ("search_web: {allow: [{}], egress: ['*.com:443']}", "is not a host|hosts that anybody can have"),
        ("search_web: {allow: [{}], egress: ['*.github.io:443']}", "hosts that anybody can have"),
        ("search_web: {allow: [{}], egress: ['93.184.216.34:443']}", "is not a host"),
        ("search_web: {allow: [{}], egress: ['2130706433:443']}", "is not a host"),
        ("search_web: {allow: [{}], egress: ['[::1]:443']}", "is not a host"),
        ("search_web: {allow: [{}], egress: ['localhost:443']}", "is not a host"),
        ("search_web: {allow: [{}], egress: ['db.internal:443']}", "hosts of the local network"),
        ("search_web: {allow: [{}], egress: ['https://api.example.com:443']}", "is not a host"),
        ("search_web: {allow: [{}], egress: ['api.example.com:0443']}", "is not a port"),
        ("search_web: {allow: [{}], egress: ['api.example.com:65536']}", "is not a port"),
        ("search_web: {allow: [{}], egress: ['api.example.com:443', 'api.example.com:443']}", "covered by"),
        ("search_web: {allow: [{}], egress: ['*.example.com:443', 'api.example.com:443']}", "covered by"),
        ("search_web: {allow: [{}], egress: []}", "an empty list grants nothing"),
        ("search_web: {allow: [{}], egress: [443]}", "write a host and its port"),
        ("book_flight: {allow: [{origin: {const: BER}}]}", "is a word of the policy"),
        ("search_web: {allow: [{term: {}, arguments: {term: {}}}]}", "is named twice"),
        ("search_web: {allow: [{arguments: [term]}]}", "write a mapping of argument names"),
        ("search_web: {allow: [{facts: {}}]}", "write a mapping of fact names"),
        ("search_web: {allow: [{facts: {tenant: {pattern: '^a$'}}}]}", "says nothing about"),
        ("search_web: {allow: [{term: {fact: 3}}]}", "write the name of a fact"),
    ],
)
def test_a_grant_that_would_not_do_what_it_says_does_not_load(load: Load, grant: str, told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        load(grant)


def test_a_tightened_kind_makes_an_argument_a_sink(load: Load, judge: Callable[..., object]) -> None:
    with pytest.raises(PolicyError, match="says where something goes and is required"):
        load("search_web: {allow: [{}], kinds: {term: url}, effects: [sends]}")


def test_the_first_file_of_the_design_loads_but_for_what_is_not_enforced(load: Load) -> None:
    role = load(
        """
        version: 1
        role: analyst
        tools:
          query_database:
            resources: {database: [shop]}
            allow:
              - sql: {tables: [orders, products], columns_except: [customers.email], max_rows: 500}
            sandbox: {memory: 256MiB, wall: 5s, isolation: namespace}
            output: {max_bytes: 64KiB, redact: [email, secrets]}
            limits: {rate: 60/minute, calls: 300/session}
          send_email:
            allow:
              - to: {addresses: {domains: [example.com]}}
                origin: {to: [said, "tool:lookup_contact"]}
            ask:
              - to: {addresses: {max: 5}}
            limits: {calls: 20/hour}
          lookup_contact: {allow: [{}]}
          read_page: {allow: [{url: {hosts: {names: [example.com]}}}]}
        deny:
          - tool: "mcp:*/delete_*"
        flows:
          - ask: sends
            after: [reads_untrusted, reads_private]
        """
    )
    assert len(role.limits_of("query_database")) == 2
