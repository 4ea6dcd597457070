"""Loading: every field of a role file reaches the role; what could silently not apply is an error with a line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from toolcage.errors import PolicyError
from toolcage.policy.load import load_role, load_role_text, load_roles
from toolcage.policy.model import Role
from toolcage.types import OutputTerms, SandboxTerms, ToolDeclaration

Load = Callable[..., Role]
Declarations = Mapping[str, ToolDeclaration]
MIB = 1024 * 1024

FULL = """
version: 1
role: team
description: Does things.
tools:
  query_database:
    resources: {database: [shop, archive]}
    allow:
      - sql: {tables: [orders]}
    ask:
      - sql: {tables: [staff]}
    deny:
      - limit: {minimum: 500}
    sandbox: {image: lean, memory: 512MiB, cpus: 0.5, wall: 1500ms, pids: 20, tmp: 8MiB, isolation: container,
      runtime: runsc}
    output: {max_bytes: 4KiB, html: escape, redact: [], on_injection: flag}
deny:
  - tool: query_database
    sql: {minLength: 5000}
tests:
  - {call: query_database, args: {database: shop, sql: SELECT 1}, expect: ok}
  - {call: nothing, expect: denied, code: tool.unknown}
"""


def refusal(load: Load, text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        load(text)
    return str(caught.value)


# --- every field arrives -------------------------------------------------------------------------------------------


def test_every_field_of_a_file_reaches_the_role(load: Load) -> None:
    role = load(FULL)
    grant = role.grants["query_database"]
    assert (role.name, role.description, role.source) == ("team", "Does things.", "team.yaml")
    assert grant.resources == {"database": {"shop", "archive"}}
    assert [len(entries) for entries in (grant.allow, grant.ask, grant.deny)] == [1, 1, 1]
    assert [entry.rule for entry in role.deny["query_database"]] == ["team.yaml:17 deny[0]"]
    assert role.resource_names() == {("database", "shop"), ("database", "archive")}
    assert grant.line == 5


def test_every_sandbox_field_reaches_the_terms(load: Load) -> None:
    assert load(FULL).grants["query_database"].sandbox == SandboxTerms(
        image="lean", memory_bytes=512 * MIB, cpus=0.5, wall_s=1.5, pids=20, tmp_bytes=8 * MIB, runtime="runsc",
        isolation="container",
    )  # fmt: skip


def test_what_a_grant_leaves_out_is_as_the_tool_declares(load: Load) -> None:
    role = load("calculate_expression: {allow: [{}]}\nsearch_web: {allow: [{}]}")
    assert role.grants["calculate_expression"].sandbox == SandboxTerms(isolation="namespace", wall_s=2.0)
    assert role.grants["search_web"].sandbox == SandboxTerms(image="web")
    assert role.grants["search_web"].output == OutputTerms()


def test_every_output_field_reaches_the_terms(load: Load) -> None:
    assert load(FULL).grants["query_database"].output == OutputTerms(max_bytes=4096, html="escape", redact=())


def test_every_case_field_reaches_the_cases(load: Load) -> None:
    first, second = load(FULL).cases
    assert (first.call, dict(first.args), first.expect, first.code, first.line) == (
        "query_database", {"database": "shop", "sql": "SELECT 1"}, "ok", None, 20,
    )  # fmt: skip
    assert (second.call, dict(second.args), second.expect, second.code) == ("nothing", {}, "denied", "tool.unknown")


def test_the_temporary_space_shrinks_with_the_memory_when_unstated(load: Load) -> None:
    role = load("search_web: {allow: [{}], sandbox: {memory: 64MiB}}")
    assert role.grants["search_web"].sandbox.tmp_bytes == 16 * MIB


def test_a_role_may_grant_nothing_but_must_say_so(load: Load) -> None:
    assert load("version: 1\nrole: closed\ntools: {}\n").grants == {}
    assert "write `tools: {}`" in refusal(load, "version: 1\nrole: closed\n")


# --- the digest ----------------------------------------------------------------------------------------------------


def test_the_digest_changes_with_the_content_and_not_with_the_writing(load: Load) -> None:
    plain = load("search_web: {allow: [{term: {const: x}}]}")
    restyled = load("search_web:  # a comment\n  allow:\n    - {term: {const: 'x'}}\n", name="other.yaml")
    changed = load("search_web: {allow: [{term: {const: y}}]}")
    assert plain.digest == restyled.digest != changed.digest
    assert len(plain.digest) == 64


# --- faults of shape -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("version: 2\nrole: r\ntools: {}", 1, "out of range; write 1"),
        ("version: true\nrole: r\ntools: {}", 1, "not a whole number"),
        ("version: '1'\nrole: r\ntools: {}", 1, "not a whole number"),
        ("version: 1\ntools: {}", 1, "role: missing"),
        ("version: 1\nrole: Team A\ntools: {}", 2, "`Team A` is not a name: `a-z`, digits"),
        ("version: 1\nrole: r\ntools: {}\ndenny: []", 4, "did you mean `deny`?"),
        ("version: 1\nrole: r\ntools: {}\ndescription:", 4, "write text"),
        ("version: 1\nrole: r\ntools:", 3, "write a mapping"),
        ("version: 1\nrole: r\ntools: {}\ntests: [{call: x, expect: okay}]", 4, "`okay` is not known here"),
        ("version: 1\nrole: r\ntools: {}\ntests: [{call: x, expects: ok}]", 4, "did you mean `expect`?"),
        ("version: 1\nrole: r\ntools: {}\ntests: [{call: x, expect: ok, code: }]", 4, "write text"),
        ("version: 1\nrole: r\ntools: {}\ndeny: [{tol: search_web}]", 4, "deny[0].tool: missing"),
        ("version: 1\nrole: r\ntools: {}\ndeny: [{tool: search_web, trem: {}}]", 4, "did you mean `term`?"),
        ("version", 1, "write a mapping"),
    ],
)
def test_a_fault_of_shape_names_its_line_and_what_to_write(load: Load, text: str, line: int, said: str) -> None:
    message = refusal(load, text)
    assert message.startswith(f"team.yaml:{line}: ")
    assert said in message


@pytest.mark.parametrize(
    ("grant", "said"),
    [
        ("{alow: [{}]}", "did you mean `allow`?"),
        ("{}", "neither an allow nor an ask entry"),
        ("{deny: [{}]}", "neither an allow nor an ask entry"),
        ("{allow: []}", "an empty list grants nothing"),
        ("{allow: }", "write a list"),
        ("{allow: {}}", "write a list"),
        ("{allow: [{}], deny: }", "write a list"),
        ("{allow: [term]}", "write a mapping"),
        ("{allow: [{trem: {}}]}", "did you mean `term`?"),
        ("{allow: [{term: x}]}", "write a mapping of JSON Schema keywords"),
        ("{allow: [{term: }]}", "write a mapping of JSON Schema keywords"),
        ("{allow: [{}], resources: {database: [shop]}}", "does not name a resource of search_web"),
        ("{allow: [{}], sandbox: {memory: }}", "is not a size"),
        ("{allow: [{}], sandbox: {memory: 256}}", "is not a size"),
        ("{allow: [{}], sandbox: {memory: 256MB}}", "is not a size"),
        ("{allow: [{}], sandbox: {memory: 31MiB}}", "from 32MiB to 16GiB"),
        ("{allow: [{}], sandbox: {memory: 17GiB}}", "from 32MiB to 16GiB"),
        ("{allow: [{}], sandbox: {wall: 5}}", "is not a time"),
        ("{allow: [{}], sandbox: {wall: 601s}}", "from 0.1s to 600s"),
        ("{allow: [{}], sandbox: {wall: 99ms}}", "from 0.1s to 600s"),
        ("{allow: [{}], sandbox: {pids: 7}}", "from 8 to 1024"),
        ("{allow: [{}], sandbox: {pids: 1025}}", "from 8 to 1024"),
        ("{allow: [{}], sandbox: {pids: 8.0}}", "whole number"),
        ("{allow: [{}], sandbox: {cpus: 0.05}}", "from 0.1 to 16"),
        ("{allow: [{}], sandbox: {cpus: 17}}", "from 0.1 to 16"),
        ("{allow: [{}], sandbox: {cpus: true}}", "not a number"),
        ("{allow: [{}], sandbox: {tmp: 1023KiB}}", "from 1MiB to 4GiB"),
        ("{allow: [{}], sandbox: {memory: 64MiB, tmp: 33MiB}}", "write at most 32MiB"),
        ("{allow: [{}], sandbox: {image: ../evil}}", "write text that matches"),
        ("{allow: [{}], sandbox: {runtime: --privileged}}", "write text that matches"),
        ("{allow: [{}], sandbox: {isolation: session}}", "`session` is weaker than the `container`"),
        ("{allow: [{}], sandbox: {isolation: none}}", "write container or namespace"),
        ("{allow: [{}], sandbox: {isolation: namespace}}", "weaker than the `container`"),
        ("{allow: [{}], sandbox: {network: host}}", "`network` is not known here"),
        ("{allow: [{}], output: {max_bytes: 255B}}", "from 256B to 16MiB"),
        ("{allow: [{}], output: {max_bytes: 17MiB}}", "from 256B to 16MiB"),
        ("{allow: [{}], output: {html: raw}}", "write inert or escape or clean or keep"),
        ("{allow: [{}], output: {redact: [secrets, phones]}}", "`phones` is not known here"),
    ],
)
def test_a_faulty_grant_does_not_load_and_says_what_to_write(load: Load, grant: str, said: str) -> None:
    message = refusal(load, f"search_web: {grant}")
    assert message.startswith("team.yaml:4: tools.search_web")
    assert said in message


def test_the_ranges_include_their_ends(load: Load) -> None:
    role = load(
        "search_web: {allow: [{}], sandbox: {memory: 32MiB, wall: 600s, pids: 8, cpus: 0.1, tmp: 1MiB},"
        " output: {max_bytes: 256B}}\n"
        "execute_python: {allow: [{}], sandbox: {memory: 16GiB, wall: 100ms, pids: 1024, cpus: 16, tmp: 4GiB},"
        " output: {max_bytes: 16MiB}}"
    )
    assert role.grants["search_web"].sandbox.wall_s == 600
    assert role.grants["execute_python"].sandbox.memory_bytes == 16 * 1024 * MIB


def test_a_grant_may_strengthen_the_isolation(load: Load) -> None:
    role = load("calculate_expression: {allow: [{}], sandbox: {isolation: container}}")
    assert role.grants["calculate_expression"].sandbox.isolation == "container"


def test_what_a_file_escapes_into_a_message_is_shown_and_not_obeyed(load: Load) -> None:
    message = refusal(load, '"\\e]0;x\\a\\u202e\\nteam.yaml:1: fine": {allow: [{}]}')
    assert len(message.splitlines()) == 1
    assert "\\u001b]0;x\\u0007\\u202e\\u000a" in message


def test_an_unknown_tool_is_an_error_that_suggests_the_nearest(load: Load) -> None:
    message = refusal(load, "query_databse: {allow: [{}]}")
    assert "did you mean `query_database`?" in message


def test_all_faults_are_reported_at_once_in_the_order_of_lines(load: Load) -> None:
    message = refusal(
        load,
        """
        search_web:
          allow: [{trem: {}}]
          sandbox: {isolation: namespace}
        nothing_known: {allow: [{}]}
        """,
    )
    assert [line.split(": ")[0] for line in message.splitlines()] == ["team.yaml:5", "team.yaml:6", "team.yaml:7"]


# --- rules that could silently not apply ---------------------------------------------------------------------------


def test_a_required_resource_without_a_granted_name_is_an_error(load: Load) -> None:
    assert "no database is granted" in refusal(load, "query_database: {allow: [{}]}")
    assert "an empty list grants nothing" in refusal(load, "query_database: {allow: [{}], resources: {database: []}}")


def test_an_entry_for_a_resource_that_the_grant_does_not_name_is_an_error(load: Load) -> None:
    text = "describe_database: {resources: {database: [shop]}, allow: [{database: {const: %s}}]}"
    assert load(text % "shop").grants
    assert "no valid value of this argument can match" in refusal(load, text % "payroll")


def test_an_allow_that_leaves_out_a_required_sink_is_an_error(load: Load) -> None:
    assert "`to` says where something goes" in refusal(load, "send_email: {allow: [{}]}")
    assert load("send_email: {allow: [{to: {}}]}").grants
    assert load("send_email: {ask: [{}]}").grants


def test_bounds_of_a_statement_under_deny_are_an_error(load: Load) -> None:
    text = "query_database: {resources: {database: [shop]}, allow: [{}], deny: [{sql: {tables: [staff]}}]}"
    assert "under deny would match only statements within them" in refusal(load, text)


@pytest.mark.parametrize(
    ("asking", "allowing"),
    [
        ("{tables: [staff]}", "{tables: [staff, orders]}"),
        ("{tables: [staff, wages]}", "{tables: [staff, orders]}"),
        ("{tables: [staff]}", "{max_rows: 10}"),
        ("{tables: [staff]}", "{}"),
        ("{columns_except: [staff.wage]}", "{tables: [staff]}"),
    ],
)
def test_an_ask_that_one_more_table_would_escape_is_an_error(load: Load, asking: str, allowing: str) -> None:
    rules = f"allow: [{{sql: {allowing}}}], ask: [{{sql: {asking}}}]"
    text = f"query_database: {{resources: {{database: [shop]}}, {rules}}}"
    assert "nobody is asked" in refusal(load, text)


@pytest.mark.parametrize(
    ("asking", "allowing"),
    [
        ("sql: {tables: [staff]}", "sql: {tables: [orders]}"),
        ("sql: {tables: [staff, orders]}", "sql: {tables: [orders]}"),
        ("sql: {max_rows: 5}", "sql: {tables: [orders]}"),
        ("sql: {tables: [staff]}, limit: {maximum: 5}", "sql: {tables: [staff, orders]}, limit: {minimum: 6}"),
    ],
)
def test_an_ask_that_cannot_be_escaped_loads(load: Load, asking: str, allowing: str) -> None:
    assert load(f"query_database: {{resources: {{database: [shop]}}, allow: [{{{allowing}}}], ask: [{{{asking}}}]}}")


@pytest.mark.parametrize(
    ("facet", "said"),
    [
        ("{tabels: [orders]}", "did you mean `tables`?"),
        ("{tables: [orders], const: x}", "stands beside SQL bounds"),
        ("{tables: []}", "an empty list grants nothing"),
        ("{tables: }", "write a list"),
        ("{columns_except: }", "write a list"),
        ("{max_rows: }", "not a whole number"),
        ("{max_rows: 0}", "from 1 to"),
        ("{max_rows: 100001}", "from 1 to"),
        ("{tables: ['*']}", "write text that matches"),
        ("{tables: [shop.public.orders]}", "write text that matches"),
        ("{tables: orders}", "write a list"),
        ("{columns_except: [email]}", "`email` is not `table.column`; write text that matches"),
        ("{columns_except: ['customers.*']}", "write text that matches"),
        ("{columns_except: [shop.public.customers.email]}", "write text that matches"),
    ],
)
def test_a_faulty_sql_facet_does_not_load(load: Load, facet: str, said: str) -> None:
    message = refusal(load, f"query_database: {{resources: {{database: [shop]}}, allow: [{{sql: {facet}}}]}}")
    assert message.startswith("team.yaml:4: tools.query_database.allow[0].sql")
    assert said in message


@pytest.mark.parametrize("schema", ["", "main.", "public.", "Public."])
def test_a_schema_that_is_meant_anyway_makes_no_difference_and_another_does(load: Load, schema: str) -> None:
    facet = f"{{tables: [{schema}Orders, sales.orders], columns_except: [{schema}orders.note, sales.orders.note]}}"
    role = load(f"query_database: {{resources: {{database: [shop]}}, allow: [{{sql: {facet}}}]}}")
    terms = role.grants["query_database"].allow[0].sql_terms()
    assert terms is not None
    assert terms.tables == {"orders", "sales.orders"}
    assert terms.columns_except == {"orders.note", "sales.orders.note"}


def test_a_facet_on_an_argument_of_another_kind_is_an_error(load: Load) -> None:
    assert "not JSON Schema 2020-12" in refusal(load, "search_web: {allow: [{term: {tables: [orders]}}]}")


# --- files and folders ---------------------------------------------------------------------------------------------

SMALL = "version: 1\nrole: {name}\ntools: {{}}\n"


def test_a_folder_loads_every_policy_file_in_it(tmp_path: Path, declarations: Declarations) -> None:
    (tmp_path / "a.yaml").write_text(SMALL.format(name="a"))
    (tmp_path / "b.yml").write_text(SMALL.format(name="b"))
    (tmp_path / "README.md").write_text("not a policy")
    assert list(load_roles([tmp_path], declarations)) == ["a", "b"]


def test_one_bad_file_in_a_folder_fails_all(tmp_path: Path, declarations: Declarations) -> None:
    (tmp_path / "a.yaml").write_text(SMALL.format(name="a"))
    (tmp_path / "b.yaml").write_text("version: 1\nrole: b\ntools: {}\ndenny: []\n")
    with pytest.raises(PolicyError, match=r"b\.yaml:4: "):
        load_roles([tmp_path], declarations)


def test_two_files_with_one_role_name_are_an_error(tmp_path: Path, declarations: Declarations) -> None:
    (tmp_path / "a.yaml").write_text(SMALL.format(name="same"))
    (tmp_path / "b.yaml").write_text(SMALL.format(name="same"))
    with pytest.raises(PolicyError, match="the role `same` is also in"):
        load_roles([tmp_path], declarations)


def test_the_same_file_named_twice_is_loaded_once(tmp_path: Path, declarations: Declarations) -> None:
    (tmp_path / "a.yaml").write_text(SMALL.format(name="a"))
    assert list(load_roles([tmp_path, tmp_path / "a.yaml"], declarations)) == ["a"]


def test_nothing_to_load_is_an_error_and_not_an_empty_set_of_roles(tmp_path: Path, declarations: Declarations) -> None:
    for paths in ([], [tmp_path], [tmp_path / "absent.yaml"]):
        with pytest.raises(PolicyError):
            load_roles(paths, declarations)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path, declarations: Declarations) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(PolicyError, match="not a regular file"):
        load_role(tmp_path / "pipe.yaml", declarations)


def test_messages_name_the_path_as_given_and_rules_the_file_alone(tmp_path: Path, declarations: Declarations) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("version: 1\nrole: a\ntools:\n  search_web: {allow: [{}]}\n")
    assert load_role(path, declarations).grants["search_web"].allow[0].rule == "a.yaml:4 tools.search_web.allow[0]"
    path.write_text("version: 3\nrole: a\ntools: {}\n")
    with pytest.raises(PolicyError) as caught:
        load_role(path, declarations)
    assert str(caught.value).startswith(f"{path}:1: version: ")


def test_text_with_half_a_character_is_refused(declarations: Declarations) -> None:
    with pytest.raises(PolicyError, match="not UTF-8"):
        load_role_text("version: 1 # \ud800", "x.yaml", declarations)
