"""How fast the compression methods are, as ratios measured in one run, on one thread.

First, what reading a method from its sums costs beside the decompositions it cannot avoid: that of the features' Gram
matrix (with the penalty chosen, an eigenproblem; with a given one, a Cholesky factor) and its own eigenproblem of
labels. Then whole passes over delicious, test then train, beside binary relevance with naive Bayes (``obr``). Last, the
error of the sketch of ``YᵀY``. Usage: ``python benchmarks/rivals.py``. The real delicious is used where
``$LABELRACE_DATA`` has it.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

import labelrace
from labelrace.base.linalg import top_eigenpairs
from labelrace.learners.sums import Sums
from labelrace.streams.catalog import find_dataset
from labelrace.typing import AnyMatrix

BATCH = 500
RNG = np.random.default_rng(0)
LIMITS = {"read": 2.0, "pass": 10.0}


def seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Time a call: the best of some."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def delicious(rows: int) -> tuple[AnyMatrix, AnyMatrix]:
    """Return the first rows of delicious, or of data of its shape: binary features, sparse."""
    try:
        find_dataset("delicious")
    except FileNotFoundError:
        X = scipy.sparse.random_array((rows, 500), density=0.04, format="csr", rng=RNG)
        Y = scipy.sparse.random_array((rows, 983), density=0.02, format="csr", rng=RNG)
        X.data[:], Y.data[:] = 1, 1
        return X, Y
    data = labelrace.load_dataset("delicious")
    return scipy.sparse.csr_array(data.X)[:rows], scipy.sparse.csr_array(data.Y)[:rows]


def reading(X: AnyMatrix, Y: AnyMatrix) -> None:
    """Print what reading each method costs beside its decompositions."""
    print(f"reading, m = {X.shape[1]}, l = {Y.shape[1]} (limit {LIMITS['read']:g})")
    for penalty in ("auto", 1.0):
        for name in ("ridge", "plst", "cplst", "cssp", "faie", "cca"):
            model = labelrace.make_model(name, penalty=penalty).fit(X, Y)
            fitted = model._fitted
            view = fitted.algorithm.view(fitted.state)
            took = seconds(lambda fitted=fitted: fitted.algorithm.derive(fitted.state))  # type: ignore[misc]
            alone = seconds(unavoidable(name, view, penalty))
            print(
                f"  {name:6s} penalty={penalty!s:5s} {took:7.3f} s, decompositions {alone:7.3f} s: {took / alone:.2f}"
            )


def unavoidable(name: str, view: Any, penalty: Any) -> Callable[[], object]:
    """Return the decompositions that a method's definition asks for, of matrices that are there already."""
    read, centred = view.reading, view.coding("centred")
    penalised = read.gram + read.penalty * np.eye(len(read.gram))
    products, _ = view.cross(centred)
    white = read.factor.whiten(products)
    matrix: Any = white.T @ white
    if name in ("plst", "cssp", "cca"):
        labels: Any = view.gram(centred)
        matrix, metric = (matrix, labels + np.eye(len(labels))) if name == "cca" else (labels, None)
    elif name == "faie":
        matrix = np.block([[view.gram(centred), white.T], [white, read.gram]])

    def run() -> None:
        if penalty == "auto":
            np.linalg.eigh(read.gram)
        else:
            scipy.linalg.cholesky(penalised, lower=True)
        if name == "ridge":
            scipy.linalg.cho_solve((penalised, True), products)
        elif name == "cca":
            scipy.linalg.eigh(matrix, metric, driver="gvd")
        else:
            np.linalg.eigh(matrix)

    return run


def passes(X: AnyMatrix, Y: AnyMatrix) -> None:
    """Print whole passes, test then train, beside binary relevance."""
    print(f"test then train, {X.shape[0]} rows in batches of {BATCH} (limit {LIMITS['pass']:g} times obr)")
    baseline = 0.0
    for name in ("obr", "ridge", "plst", "cplst", "cssp", "faie", "cca", "kcca", "cs", "bmad"):
        took = seconds(lambda name=name: one_pass(name, X, Y), repeats=3)  # type: ignore[misc]
        baseline = baseline or took
        print(f"  {name:6s} {took:7.2f} s: {took / baseline:.2f} times obr")


def one_pass(name: str, X: AnyMatrix, Y: AnyMatrix) -> None:
    """Have a model predict each batch and learn it."""
    given = {"categorical_features": np.ones(X.shape[1], dtype=bool)} if name in ("obr", "bmad") else {}
    model = labelrace.make_model(name, **given)
    for first in range(0, X.shape[0], BATCH):
        batch = slice(first, first + BATCH)
        if first:
            model.predict(X[batch])
        model.partial_fit(X[batch], Y[batch])


def sketching() -> None:
    """Print what principal directions from the sketch keep of the labels, beside the best directions."""
    topics = RNG.random((40, 2000)) ** 8
    Y = scipy.sparse.csr_array((RNG.random((5000, 2000)) < topics[RNG.integers(0, 40, 5000)]).astype(float))
    gram = (Y.T @ Y).toarray()
    best = top_eigenpairs(gram, 32)[0].sum()
    print("the sketch of YᵀY, 2000 labels, 32 directions: share kept of what the best directions keep")
    for size in (48, 64, 128, 256):
        keeper = Sums(exact_labels=1, sketch_size=size)
        state = keeper.update(keeper.init(1, 2000), np.zeros((5000, 1)), Y)
        V = top_eigenpairs(keeper.label_gram(state).dense(), 32)[1]
        print(f"  {size:4d} signs a label: {np.einsum('ij,ij->', V, gram @ V) / best:.4f}")


def main() -> None:
    X, Y = delicious(5000)
    reading(X, Y)
    passes(X, Y)
    sketching()


if __name__ == "__main__":
    main()
