"""The words of an attestation: what was seen of one cage, and what was found of one property."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolcage.cage.spec import CageSpec

Verdict = Literal["holds", "fails", "not_applicable"]
REFUSED: Final = frozenset({"EPERM", "ENOSYS", "EACCES"})
_EVIDENCE_CHARS: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found of the property `id`, with the evidence in one line."""

    id: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that the judges look at. `inside` is the probe's answer; `container`, `image`, `history` and `engine` are the
    engine's own words; `host_name` and `canary` stand for what must not be seen."""

    spec: CageSpec
    accepted_ids: frozenset[str]
    inside: Mapping[str, Any]
    container: Mapping[str, Any]
    image: Mapping[str, Any]
    history: list[Mapping[str, Any]]
    engine: Mapping[str, Any]
    host_name: str
    canary: str


Judge = Callable[[Seen], Iterable[Finding]]


def found(number: str, problems: object, evidence: object) -> Finding:
    """Holds when `problems` is empty; else the problems are the evidence."""
    if problems:
        return Finding(id=number, verdict="fails", evidence=_line(problems))
    return Finding(id=number, verdict="holds", evidence=_line(evidence))


def not_applicable(number: str, why: str) -> Finding:
    return Finding(id=number, verdict="not_applicable", evidence=why)


def allowed_of(answers: Mapping[str, Any], names: Iterable[str] | None = None) -> dict[str, Any]:
    """Those attempts that were not refused."""
    return {name: answers[name] for name in (answers if names is None else names) if answers[name] not in REFUSED}


def _line(value: object) -> str:
    text = value if isinstance(value, str) else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _EVIDENCE_CHARS else text[:_EVIDENCE_CHARS] + " …"
