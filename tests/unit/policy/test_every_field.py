"""Each field of the format changes what the engine does: with it and without it, the same call ends differently.

The list of fields comes from the schema, so a field that is added without a probe here fails the first test.
"""

from __future__ import annotations

import asyncio
import socket
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from toolcage.broker.stream import Connection, Denied
from toolcage.cleaning import clean_text
from toolcage.errors import PolicyError
from toolcage.line.authorize import authorize
from toolcage.line.parse import parse
from toolcage.line.portal_memory import Memory
from toolcage.line.portals import open_portals
from toolcage.line.validate import compile_schema, validate
from toolcage.policy.cases import run_cases
from toolcage.policy.load import load_role, load_role_text
from toolcage.policy.model import Role, Situation
from toolcage.policy.schema import role_schema
from toolcage.policy_desk import judge_for
from toolcage.resources import Resources
from toolcage.types import ToolDeclaration

Declarations = Mapping[str, ToolDeclaration]
Probe = Callable[[Role, Declarations], Any]


def fields_of_the_schema() -> set[str]:
    """`Model.key` for every key of the schema, the facets' and the entry's own words included."""
    schema = role_schema()
    found = {f"Role.{key}" for key in schema["properties"]}
    for name, part in schema["$defs"].items():
        found |= {f"{name.removesuffix('File')}.{key}" for key in part.get("properties", {})}
    entry = schema["$defs"]["GrantFile"]["properties"]["allow"]["items"]
    found |= {f"Entry.{key}" for key in entry["properties"]}
    found |= set(_facet_keys(entry["additionalProperties"]["anyOf"]))
    found |= {"Origin.said", "Origin.tool", "Origin.literal", "Origin.not"}
    return found


def _facet_keys(options: list[dict[str, Any]]) -> Iterator[str]:
    for option in options:
        for key, inner in option.get("properties", {}).items():
            inside = inner.get("properties")
            yield from (f"{key}.{word}" for word in inside) if inside else [key]


# --- ways to look at a role ----------------------------------------------------------------------------------------


def ends(tool: str, situation: Situation | None = None, **arguments: Any) -> Probe:
    """How a call ends, through the real line up to the screens."""

    def probe(role: Role, declarations: Declarations) -> str:
        status, code = judge_for(role, declarations)(tool, arguments, situation or Situation())
        return f"{status} {code}"

    return probe


def term(part: str, name: str) -> Probe:
    """A term that the cage or the cleaners get for the tool of the policy."""
    return lambda role, declarations: getattr(getattr(next(iter(role.grants.values())), part), name)


def reaches(host: str, port: int) -> Probe:
    """Where the portal of the grant's cage leads when a program asks it for this host, or why nowhere."""

    def probe(role: Role, declarations: Declarations) -> str:
        declaration = role.grants["search_web"].declaration
        call = parse({"tool": "search_web", "arguments": {"term": "x"}})
        compiled = compile_schema(declaration)
        valid = validate(call, view=role.view, validator=lambda _: compiled, dialect=lambda _: "sqlite")
        (opened,) = open_portals(authorize(valid, role=role), Resources.empty(), Memory(), nowhere, own=frozenset())
        note = Connection(portal="", kind="connect")
        client = Program(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        try:
            asyncio.run(opened.way.serve(client, note))
        except Denied as denied:
            return asked.pop() if denied.code == "egress.name" else denied.code
        raise AssertionError

    asked: list[str] = []

    async def nowhere(name: str, port: int) -> list[str]:
        asked.append(name)
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    return probe


class Program:
    """A program in a cage that says one thing and reads no answer."""

    def __init__(self, said: bytes) -> None:
        self._said = said

    async def read(self, n: int) -> bytes:
        said, self._said = self._said[:n], self._said[n:]
        return said

    async def write(self, data: bytes) -> None:
        assert data

    async def end(self) -> None:
        assert not self._said

    def abort(self) -> None:
        raise AssertionError


def cleaned(text: str) -> Probe:
    return lambda role, declarations: clean_text(text, next(iter(role.grants.values())).output)[0]


@dataclass(frozen=True)
class Field:
    """`with_it` and `without` are the two policies (a `tools:` part, or a whole file); `then` what each gives."""

    with_it: str
    without: str
    probe: Probe
    then: tuple[Any, Any]


OK, DENIED = "ok ok", "denied policy.no_match"
MAIL = "send_email: {allow: [%s]}"
SEARCH = "search_web: {allow: [{}]%s}"
TO_ANN = {"to": "ann@example.com", "subject": "s"}
SAID_ANN = Situation(said=("Write to ann@example.com, please.",))
READ_AND_PRIVATE = Situation(used=frozenset({"reads_untrusted", "reads_private"}))
WHOLE = "version: 1\nrole: team\n%s"
FLOWING = "tools: {send_email: {allow: [{to: {}}]}, read_page: {allow: [{}]}, read_notes: {allow: [{}]}}\n%s"


def mail(entry: str) -> str:
    return MAIL % entry


def sandbox(key: str, value: str, name: str, default: Any, changed: Any, tool: str = "search_web") -> Field:
    return Field(
        f"{tool}: {{allow: [{{}}], sandbox: {{{key}: {value}}}}}",
        f"{tool}: {{allow: [{{}}]}}",
        term("sandbox", name),
        (changed, default),
    )


def does_not_load(text: str, without: str) -> Field:
    """A field that nothing enforces yet: it must not load at all."""
    return Field(text, without, ends("search_web", term="x"), ("does not load", OK))


def case_of(more: str, policy: str = "") -> str:
    tools = policy or "tools: {send_email: {allow: [{to: {}, origin: {to: [said, 'tool:lookup_contact']}}]}}\n"
    return f"{tools}tests:\n  - {{call: send_email, args: {{to: ann@example.com, subject: s}}, expect: ok{more}}}\n"


def passes(role: Role, declarations: Declarations) -> list[bool]:
    return [result.passed for result in run_cases(role, judge_for(role, declarations))]


FIELDS: dict[str, Field] = {
    "Role.version": Field(WHOLE % "tools: {}", "version: 2\nrole: team\ntools: {}", lambda r, d: r.name,
                          ("team", "does not load")),
    "Role.role": Field("version: 1\nrole: one\ntools: {}", WHOLE % "tools: {}", lambda r, d: r.name, ("one", "team")),
    "Role.description": Field(WHOLE % "description: For tests.\ntools: {}", WHOLE % "tools: {}",
                              lambda r, d: r.description, ("For tests.", "")),
    "Role.extends": Field(WHOLE % "extends: [base.yaml]\ntools: {search_web: {allow: [{}]}}",
                          WHOLE % "tools: {search_web: {allow: [{}]}}", ends("search_web", term="secret"),
                          ("denied policy.denied", OK)),
    "Role.tools": Field(WHOLE % "tools: {search_web: {allow: [{}]}}", WHOLE % "tools: {}",
                        ends("search_web", term="x"), (OK, "denied tool.unknown")),
    "Role.deny": Field(WHOLE % "tools: {search_web: {allow: [{}]}}\ndeny: [{tool: search_web}]",
                       WHOLE % "tools: {search_web: {allow: [{}]}}", ends("search_web", term="x"),
                       ("denied policy.denied", OK)),
    "Role.flows": Field(WHOLE % FLOWING % "flows: [{deny: sends, after: [reads_untrusted]}]\n", WHOLE % FLOWING % "",
                        ends("send_email", READ_AND_PRIVATE, **TO_ANN), ("denied flow.denied", OK)),
    "Role.tests": Field(WHOLE % case_of(""), WHOLE % "tools: {}", passes, ([False], [])),
    "Deny.tool": Field(WHOLE % "tools: {search_web: {allow: [{}]}}\ndeny: [{tool: 'search_*'}]",
                       WHOLE % "tools: {search_web: {allow: [{}]}}\ndeny: [{tool: 'mcp:*/search_*'}]",
                       ends("search_web", term="x"), ("denied policy.denied", OK)),
    "Flow.ask": Field(WHOLE % FLOWING % "flows: [{ask: sends, after: [reads_untrusted]}]\n", WHOLE % FLOWING % "",
                      ends("send_email", READ_AND_PRIVATE, **TO_ANN), ("approval_required approval.required", OK)),
    "Flow.deny": Field(WHOLE % FLOWING % "flows: [{deny: sends, after: [reads_untrusted]}]\n",
                       WHOLE % FLOWING % "flows: [{ask: sends, after: [reads_untrusted]}]\n",
                       ends("send_email", READ_AND_PRIVATE, **TO_ANN),
                       ("denied flow.denied", "approval_required approval.required")),
    "Flow.after": Field(WHOLE % FLOWING % "flows: [{deny: sends, after: [reads_untrusted, reads_private]}]\n",
                        WHOLE % FLOWING % "flows: [{deny: sends, after: [reads_untrusted]}]\n",
                        ends("send_email", Situation(used=frozenset({"reads_untrusted"})), **TO_ANN),
                        (OK, "denied flow.denied")),
    "Case.call": Field(WHOLE % case_of(", said: ann@example.com"),
                       WHOLE % case_of(", said: ann@example.com").replace("call: send_email", "call: send_mail"),
                       passes, ([True], [False])),
    "Case.args": Field(WHOLE % case_of(", said: ann@example.com"),
                       WHOLE % case_of(", said: ann@example.com").replace("to: ann@example.com, ", ""),
                       passes, ([True], [False])),
    "Case.expect": Field(WHOLE % case_of(", said: ann@example.com"),
                         WHOLE % case_of(", said: ann@example.com").replace("expect: ok", "expect: denied"),
                         passes, ([True], [False])),
    "Case.code": Field(WHOLE % case_of(", said: ann@example.com, code: other"),
                       WHOLE % case_of(", said: ann@example.com"), passes, ([False], [True])),
    "Case.said": Field(WHOLE % case_of(", said: Write to ann@example.com"), WHOLE % case_of(""), passes,
                       ([True], [False])),
    "Case.seen": Field(WHOLE % case_of(", seen: {lookup_contact: 'Ann: ann@example.com'}"), WHOLE % case_of(""),
                       passes, ([True], [False])),
    "Case.used": Field(WHOLE % case_of(", used: [reads_untrusted]", FLOWING % "flows: [{deny: sends, after: "
                                       "[reads_untrusted]}]\n"),
                       WHOLE % case_of("", FLOWING % "flows: [{deny: sends, after: [reads_untrusted]}]\n"),
                       passes, ([False], [True])),
    "Case.facts": Field(WHOLE % case_of(", facts: {tenant: acme}", "tools: {send_email: {allow: [{to: {}, facts: "
                                        "{tenant: {const: acme}}}]}}\n"),
                        WHOLE % case_of("", "tools: {send_email: {allow: [{to: {}, facts: {tenant: {const: acme}}}"
                                        "]}}\n"),
                        passes, ([True], [False])),
    "Grant.allow": Field("search_web: {allow: [{term: {const: x}}]}", "search_web: {allow: [{term: {const: y}}]}",
                         ends("search_web", term="x"), (OK, DENIED)),
    "Grant.ask": Field("search_web: {allow: [{}], ask: [{}]}", SEARCH % "", ends("search_web", term="x"),
                       ("approval_required approval.required", OK)),
    "Grant.deny": Field("search_web: {allow: [{}], deny: [{}]}", SEARCH % "", ends("search_web", term="x"),
                        ("denied policy.denied", OK)),
    "Grant.resources": Field("describe_database: {allow: [{}], resources: {database: [shop]}}",
                             "describe_database: {allow: [{}], resources: {database: [other]}}",
                             ends("describe_database", database="shop"), (OK, "denied resource.not_granted")),
    "Grant.egress": Field(SEARCH % ", egress: ['api.example.com:443']", SEARCH % ", egress: ['api.example.com:8443']",
                          reaches("api.example.com", 443), ("api.example.com", "egress.host_not_granted")),
    "Grant.sandbox": sandbox("wall", "3s", "wall_s", 10.0, 3.0),
    "Grant.output": Field(SEARCH % ", output: {max_bytes: 1KiB}", SEARCH % "", term("output", "max_bytes"),
                          (1024, 64 * 1024)),
    "Grant.limits": Field(SEARCH % ", limits: {calls: 2/session}", SEARCH % "",
                          lambda role, d: [(item.measure, item.amount) for item in role.limits_of("search_web")],
                          ([("calls", 2)], [])),
    "Grant.kinds": Field("search_web: {allow: [{term: {hosts: {names: [api.example.com]}}}], kinds: {term: url}}",
                         "search_web: {allow: [{term: {}}]}", ends("search_web", term="https://evil.example/"),
                         (DENIED, OK)),
    "Grant.effects": Field(WHOLE % "tools: {search_web: {allow: [{}], effects: [sends]}, read_page: {allow: [{}]}}\n"
                           "flows: [{deny: sends, after: [reads_untrusted]}]",
                           WHOLE % "tools: {search_web: {allow: [{}]}, send_email: {allow: [{to: {}}]}, read_page: "
                           "{allow: [{}]}}\nflows: [{deny: sends, after: [reads_untrusted]}]",
                           ends("search_web", READ_AND_PRIVATE, term="x"), ("denied flow.denied", OK)),
    "Grant.placement": does_not_load(SEARCH % ", placement: host", SEARCH % ", placement: cage"),
    "Grant.accept_weaker": Field(SEARCH % ", sandbox: {isolation: namespace}, accept_weaker: only reads public pages",
                                 SEARCH % ", sandbox: {isolation: namespace}", term("sandbox", "isolation"),
                                 ("namespace", "does not load")),
    "Sandbox.image": sandbox("image", "python", "image", "web", "python"),
    "Sandbox.memory": sandbox("memory", "64MiB", "memory_bytes", 256 * 2**20, 64 * 2**20),
    "Sandbox.cpus": sandbox("cpus", "0.5", "cpus", 1.0, 0.5),
    "Sandbox.wall": sandbox("wall", "3s", "wall_s", 10.0, 3.0),
    "Sandbox.pids": sandbox("pids", "16", "pids", 64, 16),
    "Sandbox.tmp": sandbox("tmp", "8MiB", "tmp_bytes", 64 * 2**20, 8 * 2**20),
    "Sandbox.isolation": sandbox("isolation", "container", "isolation", "namespace", "container",
                                 tool="calculate_expression"),
    "Sandbox.runtime": sandbox("runtime", "runsc", "runtime", None, "runsc"),
    "Output.max_bytes": Field(SEARCH % ", output: {max_bytes: 1KiB}", SEARCH % "", term("output", "max_bytes"),
                              (1024, 64 * 1024)),
    "Output.html": Field(SEARCH % ", output: {html: keep}", SEARCH % "", cleaned("<b>x</b>"),
                         ("<b>x</b>", "&lt;b>x&lt;/b>")),
    "Output.redact": Field(SEARCH % ", output: {redact: [email]}", SEARCH % "", cleaned("mail ann@example.com now"),
                           ("mail [redacted:email] now", "mail ann@example.com now")),
    "Output.on_injection": Field(SEARCH % ", output: {on_injection: withhold}", SEARCH % "",
                                 term("output", "on_injection"), ("withhold", "flag")),
    "Limits.rate": Field(SEARCH % ", limits: {rate: 60/minute}", SEARCH % "",
                         lambda role, d: len(role.limits_of("search_web")), (1, 0)),
    "Limits.calls": Field(SEARCH % ", limits: {calls: [2/session, 9/hour]}", SEARCH % "",
                          lambda role, d: len(role.limits_of("search_web")), (2, 0)),
    "Limits.bytes": Field(SEARCH % ", limits: {bytes: 2KiB/call}", SEARCH % "", term("output", "max_bytes"),
                          (2048, 64 * 1024)),
    "Limits.seconds": Field(SEARCH % ", limits: {seconds: 2/call}", SEARCH % "", term("sandbox", "wall_s"),
                            (2.0, 10.0)),
    "Entry.origin": Field(mail("{to: {}, origin: {to: [said]}}"), mail("{to: {}}"), ends("send_email", **TO_ANN),
                          (DENIED, OK)),
    "Entry.facts": Field(mail("{to: {}, facts: {tenant: {const: acme}}}"), mail("{to: {}}"),
                         ends("send_email", **TO_ANN), (DENIED, OK)),
    "Entry.arguments": Field("book_flight: {allow: [{arguments: {origin: {const: BER}}}]}",
                             "book_flight: {allow: [{}]}",
                             ends("book_flight", origin="MUC"), (DENIED, OK)),
    "Origin.said": Field(mail("{to: {}, origin: {to: [said]}}"),
                         mail("{to: {}, origin: {to: ['tool:lookup_contact']}}"),
                         ends("send_email", SAID_ANN, **TO_ANN), (OK, DENIED)),
    "Origin.tool": Field(mail("{to: {}, origin: {to: ['tool:lookup_contact']}}"),
                         mail("{to: {}, origin: {to: [said]}}"),
                         ends("send_email", Situation(seen={"lookup_contact": "ann@example.com"}), **TO_ANN),
                         (OK, DENIED)),
    "Origin.literal": Field(mail("{to: {}, origin: {to: [{literal: [ann@example.com]}]}}"),
                            mail("{to: {}, origin: {to: [{literal: [bob@example.com]}]}}"),
                            ends("send_email", **TO_ANN), (OK, DENIED)),
    "Origin.not": Field("send_email: {allow: [{to: {}}], ask: [{origin: {to: {not: [said]}}}]}",
                        "send_email: {allow: [{to: {}}]}", ends("send_email", **TO_ANN),
                        ("approval_required approval.required", OK)),
    "tables": Field("query_database: {resources: {database: [shop]}, allow: [{sql: {tables: [orders]}}]}",
                    "query_database: {resources: {database: [shop]}, allow: [{sql: {tables: [staff]}}]}",
                    ends("query_database", database="shop", sql="SELECT id FROM orders"), (OK, DENIED)),
    "columns_except": Field("query_database: {resources: {database: [shop]}, allow: [{sql: {columns_except: [a.b]}}]}",
                            "query_database: {resources: {database: [shop]}, allow: [{sql: {columns_except: [a.c]}}]}",
                            ends("query_database", database="shop", sql="SELECT b FROM a"), (DENIED, OK)),
    "max_rows": Field("query_database: {resources: {database: [shop]}, allow: [{sql: {max_rows: 7}}]}",
                      "query_database: {resources: {database: [shop]}, allow: [{sql: {max_rows: 9}}]}",
                      lambda role, d: role.grants["query_database"].allow[0].sql_terms().max_rows,  # type: ignore[union-attr]
                      (7, 9)),
    "operations": Field("change_database: {resources: {database: [shop]}, ask: [{sql: {operations: [insert]}}]}",
                        "change_database: {resources: {database: [shop]}, ask: [{sql: {operations: [delete]}}]}",
                        lambda role, d: sorted(role.grants["change_database"].ask[0].sql_terms().operations),  # type: ignore[union-attr,arg-type]
                        (["insert"], ["delete"])),
    "writes": Field("change_database: {resources: {database: [shop]}, ask: [{sql: {writes: [orders.status]}}]}",
                    "change_database: {resources: {database: [shop]}, ask: [{sql: {writes: [orders.note]}}]}",
                    lambda role, d: sorted(role.grants["change_database"].ask[0].sql_terms().writes),  # type: ignore[union-attr,arg-type]
                    (["orders.status"], ["orders.note"])),
    "paths.under": Field("write_file: {allow: [{path: {paths: {under: [reports]}}}]}",
                         "write_file: {allow: [{path: {paths: {suffixes: [.txt]}}}]}",
                         ends("write_file", path="other/a.txt", text="x"), (DENIED, OK)),
    "paths.suffixes": Field("write_file: {allow: [{path: {paths: {under: [reports], suffixes: [.csv]}}}]}",
                            "write_file: {allow: [{path: {paths: {under: [reports]}}}]}",
                            ends("write_file", path="reports/a.sh", text="x"), (DENIED, OK)),
    "hosts.names": Field("read_page: {allow: [{url: {hosts: {names: [example.com]}}}]}",
                         "read_page: {allow: [{url: {hosts: {names: [example.org]}}}]}",
                         ends("read_page", url="https://example.com/x"), (OK, DENIED)),
    "hosts.schemes": Field("read_page: {allow: [{url: {hosts: {names: [example.com], schemes: [http]}}}]}",
                           "read_page: {allow: [{url: {hosts: {names: [example.com]}}}]}",
                           ends("read_page", url="http://example.com/x"), (OK, DENIED)),
    "hosts.ports": Field("read_page: {allow: [{url: {hosts: {names: [example.com], ports: [8443]}}}]}",
                         "read_page: {allow: [{url: {hosts: {names: [example.com]}}}]}",
                         ends("read_page", url="https://example.com:8443/x"), (OK, DENIED)),
    "addresses.domains": Field(mail("{to: {addresses: {domains: [example.com]}}}"),
                               mail("{to: {addresses: {domains: [example.org]}}}"), ends("send_email", **TO_ANN),
                               (OK, DENIED)),
    "addresses.only": Field(mail("{to: {addresses: {only: [ann@example.com]}}}"),
                            mail("{to: {addresses: {only: [bob@example.com]}}}"), ends("send_email", **TO_ANN),
                            (OK, DENIED)),
    "addresses.max": Field(mail("{to: {addresses: {max: 1}}}"), mail("{to: {addresses: {max: 2}}}"),
                           ends("send_email", to="a@example.com, b@example.com", subject="s"), (DENIED, OK)),
    "fact": Field("search_web: {allow: [{term: {fact: user}}]}", SEARCH % "",
                  ends("search_web", Situation(facts={"user": "ann"}), term="bob"), (DENIED, OK)),
}  # fmt: skip
FIELDS |= {f"sql.{key}": FIELDS[key] for key in ("tables", "columns_except", "max_rows", "operations", "writes")}


def test_every_field_of_the_schema_has_a_probe_and_every_probe_a_field() -> None:
    assert FIELDS.keys() == fields_of_the_schema()


@pytest.fixture
def world(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(
        "version: 1\nrole: base\ntools: {search_web: {allow: [{}], deny: [{term: {const: secret}}]}}\n"
    )
    return tmp_path


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_the_field_changes_what_happens(name: str, declarations: Declarations, world: Path) -> None:
    field = FIELDS[name]
    assert field.then[0] != field.then[1]
    for text, expected in zip((field.with_it, field.without), field.then, strict=True):
        assert _outcome(text, field.probe, declarations, world) == expected


def _outcome(text: str, probe: Probe, declarations: Declarations, folder: Path) -> Any:
    if not text.startswith("version"):
        text = "version: 1\nrole: team\ntools:\n" + textwrap.indent(text, "  ")
    path = folder / "team.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        role = load_role(path, declarations)
    except PolicyError:
        return "does not load"
    return probe(role, declarations)


def test_the_short_way_to_write_sql_bounds_means_the_same_as_the_named_facet(declarations: Declarations) -> None:
    head = "version: 1\nrole: r\ntools:\n  query_database:\n    resources: {database: [shop]}\n    allow:\n"
    short = load_role_text(head + "      - sql: {tables: [a]}\n", "r.yaml", declarations)
    named = load_role_text(head + "      - sql: {sql: {tables: [a]}}\n", "r.yaml", declarations)
    assert short.grants["query_database"].allow[0].arguments == named.grants["query_database"].allow[0].arguments
