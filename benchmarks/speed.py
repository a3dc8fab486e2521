"""How fast labelrace is, as ratios measured in one run, on one thread.

First against the matrix products that RACE cannot avoid and against other tools on the same work; then time per row on
the shapes of the paper's six datasets, beside what scikit-learn and River offer. Usage: ``python benchmarks/speed.py``.
Real files are used where ``$LABELRACE_DATA`` has them.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB

import labelrace
from labelrace.measures import evaluate
from labelrace.streams.catalog import find_dataset
from labelrace.typing import AnyMatrix

BATCH = 500
RNG = np.random.default_rng(0)


class Shape(NamedTuple):
    """What a dataset looks like; ``density`` is the share of non-zeros of binary features, None for dense numbers."""

    name: str
    rows: int
    features: int
    labels: int
    cardinality: int
    density: float | None


# Table 1 of the paper; the densities are those of the public files, rounded.
PAPER = (
    Shape("CAL500", 502, 68, 174, 26, None),
    Shape("enron", 1702, 1001, 53, 3, 0.08),
    Shape("delicious", 16105, 500, 983, 19, 0.04),
    Shape("mediamill", 43907, 120, 101, 4, None),
    Shape("NUS-WIDE", 269648, 500, 81, 2, 0.05),
    Shape("rcv1v2", 6000, 47236, 101, 3, 0.0016),
)


def seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """Time a call: the best of some."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def features(shape: Shape, rows: int) -> AnyMatrix:
    if shape.density is None:
        return RNG.normal(size=(rows, shape.features))
    X = scipy.sparse.random_array((rows, shape.features), density=shape.density, format="csr", rng=RNG)
    X.data[:] = 1
    return X


def labels(rows: int, count: int, cardinality: int) -> AnyMatrix:
    """Draw label sets in which few labels are frequent."""
    owner = np.repeat(np.arange(rows), cardinality)
    chosen = np.minimum((count * RNG.random(rows * cardinality) ** 3).astype(int), count - 1)
    Y = scipy.sparse.csr_array((np.ones(len(owner), np.int8), (owner, chosen)), shape=(rows, count))
    Y.data[:] = 1
    return Y


def prequential(model: Any, X: AnyMatrix, Y: AnyMatrix, size: int = BATCH, **first: Any) -> None:
    """Test, then train; ``first`` goes to every partial_fit."""
    for start in range(0, X.shape[0], size):
        batch = slice(start, start + size)
        if start:
            model.predict(X[batch])
        model.partial_fit(X[batch], Y[batch], **first)


def race(X: AnyMatrix, Y: AnyMatrix, **parameters: Any) -> Callable[[], None]:
    return lambda: prequential(labelrace.RACEClassifier(random_state=0, **parameters), X, Y)


def bare_products(X: AnyMatrix, Y: AnyMatrix, gaussian: bool) -> Callable[[], None]:
    """Do what no implementation can avoid: encode, collect sums, compute log odds, decode."""
    k = int(np.ceil(np.log2(Y.shape[1])))
    A, W, beta = RNG.normal(size=(Y.shape[1], k)), RNG.normal(size=(X.shape[1], k)), RNG.normal(size=(k, Y.shape[1]))

    def run() -> None:
        for start in range(0, X.shape[0], BATCH):
            x, y = X[start : start + BATCH], Y[start : start + BATCH]
            parts = [x, x * x] if gaussian else [x]
            odds = sum(part @ W for part in parts)
            _ = (odds > 0) @ beta > 0
            h = (y @ A >= 0).astype(float)
            for part in parts:
                _ = part.T @ h

    return run


def report(what: str, ratio: float) -> None:
    print(f"{what:<86}{ratio:>8.1f} ×", flush=True)


def core_ratios() -> None:
    X, Y = RNG.normal(size=(20000, 120)), labels(20000, 101, 4).toarray()
    report(
        "RACE / bare products, dense 20,000 × 120, 101 labels", seconds(race(X, Y)) / seconds(bare_products(X, Y, True))
    )

    text = Shape("text", 6000, 47236, 101, 3, 75 / 47236)
    X, Y = features(text, text.rows), labels(text.rows, text.labels, text.cardinality)
    nominal = np.ones(text.features, bool)
    ratio = seconds(race(X, Y, categorical_features=nominal)) / seconds(bare_products(X, Y, False))
    report("RACE / bare products, sparse 6,000 × 47,236, 101 labels", ratio)

    X = RNG.normal(size=(10000, 50))
    many, few = (learning_time(X, labels(10000, count, 5)) for count in (100_000, 1_000))
    report("learning with 100,000 sparse labels / with 1,000", many / few)


def learning_time(X: AnyMatrix, Y: AnyMatrix) -> float:
    """Time learning alone, from the second batch on."""

    def run() -> float:
        model = labelrace.RACEClassifier(n_components=16, random_state=0).partial_fit(X[:BATCH], Y[:BATCH])
        start = time.perf_counter()
        for first in range(BATCH, X.shape[0], BATCH):
            model.partial_fit(X[first : first + BATCH], Y[first : first + BATCH])
        return time.perf_counter() - start

    return min(run() for _ in range(3))


def measure_ratio() -> None:
    scores, Y = RNG.normal(size=(500, 983)), labels(500, 983, 19)
    predicted = (scores > 2).astype(np.int8)
    ours = seconds(lambda: evaluate(Y, predicted, scores, measures="all"), 5)
    report("all 19 measures / one argsort, 500 × 983", ours / seconds(lambda: np.argsort(scores, axis=1), 5))


def arff_ratio() -> None:
    try:
        path = find_dataset("delicious")
    except FileNotFoundError:
        print("liac-arff / labelrace on delicious.arff: the file is not at hand")
        return
    import arff

    def liac() -> None:
        with path.open() as file:
            arff.load(file, return_type=arff.LOD)

    report(
        "liac-arff / labelrace, reading delicious.arff",
        seconds(liac, 1) / seconds(lambda: labelrace.load_dataset(path)),
    )


def per_row(shape: Shape) -> tuple[float, float | None, float | None]:
    """Measure milliseconds a row, test and train, of labelrace, of scikit-learn and of River."""
    nominal = None if shape.density is None else np.ones(shape.features, bool)
    rows = min(shape.rows, 5000)
    X, Y = data_of(shape, rows)
    ours = 1e3 * seconds(race(X, Y, categorical_features=nominal)) / X.shape[0]
    return ours, scikit_learn(shape, X, Y), river(X, Y)


def data_of(shape: Shape, rows: int) -> tuple[AnyMatrix, AnyMatrix]:
    try:
        data = labelrace.load_dataset(shape.name)
    except FileNotFoundError:
        return features(shape, rows), labels(rows, shape.labels, shape.cardinality)
    return data.X[:rows], data.Y[:rows]


def scikit_learn(shape: Shape, X: AnyMatrix, Y: AnyMatrix) -> float:
    """Run binary relevance by MultiOutputClassifier, on a few rows: it takes long."""
    rows, size = 200, 100
    dense = Y[:rows].toarray()
    base = GaussianNB() if shape.density is None else BernoulliNB()
    classes = [np.array([0, 1])] * Y.shape[1]

    def run() -> None:
        prequential(MultiOutputClassifier(base), X[:rows], dense, size, classes=classes)

    return 1e3 * seconds(run, 1) / rows


def river(X: AnyMatrix, Y: AnyMatrix) -> float | None:
    """Run a classifier chain of River's, row by row, on a few rows."""
    if find_spec("river") is None:
        return None
    from river.multioutput import ClassifierChain
    from river.naive_bayes import GaussianNB as RiverGaussianNB

    rows = 20
    dense = X[:rows].toarray() if scipy.sparse.issparse(X) else X[:rows]
    pairs = [
        (dict(enumerate(x.tolist())), {j: bool(y) for j, y in enumerate(row)})
        for x, row in zip(dense, Y[:rows].toarray(), strict=True)
    ]
    if dense.shape[1] * Y.shape[1] > 500_000:
        return None

    def run() -> None:
        model = ClassifierChain(RiverGaussianNB())
        for x, y in pairs:
            model.predict_one(x)
            model.learn_one(x, y)

    return 1e3 * seconds(run, 1) / rows


def main() -> None:
    core_ratios()
    measure_ratio()
    arff_ratio()
    print("\nMilliseconds a row, test and train; batches of 500 (scikit-learn: 100, River: one by one)")
    print(f"{'':<12}{'rows':>8}{'features':>10}{'labels':>8}{'RACE':>10}{'scikit-learn':>22}{'River':>22}")
    for shape in PAPER:
        ours, *others = per_row(shape)
        cells = "".join(f"{'-':>22}" if t is None else f"{t:>12.2f} ({t / ours:>6,.0f} ×)" for t in others)
        print(f"{shape.name:<12}{shape.rows:>8}{shape.features:>10}{shape.labels:>8}{ours:>10.4f}{cells}", flush=True)


if __name__ == "__main__":
    main()
