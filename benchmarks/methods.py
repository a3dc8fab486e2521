"""What the methods of the related work cost, as ratios of processor times measured in one run, on one thread.

- Compressions: whole passes over delicious, test then train, beside binary relevance with naive Bayes (``obr``); and
  what directions from the sketch of ``YᵀY`` keep of the labels.
- ML-kNN with a full window beside the distance products by which it is defined: those of each batch with the window
  and, for its tables, of the window with itself; prequential tables need those of each batch, to predict and to learn.
- Trees beside River's iSOUP-Tree on the same rows, where River is installed.

Streams have the shapes of public datasets; the real delicious is used where it is available.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse

import labelrace
from benchmarks.timing import SHAPES, batches, real_or_drawn, river_seconds, run_prequential, seconds
from labelrace.base.linalg import top_eigenpairs
from labelrace.base.sparse import dense
from labelrace.learners.sums import Sums
from labelrace.typing import AnyMatrix

COMPRESSIONS = ("ridge", "plst", "cplst", "cssp", "faie", "cca", "kcca", "cs", "bmad")
TREES = ("mlht", "mlht-moa", "isoup", "isoup-linear", "eaht")
# Rows of ML-kNN's window and of a batch; rows that River learns, which is slow.
_WINDOW, _BATCH, _RIVER_ROWS = 1000, 100, 500


def methods() -> None:
    """Print what the related work costs, as ratios."""
    compressions()
    sketch()
    neighbours()
    trees()


def compressions(rows: int = 5000) -> None:
    """Print whole passes, test then train, beside binary relevance."""
    X, Y = map(scipy.sparse.csr_array, real_or_drawn("delicious", rows))
    print(f"Test then train, delicious, {rows} rows in batches of 500: times that of obr")
    baseline = _pass("obr", X, Y)
    for name in COMPRESSIONS:
        print(f"  {name:6s} {_pass(name, X, Y) / baseline:.1f}", flush=True)


def _pass(name: str, X: AnyMatrix, Y: AnyMatrix) -> float:
    given = {"categorical_features": np.ones(X.shape[1], dtype=bool)} if name in ("obr", "bmad") else {}
    return seconds(lambda: run_prequential(labelrace.make_model(name, **given), X, Y), 2)


def sketch() -> None:
    """Print what principal directions from the sketch keep of the labels, beside the best directions."""
    rng = np.random.default_rng(0)
    topics = rng.random((40, 2000)) ** 8
    Y = scipy.sparse.csr_array((rng.random((5000, 2000)) < topics[rng.integers(0, 40, 5000)]).astype(float))
    gram = (Y.T @ Y).toarray()
    best = top_eigenpairs(gram, 32)[0].sum()
    print("The sketch of YᵀY, 2,000 labels, 32 directions: share kept of what the best directions keep")
    for size in (64, 256):
        keeper = Sums(exact_labels=1, sketch_size=size)
        state = keeper.update(keeper.init(1, 2000), np.zeros((5000, 1)), Y)
        V = top_eigenpairs(keeper.label_gram(state).dense(), 32)[1]
        print(f"  {size:4d} signs a label: {np.einsum('ij,ij->', V, gram @ V) / best:.3f}")


def neighbours() -> None:
    """Print the time of ML-kNN with a full window, as a multiple of its distance products."""
    print("ML-kNN, window of 1,000 rows, batches of 100: times the distance products of its definition")
    for name in ("emotions", "yeast", "CAL500", "NUS-WIDE", "enron"):
        X, Y = SHAPES[name].draw(3 * _WINDOW)
        whole = _after_window("mlknn", X, Y) / seconds(partial(_products, X, tables=True))
        prequential = _after_window("mlknn-prequential", X, Y) / (2 * seconds(partial(_products, X, tables=False)))
        print(f"  {name:<10} mlknn {whole:4.1f}, mlknn-prequential {prequential:4.1f}", flush=True)


def _products(X: AnyMatrix, tables: bool) -> None:
    for start in range(_WINDOW, X.shape[0], _BATCH):
        window = X[start - _WINDOW : start]
        for rows in (X[start : start + _BATCH], window) if tables else (X[start : start + _BATCH],):
            dense(rows @ window.T)


def _after_window(name: str, X: AnyMatrix, Y: AnyMatrix) -> float:
    """Time testing and training once the window is full: the best of three runs."""
    times = []
    for _ in range(3):
        model = labelrace.make_model(name)
        run_prequential(model, X[:_WINDOW], Y[:_WINDOW], _BATCH)
        times.append(seconds(partial(_continue, model, X[_WINDOW:], Y[_WINDOW:]), 1))
    return min(times)


def _continue(model: Any, X: AnyMatrix, Y: AnyMatrix) -> None:
    for x, y in batches(X, Y, _BATCH):
        model.predict(x)
        model.partial_fit(x, y)


def trees() -> None:
    """Print how many times as fast as River's iSOUP-Tree the trees are, test then train."""
    if find_spec("river") is None:
        print("Trees: River is not installed")
        return
    from river.tree import ISOUPTreeRegressor

    print("Trees, test then train: times as fast as River's iSOUP-Tree")
    for name in ("emotions", "yeast", "CAL500"):
        X, Y = SHAPES[name].draw()
        model = ISOUPTreeRegressor(leaf_prediction="mean")
        river = river_seconds(model, X[:_RIVER_ROWS], Y[:_RIVER_ROWS].toarray().astype(float))
        ours = [seconds(partial(run_prequential, labelrace.make_model(tree), X, Y, _BATCH), 1) for tree in TREES]
        cells = (f"{tree} {river * X.shape[0] / each:,.0f}" for tree, each in zip(TREES, ours, strict=True))
        print(f"  {name:<10} " + ", ".join(cells), flush=True)
