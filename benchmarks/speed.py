"""How fast labelrace is, as ratios measured in one run, on one thread.

First against the matrix products that RACE cannot avoid and against other tools on the same work; then the default
against the bare products of its own arithmetic, in batches and row by row, there with and without compiled loops; then
time per row on the shapes of the paper's six datasets, beside what scikit-learn and River offer. Usage: ``python
benchmarks/speed.py [core] [default] [rows]``; all parts if none is named. Real files are used where
``$LABELRACE_DATA`` has them.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB

import labelrace
from labelrace.base import compiled
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
        print("liac-arff / labelrace on delicious.arff: the file is not available")
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


# The default against the bare products of its own arithmetic.


def unit_rows(X: AnyMatrix) -> AnyMatrix:
    """Scale sparse rows to length one, or dense columns, as the default does it, beforehand."""
    if not scipy.sparse.issparse(X):
        return (X / np.sqrt(X.shape[1])).astype(np.float32)
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return scipy.sparse.csr_array(scipy.sparse.diags_array(1.0 / lengths) @ X).astype(np.float32)


def bare_default(X: AnyMatrix, Y: AnyMatrix, n_random: int = 128) -> Callable[[], None]:
    """Start exactly, predict and learn by products alone: nothing is checked, monitored, scaled or kept whole."""
    Z, Y = unit_rows(X), np.asarray(Y.toarray() if scipy.sparse.issparse(Y) else Y, np.float32)
    is_sparse = scipy.sparse.issparse(Z)
    size = 128 if is_sparse else 64
    directions = None if is_sparse else RNG.normal(size=(X.shape[1], n_random)).astype(np.float32)

    def run() -> None:
        m = Z.shape[1] + (0 if is_sparse else n_random)
        W, d = np.zeros((m, Y.shape[1]), np.float32), np.ones(m, np.float32)
        bare_start(Z[:BATCH], Y[:BATCH])
        for start in range(0, Z.shape[0], BATCH):
            x, y = Z[start : start + BATCH], Y[start : start + BATCH]
            if directions is not None:
                x = np.hstack([x, np.abs(x @ directions)])
            _ = x @ W > 0.5
            for first in range(0, x.shape[0], size):
                bare_block(x[first : first + size], y[first : first + size], W, d)

    return run


def bare_start(z: AnyMatrix, y: np.ndarray) -> None:
    """Compute leave-one-out errors for nine penalties."""
    kernel = z @ z.T
    values, vectors = np.linalg.eigh((kernel.toarray() if scipy.sparse.issparse(kernel) else kernel).astype(float))
    along = vectors.T @ y
    for alpha in np.geomspace(0.02, 10.0, 9):
        shrink = 1.0 / (values / alpha + 1.0)
        _ = (vectors @ (shrink[:, None] * along)) / ((vectors * vectors) @ shrink)[:, None]


def bare_block(z: AnyMatrix, y: np.ndarray, W: np.ndarray, d: np.ndarray) -> None:
    if scipy.sparse.issparse(z):
        touched, places = np.unique(z.indices, return_inverse=True)
        z = scipy.sparse.csr_array((z.data, places, z.indptr), shape=(z.shape[0], len(touched)))
        scaled = scipy.sparse.csr_array((z.data / d[touched][places], places, z.indptr), shape=z.shape)
        inverse = np.linalg.inv((scaled @ z.T).toarray() + np.eye(z.shape[0], dtype=np.float32))
        W[touched] += scaled.T @ (inverse @ (y - z @ W[touched]))
        q = np.asarray(z.multiply((z.T @ inverse).T).sum(axis=0)).ravel()
        d[touched] /= 1.0 - q / d[touched]
        return
    scaled = z / d
    inverse = np.linalg.inv(scaled @ z.T + np.eye(len(z), dtype=np.float32))
    W += scaled.T @ (inverse @ (y - z @ W))
    d /= 1.0 - np.einsum("ij,ij->j", z, inverse @ z) / d


def cpu_ratio(one: Callable[[], object], other: Callable[[], object], repeats: int = 5) -> float:
    """Compare the least processor times of two functions that are run by turns."""
    best = [float("inf")] * 2
    for _ in range(repeats):
        for place, function in enumerate((one, other)):
            start = time.process_time()
            function()
            best[place] = min(best[place], time.process_time() - start)
    return best[0] / best[1]


def default_ratios() -> None:
    shapes = (
        Shape("text, 5,000 words", 6000, 5000, 50, 3, 50 / 5000),
        Shape("bibtex", 6000, 1836, 159, 2, 0.037),
        Shape("rcv1v2", 6000, 47236, 101, 3, 75 / 47236),
        Shape("dense", 6000, 100, 50, 3, None),
    )
    for shape in shapes:
        X, Y = features(shape, shape.rows), labels(shape.rows, shape.labels, shape.cardinality)
        whole = partial(lambda X, Y: prequential(labelrace.make_model("race"), X, Y), X, Y)
        ratio = cpu_ratio(whole, bare_default(X, Y))
        report(f"race / bare products, {shape.name}: {shape.features:,} features, {shape.labels} labels", ratio)
    few, many = (wide_learning(width) for width in (5000, 10**6))
    report("race learning with 1,000,000 features / with 5,000, 50 non-zeros a row", many / few)
    for form in forms():
        one_row_ratios(form)
        vowpal_wabbit_ratios(form)
    bare, ours = (
        command_time(code) for code in ("import numpy", "from labelrace.cli.main import app; app(['--help'])")
    )
    report("labelrace --help / the interpreter that imports NumPy", ours / bare)


def wide_learning(width: int) -> float:
    """Time learning alone, after two batches."""
    X, Y = features(Shape("", 8000, width, 50, 3, 50 / width), 8000), labels(8000, 50, 3)

    def run() -> float:
        model = labelrace.make_model("race", random_state=0).partial_fit(X[:1000], Y[:1000])
        start = time.process_time()
        for first in range(1000, 8000, BATCH):
            model.partial_fit(X[first : first + BATCH], Y[first : first + BATCH])
        return time.process_time() - start

    return min(run() for _ in range(3))


def forms() -> Iterator[str]:
    """Turn compiled loops off, and then on where there is Numba; yield what to say."""
    before = os.environ.get("LABELRACE_COMPILED", "1")
    for value, what in (("0", "NumPy"), (before, "compiled loops")):
        os.environ["LABELRACE_COMPILED"] = value
        compiled.is_available.cache_clear()
        if value == "0" or compiled.is_available():
            yield what


def one_by_one(X: AnyMatrix, Y: np.ndarray) -> Any:
    """Make a model that has learned rows in a batch, and then so many alone that loops are compiled where they can."""
    model = labelrace.make_model("race", random_state=0).partial_fit(X[:1000], Y[:1000])
    for i in range(1100):
        model.partial_fit(X[i % 1000 : i % 1000 + 1], Y[i % 1000 : i % 1000 + 1])
    return model


def one_row_ratios(form: str) -> None:
    """Compare one row of 100 features and 50 labels with the bare NumPy of it."""
    X, Y = RNG.normal(size=(2000, 100)), labels(2000, 50, 3).toarray().astype(float)
    model = one_by_one(X, Y)
    W, d, directions = np.zeros((228, 50), np.float32), np.ones(228), RNG.normal(size=(100, 128)).astype(np.float32)

    def seen(x: np.ndarray) -> np.ndarray:
        z = (x * 0.1).astype(np.float32)
        return np.hstack([z, np.abs(z @ directions)])

    def bare_learning() -> None:
        for i in range(1000, 2000):
            z = seen(X[i : i + 1])
            pull = (Y[i] - z @ W) / (1.0 + float((z[0] ** 2 / d).sum()))
            W[:] += (z[0] / d)[:, None] * pull
            d[:] += z[0] ** 2

    def learning() -> None:
        for i in range(1000, 2000):
            model.partial_fit(X[i : i + 1], Y[i : i + 1])

    ratio = cpu_ratio(learning, bare_learning)
    report(f"race learning one row / bare NumPy, 100 features, 50 labels; {form}", ratio)
    model.predict(X[:1])

    def predicting() -> None:
        for i in range(1000, 2000):
            model.predict(X[i : i + 1])

    def bare_predicting() -> None:
        for i in range(1000, 2000):
            _ = seen(X[i : i + 1]) @ W > 0.5

    report(f"race predicting one row / bare NumPy; {form}", cpu_ratio(predicting, bare_predicting))


def vowpal_wabbit_ratios(form: str) -> None:
    """Compare one-row learning with Vowpal Wabbit's multilabel_oaa, where that is installed."""
    if find_spec("vowpalwabbit") is None:
        print("race / Vowpal Wabbit: vowpalwabbit is not installed")
        return
    from vowpalwabbit import Workspace

    for shape in (
        Shape("bibtex", 1500, 1836, 159, 2, 0.037),
        Shape("delicious", 1500, 500, 983, 19, 0.036),
        Shape("yeast", 1500, 103, 14, 4, None),
        Shape("enron", 1500, 1001, 53, 3, 0.08),
    ):
        X, Y = features(shape, shape.rows), labels(shape.rows, shape.labels, shape.cardinality)
        dense = Y.toarray().astype(float)
        model = one_by_one(X, dense)
        workspace = Workspace(f"--multilabel_oaa {shape.labels} --quiet")
        rows = X if scipy.sparse.issparse(X) else scipy.sparse.csr_array(X)
        # Rows and lines are made beforehand.
        lines = [vw_line(rows[[i]], Y[[i]]) for i in range(1000, 1500)]
        pairs = [(X[i : i + 1], dense[i : i + 1]) for i in range(1000, 1500)]

        def ours(model: Any = model, pairs: list[Any] = pairs) -> None:
            for x, y in pairs:
                model.partial_fit(x, y)

        def theirs(workspace: Any = workspace, lines: list[str] = lines) -> None:
            for line in lines:
                workspace.learn(line)

        report(f"race / Vowpal Wabbit, learning one row, shape of {shape.name}; {form}", cpu_ratio(ours, theirs))


def vw_line(x: AnyMatrix, y: AnyMatrix) -> str:
    values = " ".join(f"{column}:{value:g}" for column, value in zip(x.indices, x.data, strict=True))
    return f"{','.join(map(str, y.indices))} | {values}"


def command_time(code: str) -> float:
    """Time an interpreter from start to end."""
    return seconds(lambda: subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False), 5)


def core_part() -> None:
    core_ratios()
    measure_ratio()
    arff_ratio()


def rows_part() -> None:
    print("\nMilliseconds a row, test and train; batches of 500 (scikit-learn: 100, River: one by one)")
    print(f"{'':<12}{'rows':>8}{'features':>10}{'labels':>8}{'RACE':>10}{'scikit-learn':>22}{'River':>22}")
    for shape in PAPER:
        ours, *others = per_row(shape)
        cells = "".join(f"{'-':>22}" if t is None else f"{t:>12.2f} ({t / ours:>6,.0f} ×)" for t in others)
        print(f"{shape.name:<12}{shape.rows:>8}{shape.features:>10}{shape.labels:>8}{ours:>10.4f}{cells}", flush=True)


PARTS = {"core": core_part, "default": default_ratios, "rows": rows_part}


if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
