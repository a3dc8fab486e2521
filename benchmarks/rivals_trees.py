"""What neighbours and trees cost, as ratios measured in one run, on one thread.

ML-kNN against bare distance products. With tables of the window: those of each batch with the window and of the window
with itself, by which its definition has it; and those of each batch with the window alone, twice, to predict and to
learn, which is what it must do as it keeps neighbours. Prequential tables: those of each batch with the window, twice.
Once on streams long enough to fill the window, measured from there on, and on short ones as they are.

Trees against River's iSOUP-Tree, row by row as River learns, on the same rows; all test and train. Streams are
synthetic, with the shapes of public datasets. Usage: ``python benchmarks/rivals_trees.py``.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from shapes import SHAPES

import labelrace
from labelrace.base.sparse import dense
from labelrace.related.neighbours import search
from labelrace.streams.dataset import Batch
from labelrace.streams.synthetic import SyntheticStream

BATCH, WINDOW, REPEATS = 100, 1000, 3
# Rows that ML-kNN learns, whatever the dataset: enough to fill its window. Shorter streams are run as they are, too.
ROWS = 2400
# Rows that River learns; it is slow.
RIVER_ROWS = 500
TREES = ("mlht", "mlht-moa", "isoup", "isoup-linear", "eaht")
NEIGHBOURS = ("emotions", "yeast", "CAL500", "NUS-WIDE", "enron")


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


def products(batches: list[Batch], *, first: int, tables: bool) -> None:
    """Compute the distances of batches from a certain one on to the window before them, and nothing else."""
    parts = [X for X, _ in batches]
    rows = scipy.sparse.vstack(parts, format="csr") if scipy.sparse.issparse(parts[0]) else np.vstack(parts)
    for start in range(max(1, first) * BATCH, rows.shape[0], BATCH):
        window = rows[max(0, start - WINDOW) : start]
        search.squared_distances(window, rows[start : start + BATCH])
        if tables:
            search.squared_distances(window, window)


def after(name: str, batches: list[Batch], first: int) -> float:
    """Time testing and training of the batches from a certain one on: the best of some runs."""
    best = float("inf")
    for _ in range(REPEATS):
        model = labelrace.make_model(name)
        for number, (X, Y) in enumerate(batches):
            if number == first:
                start = time.process_time()
            if number:
                model.predict(X)
            model.partial_fit(X, Y)
        best = min(best, time.process_time() - start)
    return best


def compare_neighbours() -> None:
    print(f"{'ML-kNN':<12}{'rows':>6}{'window':>10}{'as defined':>14}{'as kept':>12}{'prequential':>14}")
    short = [(name, SHAPES[name].n_rows, 0) for name in NEIGHBOURS if SHAPES[name].n_rows < WINDOW]
    for name, n_rows, first in [(name, ROWS, WINDOW // BATCH + 1) for name in NEIGHBOURS] + short:
        batches = list(SyntheticStream(**SHAPES[name]._replace(n_rows=n_rows)._asdict()).batches(BATCH))
        defined, kept = (seconds(partial(products, batches, first=first, tables=tables)) for tables in (True, False))
        own = [after(model, batches, first) for model in ("mlknn", "mlknn-prequential")]
        ratios = own[0] / defined, own[0] / (2 * kept), own[1] / (2 * kept)
        window = "full" if first else "fills up"
        print(
            f"{name:<12}{n_rows:>6}{window:>10}{ratios[0]:>12.1f} ×{ratios[1]:>10.1f} ×{ratios[2]:>12.1f} ×", flush=True
        )


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
