"""The `origin` of an entry, compiled: which argument's value must come from where.

Refused at load: an argument that the tool does not have, a source that is not one, a tool that does not exist, and a
tool whose output its caller writes (it runs a program or a statement of the caller's), since such an output can hold
any identifier that the model wants it to hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from toolcage.policy.file_format import LiteralFile, NotFromFile, OriginItem
from toolcage.policy.findings import Findings
from toolcage.policy.fragments import nearest
from toolcage.policy.model import Effect
from toolcage.policy.origin import SAID, identifiers_in
from toolcage.policy.origin_rule import OriginRule, Reading
from toolcage.strict_yaml import KeyPath
from toolcage.types import Kind, ToolDeclaration

_WRITTEN_BY_CALLER: Final = frozenset({"python", "shell", "sql"})
_LIST: Final[TypeAdapter[list[Any]]] = TypeAdapter(list[OriginItem])


class OriginCompiler:
    """Compiles `origin` mappings of one tool's entries."""

    def __init__(
        self, findings: Findings, declaration: ToolDeclaration, tools: Mapping[str, ToolDeclaration]
    ) -> None:
        self._findings = findings
        self._declaration = declaration
        self._tools = tools

    def compile(self, raw: Any, effect: Effect, path: KeyPath) -> tuple[OriginRule, ...]:
        """The rules; what is wrong goes to the findings."""
        if raw is None:
            return ()
        if not isinstance(raw, dict) or not raw:
            self._findings.add(path, "write a mapping: argument names, each with a list such as [said, \"tool:NAME\"]")
            return ()
        made = (self._rule(argument, value, effect, (*path, argument)) for argument, value in raw.items())
        return tuple(rule for rule in made if rule is not None)

    def _rule(self, argument: str, value: Any, effect: Effect, path: KeyPath) -> OriginRule | None:
        properties = self._declaration.parameters.get("properties")
        known = properties if isinstance(properties, Mapping) else {}
        if argument not in known:
            self._findings.add(path, f"{self._declaration.name} has no argument `{argument}`; its arguments:"
                                     f" {', '.join(known) or 'none'}")  # fmt: skip
            return None
        links = isinstance(value, dict) and set(value) == {"links"}
        kind = self._declaration.kinds.get(argument, "text")
        if links:
            value, path = value["links"], (*path, "links")
            if kind not in ("text", "html"):
                self._findings.add(path, f"`{argument}` is of kind {kind}, so its whole value must have an origin;"
                                         " write the list without `links`")  # fmt: skip
                return None
            kind = "url"
        negated = isinstance(value, dict) and "not" in value
        if effect == "deny" and not negated:
            self._findings.add(path, "an origin under deny would spare every value from elsewhere; write"
                                     " `{not: [said]}` for values that come from none of these")  # fmt: skip
            return None
        if effect == "allow" and negated:
            self._findings.add(path, "`not` under allow would permit values of unknown origin; list what is accepted")
            return None
        items = self._items(value, path)
        if items is None:
            return None
        return self._compiled(
            argument, items, Reading(kind=kind, links=links), negated, (*path, "not") if negated else path
        )

    def _items(self, value: Any, path: KeyPath) -> list[Any] | None:
        try:
            if isinstance(value, dict):
                return NotFromFile.model_validate(value).not_
            items = _LIST.validate_python(value, strict=True)
        except ValidationError:
            self._findings.add(path, "write a list of `said`, `\"tool:NAME\"` and `{literal: [VALUE, …]}`,"
                                     " or `{links: [...]}` for the links in a text")  # fmt: skip
            return None
        if not items:
            self._findings.add(path, "an empty list accepts no value at all; name at least one source")
            return None
        return items

    def _compiled(
        self, argument: str, items: list[Any], reading: Reading, negated: bool, path: KeyPath
    ) -> OriginRule:
        sources: set[str] = set()
        literals: set[str] = set()
        for index, item in enumerate(items):
            if isinstance(item, LiteralFile):
                literals |= self._literals(item, reading.kind, (*path, index, "literal"))
                continue
            if item != SAID:
                self._check_tool(item.removeprefix("tool:"), (*path, index))
            sources.add(item)
        return OriginRule(
            argument=argument, reading=reading, sources=frozenset(sources), literals=frozenset(literals),
            negated=negated,
        )  # fmt: skip

    def _literals(self, item: LiteralFile, kind: Kind, path: KeyPath) -> set[str]:
        found: set[str] = set()
        for index, text in enumerate(item.literal):
            read = identifiers_in(text, kind)
            if not read:
                self._findings.add((*path, index), f"not readable as a value of kind {kind}; correct it")
            found |= set(read or ())
        return found

    def _check_tool(self, source: str, path: KeyPath) -> None:
        name, mark, field = source.partition("#")
        if mark and not field:
            self._findings.add(path, f"write the field's name behind `#`, or `tool:{name}` for the whole result")
        declaration = self._tools.get(name)
        if declaration is None:
            near = nearest(name, self._tools)
            meant = f"; did you mean `tool:{near}`?" if near else ""
            self._findings.add(path, f"there is no tool `{name}`{meant}")
        elif programs := sorted(_WRITTEN_BY_CALLER & set(declaration.kinds.values())):
            self._findings.add(path, f"{name} runs {programs[0]} that the caller writes, so its output can hold any"
                                     " value that the model wants; name a tool that looks things up")  # fmt: skip
