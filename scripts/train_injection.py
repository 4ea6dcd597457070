"""Trains the injection detector's two stages and says how they do on texts that they have not seen.

    .venv/bin/pip install -e '.[train]'
    .venv/bin/python scripts/train_injection.py [--by template|source] [--write]

Attacks: benchmarks/injection/attacks*.txt. Ordinary text: benchmarks/injection/benign*.txt, this project's pages,
Python's own source, documentation and docstrings (PSF-2.0), and descriptions of packages under permissive licences
(`package_pages.txt`, fetched by pip). No public set of attacks is read here: those, and `held_out_*.txt` of the same
folder, are for measuring alone (`make bench-screens`). `weights.json` and `hidden.json` are derived from what is read.

Five folds. `--by template` (a line of our files with all its fillings stays together) is what sets the borders; `--by
source` leaves whole headings out, a harder question. Half of what fills a template's slots is kept for judging: else a
model that knows the fillings by heart seems to know the templates. An attack is a text in which at least one run of
sentences speaks to a model, nobody knows which: a second round trains on the runs that the first found strongest, and
on the ordinary runs that it found hardest. Logistic regression whose features count by how differently they stand in
attacks and in ordinary text (Wang and Manning 2012, "Baselines and Bigrams") says which runs are worth a closer look;
hidden units (`hidden_layer.py`) look, trained on the runs that speak most like attacks. The same result every time.
"""

from __future__ import annotations

import argparse
import ast
import base64
import hashlib
import json
import math
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.injection import FILES, has_slots, texts, with_address
from benchmarks.screens import SPELLINGS
from hidden_layer import BATCH, Layer, Trainer
from package_pages import pages

from toolcage.cleaning.injection import learned, suspect, wording

FOLDS: Final = 5
STRENGTH: Final = 1.0
ROUNDS: Final = 2
STRONGEST: Final = 3
LEAST_TEMPLATES: Final = 3
LEAST_WEIGHT: Final = 0.15
LOOKS_FROM: Final = 0.0
"""The score by weights from which the hidden units look at a run."""
UNSEEN: Final = -20.0
"""The score of a text of which they look at nothing."""
LEAST_TEMPLATES_OF_UNITS: Final = 60
STRONGEST_FOR_UNITS: Final = (3, 2, 1, 1, 1, 1)
"""Runs of an attack by epoch: at first some may be what an attack stands in, later the units know better."""
STRONGEST_OF_ORDINARY: Final = 2
LIBRARY_RUNS_FOR_UNITS: Final = 10_000
LIBRARY_WEIGHT_FOR_UNITS: Final = 1.0
WIDTHS: Final = (1.0, 2.0, 3.0, 4.0, 6.0)
HARD_RUNS_OF_LIBRARY: Final = 8000
LIBRARY_WEIGHT: Final = 0.5
MOST_SENTENCES: Final = 400
SHARE_OF_LIBRARY: Final = 3  # one docstring in so many: they are many and alike
SHARE_OF_FILES: Final = 5
ONE_SPELLED_OF: Final = 20
MOST_OF_A_FILE: Final = 16384
MOST_FALSE: Final = {"everyday": 0.0085, "hard": 0.0375, "library": 0.0175}
"""Of each kind of ordinary text, the share that wording may flag beyond what the rules do."""
EVERYDAY: Final = "benign_everyday:"
WEIGHTS: Final = Path(learned.__file__).parent / "weights.json"
HIDDEN: Final = WEIGHTS.with_name("hidden.json")
RESULTS: Final = Path(__file__).parent.parent / "benchmarks" / "results" / "injection.json"
WITH_FIGURES: Final = "screens.md"
NOTICE: Final = (
    "Derived by scripts/train_injection.py from texts of this project, of the Python documentation (PSF-2.0) and of "
    "packages under permissive licences (scripts/package_pages.txt). "
    "Single words, meanings, and pairs of them with their weights; no text is contained."
)
LIBRARY: Final = "library"
HALVES: Final[tuple[Literal[0, 1], ...]] = (0, 1)
Array = Any  # of numpy: its own types say no more about shapes
Text = tuple[str, str, str, int]
"""Source, template, text, and which half of the slots filled it (-1: it has none)."""


def own(kind: str, each: int) -> Iterator[Text]:
    for name in FILES[kind]:
        for half in HALVES:
            for heading, template, text in texts(name, each, half, half):
                source = f"{name.removesuffix('.txt')}:{heading}"
                if has_slots(template):
                    yield source, template, text, half
                elif half == 0:
                    yield source, template, text, -1


def ordinary() -> Iterator[Text]:
    """Our own ordinary texts, half of them once more with an address, for an address is no attack, and some with their
    letters apart or in leetspeak, for neither is that; Python's; and the pages of packages."""
    chance = random.Random(5)  # noqa: S311 - the same every time is the point
    for source, template, text, half in own("benign", 3):
        yield source, template, text, half
        if _digest(text) % 2 == 0:
            yield source, template, with_address(text, chance), half
        if _digest(text) % ONE_SPELLED_OF == 1:
            between = chance.choice((" ", ".", "-"))
            yield source, template, "   ".join(between.join(word) for word in text.split()[:40]), half
        if _digest(text) % ONE_SPELLED_OF == 2:
            yield source, template, SPELLINGS["leet"](text), half
    yield from own_documentation()
    yield from python_documentation()
    for name, page in pages():
        yield f"{LIBRARY}:{name[:3].lower()}", f"package {name}", page, -1


def own_documentation() -> Iterator[Text]:
    """This project's pages, section by section, but for the one with the figures: they are known after training."""
    root = Path(__file__).parent.parent
    for path in [*sorted(root.glob("*.md")), *sorted(root.glob("docs/**/*.md"))]:
        if path.name == WITH_FIGURES:
            continue
        for section in path.read_text(encoding="utf-8").split("\n## "):
            yield f"{LIBRARY}:{path.stem}", f"{path.stem}/{section.partition(chr(10))[0]}", section, -1


def python_documentation() -> Iterator[Text]:
    """Python's help topics, the docstrings and longer comments of its library, and some of its source."""
    from pydoc_data.topics import topics

    for name, text in topics.items():
        yield f"{LIBRARY}:{name[:3]}", name, text, -1
    library = Path(ast.__file__).parent
    for path in sorted(library.rglob("*.py")):
        if _SKIPPED & set(path.relative_to(library).parts):
            continue
        content = path.read_text(encoding="utf-8", errors="replace")
        said = [text for node in ast.walk(ast.parse(content)) if (text := docstring_of(node))]
        said += [re.sub(r"\n[ \t]*#+ ?", " ", match[0]) for match in _COMMENTS.finditer(content)]
        for text in said:
            if _digest(text) % SHARE_OF_LIBRARY == 0:
                yield f"{LIBRARY}:{path.stem[:2]}", path.stem, text, -1
        if _digest(path.name) % SHARE_OF_FILES == 0:
            yield f"{LIBRARY}:{path.stem[:2]}", path.stem, content[:MOST_OF_A_FILE], -1


def _digest(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def docstring_of(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        return None
    said = ast.get_docstring(node)
    return said if said and len(said) > 80 else None


_SKIPPED: Final = frozenset({"site-packages", "test", "tests", "idle_test", "lib2to3", "pydoc_data", "__pycache__"})
_COMMENTS: Final = re.compile(r"(?:^[ \t]*#+ .{20,}\n){3,}", re.MULTILINE)


class Examples:
    """All texts, and a row for each run of sentences: the features in it, scaled as the detector does."""

    def __init__(self, attacks: list[Text], ordinary: list[Text]) -> None:
        self.texts: list[Text] = []
        self.numbers: dict[str, int] = {}
        labels: list[int] = []
        features, ends, run_of, rows, columns, sizes = [], [0], [], [], [], []
        for label, text in [(1, one) for one in attacks] + [(0, one) for one in ordinary]:
            found = [each for _, _, each in wording.parts(text[2].lower())][:MOST_SENTENCES]
            if not found:
                continue
            first = len(ends) - 1
            for each in found:
                features += [self.numbers.setdefault(name, len(self.numbers)) for name in sorted(each)]
                ends.append(len(features))
            for length in range(1, learned.WINDOW + 1):
                for start in range(len(found) - length + 1):
                    rows += [len(run_of)] * length
                    columns += range(first + start, first + start + length)
                    sizes.append(wording.scale(sum(map(len, found[start : start + length]))))
                    run_of.append(len(labels))
            labels.append(label)
            self.texts.append(text)
        sentences = sparse.csr_matrix(
            (np.ones(len(features), dtype=np.float32), features, ends), shape=(len(ends) - 1, len(self.numbers))
        )
        members = sparse.csr_matrix(
            (np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(len(run_of), len(ends) - 1)
        )
        self.runs = (sparse.diags_array(np.array(sizes, dtype=np.float32)) @ (members @ sentences)).tocsr()
        self.run_of, self.label = np.array(run_of), np.array(labels)
        templates: dict[tuple[str, str], int] = {}
        self.template = np.array([templates.setdefault(text[:2], len(templates)) for text in self.texts])
        self.weight = 1.0 / np.bincount(self.template)[self.template]
        self.half = np.array([text[3] for text in self.texts])
        self.library = np.array([text[0].startswith(LIBRARY) for text in self.texts])

    def folds(self, by: str) -> Array:
        kept = [f"{text[0]}/{text[1]}" if by == "template" else text[0] for text in self.texts]
        return np.array([_digest(one) % FOLDS for one in kept])

    def best(self, scores: Array) -> Array:
        """The score of the strongest run of each text."""
        found = np.full(len(self.texts), UNSEEN)
        np.maximum.at(found, self.run_of, scores)
        return found

    def strongest(self, scores: Array, runs: Array, most: int) -> Array:
        """Of these runs the strongest of each text, at most so many."""
        return _strongest(scores, self.run_of, runs, most)


def _strongest(scores: Array, text: Array, rows: Array, most: int) -> Array:
    order = np.lexsort((-scores[rows], text[rows]))
    ranked = text[rows][order]
    return rows[order][np.arange(len(ranked)) - np.searchsorted(ranked, ranked) < most]


@dataclass(frozen=True, slots=True)
class Stages:
    """Weights by feature number and a bias; the numbers of the features that units have rows for, and the units."""

    weights: Array
    bias: float
    known: Array
    layer: Layer

    def scores(self, runs: Array) -> Array:
        """What the detector makes of each run."""
        by_weights = runs @ self.weights + self.bias
        looked = np.flatnonzero(by_weights >= LOOKS_FROM)
        found = np.full(runs.shape[0], UNSEEN)
        by_units = self.layer.scores(runs[looked][:, self.known])
        found[looked] = (1 - learned.SHARE_OF_UNITS) * by_weights[looked] + learned.SHARE_OF_UNITS * by_units
        return found


def train(examples: Examples, kept: Array) -> Stages:
    """Both stages, from the texts that `kept` marks."""
    rows = np.flatnonzero(kept[examples.run_of])
    held = _held(examples, rows)
    weights, bias = train_weights(examples, rows, held)
    weights[np.abs(weights) < LEAST_WEIGHT] = 0
    known = np.flatnonzero(_templates_with(held) >= LEAST_TEMPLATES_OF_UNITS)
    scores = examples.runs @ weights + bias
    for epoch in range(len(STRONGEST_FOR_UNITS)):
        chosen, label, weight = _runs_for_units(examples, kept, scores, STRONGEST_FOR_UNITS[epoch])
        if epoch == 0:
            trainer = Trainer(len(known), len(STRONGEST_FOR_UNITS) * (len(chosen) // BATCH))
        trainer.epoch(examples.runs[chosen][:, known].tocsr(), label, weight)
        scores = trainer.layer.scores(examples.runs[:, known])
    return Stages(weights, bias, known, trainer.layer)


def _runs_for_units(examples: Examples, kept: Array, scores: Array, most: int) -> tuple[Array, Array, Array]:
    """The runs that speak most like attacks, of attacks and of ordinary texts; their labels and weights."""
    text = examples.run_of
    attack, library = examples.label[text] == 1, examples.library[text]
    attacks = examples.strongest(scores, np.flatnonzero(attack & kept[text]), most)
    others = examples.strongest(scores, np.flatnonzero(~attack & ~library & kept[text]), STRONGEST_OF_ORDINARY)
    easy = np.flatnonzero(~attack & library & kept[text])
    chosen = np.concatenate([attacks, others, easy[np.argsort(-scores[easy], kind="stable")[:LIBRARY_RUNS_FOR_UNITS]]])
    weight = np.where(library[chosen], LIBRARY_WEIGHT_FOR_UNITS, examples.weight[text[chosen]])
    weight[: len(attacks)] /= np.bincount(text[attacks], minlength=len(examples.texts))[text[attacks]]
    return chosen, examples.label[text[chosen]].astype(np.float32), weight.astype(np.float32)


def _held(examples: Examples, rows: Array) -> Array:
    """Which features stand in these runs of each template: ones (templates, features)."""
    shape = (examples.template.max() + 1, len(rows))
    template = examples.template[examples.run_of[rows]]
    ones = np.ones(len(rows), dtype=np.float32)
    of_template = sparse.csr_matrix((ones, (template, np.arange(len(rows)))), shape=shape)
    held = (of_template @ examples.runs[rows]).tocsr()
    held.data[:] = 1
    return held


def _templates_with(held: Array) -> Array:
    """In how many templates each feature stands."""
    return np.asarray(held.sum(axis=0)).ravel()


def train_weights(examples: Examples, rows: Array, held: Array) -> tuple[Array, float]:
    """The first stage: weights by feature number and a bias, from these runs. `held`: see `_held`."""
    text = examples.run_of[rows]
    label = examples.label[text]
    known, telling = _features(examples, rows, held)
    runs = (examples.runs[rows][:, known] @ sparse.diags_array(telling)).tocsr()
    library = examples.library[text]
    attack, hard, others = (
        np.flatnonzero(one) for one in (label == 1, (label == 0) & ~library, (label == 0) & library)
    )
    chosen, easy = attack, others[:: max(1, len(others) // HARD_RUNS_OF_LIBRARY)]
    model = LogisticRegression(C=STRENGTH, max_iter=300, tol=1e-4)
    for round_ in range(ROUNDS):
        used = np.concatenate([chosen, hard, easy])
        per_text = np.bincount(text[chosen], minlength=len(examples.texts))
        share = np.where(library[used], LIBRARY_WEIGHT, examples.weight[text[used]])
        share[: len(chosen)] /= per_text[text[chosen]]
        model.fit(runs[used], label[used], sample_weight=share)
        if round_ + 1 < ROUNDS:
            score = runs @ model.coef_[0] + model.intercept_[0]
            chosen = _strongest(score, text, attack, STRONGEST)
            easy = others[np.argsort(-score[others], kind="stable")[:HARD_RUNS_OF_LIBRARY]]
    weights = np.zeros(examples.runs.shape[1])
    weights[known] = model.coef_[0] * telling
    return weights, float(model.intercept_[0])


def _features(examples: Examples, rows: Array, held: Array) -> tuple[Array, Array]:
    """The features of enough templates, and how much each tells: the root of its log ratio."""
    text = examples.run_of[rows]
    attack, library = np.zeros(held.shape[0]), np.zeros(held.shape[0])
    attack[examples.template[text]] = examples.label[text]
    library[examples.template[text]] = examples.library[text]
    known = np.flatnonzero(_templates_with(held) >= LEAST_TEMPLATES)
    held = held[:, known]
    plain = (1 - attack) * np.where(library > 0, 0.15, 1.0)
    in_attack, in_plain = held.T @ attack + 0.5, held.T @ plain + 0.5
    ratio = np.log((in_attack / attack.sum()) / (in_plain / plain.sum()))
    return known, np.sqrt(np.abs(ratio)) + 0.05


def unseen_scores(examples: Examples, by: str) -> Array:
    """Each text's score by stages that saw neither its fold nor the half of the slots that fills it."""
    folds, scores = examples.folds(by), np.zeros(len(examples.texts))
    for fold in range(FOLDS):
        stages = train(examples, (folds != fold) & (examples.half != 1))
        scores[folds == fold] = examples.best(stages.scores(examples.runs))[folds == fold]
        print(f"fold {fold}", flush=True)
    return scores


class Judged:
    """What rules alone make of the texts that are judged, and what a model that has not seen them does."""

    def __init__(self, examples: Examples, scores: Array) -> None:
        counted = np.flatnonzero(examples.half != 0)
        judged = [examples.texts[place] for place in counted]
        nothing = learned.Model(weights={}, bias=-1.0, low=0.0, high=1.0)
        self.rules = np.array([suspect(one[2], nothing).score for one in judged])
        self.scores, self.weight, self.attack = scores[counted], examples.weight[counted], examples.label[counted] == 1
        self.source = [one[0].partition(":")[0] for one in judged]
        library = examples.library[counted]
        everyday = np.array([one[0].startswith(EVERYDAY) for one in judged])
        self.ordinary = {"everyday": everyday, "hard": ~self.attack & ~library & ~everyday, "library": library}

    def both(self, low: float, high: float) -> Array:
        return self.rules + np.where(self.scores > low, np.minimum(1.2, (self.scores - low) / (high - low)), 0.0) >= 1.0

    def share(self, flagged: Array, of: Array) -> float:
        return float((flagged * self.weight)[of].sum() / self.weight[of].sum())

    def borders(self) -> tuple[float, float]:
        """The two scores between which the signal grows: the most attacks at the false alarms that are allowed."""
        by_rules = {kind: self.share(self.rules >= 1.0, of) for kind, of in self.ordinary.items()}
        hard = np.sort(self.scores[self.ordinary["hard"]])
        best = (-1.0, float(hard[-1]), float(hard[-1]) + 1.0)  # nothing is flagged by wording alone
        for high in np.quantile(hard, np.linspace(0.94, 1.0, 121)):
            for low in (high - width for width in WIDTHS):
                flagged = self.both(low, high)
                if all(
                    self.share(flagged, of) - by_rules[kind] <= MOST_FALSE[kind] for kind, of in self.ordinary.items()
                ):
                    best = max(best, (self.share(flagged, self.attack), float(low), float(high)))
        return best[1], best[2]

    def table(self, low: float, high: float) -> dict[str, dict[str, float]]:
        """Percent flagged, by file."""
        verdicts = {"rules": self.rules >= 1.0, "model": self.scores >= high, "both": self.both(low, high)}
        groups: dict[str, list[int]] = defaultdict(list)
        for place, source in enumerate(self.source):
            groups[source].append(place)
            groups["all attacks" if self.attack[place] else "all ordinary"].append(place)
        figures = {}
        for group, places in sorted(groups.items()):
            of = np.array(places)
            shares = {f"{name}, %": round(100 * self.share(flagged, of), 1) for name, flagged in verdicts.items()}
            figures[group] = {"texts": len(places)} | shares
        return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by", choices=("template", "source"), default="template", help="what stays in one fold")
    parser.add_argument("--write", action="store_true", help="train on everything, write weights.json and the results")
    options = parser.parse_args()
    examples = Examples([*own("attacks", 4)], [*ordinary()])
    print(f"{len(examples.texts)} texts, {examples.label.sum()} of them attacks", flush=True)
    judged = Judged(examples, unseen_scores(examples, options.by))
    low, high = judged.borders()
    figures = judged.table(low, high)
    print(f"the signal grows from {low:.2f} to {high:.2f}")
    for group, shares in figures.items():
        print(f"  {group:45}" + "".join(f"{name} {value:6}  " for name, value in shares.items()))
    if options.write:
        write(examples, low, high, figures)


def write(examples: Examples, low: float, high: float, figures: Mapping[str, object]) -> None:
    measured = {"measured": "injection", "flagged by a model that had not seen the template": figures}
    RESULTS.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    stages = train(examples, np.full(len(examples.texts), fill_value=True))
    names = [*examples.numbers]
    kept = {names[n]: round(float(stages.weights[n]), 2) for n in np.flatnonzero(stages.weights)}
    weights = {"notice": NOTICE, "bias": round(stages.bias, 4), "weights": dict(sorted(kept.items()))}
    _write(WEIGHTS, weights)
    units = _as_bytes(stages, names) | {"low": round(low, 3), "high": round(high, 3), "looks_from": LOOKS_FROM}
    _write(HIDDEN, {"notice": NOTICE} | units)
    print(f"wrote {len(kept)} weights, the strongest {max(map(math.fabs, kept.values()))}; {len(stages.known)} rows")


def _as_bytes(stages: Stages, names: list[str]) -> dict[str, object]:
    """The units as `hidden.Hidden` reads them: every number of a row as a byte of 128 and so many steps."""
    layer, order = stages.layer, sorted(range(len(stages.known)), key=lambda n: names[stages.known[n]])
    step = float(np.abs(layer.rows).max()) / 127
    rows = (np.round(layer.rows[order] / step) + 128).astype(np.uint8)
    return {
        "features": "\n".join(names[stages.known[n]] for n in order),
        "rows": base64.b64encode(rows.tobytes()).decode(),
        "thresholds": [round(float(one), 5) for one in layer.thresholds],
        "outputs": [round(float(one), 5) for one in layer.outputs],
        "step": step,
        "bias": round(float(layer.bias[0]), 5),
    }


def _write(path: Path, content: Mapping[str, object]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
