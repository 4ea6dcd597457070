"""Policy files to roles. The only part of the policy that reads files, and the only one that builds a `Role`.

A file is loaded whole or not at all: every fault is reported with file, line and what to write instead, and no role
comes of a file that has one. Trusts the declarations (what tools exist, what their arguments are); trusts nothing in
the file. It does not know resources.yaml: which names exist there is compared at start, from `Role.resource_names`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, Final

import rfc8785
from pydantic import ValidationError

from toolcage.errors import PolicyError
from toolcage.policy.entries import EntryCompiler, rule_label
from toolcage.policy.file_format import GrantFile, OutputFile, RoleFile, SandboxFile
from toolcage.policy.findings import Findings
from toolcage.policy.fragments import nearest
from toolcage.policy.model import Case, Entry, Grant, Role
from toolcage.policy.quantities import size_text
from toolcage.strict_yaml import Document, KeyPath, parse_document, read_document
from toolcage.types import ISOLATION_STRENGTH, OutputTerms, SandboxTerms, ToolDeclaration

_SUFFIXES: Final = (".yaml", ".yml")
_SANDBOX_FIELDS: Final = {
    "image": "image", "memory": "memory_bytes", "cpus": "cpus", "wall": "wall_s", "pids": "pids", "tmp": "tmp_bytes",
    "isolation": "isolation", "runtime": "runtime",
}  # fmt: skip


def load_role(path: Path, declarations: Mapping[str, ToolDeclaration]) -> Role:
    """The role in the file at `path`. Raises PolicyError with every fault of the file, one a line."""
    return _role(read_document(path, PolicyError), declarations)


def load_role_text(text: str, name: str, declarations: Mapping[str, ToolDeclaration]) -> Role:
    """The role in `text`; `name` stands for the file's name in messages and rules. Raises PolicyError."""
    return _role(parse_document(text.encode("utf-8", "surrogatepass"), name, PolicyError), declarations)


def load_roles(paths: Sequence[Path], declarations: Mapping[str, ToolDeclaration]) -> Mapping[str, Role]:
    """The roles of every file, by name; a folder stands for the `*.yaml` and `*.yml` files in it.

    Raises PolicyError: a fault in any file, a folder without policy files, or two files with one role name.
    """
    roles: dict[str, Role] = {}
    seen: dict[str, Path] = {}
    for path in policy_files(paths):
        role = load_role(path, declarations)
        if role.name in roles:
            raise PolicyError(f"{path}:1: the role `{role.name}` is also in {seen[role.name]}; rename one of the two")
        roles[role.name], seen[role.name] = role, path
    return MappingProxyType(roles)


def policy_files(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The files that `paths` stand for, in order. Raises PolicyError where there is none."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(item for item in path.iterdir() if item.suffix in _SUFFIXES) if path.is_dir() else [path]
        if not inside:
            raise PolicyError(f"{path}: no *.yaml file in this folder; give a policy file or a folder that has one")
        found.extend(inside)
    if not found:
        raise PolicyError("no policy file was named; give a policy file or a folder that has one")
    return tuple(dict.fromkeys(found))


def _role(document: Document, declarations: Mapping[str, ToolDeclaration]) -> Role:
    findings = Findings(document)
    try:
        file = RoleFile.model_validate(document.data)
    except ValidationError as cause:
        findings.add_shape_faults(cause)
        findings.raise_if_any()
        raise
    builder = _RoleBuilder(document, findings, declarations)
    grants = {tool: grant for tool, item in file.tools.items() if (grant := builder.grant(tool, item))}
    denies = builder.denies(file)
    findings.raise_if_any()
    return Role(
        name=file.role,
        description=file.description,
        source=PurePath(document.name).name,
        digest=hashlib.sha256(rfc8785.dumps(document.data)).hexdigest(),
        grants=MappingProxyType(grants),
        deny=MappingProxyType(denies),
        cases=_cases(document, file),
    )


class _RoleBuilder:
    def __init__(
        self, document: Document, findings: Findings, declarations: Mapping[str, ToolDeclaration]
    ) -> None:
        self._document = document
        self._findings = findings
        self._declarations = declarations

    def grant(self, tool: str, file: GrantFile) -> Grant | None:
        path: KeyPath = ("tools", tool)
        declaration = self._declaration(tool, path)
        if declaration is None:
            return None
        if not file.allow and not file.ask:
            self._findings.add(path, "has neither an allow nor an ask entry, so it grants nothing; write"
                                     " `allow: [{}]` for every valid call, or remove the tool")  # fmt: skip
        resources = self._resources(declaration, file, (*path, "resources"))
        entries = EntryCompiler(
            document=self._document, findings=self._findings, declaration=declaration, granted=resources
        )
        entries.check_ask_not_escaped(file.allow, file.ask, path)
        return Grant(
            tool=tool,
            declaration=declaration,
            allow=entries.compile_list("allow", file.allow, (*path, "allow")),
            ask=entries.compile_list("ask", file.ask, (*path, "ask")),
            deny=entries.compile_list("deny", file.deny, (*path, "deny")),
            resources=MappingProxyType(resources),
            sandbox=self._sandbox(declaration, file.sandbox, (*path, "sandbox")),
            output=_output(file.output),
            rule=rule_label(self._document, path),
            line=self._document.line(path),
        )

    def denies(self, file: RoleFile) -> dict[str, tuple[Entry, ...]]:
        made: dict[str, list[Entry]] = {}
        for index, item in enumerate(file.deny):
            path: KeyPath = ("deny", index)
            declaration = self._declaration(item.tool, (*path, "tool"))
            if declaration is not None:
                entries = EntryCompiler(
                    document=self._document, findings=self._findings, declaration=declaration, granted={}
                )
                entry = entries.compile_entry("deny", item.__pydantic_extra__, path)
                made.setdefault(item.tool, []).append(entry)
        return {tool: tuple(items) for tool, items in made.items()}

    def _declaration(self, tool: str, path: KeyPath) -> ToolDeclaration | None:
        declaration = self._declarations.get(tool)
        if declaration is None:
            near = nearest(tool, self._declarations)
            meant = f"did you mean `{near}`? " if near else ""
            known = ", ".join(sorted(self._declarations)) or "none"
            self._findings.add(path, f"there is no tool `{tool}`; {meant}exact names only: {known}")
        return declaration

    def _resources(self, declaration: ToolDeclaration, file: GrantFile, path: KeyPath) -> dict[str, frozenset[str]]:
        for argument in file.resources:
            if argument not in declaration.resources:
                known = ", ".join(declaration.resources) or "none"
                self._findings.add((*path, argument), f"`{argument}` does not name a resource of {declaration.name};"
                                                      f" arguments that do: {known}")  # fmt: skip
        required = declaration.parameters.get("required")
        for argument, kind in declaration.resources.items():
            if argument not in file.resources and isinstance(required, tuple | list) and argument in required:
                self._findings.add(path[:-1], f"every call would be refused: no {kind} is granted for `{argument}`;"
                                              f" write `resources: {{{argument}: [NAME]}}`")  # fmt: skip
        return {argument: frozenset(names) for argument, names in file.resources.items()}

    def _sandbox(self, declaration: ToolDeclaration, file: SandboxFile, path: KeyPath) -> SandboxTerms:
        terms = _merged(declaration, file.model_dump(exclude_unset=True))
        # what is written to /tmp, /workspace and /dev/shm is charged to the memory limit; the program needs the rest
        if 2 * terms.tmp_bytes > terms.memory_bytes:
            most = size_text(terms.memory_bytes // 2)
            self._findings.add((*path, "tmp"), f"{size_text(terms.tmp_bytes)} is more than half of the memory of"
                                               f" {size_text(terms.memory_bytes)}; write at most {most}")  # fmt: skip
        if ISOLATION_STRENGTH[terms.isolation] < ISOLATION_STRENGTH[declaration.isolation]:
            self._findings.add((*path, "isolation"), f"`{terms.isolation}` is weaker than the `{declaration.isolation}`"
                                                     f" that {declaration.name} declares; remove it")  # fmt: skip
        return terms


def _merged(declaration: ToolDeclaration, stated: Mapping[str, Any]) -> SandboxTerms:
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


def _output(file: OutputFile) -> OutputTerms:
    stated = file.model_dump(exclude_unset=True)
    if "redact" in stated:
        stated["redact"] = tuple(stated["redact"])
    return OutputTerms(**stated)


def _cases(document: Document, file: RoleFile) -> tuple[Case, ...]:
    return tuple(
        Case(
            call=item.call,
            args=MappingProxyType(item.args),
            expect=item.expect,
            code=item.code if "code" in item.model_fields_set else None,
            line=document.line(("tests", index)),
        )
        for index, item in enumerate(file.tests)
    )
