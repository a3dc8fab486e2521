"""What neighbours and trees cost, as ratios measured in one run, on one thread.

ML-kNN against the bare distance products that it cannot avoid: those of a batch with the window, and for the window's
tables those of the window with itself. Trees against River's iSOUP-Tree, row by row as River learns, on the same rows;
all test and train. Streams are synthetic, with the shapes of public datasets.
Usage: ``python benchmarks/rivals_trees.py``.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import labelrace
from labelrace.learners import neighbours
from labelrace.learners.columns import dense
from labelrace.streams.dataset import Batch
from labelrace.streams.synthetic import SyntheticStream

BATCH, WINDOW, REPEATS = 100, 1000, 3
# Rows that ML-kNN learns, whatever the dataset: enough to fill its window. Shorter streams are run as they are, too.
ROWS = 2400
# Rows that River learns; it is slow.
RIVER_ROWS = 500
TREES = ("mlht", "mlht-moa", "isoup", "isoup-linear", "eaht")


class Shape(NamedTuple):
    """What a dataset looks like; ``density`` is the share of non-zeros of binary features, None for dense numbers."""

    n_rows: int
    n_features: int
    n_labels: int
    cardinality: float
    density: float | None = None


SHAPES = {
    "emotions": Shape(593, 72, 6, 1.9),
    "yeast": Shape(2417, 103, 14, 4.2),
    "CAL500": Shape(502, 68, 174, 26.0),
    "NUS-WIDE": Shape(2400, 500, 81, 1.9),
    "enron": Shape(1702, 1001, 53, 3.4, 0.08),
}


def seconds(function: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Time a call in CPU time: the best of some."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def test_then_train(name: str, batches: list[Batch], categorical: Any) -> None:
    model = labelrace.make_model(name, categorical_features=categorical)
    for number, (X, Y) in enumerate(batches):
        if number:
            model.predict(X)
        model.partial_fit(X, Y)


def products(batches: list[Batch], *, tables: bool) -> None:
    """Compute the distances that ML-kNN needs, and nothing else."""
    parts = [X for X, _ in batches]
    rows = scipy.sparse.vstack(parts, format="csr") if scipy.sparse.issparse(parts[0]) else np.vstack(parts)
    for start in range(BATCH, rows.shape[0], BATCH):
        window = rows[max(0, start - WINDOW) : start]
        neighbours.squared_distances(window, rows[start : start + BATCH])
        if tables:
            neighbours.squared_distances(window, window)


def compare_neighbours() -> None:
    print(f"{'ML-kNN':<12}{'rows':>6}{'products':>14}{'mlknn':>10}{'prequential':>14}")
    short = [(name, shape.n_rows) for name, shape in SHAPES.items() if shape.n_rows < WINDOW]
    for name, n_rows in [(name, ROWS) for name in SHAPES] + short:
        batches = list(SyntheticStream(**SHAPES[name]._replace(n_rows=n_rows)._asdict()).batches(BATCH))
        bare = [seconds(partial(products, batches, tables=tables)) for tables in (True, False)]
        own = [seconds(partial(test_then_train, model, batches, None)) for model in ("mlknn", "mlknn-prequential")]
        # Prequential tables need the batch's neighbours twice: to predict, and to count.
        ratios = own[0] / bare[0], own[1] / (2 * bare[1])
        milliseconds = 1e3 * bare[0] / len(batches)
        print(f"{name:<12}{n_rows:>6}{milliseconds:>8.2f} ms{ratios[0]:>11.1f} ×{ratios[1]:>12.1f} ×", flush=True)


def river_rate(batches: list[Batch]) -> float:
    """Time River's tree with means in the leaves, in seconds a row."""
    from river import tree

    X = np.vstack([dense(X) for X, _ in batches])[:RIVER_ROWS]
    Y = np.vstack([dense(Y) for _, Y in batches])[:RIVER_ROWS]
    rows = [(dict(enumerate(map(float, x))), dict(enumerate(map(float, y)))) for x, y in zip(X, Y, strict=True)]
    model = tree.ISOUPTreeRegressor(leaf_prediction="mean")
    start = time.process_time()
    for x, y in rows:
        model.predict_one(x)
        model.learn_one(x, y)
    return (time.process_time() - start) / len(rows)


def compare_trees() -> None:
    print(f"\n{'Trees':<12}{'River iSOUP':>16}" + "".join(f"{name:>14}" for name in TREES) + "   times as fast")
    for name in ("emotions", "yeast", "CAL500", "enron"):
        stream = SyntheticStream(**SHAPES[name]._asdict())
        batches = list(stream.batches(BATCH))
        n_rows = sum(X.shape[0] for X, _ in batches)
        river = river_rate(batches)
        own = [seconds(partial(test_then_train, tree, batches, stream.categorical), 2) for tree in TREES]
        times = "".join(f"{river * n_rows / each:>14.0f}" for each in own)
        print(f"{name:<12}{1e3 * river:>10.2f} ms/row{times}", flush=True)


if __name__ == "__main__":
    compare_neighbours()
    compare_trees()
