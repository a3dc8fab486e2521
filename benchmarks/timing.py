"""Time of calls, and made-up data of a given shape."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import labelrace
from labelrace.typing import AnyMatrix

RNG = np.random.default_rng(0)


class Shape(NamedTuple):
    """What a dataset looks like; ``density`` is the share of non-zeros of binary features, None for dense numbers."""

    name: str
    rows: int
    features: int
    labels: int
    cardinality: int
    density: float | None = None

    def draw(self, rows: int | None = None) -> tuple[AnyMatrix, AnyMatrix]:
        """Draw random features, and label sets in which few labels are frequent."""
        n = rows or self.rows
        X: AnyMatrix = RNG.normal(size=(n, self.features)) if self.density is None else self._binary(n)
        owner = np.repeat(np.arange(n), self.cardinality)
        columns = (self.labels * RNG.random(n * self.cardinality) ** 3).astype(int)
        Y = scipy.sparse.csr_array((np.ones(len(owner), np.int8), (owner, columns)), shape=(n, self.labels))
        Y.data[:] = 1
        return X, Y

    def _binary(self, n: int) -> AnyMatrix:
        X = scipy.sparse.random_array((n, self.features), density=self.density, format="csr", rng=RNG)
        X.data[:] = 1
        return X


# Public datasets. Sizes are those of their descriptions, densities rounded.
SHAPES = {
    shape.name: shape
    for shape in (
        Shape("CAL500", 502, 68, 174, 26),
        Shape("enron", 1702, 1001, 53, 3, 0.08),
        Shape("delicious", 16105, 500, 983, 19, 0.04),
        Shape("mediamill", 43907, 120, 101, 4),
        Shape("NUS-WIDE", 269648, 500, 81, 2, 0.05),
        Shape("rcv1v2", 6000, 47236, 101, 3, 0.0016),
        Shape("emotions", 593, 72, 6, 2),
        Shape("yeast", 2417, 103, 14, 4),
        Shape("bibtex", 7395, 1836, 159, 2, 0.037),
    )
}


def real_or_drawn(name: str, rows: int) -> tuple[AnyMatrix, AnyMatrix]:
    """Return the first rows of a dataset, or random ones of its shape where it is not available."""
    try:
        data = labelrace.load_dataset(name)
    except FileNotFoundError:
        return SHAPES[name].draw(min(SHAPES[name].rows, rows))
    return data.X[:rows], data.Y[:rows]


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """Return the least processor time of some calls, which other processes change less than elapsed time."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def ratio(one: Callable[[], object], other: Callable[[], object], repeats: int = 5) -> float:
    """Compare the least processor times of two functions that are run by turns.

    So a machine that is slow for a while is so for both.
    """
    pairs = [(seconds(one, 1), seconds(other, 1)) for _ in range(repeats)]
    ours, theirs = (min(times) for times in zip(*pairs, strict=True))
    return ours / theirs


def batches(X: AnyMatrix, Y: AnyMatrix, size: int = 500) -> Iterator[tuple[AnyMatrix, AnyMatrix]]:
    """Cut rows into batches."""
    for start in range(0, X.shape[0], size):
        yield X[start : start + size], Y[start : start + size]


def run_prequential(model: Any, X: AnyMatrix, Y: AnyMatrix, size: int = 500, **given: Any) -> None:
    """Predict each batch but the first, and learn it; ``given`` goes to every `partial_fit`."""
    for number, (x, y) in enumerate(batches(X, Y, size)):
        if number:
            model.predict(x)
        model.partial_fit(x, y, **given)


def river_seconds(model: Any, X: AnyMatrix, Y: AnyMatrix) -> float:
    """Return the seconds that a model of River takes to predict and learn a row, given dense rows."""
    rows = [(dict(enumerate(x)), dict(enumerate(y))) for x, y in zip(X.tolist(), Y.tolist(), strict=True)]

    def run() -> None:
        for x, y in rows:
            model.predict_one(x)
            model.learn_one(x, y)

    return seconds(run, 1) / len(rows)
