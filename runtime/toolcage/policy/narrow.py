"""One role under the ceiling of others: what `extends` and `session.delegate` mean.

The decision is the strictest of the role and every ceiling (see `decide`); here the terms of a call are made the
strictest too: least memory and time, strongest isolation, smallest output, most redaction. Kinds and effects are those
that any of the files states. A tool that some ceiling does not grant is gone. Pure; it can only take away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from types import MappingProxyType
from typing import Final

from toolcage.policy.model import Grant, Role
from toolcage.policy.places import with_egress
from toolcage.types import (
    ISOLATION_STRENGTH,
    EgressTarget,
    HtmlMode,
    Kind,
    OutputTerms,
    SandboxTerms,
    ToolDeclaration,
)

_HTML_STRICTNESS: Final[Mapping[HtmlMode, int]] = MappingProxyType({"keep": 0, "clean": 1, "inert": 2, "escape": 3})
_ON_INJECTION: Final = MappingProxyType({"flag": 0, "ask": 1, "withhold": 2})


def narrowed(role: Role, ceilings: Sequence[Role]) -> Role:
    """`role` under `ceilings` and under theirs. Raises ValueError where no terms would satisfy all of them."""
    flat = _flattened([*role.ceilings, *ceilings])
    if not flat:
        return role
    tools = [tool for tool in role.grants if all(tool in ceiling.grants for ceiling in flat)]
    declarations = {tool: _tightened([item.grants[tool] for item in (role, *flat)]) for tool in tools}
    grants = {tool: _under(role.grants[tool], [item.grants[tool] for item in flat], declarations) for tool in tools}
    return replace(
        role,
        grants=MappingProxyType(grants),
        digest=_digest_of([role, *flat]),
        ceilings=tuple(_as_ceiling(item, declarations) for item in flat),
    )


def _flattened(roles: Sequence[Role]) -> list[Role]:
    """Each role once, its ceilings behind it."""
    found: dict[tuple[str, str], Role] = {}
    for role in roles:
        for item in (role, *role.ceilings):
            found.setdefault((item.source, item.digest), replace(item, ceilings=()))
    return list(found.values())


def _as_ceiling(role: Role, declarations: Mapping[str, ToolDeclaration]) -> Role:
    grants = {tool: replace(role.grants[tool], declaration=made) for tool, made in declarations.items()}
    return replace(role, grants=MappingProxyType(grants), cases=())


def _under(grant: Grant, others: Sequence[Grant], declarations: Mapping[str, ToolDeclaration]) -> Grant:
    sandbox, output, egress, resources = grant.sandbox, grant.output, grant.egress, dict(grant.resources)
    for other in others:
        sandbox = stricter_sandbox(sandbox, other.sandbox, grant.tool)
        output = stricter_output(output, other.output)
        egress = common_egress(egress, other.egress)
        resources = {word: names & other.resources.get(word, frozenset()) for word, names in resources.items()}
    return replace(
        grant, declaration=declarations[grant.tool], sandbox=sandbox, output=output, egress=egress,
        resources=MappingProxyType(resources),
    )  # fmt: skip


def common_egress(first: Sequence[EgressTarget], second: Sequence[EgressTarget]) -> tuple[EgressTarget, ...]:
    """What both permit."""
    found = [target for target in first if any(other.covers(target) for other in second)]
    found += [target for target in second if any(other.covers(target) for other in first)]
    return tuple(dict.fromkeys(found))


def stricter_sandbox(first: SandboxTerms, second: SandboxTerms, tool: str) -> SandboxTerms:
    """The least of both. Raises ValueError for two images, or two runtimes of the engine."""
    if first.image != second.image:
        raise ValueError(f"{tool} is to run in the image {first.image} and in {second.image}; name one image")
    if first.runtime and second.runtime and first.runtime != second.runtime:
        raise ValueError(f"{tool} is to run under {first.runtime} and under {second.runtime}; name one runtime")
    memory = min(first.memory_bytes, second.memory_bytes)
    return SandboxTerms(
        image=first.image,
        isolation=max(first.isolation, second.isolation, key=lambda item: ISOLATION_STRENGTH[item]),
        memory_bytes=memory,
        cpus=min(first.cpus, second.cpus),
        wall_s=min(first.wall_s, second.wall_s),
        pids=min(first.pids, second.pids),
        tmp_bytes=min(first.tmp_bytes, second.tmp_bytes, memory // 2),
        runtime=first.runtime or second.runtime,
    )


def stricter_output(first: OutputTerms, second: OutputTerms) -> OutputTerms:
    """The smaller size, the stricter markup, everything that either redacts."""
    return OutputTerms(
        max_bytes=min(first.max_bytes, second.max_bytes),
        html=max(first.html, second.html, key=lambda item: _HTML_STRICTNESS[item]),
        redact=tuple(dict.fromkeys((*first.redact, *second.redact))),
        on_injection=max(first.on_injection, second.on_injection, key=lambda item: _ON_INJECTION[item]),
    )


def _tightened(grants: Sequence[Grant]) -> ToolDeclaration:
    declarations = [grant.declaration for grant in grants]
    kinds: dict[str, Kind] = {}
    for declaration in declarations:
        for argument, kind in declaration.kinds.items():
            if kinds.setdefault(argument, kind) != kind:
                raise ValueError(
                    f"the argument {argument} of {declaration.name} is {kinds[argument]} in one file and {kind} in"
                    " another; state one kind"
                )
    effects = frozenset().union(*(declaration.effects for declaration in declarations))
    first = declarations[0]
    need = {
        effect: names
        for effect, names in first.effects_need.items()
        if all(item.effects_need.get(effect) == names for item in declarations)
    }
    description = with_egress(first.description, reduce(common_egress, [grant.egress for grant in grants]))
    same = (kinds, effects, need, description)
    if same == (dict(first.kinds), first.effects, dict(first.effects_need), first.description):
        return first
    return replace(
        first, kinds=MappingProxyType(kinds), effects=effects, effects_need=MappingProxyType(need),
        description=description,
    )  # fmt: skip


def _digest_of(roles: Sequence[Role]) -> str:
    return hashlib.sha256("\n".join(role.digest for role in roles).encode()).hexdigest()
