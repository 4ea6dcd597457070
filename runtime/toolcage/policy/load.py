"""Policy files to roles. The only part of the policy that reads files, and the only one that builds a `Role`.

A file is loaded whole or not at all: every fault is reported with file, line and what to write instead, and no role
comes of a file that has one. With `extends` its ancestors are loaded too, and the role is narrowed under them. Trusts
the declarations (what tools exist, what their arguments are); trusts nothing in the file. It does not know
resources.yaml: which names exist there is compared at start, from `Role.resource_names`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Final

import rfc8785
from pydantic import ValidationError

from toolcage.errors import PolicyError
from toolcage.policy.entries import EntryCompiler, rule_label
from toolcage.policy.file_format import RoleFile
from toolcage.policy.findings import Findings
from toolcage.policy.flows import Flow
from toolcage.policy.grants import GrantCompiler
from toolcage.policy.model import Case, Entry, Grant, Role, Situation
from toolcage.policy.narrow import narrowed
from toolcage.strict_yaml import Document, KeyPath, parse_document, read_document
from toolcage.types import ToolDeclaration

MAX_ANCESTORS: Final = 8
_SUFFIXES: Final = (".yaml", ".yml")


def load_role(path: Path, declarations: Mapping[str, ToolDeclaration]) -> Role:
    """The role in the file at `path`. Raises PolicyError with every fault of the file, one a line."""
    return _Loader(declarations).load(path)


def load_role_text(
    text: str, name: str, declarations: Mapping[str, ToolDeclaration], *, folder: Path | None = None
) -> Role:
    """The role in `text`; `name` stands for the file's name in messages and rules. Raises PolicyError.

    `folder` is where the files of `extends` are looked for; None = there are none.
    """
    document = parse_document(text.encode("utf-8", "surrogatepass"), name, PolicyError)
    return _Loader(declarations).build(document, folder, ())


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


@dataclass(frozen=True, slots=True)
class _Loader:
    """Loads one file and its ancestors. Each is read once for each child that names it."""

    declarations: Mapping[str, ToolDeclaration]

    def load(self, path: Path, chain: tuple[Path, ...] = ()) -> Role:
        return self.build(read_document(path, PolicyError), path.parent, (*chain, path.resolve()))

    def build(self, document: Document, folder: Path | None, chain: tuple[Path, ...]) -> Role:
        findings = Findings(document)
        try:
            file = RoleFile.model_validate(document.data)
        except ValidationError as cause:
            findings.add_shape_faults(cause)
            findings.raise_if_any()
            raise
        role = _own_role(document, findings, self.declarations, file)
        if "extends" not in file.model_fields_set:
            return role
        ancestors = self._ancestors(document, findings, file, folder, chain)
        findings.raise_if_any()
        _check_ceilings(findings, role, ancestors)
        findings.raise_if_any()
        return narrowed(role, ancestors)

    def _ancestors(
        self, document: Document, findings: Findings, file: RoleFile, folder: Path | None, chain: tuple[Path, ...]
    ) -> list[Role]:
        found = []
        for index, name in enumerate(file.extends):
            where: KeyPath = ("extends", index)
            if folder is None or PurePath(name).is_absolute() or name.startswith("~"):
                findings.add(where, "write the file's path relative to this file")
                continue
            path = folder / name
            if path.resolve() in chain:
                findings.add(where, f"{PurePath(name).name} extends this file in turn; remove one of the two")
            elif len(chain) > MAX_ANCESTORS:
                findings.add(where, f"more than {MAX_ANCESTORS} files above one another; extend fewer")
            else:
                found.append(self.load(path, chain))
        return found


def _own_role(
    document: Document, findings: Findings, declarations: Mapping[str, ToolDeclaration], file: RoleFile
) -> Role:
    compiler = GrantCompiler(
        document=document, findings=findings, declarations=declarations, role=file.role, has_flows=bool(file.flows)
    )
    grants = {tool: grant for tool, item in file.tools.items() if (grant := compiler.grant(tool, item))}
    denies = _denies(document, findings, declarations, file, grants)
    flows = _flows(document, findings, file, grants)
    findings.raise_if_any()
    return Role(
        name=file.role,
        description=file.description,
        source=PurePath(document.name).name,
        digest=hashlib.sha256(rfc8785.dumps(document.data)).hexdigest(),
        grants=MappingProxyType(grants),
        deny=MappingProxyType(denies),
        cases=_cases(document, file),
        flows=flows,
    )


def _denies(
    document: Document,
    findings: Findings,
    declarations: Mapping[str, ToolDeclaration],
    file: RoleFile,
    grants: Mapping[str, Grant],
) -> dict[str, tuple[Entry, ...]]:
    """The file's deny entries by tool. A pattern is resolved here, over the tools that the file grants."""
    made: dict[str, list[Entry]] = {}
    compiler = GrantCompiler(document=document, findings=findings, declarations=declarations, role=file.role)
    for index, item in enumerate(file.deny):
        path: KeyPath = ("deny", index)
        if "*" in item.tool:
            for tool, entry in _pattern_denies(document, findings, item.tool, item.__pydantic_extra__, path, grants):
                made.setdefault(tool, []).append(entry)
            continue
        if item.tool in grants:  # kinds that the grant tightens hold for its denials too
            declaration: ToolDeclaration | None = grants[item.tool].declaration
        else:
            declaration = compiler.declaration(item.tool, (*path, "tool"))
        if declaration is not None:
            entries = EntryCompiler(
                document=document, findings=findings, declaration=declaration, granted={}, tools=declarations
            )
            made.setdefault(item.tool, []).append(entries.compile_entry("deny", item.__pydantic_extra__, path))
    return {tool: tuple(items) for tool, items in made.items()}


def _pattern_denies(
    document: Document,
    findings: Findings,
    pattern: str,
    more: Mapping[str, object],
    path: KeyPath,
    grants: Mapping[str, Grant],
) -> list[tuple[str, Entry]]:
    """A pattern names whole tools: `*` is any run of characters, everything else stands for itself."""
    if more:
        findings.add(path, "arguments beside a tool pattern: not every tool that it matches has them; name the tools")
    entry = Entry(effect="deny", rule=rule_label(document, path), text=rfc8785.dumps({"tool": pattern}).decode())
    return [(tool, entry) for tool in grants if matches_pattern(tool, pattern)]


def matches_pattern(tool: str, pattern: str) -> bool:
    """Whether the tool's full name fits: exact characters, no case folding. Linear in both."""
    first, *rest = pattern.split("*")
    if not rest:
        return tool == pattern
    if not tool.startswith(first):
        return False
    position = len(first)
    for part in rest[:-1]:
        found = tool.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return len(tool) - len(rest[-1]) >= position and tool.endswith(rest[-1])


def _flows(
    document: Document, findings: Findings, file: RoleFile, grants: Mapping[str, Grant]
) -> tuple[Flow, ...]:
    had = frozenset().union(*(grant.declaration.effects for grant in grants.values()))
    made = []
    for index, item in enumerate(file.flows):
        path: KeyPath = ("flows", index)
        stated = item.model_fields_set & {"ask", "deny"}
        if len(stated) != 1:
            findings.add(path, "write either `ask: EFFECT` or `deny: EFFECT`")
            continue
        outcome = "ask" if stated == {"ask"} else "deny"
        effect = item.ask if outcome == "ask" else item.deny
        for word in dict.fromkeys((effect, *item.after)):
            if word not in had:
                findings.add(path, f"never applies: no tool of this role has the effect `{word}`; state it under the"
                                   " tool's `effects`, or remove the flow")  # fmt: skip
        made.append(
            Flow(outcome=outcome, effect=effect, after=frozenset(item.after), rule=rule_label(document, path))  # type: ignore[arg-type]
        )
    return tuple(made)


def _check_ceilings(findings: Findings, role: Role, ancestors: Sequence[Role]) -> None:
    """Findings where the file states what an ancestor takes away again: it would silently not apply."""
    for ancestor in ancestors:
        for tool, grant in role.grants.items():
            path: KeyPath = ("tools", tool)
            above = ancestor.grants.get(tool)
            if above is None:
                findings.add(path, f"{ancestor.source} does not grant {tool}, so every call would be refused; remove"
                                   " it, or grant it there")  # fmt: skip
                continue
            try:
                under = narrowed(role, [ancestor]).grants[tool]
            except ValueError as cause:
                findings.add(path, str(cause))
                continue
            for part, key, name in _weaker(grant, under):
                findings.add((*path, part, key), f"is more than {ancestor.source} grants ({name}); write at most that")


def _weaker(grant: Grant, under: Grant) -> list[tuple[str, str, str]]:
    """The stated keys of sandbox and output whose value would not hold, with the value that would."""
    found = []
    for part, mine, least in (("sandbox", grant.sandbox, under.sandbox), ("output", grant.output, under.output)):
        for key, attribute in grant.stated.get(part, {}).items():
            if getattr(mine, attribute) != getattr(least, attribute) and attribute not in ("runtime", "redact"):
                found.append((part, key, str(getattr(least, attribute))))
    return found


def _cases(document: Document, file: RoleFile) -> tuple[Case, ...]:
    return tuple(
        Case(
            call=item.call,
            args=MappingProxyType(item.args),
            expect=item.expect,
            code=item.code if "code" in item.model_fields_set else None,
            line=document.line(("tests", index)),
            situation=Situation(
                said=(item.said,) if isinstance(item.said, str) else tuple(item.said),
                seen=MappingProxyType(item.seen),
                used=frozenset(item.used),
                facts=MappingProxyType(item.facts),
            ),
        )
        for index, item in enumerate(file.tests)
    )
