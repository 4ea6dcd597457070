"""Trains the injection detector's hidden units: `train_injection.py` says on what, and writes them down.

One layer of rectified units beside a direct path, binary cross-entropy with a weight for each run, Adam with decoupled
decay and a cosine schedule; features are dropped at random, so that none is trusted alone. Rows are sparse and some
ten thousand, which NumPy and SciPy get through in half a minute; the same result every time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.special import expit

UNITS: Final = 64
BATCH: Final = 512
RATE: Final = 3e-3
DECAY: Final = 1e-2
DROPPED: Final = 0.3
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8
Array = Any


@dataclass(slots=True)
class Layer:
    """`rows`: for each feature what it gives to every unit and, last, to the score itself (features, UNITS + 1)."""

    rows: Array
    thresholds: Array
    outputs: Array
    bias: Array

    def scores(self, runs: Array) -> Array:
        """The score of each run (a sparse row of features)."""
        given = runs @ self.rows
        return np.maximum(given[:, :-1] + self.thresholds, 0) @ self.outputs + given[:, -1] + self.bias


def untrained(features: int, chance: np.random.Generator) -> Layer:
    rows = np.zeros((features, UNITS + 1), dtype=np.float32)
    rows[:, :-1] = 0.05 * chance.standard_normal((features, UNITS))
    return Layer(
        rows=rows,
        thresholds=np.zeros(UNITS, dtype=np.float32),
        outputs=(0.3 * chance.standard_normal(UNITS)).astype(np.float32),
        bias=np.zeros(1, dtype=np.float32),
    )


class Trainer:
    """Adam over a layer. `steps`: how many batches there will be."""

    def __init__(self, features: int, steps: int) -> None:
        self._chance = np.random.default_rng(0)
        self.layer = untrained(features, self._chance)
        self._steps, self._step = steps, 0
        self._means = [np.zeros_like(one) for one in self._parameters()]
        self._squares = [np.zeros_like(one) for one in self._parameters()]

    def _parameters(self) -> list[Array]:
        return [self.layer.rows, self.layer.thresholds, self.layer.outputs, self.layer.bias]

    def epoch(self, runs: Array, label: Array, weight: Array) -> None:
        """Once through all runs, in a new order."""
        order = self._chance.permutation(runs.shape[0])
        for start in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            batch = runs[chosen]
            batch.data = batch.data * (self._chance.random(len(batch.data)) >= DROPPED) / (1 - DROPPED)
            self._learn(batch.astype(np.float32), label[chosen], weight[chosen])

    def _learn(self, batch: Array, label: Array, weight: Array) -> None:
        layer = self.layer
        given = batch @ layer.rows
        inner = given[:, :-1] + layer.thresholds
        active = np.maximum(inner, 0)
        score = active @ layer.outputs + given[:, -1] + layer.bias
        error = ((expit(score) - label) * weight / weight.sum()).astype(np.float32)
        back = np.empty_like(given)
        back[:, :-1] = error[:, None] * layer.outputs * (inner > 0)
        back[:, -1] = error
        self._move([batch.T @ back, back[:, :-1].sum(axis=0), active.T @ error, error.sum(keepdims=True)])

    def _move(self, gradients: list[Array]) -> None:
        rate = RATE * 0.5 * (1 + math.cos(math.pi * min(1.0, self._step / self._steps)))
        self._step += 1
        first, second = 1 - _FIRST**self._step, 1 - _SECOND**self._step
        for one, mean, square, gradient in zip(self._parameters(), self._means, self._squares, gradients, strict=True):
            mean += (1 - _FIRST) * (gradient - mean)
            square += (1 - _SECOND) * (gradient * gradient - square)
            one -= rate * ((mean / first) / (np.sqrt(square / second) + _TINY) + DECAY * one)
