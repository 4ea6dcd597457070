"""`toolcage scan KIND FILE.jsonl`: one screen or detector over a corpus, and what it made of it.

Reads lines with a `text`. Screens *refuse* (sql, path, url, shell, python, html, text), detectors *flag* (injection,
secrets; for shell and python the labels and findings that never refuse). Nothing of the corpus is run. Texts are
printed spelled out: they hold live escape sequences. Exit codes: 0 done, 2 usage.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from toolcage.cleaning.injection import suspect
from toolcage.cleaning.secrets import find_secrets
from toolcage.errors import Refused, UsageError
from toolcage.facts.python_findings import findings
from toolcage.facts.read import read_facts
from toolcage.facts.shell import ShellFacts
from toolcage.screens import screen_facts
from toolcage.types import Kind

ScanKind = Literal["sql", "path", "url", "shell", "python", "html", "text", "injection", "secrets"]
Dialect = Literal["sqlite", "postgres"]
_LONGEST_SHOWN: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one text met: the refusal's code or '', and the codes of what was flagged."""

    refused: str = ""
    flags: tuple[str, ...] = ()
    why: str = ""


@dataclass(slots=True, kw_only=True)
class Tally:
    """The counts of a scan. `passed` is what was not refused; a flagged text counts as passed too, unless it is a
    detector's scan, where `passed` is what was not flagged."""

    total: int = 0
    passed: int = 0
    refused: int = 0
    flagged: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    characters: int = 0
    seconds: float = 0.0
    concerned: list[tuple[str, Verdict]] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """The figures, as `--json` prints them."""
        return {
            "total": self.total,
            "passed": self.passed,
            "refused": self.refused,
            "flagged": self.flagged,
            "codes": dict(sorted(self.codes.items())),
            "ms_per_kb": round(1000 * self.seconds / max(1.0, self.characters / 1024), 4),
        }


def scan(
    kind: Annotated[ScanKind, typer.Argument(help="sql, path, url, shell, python, html, text, injection or secrets.")],
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help='Lines such as {"text": "…"}.')],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Print the texts that were refused or flagged.")] = False,
    dialect: Annotated[Dialect, typer.Option(help="For sql: sqlite or postgres.")] = "sqlite",
) -> None:
    """Run one screen or detector over a file of texts and count what it refuses or flags."""
    tally = run(kind, load_texts(file), dialect)
    if as_json:
        document = tally.as_json()
        if listed:
            document["texts"] = [
                {"text": text, "code": verdict.refused or ",".join(verdict.flags), "why": verdict.why}
                for text, verdict in tally.concerned
            ]
        typer.echo(json.dumps(document))
        return
    if listed:
        for text, verdict in tally.concerned:
            typer.echo(f"{verdict.refused or ','.join(verdict.flags)}\t{_shown(text)}\t{verdict.why}")
    figures = tally.as_json()
    typer.echo(
        f"{kind}: {tally.total} texts, {tally.passed} passed, {tally.refused} refused, {tally.flagged} flagged, "
        f"{figures['ms_per_kb']} ms/KB"
    )
    for code, count in tally.codes.most_common():
        typer.echo(f"  {count:6} {code}")


def load_texts(file: Path) -> list[str]:
    """The texts of a JSON Lines file. Raises UsageError for a file or line that cannot be read."""
    try:
        content = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{file.name} cannot be read: {why}") from error
    texts: list[str] = []
    # Not splitlines: a JSON text may hold U+2028.
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            text = json.loads(line)["text"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UsageError(f"{file.name}:{number} is not a JSON object with a `text`") from error
        if not isinstance(text, str):
            raise UsageError(f"{file.name}:{number}: `text` is not a text")
        texts.append(text)
    return texts


def run(kind: ScanKind, texts: Iterable[str], dialect: Dialect = "sqlite") -> Tally:
    """The tally of `kind` over `texts`."""
    judge = judge_of(kind, dialect)
    detects = kind in ("injection", "secrets")
    judge("SELECT 1")  # what is loaded and compiled once is not a text's time
    tally = Tally()
    for text in texts:
        started = time.perf_counter()
        verdict = judge(text)
        tally.seconds += time.perf_counter() - started
        tally.total += 1
        tally.characters += len(text)
        tally.refused += bool(verdict.refused)
        tally.flagged += bool(verdict.flags)
        tally.passed += not (verdict.refused or (detects and verdict.flags))
        tally.codes.update([verdict.refused] if verdict.refused else [])
        tally.codes.update(set(verdict.flags))
        if verdict.refused or verdict.flags:
            tally.concerned.append((text, verdict))
    return tally


def judge_of(kind: ScanKind, dialect: Dialect = "sqlite") -> Callable[[str], Verdict]:
    """The function that judges one text of this kind. It never raises for a text."""
    match kind:
        case "injection":
            return _injection
        case "secrets":
            return _secrets
        case _:
            return lambda text: _screened(kind, text, dialect)


def _screened(kind: Kind, text: str, dialect: Dialect) -> Verdict:
    flags: Sequence[str] = ()
    try:
        facts = read_facts(kind, text, dialect=dialect)
        if isinstance(facts, ShellFacts):
            flags = [f"shell.{label}" for label in sorted(facts.labels)]
        elif kind == "python":
            flags = sorted({f"python.{one.concern}" for one in findings(text)})
        if facts is not None:
            screen_facts(facts)
    except Refused as refused:
        return Verdict(refused=refused.refusal.code, flags=tuple(flags), why=refused.refusal.message)
    return Verdict(flags=tuple(flags))


def _injection(text: str) -> Verdict:
    found = suspect(text)
    if not found.suspected:
        return Verdict()
    return Verdict(flags=tuple(f"injection.{signal.name}" for signal in found.signals), why=found.explain())


def _secrets(text: str) -> Verdict:
    return Verdict(flags=tuple(f"secret.{name}" for name in sorted({span[2] for span in find_secrets(text)})))


def _shown(text: str) -> str:
    cut = text[:_LONGEST_SHOWN]
    return ascii(cut) + ("..." if len(text) > len(cut) else "")
