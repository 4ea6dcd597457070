"""One tool's grant, compiled: entries, resources, the cage's and the output's terms, limits, kinds and effects.

Decides at load whether the grant could grant nothing, open what nothing guards, or be weaker than the tool asks for.
A key that this version does not enforce does not load. Trusts the tool's declaration; tightens it by what the grant
states and never loosens it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from toolcage.policy.entries import EntryCompiler, rule_label
from toolcage.policy.file_format import GrantFile, LimitsFile, OutputFile, SandboxFile
from toolcage.policy.findings import Findings
from toolcage.policy.fragments import nearest
from toolcage.policy.limits import MEASURES, Limit, parse_limit
from toolcage.policy.model import Grant
from toolcage.policy.places import with_egress
from toolcage.policy.workspace_names import with_workspaces
from toolcage.quantities import size_text
from toolcage.strict_yaml import Document, KeyPath
from toolcage.types import (
    ISOLATION_STRENGTH,
    Effect,
    EgressTarget,
    OutputTerms,
    SandboxTerms,
    ToolDeclaration,
)

_SANDBOX_FIELDS: Final = {
    "image": "image", "memory": "memory_bytes", "cpus": "cpus", "wall": "wall_s", "pids": "pids", "tmp": "tmp_bytes",
    "isolation": "isolation", "runtime": "runtime",
}  # fmt: skip

_STRANGERS_GET_NONE: Final = (
    "a tool whose file is given by its path reaches none; if you trust it, import it and pass it itself, tools=[…]"
)
_OUTWARD: Final[frozenset[Effect]] = frozenset(("sends", "reads_untrusted"))
"""What a tool does whose cage may connect to hosts of the policy, whatever it says of itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantCompiler:
    """Compiles the grants of one file. What is wrong goes to the findings, and then nothing made here may be used."""

    document: Document
    findings: Findings
    declarations: Mapping[str, ToolDeclaration]
    role: str
    has_flows: bool = False

    def grant(self, tool: str, file: GrantFile) -> Grant | None:
        """The grant of one tool, None where there is no such tool."""
        path: KeyPath = ("tools", tool)
        declared = self.declaration(tool, path)
        if declared is None:
            return None
        if not file.allow and not file.ask:
            self.findings.add(path, "has neither an allow nor an ask entry, so it grants nothing; write"
                                    " `allow: [{}]` for every valid call, or remove the tool")  # fmt: skip
        self._check_egress(file.egress, (*path, "egress"))
        declaration = self._tightened(declared, file, path)
        resources = self._resources(declaration, file, (*path, "resources"))
        declaration = with_workspaces(declaration, resources)
        entries = EntryCompiler(
            document=self.document, findings=self.findings, declaration=declaration, granted=resources,
            tools=self.declarations,
        )  # fmt: skip
        entries.check_ask_not_escaped(file.allow, file.ask, path)
        entries.check_places_not_escaped(file.allow, file.ask, path)
        limits = self._limits(tool, file.limits, (*path, "limits"))
        sandbox = self._sandbox(declaration, file, (*path, "sandbox"))
        return Grant(
            tool=tool,
            declaration=declaration,
            allow=entries.compile_list("allow", file.allow, (*path, "allow")),
            ask=entries.compile_list("ask", file.ask, (*path, "ask")),
            deny=entries.compile_list("deny", file.deny, (*path, "deny")),
            resources=MappingProxyType(resources),
            sandbox=_at_most(sandbox, limits),
            output=_output(file.output, limits),
            rule=rule_label(self.document, path),
            line=self.document.line(path),
            limits=tuple(limit for limit in limits if limit.span != "call"),
            accept_weaker=file.accept_weaker if "accept_weaker" in file.model_fields_set else None,
            egress=tuple(file.egress),
            stated=_stated(file),
        )

    def declaration(self, tool: str, path: KeyPath) -> ToolDeclaration | None:
        """The tool of that exact name; a finding where there is none."""
        declaration = self.declarations.get(tool)
        if declaration is None:
            if "*" in tool:
                text = f"`{tool}` is a pattern; patterns stand under `deny` only, a grant names one tool"
                self.findings.add(path, text)
                return None
            near = nearest(tool, self.declarations)
            meant = f"did you mean `{near}`? " if near else ""
            known = ", ".join(sorted(self.declarations)) or "none"
            self.findings.add(path, f"there is no tool `{tool}`; {meant}exact names only: {known}."
                                    " Tools of your own must be given too: tools=[...] of a runtime, --tools FILE of"
                                    " a command")  # fmt: skip
        return declaration

    def _tightened(self, declared: ToolDeclaration, file: GrantFile, path: KeyPath) -> ToolDeclaration:
        """The declaration with the grant's kinds and effects. Both only tighten what a trusted tool declares.

        A stranger's tool counts as having every effect until the operator states which it has.
        """
        properties = declared.parameters.get("properties")
        known = properties if isinstance(properties, Mapping) else {}
        kinds = dict(declared.kinds)
        for argument, kind in file.kinds.items():
            where = (*path, "kinds", argument)
            has = declared.kinds.get(argument, "text")
            if argument not in known:
                self.findings.add(where, f"{declared.name} has no argument `{argument}`; its arguments:"
                                         f" {', '.join(known) or 'none'}")  # fmt: skip
            elif has not in ("text", kind):
                self.findings.add(where, f"{declared.name} declares it as {has}, and a grant only tightens; remove it")
            elif has == kind:
                self.findings.add(where, f"{declared.name} declares it as {has} already; remove it")
            kinds[argument] = kind
        stated = file.effects if "effects" in file.model_fields_set else None
        if stated is None and self.has_flows and not declared.trusted:
            self.findings.add(path, "the flows of this file need to know what this tool does, and its own word is not"
                                    " trusted; state `effects: […]`, `effects: []` for none")  # fmt: skip
        own = declared.effects if declared.trusted or stated is None else frozenset[Effect]()
        effects = own | set(stated or ()) | (_OUTWARD if file.egress else frozenset())
        always = set(stated or ()) | (_OUTWARD if file.egress else frozenset())
        need = {effect: names for effect, names in declared.effects_need.items() if effect not in always}
        if kinds == dict(declared.kinds) and effects == declared.effects and not always:
            return declared
        return replace(
            declared, kinds=MappingProxyType(kinds), effects=effects, effects_need=MappingProxyType(need),
            description=with_egress(declared.description, file.egress),
        )  # fmt: skip

    def _resources(self, declaration: ToolDeclaration, file: GrantFile, path: KeyPath) -> dict[str, frozenset[str]]:
        for argument in file.resources:
            if argument not in declaration.resources:
                known = ", ".join(declaration.resources) or "none"
                why = "" if declaration.trusted else f"; {_STRANGERS_GET_NONE}"
                self.findings.add((*path, argument), f"`{argument}` does not name a resource of {declaration.name};"
                                                     f" arguments that do: {known}{why}")  # fmt: skip
        required = declaration.parameters.get("required")
        for argument, kind in declaration.resources.items():
            needed = isinstance(required, tuple | list) and argument in required
            absent = argument not in file.resources
            if argument in declaration.fixed_resources:
                self._check_fixed(declaration, argument, file, path)
            elif (needed and absent) or (kind == "workspace" and not file.resources.get(argument)):
                self.findings.add(path[:-1], f"every call would be refused: no {kind} is granted for `{argument}`;"
                                             f" write `resources: {{{argument}: [NAME]}}`")  # fmt: skip
        return {argument: frozenset(names) for argument, names in file.resources.items()}

    def _check_fixed(self, declaration: ToolDeclaration, word: str, file: GrantFile, path: KeyPath) -> None:
        """A resource that no argument names is the grant's to name: one, so that it is clear which is meant."""
        named = file.resources.get(word, [])
        if len(named) != 1:
            kind = declaration.resources[word]
            self.findings.add(path if named else path[:-1], f"{declaration.name} works with exactly one {kind}, and the"
                              f" grant names {len(named)}; write `resources: {{{word}: [NAME]}}`")  # fmt: skip

    def _check_egress(self, targets: Sequence[EgressTarget], path: KeyPath) -> None:
        for index, target in enumerate(targets):
            wider = next((other for other in targets if other != target and other.covers(target)), None)
            if target in targets[:index] or wider is not None:
                self.findings.add((*path, index), f"`{target}` is covered by `{wider or target}` already; remove one")

    def _sandbox(self, declaration: ToolDeclaration, file: GrantFile, path: KeyPath) -> SandboxTerms:
        terms = _merged(declaration, file.sandbox)
        # what is written to /tmp, /workspace and /dev/shm is charged to the memory limit; the program needs the rest
        if 2 * terms.tmp_bytes > terms.memory_bytes:
            most = size_text(terms.memory_bytes // 2)
            self.findings.add((*path, "tmp"), f"{size_text(terms.tmp_bytes)} is more than half of the memory of"
                                              f" {size_text(terms.memory_bytes)}; write at most {most}")  # fmt: skip
        weaker = ISOLATION_STRENGTH[terms.isolation] < ISOLATION_STRENGTH[declaration.isolation]
        if terms.isolation == "session" and declaration.file_uses:
            self.findings.add((*path, "isolation"), f"{declaration.name} works on copies of a workspace's files, and a"
                                                    " cage that keeps files from call to call would keep those;"
                                                    " remove it")  # fmt: skip
        accepted = "accept_weaker" in file.model_fields_set
        if weaker and not accepted:
            self.findings.add((*path, "isolation"), f"`{terms.isolation}` is weaker than the `{declaration.isolation}`"
                                                    f" that {declaration.name} declares; remove it, or say under"
                                                    " `accept_weaker` why that is accepted")  # fmt: skip
        if accepted and not weaker:
            self.findings.add((*path[:-1], "accept_weaker"), "nothing in this grant is weaker than the tool declares;"
                                                             " remove it")  # fmt: skip
        return terms

    def _limits(self, tool: str, file: LimitsFile, path: KeyPath) -> tuple[Limit, ...]:
        made: list[Limit] = []
        for measure in MEASURES:
            texts = getattr(file, measure) if measure in file.model_fields_set else []
            for index, text in enumerate(texts):
                where = (*path, measure, index)
                try:
                    amount, span = parse_limit(measure, text)
                except ValueError as cause:
                    self.findings.add(where, str(cause))
                    continue
                if any(limit.measure == measure and limit.span == span for limit in made):
                    self.findings.add(where, f"the second limit of {measure} per {span}; keep the smaller one")
                made.append(
                    Limit(measure=measure, amount=amount, span=span, role=self.role, tool=tool,
                          rule=rule_label(self.document, where))
                )  # fmt: skip
        return tuple(made)


def _merged(declaration: ToolDeclaration, file: SandboxFile) -> SandboxTerms:
    stated = file.model_dump(exclude_unset=True)
    values: dict[str, Any] = {
        "image": declaration.image,
        "isolation": declaration.isolation,
        "wall_s": declaration.wall_s,
    }
    values |= {_SANDBOX_FIELDS[key]: value for key, value in stated.items()}
    terms = SandboxTerms(**values)
    if "tmp" in stated:
        return terms
    return replace(terms, tmp_bytes=min(terms.tmp_bytes, terms.memory_bytes // 4))


def _output(file: OutputFile, limits: tuple[Limit, ...]) -> OutputTerms:
    stated = file.model_dump(exclude_unset=True)
    if "redact" in stated:
        stated["redact"] = tuple(stated["redact"])
    terms = OutputTerms(**stated)
    most = _per_call(limits, "bytes")
    return terms if most is None else replace(terms, max_bytes=min(terms.max_bytes, most))


def _at_most(terms: SandboxTerms, limits: tuple[Limit, ...]) -> SandboxTerms:
    most = _per_call(limits, "seconds")
    return terms if most is None else replace(terms, wall_s=min(terms.wall_s, float(most)))


def _per_call(limits: tuple[Limit, ...], measure: str) -> int | None:
    return min((item.amount for item in limits if item.span == "call" and item.measure == measure), default=None)


def _stated(file: GrantFile) -> Mapping[str, Any]:
    """Key → the field of the terms that it sets, for the keys of `sandbox` and `output` that the file writes."""
    return MappingProxyType(
        {
            "sandbox": {key: _SANDBOX_FIELDS[key] for key in file.sandbox.model_fields_set},
            "output": {key: key for key in file.output.model_fields_set},
        }
    )
