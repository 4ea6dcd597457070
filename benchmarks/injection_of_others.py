"""What the injection detector makes of texts that others wrote and published in packages of their own.

`make bench-injection-others` fetches the packages (pinned, as data: nothing of them is installed or run) and writes
`benchmarks/results/injection_of_others.json`. No text of theirs is trained on, and none is kept here. The sets judge
what our own cannot: whether the detector knows attacks as other people write them.

- PyRIT (MIT): templates of jailbreaks, most of them collected where people share them.
- spikee (Apache-2.0): documents into which a jailbreak with an instruction is put, in English and in four languages
  that few texts are written in; and questions of customers, which are ordinary.
- AgentDojo (MIT): the mails, files, calendars and pages of its worlds, without attacks.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor

from benchmarks.screens import CORPORA, wrapped
from toolcage.cleaning.injection import suspect

PACKAGES: Final = ("pyrit==1.1.0", "spikee==0.9.2", "agentdojo==0.1.35")
_SEEDS: Final = "spikee/data/workspace/datasets/"
_PLACES: Final = ("before", "between", "after")
_EACH: Final = 4
_LEAST_TEXT: Final = 40


def run() -> dict[str, Any]:
    """How many of each set are flagged, or a note where there is nothing to put attacks into."""
    if not CORPORA.is_dir():
        return {"skipped": "no ../shared/corpora"}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*command, "--dest", folder, *PACKAGES], check=True)
        wheels = sorted(Path(folder).glob("*.whl"))
        packages = {path.name.partition("-")[0]: opened.enter_context(zipfile.ZipFile(path)) for path in wheels}
        attacks, ordinary = _attacks(packages), _ordinary(packages)
    return {
        "packages": list(PACKAGES),
        "attacks": {name: _share(texts) for name, texts in attacks.items()},
        "ordinary": {name: _share(texts) for name, texts in ordinary.items()},
    }


def _attacks(packages: dict[str, zipfile.ZipFile]) -> dict[str, list[str]]:
    chance = random.Random(7)
    found = {"PyRIT: jailbreaks": [wrapped(text, chance) for text in _jailbreaks(packages["pyrit"])]}
    for language, text in _documents_with_attacks(packages["spikee"], chance):
        found.setdefault(f"spikee: attacks in documents, {language}", []).append(text)
    return found


def _ordinary(packages: dict[str, zipfile.ZipFile]) -> dict[str, list[str]]:
    inputs = _lines(packages["spikee"], "seeds-investment-advice-fp/standalone_user_inputs")
    return {
        "spikee: questions of customers": [one["text"] for one in inputs],
        "AgentDojo: mails, files, calendars, pages": list(_worlds(packages["agentdojo"])),
    }


def _jailbreaks(package: zipfile.ZipFile) -> Iterator[str]:
    reader = YAML(typ="safe")
    for name in sorted(package.namelist()):
        if name.startswith("pyrit/datasets/jailbreak/templates/") and name.endswith(".yaml"):
            yield reader.load(package.read(name))["value"]


def _documents_with_attacks(package: zipfile.ZipFile, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Each jailbreak with some instructions of its language, somewhere in a document; and which kind of language."""
    for seeds in ("seeds-cybersec-2026-01", "seeds-llm-mailbox", "seeds-sysmsg-extraction-2025-04"):
        documents = [one["document"] for one in _lines(package, f"{seeds}/base_user_inputs")]
        documents = [text for text in documents if len(text) > _LEAST_TEXT]
        instructions = _lines(package, f"{seeds}/instructions")
        for jailbreak in _lines(package, f"{seeds}/jailbreaks"):
            language = jailbreak.get("lang", "en")
            same = [one["instruction"] for one in instructions if one.get("lang", "en") == language]
            for _ in range(_EACH if same else 0):
                attack = jailbreak["text"].replace("<INSTRUCTION>", chance.choice(same))
                yield "English" if language == "en" else "other languages", _put_into(attack, documents, chance)


def _put_into(attack: str, documents: list[str], chance: random.Random) -> str:
    document = chance.choice(documents)
    middle = document.rfind(" ", 0, len(document) // 2)
    match chance.choice(_PLACES):
        case "before":
            return f"{attack}\n{document}"
        case "between":
            return f"{document[:middle]}\n{attack}\n{document[middle + 1 :]}"
        case _:
            return f"{document}\n{attack}"


class _WithoutIncludes(SafeConstructor):
    """What a file includes is read by itself."""


_WithoutIncludes.add_multi_constructor("!", lambda *_: None)


def _worlds(package: zipfile.ZipFile) -> Iterator[str]:
    """The longer texts of AgentDojo's environments; where attacks would stand, nothing stands."""
    for name in sorted(package.namelist()):
        if name.startswith("agentdojo/data/suites/") and name.endswith(".yaml") and "injection" not in name:
            content = package.read(name).decode()
            reader = YAML(typ="safe", pure=True)
            reader.Constructor = _WithoutIncludes
            yield from _texts(reader.load(content))


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            text = _without_slots(value)
            if len(text) > _LEAST_TEXT:
                yield text
        case dict():
            for each in value.values():
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)


def _without_slots(text: str) -> str:
    return " ".join(word for word in text.split(" ") if not word.startswith("{injection")).strip()


def _lines(package: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    content = package.read(f"{_SEEDS}{name}.jsonl").decode()
    return [json.loads(line) for line in content.split("\n") if line.strip()]


def _share(texts: list[str]) -> str:
    flagged = sum(suspect(text).suspected for text in texts)
    return f"{flagged} of {len(texts)} ({100 * flagged / max(1, len(texts)):.1f} %)"
