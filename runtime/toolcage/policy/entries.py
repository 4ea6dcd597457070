"""Entries of `allow`, `ask` and `deny`, compiled against the tool's declaration.

Decides at load whether an entry could silently fail to apply: an argument that the tool does not have, a fragment
that never matches (see `fragments`), an `allow` that leaves out a sink the tool requires, a facet under `deny` (it
would match only what lies *wholly* within its bounds), an `ask` facet that a call escapes by naming one thing more, an
origin that anything could have. Each fault is a finding with the line. Trusts the declaration.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final

import rfc8785
from pydantic import ValidationError

from toolcage.policy.file_format import (
    FACETS,
    RESERVED,
    SqlFacetFile,
)
from toolcage.policy.findings import Findings
from toolcage.policy.fragments import (
    KEYWORDS,
    ArgumentShape,
    FragmentProblem,
    compile_fragment,
    nearest,
    never_matches,
)
from toolcage.policy.model import Effect, Entries, Entry, sink_arguments
from toolcage.policy.origins_file import OriginCompiler
from toolcage.policy.places import AddressBounds, HostBounds, PathBounds
from toolcage.policy.rules import (
    AddressesRule,
    ArgumentRule,
    FragmentRule,
    HostFactRule,
    HostsRule,
    PathsRule,
    SameAsFactRule,
    SqlRule,
)
from toolcage.strict_yaml import Document, KeyPath
from toolcage.types import SqlTerms, ToolDeclaration, thaw

_FACET_KEYS: Final = frozenset(SqlFacetFile.model_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCompiler:
    """Compiles the entries of one tool. `granted` narrows arguments that name resources to the grant's names."""

    document: Document
    findings: Findings
    declaration: ToolDeclaration
    granted: Mapping[str, frozenset[str]]
    tools: Mapping[str, ToolDeclaration] = field(default_factory=dict)

    def compile_list(self, effect: Effect, raw: list[dict[str, Any]], path: KeyPath) -> Entries:
        return Entries(self.compile_entry(effect, item, (*path, index)) for index, item in enumerate(raw))

    def compile_entry(self, effect: Effect, raw: Mapping[str, Any], path: KeyPath) -> Entry:
        """The entry; what is wrong with it goes to the findings, and then it must not be used."""
        arguments = self._arguments(raw, path)
        rules, same = [], []
        for argument, (value, where) in arguments.items():
            rule = self._rule(effect, argument, value, where)
            if isinstance(rule, SameAsFactRule):
                same.append(rule)
            elif rule is not None:
                rules.append(rule)
        origins = OriginCompiler(self.findings, self.declaration, self.tools).compile(
            raw.get("origin"), effect, (*path, "origin")
        )
        if effect == "allow":
            self._check_sinks({*arguments, *(item.argument for item in origins)}, path)
        return Entry(
            effect=effect,
            rule=rule_label(self.document, path),
            arguments=tuple(rules),
            same_as=tuple(same),
            origins=origins,
            host=self._host_facts(raw, effect, (*path, "facts")),
            text=rfc8785.dumps(dict(raw)).decode(),
        )

    def _arguments(self, raw: Mapping[str, Any], path: KeyPath) -> dict[str, tuple[Any, KeyPath]]:
        """Each named argument with what must hold for it and where that stands."""
        found = {name: (value, (*path, name)) for name, value in raw.items() if name not in RESERVED}
        for word in RESERVED:
            if word in raw and word in self._properties() and "arguments" not in raw:
                self.findings.add((*path, word), f"`{word}` is a word of the policy, and {self.declaration.name} has an"
                                  f" argument of that name: write `arguments: {{{word}: …}}` for the argument, and"
                                  " `arguments: {}` beside the word")  # fmt: skip
        nested = raw.get("arguments", {})
        if not isinstance(nested, dict):
            self.findings.add((*path, "arguments"), "write a mapping of argument names")
            return found
        for name, value in nested.items():
            if name in found:
                self.findings.add((*path, "arguments", name), f"`{name}` is named twice; keep one")
            found[name] = (value, (*path, "arguments", name))
        return found

    def _host_facts(self, raw: Mapping[str, Any], effect: Effect, path: KeyPath) -> tuple[HostFactRule, ...]:
        stated = raw.get("facts", {})
        if not isinstance(stated, dict) or ("facts" in raw and not stated):
            self.findings.add(path, "write a mapping of fact names, each with a JSON Schema fragment")
            return ()
        made = []
        for name, fragment in stated.items():
            try:
                validator = compile_fragment(fragment, ArgumentShape(schema={}, kind="text"), effect)
            except FragmentProblem as problem:
                self.findings.add((*path, name, *problem.path), problem.text)
                continue
            made.append(HostFactRule(name=name, validator=validator, under_deny=effect == "deny"))
        return tuple(made)

    def check_ask_not_escaped(self, allow: list[dict[str, Any]], ask: list[dict[str, Any]], path: KeyPath) -> None:
        """A finding for each `ask` facet whose statements match an `allow` instead once they read one table more."""
        for index, asking in enumerate(ask):
            for argument in asking:
                value = self._facet_in(asking, argument)
                if not value:
                    continue
                for other in allow:
                    if self._may_both_match(asking, other) and _escapes(value, self._facet_in(other, argument)):
                        self.findings.add(
                            (*path, "ask", index, argument),
                            "a statement that reads these tables and others matches an allow entry and nobody is asked;"
                            " list these tables under ask only, or list every table of the allow entry under ask",
                        )
                        break

    def check_places_not_escaped(
        self, allow: list[dict[str, Any]], ask: list[dict[str, Any]], path: KeyPath
    ) -> None:
        """A finding for each `ask` facet on places whose values match an `allow` instead once they name one more, or
        cannot be read."""
        for index, asking in enumerate(ask):
            for argument, value in self._arguments_of(asking).items():
                word, stated = _place_facet(value)
                asked = _items_of(word, stated)
                if not asked:
                    continue
                for other in allow:
                    allowed_word, allowed = _place_facet(self._arguments_of(other).get(argument))
                    granted = _items_of(allowed_word, allowed)
                    if allowed_word == word and granted and (granted <= asked or not _overlap(word, granted, asked)):
                        continue
                    self.findings.add(
                        (*path, "ask", index, argument),
                        "a value that lies only partly within these bounds, or cannot be read, matches an allow entry"
                        f" and nobody is asked; bound `{argument}` by `{word}` in each allow entry, apart from these",
                    )
                    break

    def _arguments_of(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        nested = raw.get("arguments")
        named = {name: value for name, value in raw.items() if name not in RESERVED}
        return named | (nested if isinstance(nested, dict) else {})

    def _rule(
        self, effect: Effect, argument: str, value: Any, path: KeyPath
    ) -> ArgumentRule | SameAsFactRule | None:
        if argument not in self._properties():
            self.findings.add(path, self._unknown_argument(argument))
            return None
        if isinstance(value, dict) and value.keys() == {"fact"}:
            return self._same_as(effect, argument, value["fact"], path)
        if isinstance(value, dict) and len(value) == 1 and (word := next(iter(value))) in FACETS:
            return self._place_rule(effect, argument, word, value[word], (*path, word))
        if self._is_facet(argument, value):
            return self._sql_rule(effect, argument, value, path)
        try:
            validator = compile_fragment(value, self._shape(argument, effect), effect)
        except FragmentProblem as problem:
            self.findings.add((*path, *problem.path), problem.text)
            return None
        return FragmentRule(argument=argument, validator=validator, exact=_exact_texts(value))

    def _same_as(self, effect: Effect, argument: str, name: Any, path: KeyPath) -> SameAsFactRule | None:
        if not isinstance(name, str) or not name:
            self.findings.add((*path, "fact"), "write the name of a fact that the host gives, such as tenant")
            return None
        return SameAsFactRule(argument=argument, name=name, under_deny=effect == "deny")

    def _place_rule(self, effect: Effect, argument: str, word: str, value: Any, path: KeyPath) -> ArgumentRule | None:
        kind, model = FACETS[word]
        has = self.declaration.kinds.get(argument, "text")
        if has != kind:
            self.findings.add(path, f"`{word}` is for an argument of kind {kind}; `{argument}` is of kind {has}: write"
                                    f" a JSON Schema fragment, or state `kinds: {{{argument}: {kind}}}`")  # fmt: skip
            return None
        if word == "sql":
            return self._sql_rule(effect, argument, value, path)
        if effect == "deny":
            self.findings.add(path, "bounds under deny would match only what lies wholly within them; what no allow"
                                    " entry grants is denied already")  # fmt: skip
            return None
        if not isinstance(value, dict) or not value:
            self.findings.add(path, f"bounds nothing; write at least one of: {', '.join(model.model_fields)}")
            return None
        try:
            stated = model.model_validate(value).model_dump(exclude_unset=True)
        except ValidationError as cause:
            self.findings.add_shape_faults(cause, path, model)
            return None
        return _PLACES[word](argument, stated)

    def _sql_rule(self, effect: Effect, argument: str, value: Any, path: KeyPath) -> SqlRule | None:
        if effect == "deny":
            self.findings.add(path, "bounds of a statement under deny would match only statements within them; "
                                    "tables and columns that no allow entry grants are denied already")  # fmt: skip
            return None
        if isinstance(value, dict) and (both := sorted(value.keys() & KEYWORDS)):
            self.findings.add(path, f"`{both[0]}` stands beside SQL bounds; write the one or the other")
            return None
        try:
            facet = SqlFacetFile.model_validate(value).model_dump(exclude_unset=True)
        except ValidationError as cause:
            self.findings.add_shape_faults(cause, path, SqlFacetFile)
            return None
        for key in ("operations", "writes"):
            if key in facet and not self.declaration.changes_databases:
                self.findings.add(path, f"`{key}` is about changes, and {self.declaration.name} only reads; remove it")
                return None
        terms = _terms(facet)
        if (never := _never_writes(terms)) is not None:
            self.findings.add(path, never)
            return None
        return SqlRule(argument=argument, terms=terms)

    def _is_facet(self, argument: str, value: Any) -> bool:
        if self.declaration.kinds.get(argument) != "sql" or not isinstance(value, dict):
            return False
        return any(key in _FACET_KEYS or key not in KEYWORDS for key in value) and not any(
            key.startswith("$") for key in value
        )

    def _facet_in(self, entry: Mapping[str, Any], argument: str) -> dict[str, Any]:
        value = entry.get(argument)
        if isinstance(value, dict) and value.keys() == {"sql"}:
            value = value["sql"]
        return value if isinstance(value, dict) and self._is_facet(argument, value) else {}

    def _may_both_match(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
        return not any(
            not self._is_facet(name, first[name])
            and not self._is_facet(name, second[name])
            and never_matches({"allOf": [first[name], second[name]]}, self._shape(name, "ask"))
            for name in first.keys() & second.keys() & self._properties().keys()
        )

    def _shape(self, argument: str, effect: Effect) -> ArgumentShape:
        kind = self.declaration.kinds.get(argument, "text")
        parameters = thaw(self.declaration.parameters)
        schema = parameters["properties"][argument]
        if effect != "deny" and argument in self.declaration.resources:
            schema = {"type": "string", "enum": sorted(self.granted.get(argument, ()))}
        return ArgumentShape(schema=schema, kind=kind, definitions=parameters.get("$defs", {}))

    def _properties(self) -> Mapping[str, Any]:
        found = self.declaration.parameters.get("properties")
        return found if isinstance(found, Mapping) else {}

    def _unknown_argument(self, argument: str) -> str:
        near = nearest(argument, self._properties())
        meant = f"did you mean `{near}`? " if near else ""
        known = ", ".join(self._properties()) or "none"
        return f"{self.declaration.name} has no argument `{argument}`; {meant}its arguments: {known}"

    def _check_sinks(self, named: set[str], path: KeyPath) -> None:
        required = self.declaration.parameters.get("required")
        for sink in sink_arguments(self.declaration):
            if isinstance(required, tuple | list) and sink in required and sink not in named:
                self.findings.add(
                    path,
                    f"never matches: `{sink}` says where something goes and is required, so the entry must name it;"
                    f" write what it may be, or `{sink}: {{}}` for anything",
                )


def rule_label(document: Document, path: KeyPath) -> str:
    """How the operator finds the rule: `analyst.yaml:12 tools.query_database.allow[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return f"{PurePath(document.name).name}:{document.line(path)} {text}"


def _exact_texts(fragment: Any) -> frozenset[str] | None:
    """The only texts that can match, where the fragment lists them; other keywords only narrow further."""
    listed = [fragment["const"]] if "const" in fragment else fragment.get("enum")
    if isinstance(listed, list) and listed and all(isinstance(item, str) for item in listed):
        return frozenset(listed)
    return None


def _place_facet(value: Any) -> tuple[str, Mapping[str, Any]]:
    if isinstance(value, dict) and len(value) == 1:
        word, stated = next(iter(value.items()))
        if word in _PLACES and isinstance(stated, dict):
            return word, stated
    return "", {}


def _items_of(word: str, stated: Mapping[str, Any]) -> frozenset[str]:
    """The places that a facet names. A list that is no list of texts is found at fault where it is compiled."""
    keys = {"paths": ("under",), "hosts": ("names",), "addresses": ("domains", "only")}.get(word, ())
    found = [item for key in keys for item in stated.get(key) or () if isinstance(item, str)]
    return frozenset(posixpath.normpath(item) if word == "paths" else item for item in found)


def _overlap(word: str, first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether some value may lie within an item of both."""
    return any(_share(word, one, other) or _share(word, other, one) for one in first for other in second)


def _share(word: str, wide: str, narrow: str) -> bool:
    if wide == narrow:
        return True
    if word == "paths":
        return narrow.startswith(f"{wide}/")
    if word == "hosts":
        return wide.startswith("*.") and narrow.endswith(wide[1:])
    return narrow.rpartition("@")[2] == wide


def _paths(argument: str, stated: Mapping[str, Any]) -> ArgumentRule:
    folders = tuple(posixpath.normpath(item) for item in stated.get("under", ()))
    return PathsRule(
        argument=argument, bounds=PathBounds(under=folders, suffixes=tuple(stated.get("suffixes", ())))
    )


def _hosts(argument: str, stated: Mapping[str, Any]) -> ArgumentRule:
    bounds = HostBounds(
        names=tuple(stated["names"]),
        schemes=tuple(stated.get("schemes", ("https",))),
        ports=tuple(stated.get("ports", ())),
    )
    return HostsRule(argument=argument, bounds=bounds)


def _addresses(argument: str, stated: Mapping[str, Any]) -> ArgumentRule:
    bounds = AddressBounds(
        domains=tuple(stated.get("domains", ())),
        only=tuple(stated.get("only", ())),
        max_count=stated.get("max"),
    )
    return AddressesRule(argument=argument, bounds=bounds)


_PLACES: Final = {"paths": _paths, "hosts": _hosts, "addresses": _addresses}


def _terms(facet: Mapping[str, Any]) -> SqlTerms:
    tables = facet.get("tables")
    stated = {"max_rows": facet["max_rows"]} if "max_rows" in facet else {}
    operations = facet.get("operations")
    return SqlTerms(
        tables=None if tables is None else frozenset(_bare(name, 1) for name in tables),
        columns_except=frozenset(_bare(name, 2) for name in facet.get("columns_except", ())),
        operations=None if operations is None else frozenset(operations),
        writes=frozenset(_bare(name, 2) for name in facet["writes"]) if "writes" in facet else None,
        **stated,
    )


def _never_writes(terms: SqlTerms) -> str | None:
    """What `writes` names in vain, None where each of its columns can be written."""
    if terms.writes is None:
        return None
    if terms.operations == frozenset({"delete"}):
        return "a DELETE writes no single column, so `writes` beside `operations: [delete]` never matches; remove it"
    for column in sorted(terms.writes):
        if column in terms.columns_except:
            return f"`writes` names {column}, which `columns_except` closes; take it out of one of them"
        if terms.tables is not None and column.rpartition(".")[0] not in terms.tables:
            return f"`writes` names {column}, whose table is none of `tables`; add the table or remove the column"
    return None


def _bare(name: str, dots: int) -> str:
    """Lower case, and without the schema in which both kinds of database look for a name that has none."""
    lowered = name.lower()
    schema, _, rest = lowered.partition(".")
    return rest if schema in ("main", "public") and lowered.count(".") == dots else lowered


def _escapes(asking: Mapping[str, Any], allowing: Mapping[str, Any]) -> bool:
    """Whether some statement touches what `asking` is about, does not match it, and matches `allowing`."""
    asked, allowed = _terms_or_none(asking), _terms_or_none(allowing)
    if asked is None or allowed is None:
        return False  # a fault of its own, found where the entry is compiled
    bounds = ((asked.tables, allowed.tables), (asked.operations, allowed.operations), (asked.writes, allowed.writes))
    overlap = all(_share_an_item(one, other) for one, other in bounds)
    wider = all(_covers(one, other) for one, other in bounds)
    return overlap and not (wider and asked.columns_except <= allowed.columns_except)


def _share_an_item(first: frozenset[str] | None, second: frozenset[str] | None) -> bool:
    return first is None or second is None or bool(first & second)


def _covers(wide: frozenset[str] | None, narrow: frozenset[str] | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)


def _terms_or_none(facet: Mapping[str, Any]) -> SqlTerms | None:
    try:
        return _terms(SqlFacetFile.model_validate(dict(facet)).model_dump(exclude_unset=True))
    except ValidationError:
        return None
