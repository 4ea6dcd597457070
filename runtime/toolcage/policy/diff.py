"""What a role gained and lost between two policy files: the difference that a reviewer signs.

Compares what was compiled, not text: order, comments and spelling do not matter. `gained` is whatever may permit more
than before, `lost` whatever may permit less; a change that cannot be ordered is both. It compares rule by rule and does
not prove anything about calls: an added allow entry counts as gained even where another one covers it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from toolcage.policy.model import Entry, Grant, Role
from toolcage.policy.narrow import stricter_output, stricter_sandbox
from toolcage.quantities import size_text

Direction = Literal["gained", "lost"]
_SIZES: Final = ("memory_bytes", "tmp_bytes", "max_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference. `tool` is '' for what concerns the whole role."""

    direction: Direction
    tool: str
    text: str


def compare(old: Role, new: Role) -> tuple[Change, ...]:
    """Every difference from `old` to `new`, by tool. Empty = the same role."""
    return tuple(_changes(old, new))


def _changes(old: Role, new: Role) -> Iterator[Change]:
    yield from _whole(old, new)
    for tool in sorted(old.grants.keys() | new.grants.keys()):
        before, after = old.grants.get(tool), new.grants.get(tool)
        if before is None:
            yield Change(direction="gained", tool=tool, text="the tool itself")
        elif after is None:
            yield Change(direction="lost", tool=tool, text="the tool itself")
        else:
            yield from _grant(tool, before, after)
            yield from _entries(tool, "deny (of the file)", old.deny.get(tool, ()), new.deny.get(tool, ()), "lost")


def _whole(old: Role, new: Role) -> Iterator[Change]:
    flows = [{(f.outcome, f.effect, tuple(sorted(f.after))) for f in role.flows} for role in (old, new)]
    for outcome, effect, after in sorted(flows[1] - flows[0]):
        yield Change(direction="lost", tool="", text=f"flow: {outcome} {effect} after {', '.join(after)}")
    for outcome, effect, after in sorted(flows[0] - flows[1]):
        yield Change(direction="gained", tool="", text=f"flow removed: {outcome} {effect} after {', '.join(after)}")
    above = [{(c.source, c.digest) for c in role.ceilings} for role in (old, new)]
    for source, _ in sorted(above[1] - above[0]):
        yield Change(direction="lost", tool="", text=f"now under this version of {source}")
    for source, _ in sorted(above[0] - above[1]):
        yield Change(direction="gained", tool="", text=f"no longer under that version of {source}")


def _grant(tool: str, old: Grant, new: Grant) -> Iterator[Change]:
    yield from _entries(tool, "allow", old.allow, new.allow, "gained")
    yield from _entries(tool, "ask", old.ask, new.ask, "gained")
    # an ask entry both permits, once a person agrees, and takes away what was allowed unasked
    yield from _entries(tool, "ask", old.ask, new.ask, "lost")
    yield from _entries(tool, "deny", old.deny, new.deny, "lost")
    yield from _resources(tool, old, new)
    yield from _egress(tool, old, new)
    yield from _effects(tool, old, new)
    yield from _limits(tool, old, new)
    yield from _terms(tool, old, new)


def _entries(
    tool: str, words: str, old: Iterable[Entry], new: Iterable[Entry], when_added: Direction
) -> Iterator[Change]:
    before, after = {entry.text for entry in old}, {entry.text for entry in new}
    when_removed: Direction = "lost" if when_added == "gained" else "gained"
    for text in sorted(after - before):
        yield Change(direction=when_added, tool=tool, text=f"{words}: {text}")
    for text in sorted(before - after):
        yield Change(direction=when_removed, tool=tool, text=f"{words} removed: {text}")


def _resources(tool: str, old: Grant, new: Grant) -> Iterator[Change]:
    for argument in sorted(old.resources.keys() | new.resources.keys()):
        before, after = old.resources.get(argument, frozenset()), new.resources.get(argument, frozenset())
        for name in sorted(after - before):
            yield Change(direction="gained", tool=tool, text=f"{argument}: {name}")
        for name in sorted(before - after):
            yield Change(direction="lost", tool=tool, text=f"{argument}: {name}")


def _egress(tool: str, old: Grant, new: Grant) -> Iterator[Change]:
    for target in sorted(set(new.egress) - set(old.egress), key=str):
        covered = any(other.covers(target) for other in old.egress)
        yield Change(direction="lost" if covered else "gained", tool=tool, text=f"egress: {target}")
    for target in sorted(set(old.egress) - set(new.egress), key=str):
        covered = any(other.covers(target) for other in new.egress)
        if not covered:
            yield Change(direction="lost", tool=tool, text=f"egress removed: {target}")


def _effects(tool: str, old: Grant, new: Grant) -> Iterator[Change]:
    before, after = old.declaration, new.declaration
    for effect in sorted(after.effects - before.effects):
        yield Change(direction="lost", tool=tool, text=f"now counts as a tool that {effect}")
    for effect in sorted(before.effects - after.effects):
        yield Change(direction="gained", tool=tool, text=f"no longer counts as a tool that {effect}")
    for argument in sorted(before.kinds.keys() | after.kinds.keys()):
        kinds = before.kinds.get(argument, "text"), after.kinds.get(argument, "text")
        if kinds[0] != kinds[1]:
            direction: Direction = "lost" if kinds[0] == "text" else "gained"
            yield Change(direction=direction, tool=tool, text=f"{argument} is read as {kinds[1]}, was {kinds[0]}")


def _limits(tool: str, old: Grant, new: Grant) -> Iterator[Change]:
    before = {(limit.measure, limit.span): limit.amount for limit in old.limits}
    after = {(limit.measure, limit.span): limit.amount for limit in new.limits}
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key), after.get(key)
        if was == now:
            continue
        more = now is None or (was is not None and now > was)
        shown = f"{key[0]} per {key[1]}: {was or 'unlimited'} → {now or 'unlimited'}"
        yield Change(direction="gained" if more else "lost", tool=tool, text=shown)


def _terms(tool: str, old: Grant, new: Grant) -> Iterator[Change]:
    try:
        sandbox = stricter_sandbox(old.sandbox, new.sandbox, tool)
    except ValueError as cause:
        yield Change(direction="gained", tool=tool, text=f"another cage: {cause}")
        yield Change(direction="lost", tool=tool, text=f"another cage: {cause}")
        sandbox = None
    output = stricter_output(old.output, new.output)
    for before, after, strict in ((old.sandbox, new.sandbox, sandbox), (old.output, new.output, output)):
        for item in fields(before) if strict is not None else ():
            was, now = getattr(before, item.name), getattr(after, item.name)
            if was == now:
                continue
            looser = now != getattr(strict, item.name)
            shown = f"{item.name}: {_shown(item.name, was)} → {_shown(item.name, now)}"
            yield Change(direction="gained" if looser else "lost", tool=tool, text=shown)


def _shown(name: str, value: Any) -> str:
    if name in _SIZES:
        return size_text(value)
    return ", ".join(value) or "nothing" if isinstance(value, tuple) else str(value)
