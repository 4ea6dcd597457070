"""Trains the injection detector's linear model and says how it does on templates or sources that it has not seen.

    .venv/bin/python scripts/train_injection.py [--by template|source] [--write]

Attacks: benchmarks/injection/attacks.txt. Ordinary text: benchmarks/injection/benign.txt, and Python's own
documentation and docstrings (PSF-2.0). No public set of attacks is read here: those, and `held_out_*.txt` of the same
folder, are for measuring alone (`make bench-screens`). `weights.json` is derived from what is read.

Five folds. `--by template` (a line of our files with all its fillings stays together) is what sets the borders; `--by
source` leaves whole headings out, a harder question. An attack is a text in which at least one run of sentences speaks
to a model, nobody knows which: each round trains on the runs that the round before found strongest. Pure Python, a few
minutes, the same result every time.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import random
import re
import sys
from collections import Counter, defaultdict
from itertools import chain
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.injection import texts

from toolcage.cleaning.injection import learned, suspect

ROUNDS: Final = 3
EPOCHS: Final = 4
FOLDS: Final = 5
MOST_FEATURES: Final = 9000
LEAST_WEIGHT: Final = 0.02
DECAY: Final = 0.01
BORDERS: Final = (0.93, 0.995)
WEIGHTS: Final = Path(learned.__file__).parent / "weights.json"
RESULTS: Final = Path(__file__).parent.parent / "benchmarks" / "results" / "injection.json"
NOTICE: Final = (
    "Derived by scripts/train_injection.py from texts of this project and of the Python documentation (PSF-2.0). "
    "Single words, meanings, and pairs of them with a weight; no text is contained."
)
Text = tuple[str, str, str]  # source, template, text
SHARE_OF_LIBRARY: Final = 3  # one docstring in so many: they are many and alike


def attacks() -> list[Text]:
    return [(f"own:{source}", template, text) for source, template, text in texts("attacks.txt", 6, 1)]


def ordinary() -> list[Text]:
    own = [(f"own:{source}", template, text) for source, template, text in texts("benign.txt", 4, 2)]
    return own * 3 + python_documentation()


def python_documentation() -> list[Text]:
    """Python's help topics, and the docstrings and longer comments of its library: what people write to each other."""
    from pydoc_data.topics import topics

    made = [(f"topic:{name[:3]}", name, text) for name, text in topics.items()]
    library = Path(ast.__file__).parent
    for path in sorted(library.rglob("*.py")):
        if _SKIPPED & set(path.relative_to(library).parts):
            continue
        content = path.read_text(encoding="utf-8", errors="replace")
        said = [text for node in ast.walk(ast.parse(content)) if (text := docstring_of(node))]
        said += [re.sub(r"\n[ \t]*#+ ?", " ", match[0]) for match in _COMMENTS.finditer(content)]
        said = [text for text in said if _digest(text) % SHARE_OF_LIBRARY == 0]
        made += [(f"library:{path.stem[:2]}", path.stem, text) for text in said]
    return made


def _digest(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def docstring_of(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        return None
    said = ast.get_docstring(node)
    return said if said and len(said) > 80 else None


_SKIPPED: Final = frozenset({"site-packages", "test", "tests", "idle_test", "lib2to3", "pydoc_data", "__pycache__"})
_COMMENTS: Final = re.compile(r"(?:^[ \t]*#+ .{20,}\n){3,}", re.MULTILINE)


class Run:
    """Some sentences: their features by number, and what their weights are multiplied with."""

    __slots__ = ("features", "scale")

    def __init__(self, features: list[int], scale: float) -> None:
        self.features, self.scale = features, scale

    def of(self, known: set[int]) -> Run:
        return Run([feature for feature in self.features if feature in known], self.scale)


NUMBERS: dict[str, int] = {}
"""Every feature has a number; the weights are found by it."""


class Example:
    __slots__ = ("fold", "label", "runs", "source", "template", "text")

    def __init__(self, source: str, template: str, text: str, label: int, by: str) -> None:
        self.source, self.template, self.text, self.label = source, template, text, label
        self.fold = _digest(f"{source}/{template}" if by == "template" else source) % FOLDS
        found = [found for _, _, found in learned.parts(text.lower())][:400]
        alone = [sorted(NUMBERS.setdefault(name, len(NUMBERS)) for name in sorted(each)) for each in found]
        runs = alone + [
            [*chain.from_iterable(alone[i : i + n])]
            for n in range(2, learned.WINDOW + 1)
            for i in range(len(alone) - n + 1)
        ]
        self.runs = [Run(run, learned.scale(len(run))) for run in runs]


def vocabulary(examples: list[Example]) -> set[int]:
    """The features that stand in at least three texts, the most telling first."""
    attack: Counter[int] = Counter()
    plain: Counter[int] = Counter()
    for example in examples:
        counts = attack if example.label else plain
        counts.update({feature for run in example.runs for feature in run.features})
    all_attack = sum(1 for example in examples if example.label)
    all_plain = len(examples) - all_attack

    def tells(feature: int) -> float:
        a, b = (attack[feature] + 0.5) / all_attack, (plain[feature] + 0.5) / all_plain
        return abs(math.log(a / b)) * math.sqrt(attack[feature] + plain[feature])

    kept = [feature for feature in attack.keys() | plain.keys() if attack[feature] + plain[feature] > 2]
    return set(sorted(kept, key=lambda feature: (-tells(feature), feature))[:MOST_FEATURES])


def score(run: Run, weights: list[float], bias: float) -> float:
    return bias + run.scale * sum([weights[feature] for feature in run.features])


def train(examples: list[Example], seed: int = 3) -> tuple[list[float], float]:
    """Logistic regression by AdaGrad with weight decay, on the runs that each round finds strongest."""
    known = vocabulary(examples)
    chance = random.Random(seed)  # noqa: S311 - the same every time is the point
    attack_runs = [[run.of(known) for run in e.runs] for e in examples if e.label]
    plain_runs = [run.of(known) for e in examples if not e.label for run in e.runs]
    weights, bias = [0.0] * len(NUMBERS), 0.0
    for number in range(ROUNDS):
        chosen: list[Run] = []
        border = -math.inf
        if number:
            plain_scores = sorted(score(run, weights, bias) for run in plain_runs)
            border = plain_scores[int(0.98 * len(plain_scores))]
        for runs in attack_runs:
            if number == 0:
                chosen += runs[:16]
                continue
            ranked = sorted(((score(run, weights, bias), i) for i, run in enumerate(runs)), reverse=True)
            chosen += [runs[i] for value, i in ranked[:3] if value > border]
        weights, bias = regress(chosen, plain_runs, chance)
    return weights, bias


def regress(attack: list[Run], plain: list[Run], chance: random.Random) -> tuple[list[float], float]:
    weights, squares, bias = [0.0] * len(NUMBERS), [1.0] * len(NUMBERS), -1.0
    weigh = max(1.0, 0.25 * len(plain) / max(1, len(attack)))
    data = [(run, 1) for run in attack] + [(run, 0) for run in plain]
    for _ in range(EPOCHS):
        chance.shuffle(data)
        for run, label in data:
            total = bias + run.scale * sum([weights[f] for f in run.features])
            error = label - 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))
            error *= weigh if label else 1.0
            if abs(error) < 0.02:
                continue
            bias += 0.002 * error
            for f in run.features:
                gradient = error * run.scale - DECAY * weights[f]
                squares[f] += gradient * gradient
                weights[f] += 0.15 * gradient / math.sqrt(squares[f])
    return weights, bias


def best_run(example: Example, weights: list[float], bias: float) -> float:
    return max((score(run, weights, bias) for run in example.runs), default=-math.inf)


def named(weights: list[float]) -> dict[str, float]:
    """The weights by the names of their features, without those that hardly count."""
    return {name: round(weights[n], 3) for name, n in sorted(NUMBERS.items()) if abs(weights[n]) >= LEAST_WEIGHT}


class Unseen:
    """An example, and what a model that never saw its fold makes of it."""

    def __init__(self, example: Example, model: learned.Model, value: float) -> None:
        self.example, self.model, self.value = example, model, value

    def verdicts(self, low: float, high: float) -> tuple[bool, bool, bool]:
        """Whether rules alone, the model alone, and both together flag it."""
        model = learned.Model(weights=self.model.weights, bias=self.model.bias, low=low, high=high)
        nothing = learned.Model(weights={}, bias=low - 1, low=low, high=high)
        text = self.example.text
        return suspect(text, nothing).suspected, self.value >= high, suspect(text, model).suspected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by", choices=("template", "source"), default="template", help="what stays in one fold")
    parser.add_argument("--write", action="store_true", help="train on everything, write weights.json and the results")
    options = parser.parse_args()
    examples = [Example(*one, 1, options.by) for one in attacks()]
    examples += [Example(*one, 0, options.by) for one in ordinary()]
    examples = [example for example in examples if example.runs]
    print(f"{len(examples)} texts, {sum(e.label for e in examples)} of them attacks", flush=True)
    unseen: list[Unseen] = []
    for fold in range(FOLDS):
        weights, bias = train([e for e in examples if e.fold != fold])
        model = learned.Model(weights=named(weights), bias=bias, low=0.0, high=1.0)
        unseen += [Unseen(e, model, best_run(e, weights, bias)) for e in examples if e.fold == fold]
        print(f"fold {fold}", flush=True)
    # Our own ordinary texts are chosen to be hard; the borders are where few even of these cross.
    worst: dict[str, float] = {}
    for u in unseen:
        if not u.example.label and u.example.source.startswith("own:"):
            worst[u.example.template] = max(u.value, worst.get(u.example.template, -math.inf))
    hard = sorted(worst.values())
    low, high = (hard[int(share * len(hard))] for share in BORDERS)
    figures = report(unseen, low, high)
    if options.write:
        measured = {"measured": "injection", "flagged by a model that had not seen the template": figures}
        RESULTS.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
        weights, bias = train(examples)
        kept = named(weights)
        document = {
            "notice": NOTICE,
            "bias": round(bias, 4),
            "low": round(low, 3),
            "high": round(high, 3),
            "weights": kept,
        }
        WEIGHTS.write_text(json.dumps(document, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
        print(f"wrote {len(kept)} weights")


def report(unseen: list[Unseen], low: float, high: float) -> dict[str, dict[str, float]]:
    """Per source, judged by a model that had not seen it: flagged by rules, by the model, by both together."""
    share = " and ".join(f"{100 * (1 - border):.1f} %" for border in BORDERS)
    print(f"hard ordinary texts cross {low:.2f} and {high:.2f} in {share} of cases")
    groups: defaultdict[str, list[tuple[bool, bool, bool]]] = defaultdict(list)
    for one in unseen:
        label, source = one.example.label, one.example.source
        verdicts = one.verdicts(low, high)
        groups[f"{'attack' if label else 'plain '} {source if label else source.split(':')[0]}"].append(verdicts)
        groups[f"{'ATTACKS' if label else 'PLAIN'} all"].append(verdicts)
    print(f"  {'source':45} {'texts':>6} {'rules':>7} {'model':>7} {'both':>7}")
    figures: dict[str, dict[str, float]] = {}
    for group, found in sorted(groups.items()):
        shares = [100 * sum(each) / len(found) for each in zip(*found, strict=True)]
        print(f"  {group:45} {len(found):6} " + " ".join(f"{share:6.1f}%" for share in shares))
        rules, model, both = (round(share, 1) for share in shares)
        figures[group] = {"texts": len(found), "rules, %": rules, "model, %": model, "both, %": both}
    return figures


if __name__ == "__main__":
    main()
