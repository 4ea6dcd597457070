"""Rules of a role that can never decide anything: what a reviewer would otherwise believe to be in force.

A rule is idle when another one always decides first: a deny that holds whenever it does, an ask before an allow, the
same condition twice. One entry covers another when everything it demands is demanded, word for word, by the other too;
that is certain, and misses coverings that only reasoning about values would find. Idle
rules are warnings and no faults: each makes the role stricter than it reads, never wider. (Flows that never apply are
faults and do not load.) Pure; looks at the compiled role alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolcage.policy.model import Entry, Grant, Role, sink_arguments

_Demands: TypeAlias = frozenset[tuple[str, str, str]]
"""(group, name, the condition as canonical text) of each thing that must hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """One rule that never decides (`rule` is its `file:line: path`), and why."""

    rule: str
    why: str


def idle_rules(role: Role) -> tuple[Idle, ...]:
    """Every rule of the role's own file that never decides, in the file's order of tools. Empty = all may."""
    return tuple(_idle_rules(role))


def _idle_rules(role: Role) -> Iterator[Idle]:
    for tool, grant in role.grants.items():
        yield from _idle_entries(grant, role.deny.get(tool, ()))


def _idle_entries(grant: Grant, above: tuple[Entry, ...]) -> Iterator[Idle]:
    stronger = [(entry, _demands(entry, whole_file=True)) for entry in above]
    for entries in (grant.deny, grant.ask, grant.allow):
        listed = [(entry, _demands(entry) | _absent(entry, grant)) for entry in entries]
        for position, (entry, demanded) in enumerate(listed):
            if by := _cover(demanded, [*stronger, *listed[:position]]):
                yield Idle(rule=entry.rule, why=f"{by.rule} ({by.effect}) holds whenever this does, and decides first")
            elif entry.sql_terms() is None and (by := _cover(demanded, _wider(demanded, listed[position + 1 :]))):
                yield Idle(rule=entry.rule, why=f"{by.rule} permits or refuses the same and more")
        stronger += listed


def _cover(demanded: _Demands, others: Iterable[tuple[Entry, _Demands]]) -> Entry | None:
    """The first of the others that matches whatever demands all this."""
    return next((other for other, demands in others if demands <= demanded), None)


def _wider(
    demanded: _Demands, others: Iterable[tuple[Entry, _Demands]]
) -> Iterator[tuple[Entry, _Demands]]:
    """Those that demand something else: of two equal entries only the second is idle."""
    return ((other, demands) for other, demands in others if demands != demanded)


def _demands(entry: Entry, *, whole_file: bool = False) -> _Demands:
    """What an entry demands. A denial of the whole file may name a tool pattern beside that, which holds already."""
    raw: dict[str, Any] = json.loads(entry.text)
    if whole_file:
        raw.pop("tool", None)
    found = set()
    for name, value in raw.items():
        if name in ("origin", "facts", "arguments") and isinstance(value, dict):
            group = "argument" if name == "arguments" else name
            found |= {(group, inner, _text(condition)) for inner, condition in value.items()}
        else:
            found.add(("argument", name, _text(value)))
    return frozenset(found)


def _absent(entry: Entry, grant: Grant) -> _Demands:
    """An entry under `allow` also demands that the sinks which it does not name are not there."""
    sinks = sink_arguments(grant.declaration) if entry.effect == "allow" else ()
    return frozenset(("absent", name, "") for name in sinks if not entry.names(name))


def _text(condition: Any) -> str:
    return json.dumps(condition, sort_keys=True)

