"""How fast labelrace is, as ratios of processor times measured in one run, on one thread.

RACE and the default are compared with the bare products of their own arithmetic, which no implementation can avoid, and
with other libraries on the same work, where these are installed. Real files are used where they are available.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from typing import Annotated, Any

import numpy as np
import scipy.sparse
import typer
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB

import labelrace
from benchmarks.rivals import vowpal_lines, vowpal_wabbit
from benchmarks.timing import RNG, SHAPES, Shape, batches, ratio, real_or_drawn, river_seconds, run_prequential, seconds
from labelrace.base.sparse import dense
from labelrace.cli.options import as_names
from labelrace.measures import evaluate
from labelrace.streams.catalog import find_dataset
from labelrace.typing import AnyMatrix, FloatArray

BATCH = 500
_PAPER = ("CAL500", "enron", "delicious", "mediamill", "NUS-WIDE", "rcv1v2")
# Rows that one call learns.
_CALLS = (1, 10, 100, 500)


def speed(
    parts: Annotated[str, typer.Option(help="Which parts, separated by commas.")] = "race,default,calls,libraries,rest",
) -> None:
    """Print ratios to bare products and to other libraries.

    The libraries are Vowpal Wabbit, scikit-learn and River; all parts take minutes.

    [dim]Example:[/dim] python -m benchmarks speed --parts default,calls
    """
    known = {"race": race, "default": default, "calls": calls, "libraries": libraries, "rest": rest}
    for name in as_names(parts):
        if name not in known:
            raise ValueError(f"--parts must be some of {', '.join(known)}, got {name!r}")
        known[name]()


def report(what: str, value: float) -> None:
    """Print a line."""
    print(f"{what:<86}{value:>8.1f} ×", flush=True)


def race() -> None:
    """Compare RACE with its bare products, and many labels with few."""
    X, Y = Shape("", 20_000, 120, 101, 4).draw()
    fast = partial(labelrace.RACEClassifier, random_state=0)
    Y = Y.toarray()
    value = ratio(lambda: run_prequential(fast(), X, Y), partial(bare_race, X, Y, gaussian=True), 3)
    report("RACE / bare products, dense 20,000 × 120, 101 labels", value)
    X, Y = SHAPES["rcv1v2"].draw()
    nominal = partial(fast, categorical_features=np.ones(X.shape[1], bool))
    value = ratio(lambda: run_prequential(nominal(), X, Y), partial(bare_race, X, Y, gaussian=False), 3)
    report("RACE / bare products, sparse 6,000 × 47,236, 101 labels", value)
    many, few = (
        _learning(partial(fast, n_components=16), Shape("", 10_000, 50, count, 5)) for count in (100_000, 1_000)
    )
    report("RACE learning with 100,000 sparse labels / with 1,000", many / few)


def bare_race(X: AnyMatrix, Y: AnyMatrix, gaussian: bool) -> None:
    """Do what no implementation can avoid: encode, collect sums, compute log odds, decode."""
    k = int(np.ceil(np.log2(Y.shape[1])))
    A, W, beta = (np.ones(shape) for shape in ((Y.shape[1], k), (X.shape[1], k), (k, Y.shape[1])))
    for x, y in batches(X, Y):
        parts = [x, x * x] if gaussian else [x]
        odds = sum(part @ W for part in parts)
        _ = (odds > 0) @ beta > 0
        h = (y @ A >= 0).astype(float)
        for part in parts:
            _ = part.T @ h


def _learning(make: Callable[..., Any], shape: Shape) -> float:
    """Time learning alone, after 1,000 rows."""
    X, Y = shape.draw()
    later = list(batches(X[1000:], Y[1000:]))
    models = [make(random_state=0).partial_fit(X[:1000], Y[:1000]) for _ in range(3)]
    return min(seconds(partial(_learn, model, later), 1) for model in models)


def _learn(model: Any, pairs: Iterable[tuple[AnyMatrix, AnyMatrix]]) -> None:
    for X, Y in pairs:
        model.partial_fit(X, Y)


def default() -> None:
    """Compare the default with the bare products of its own arithmetic, and wide data with narrow."""
    shapes = Shape("text", 6000, 5000, 50, 3, 0.01), Shape("dense", 6000, 100, 50, 3)
    for shape in (*shapes, SHAPES["bibtex"], SHAPES["rcv1v2"]):
        X, Y = shape.draw(6000)
        ours = partial(lambda X, Y: run_prequential(labelrace.make_model("race"), X, Y), X, Y)
        value = ratio(ours, bare_default(X, Y))
        report(f"race / bare products, {shape.name}: {shape.features:,} features, {shape.labels} labels", value)
    few, many = (
        _learning(labelrace.LabelRaceClassifier, Shape("", 8000, width, 50, 3, 50 / width)) for width in (5000, 10**6)
    )
    report("race learning with 1,000,000 features / with 5,000, 50 non-zeros a row", many / few)


def bare_default(X: AnyMatrix, Y: AnyMatrix, n_random: int = 128) -> Callable[[], None]:
    """Start exactly, predict and learn by products alone: nothing is checked, monitored, scaled or kept whole."""
    Z, Y = unit_rows(X), Y.toarray().astype(np.float32)
    is_sparse = scipy.sparse.issparse(Z)
    size = 128 if is_sparse else 64
    directions = None if is_sparse else RNG.normal(size=(X.shape[1], n_random)).astype(np.float32)

    def run() -> None:
        m = Z.shape[1] + (0 if is_sparse else n_random)
        W, d = np.zeros((m, Y.shape[1]), np.float32), np.ones(m, np.float32)
        bare_start(Z[:BATCH], Y[:BATCH])
        for x, y in batches(Z, Y):
            if directions is not None:
                x = np.hstack([x, np.abs(x @ directions)])
            _ = x @ W > 0.5
            for z, t in batches(x, y, size):
                bare_block(z, t, W, d)

    return run


def unit_rows(X: AnyMatrix) -> AnyMatrix:
    """Scale sparse rows to length one, or dense columns, as the default does it, beforehand."""
    if not scipy.sparse.issparse(X):
        return (X / np.sqrt(X.shape[1])).astype(np.float32)
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return scipy.sparse.csr_array(scipy.sparse.diags_array(1.0 / lengths) @ X).astype(np.float32)


def bare_start(z: AnyMatrix, y: FloatArray) -> None:
    """Compute leave-one-out errors for nine penalties."""
    values, vectors = np.linalg.eigh(dense(z @ z.T).astype(float))
    along = vectors.T @ y
    for alpha in np.geomspace(0.02, 10.0, 9):
        shrink = 1.0 / (values / alpha + 1.0)
        _ = (vectors @ (shrink[:, None] * along)) / ((vectors * vectors) @ shrink)[:, None]


def bare_block(z: AnyMatrix, y: FloatArray, W: FloatArray, d: FloatArray) -> None:
    """Take the step of one block."""
    if scipy.sparse.issparse(z):
        touched, columns = np.unique(z.indices, return_inverse=True)
        z = scipy.sparse.csr_array((z.data, columns, z.indptr), shape=(z.shape[0], len(touched)))
        scaled = scipy.sparse.csr_array((z.data / d[touched][columns], columns, z.indptr), shape=z.shape)
        inverse = np.linalg.inv((scaled @ z.T).toarray() + np.eye(z.shape[0], dtype=np.float32))
        W[touched] += scaled.T @ (inverse @ (y - z @ W[touched]))
        q = np.asarray(z.multiply((z.T @ inverse).T).sum(axis=0)).ravel()
        d[touched] /= 1.0 - q / d[touched]
        return
    scaled = z / d
    inverse = np.linalg.inv(scaled @ z.T + np.eye(len(z), dtype=np.float32))
    W += scaled.T @ (inverse @ (y - z @ W))
    d /= 1.0 - np.einsum("ij,ij->j", z, inverse @ z) / d


def calls() -> None:
    """Let the default learn few and many rows a call, beside Vowpal Wabbit, which learns one."""
    print("\nMicroseconds a row that `race` takes to learn, by rows a call; Vowpal Wabbit's multilabel_oaa, row by row")
    print(f"{'shape of':<12}" + "".join(f"{size:>8}" for size in _CALLS) + f"{'Vowpal Wabbit':>16}{'1 row / VW':>13}")
    for name in ("bibtex", "delicious", "yeast", "enron"):
        X, Y = SHAPES[name].draw(2000)
        model = labelrace.make_model("race", random_state=0).partial_fit(X[:1000], Y[:1000])
        times = [seconds(partial(_learn, model, list(batches(X[1000:], Y[1000:], size)))) / 1000 for size in _CALLS]
        theirs = _vowpal_wabbit(X, Y) if find_spec("vowpalwabbit") else None
        text = f"{'not installed':>16}" if theirs is None else f"{1e6 * theirs:>16.0f}{times[0] / theirs:>11.1f} ×"
        print(f"{name:<12}" + "".join(f"{1e6 * each:>8.0f}" for each in times) + text, flush=True)


def _vowpal_wabbit(X: AnyMatrix, Y: AnyMatrix) -> float:
    """Return the seconds of a row, after 1,000; the lines are written beforehand."""
    workspace = vowpal_wabbit(f"--multilabel_oaa {Y.shape[1]}")
    lines = vowpal_lines(X, Y)
    for line in lines[:1000]:
        workspace.learn(line)
    return seconds(lambda: [workspace.learn(line) for line in lines[1000:]]) / len(lines[1000:])


def libraries() -> None:
    """Compare RACE with scikit-learn's binary relevance and River's classifier chain, on the paper's datasets."""
    print("\nMilliseconds a row, test and train; batches of 500 (scikit-learn: 100, River: one by one)")
    print(f"{'':<12}{'rows':>8}{'features':>10}{'labels':>8}{'RACE':>10}{'scikit-learn':>22}{'River':>22}")
    for name in _PAPER:
        shape = SHAPES[name]
        X, Y = real_or_drawn(name, 5000)
        nominal = None if shape.density is None else np.ones(shape.features, bool)
        model = partial(labelrace.RACEClassifier, categorical_features=nominal, random_state=0)
        ours = 1e3 * seconds(lambda: run_prequential(model(), X, Y)) / X.shape[0]  # noqa: B023
        others = (_scikit_learn(shape, X, Y), _river(X, Y))
        cells = "".join(f"{'-':>22}" if t is None else f"{t:>12.2f} ({t / ours:>6,.0f} ×)" for t in others)
        print(f"{name:<12}{shape.rows:>8}{shape.features:>10}{shape.labels:>8}{ours:>10.4f}{cells}", flush=True)


def _scikit_learn(shape: Shape, X: AnyMatrix, Y: AnyMatrix, rows: int = 200) -> float:
    """Return the milliseconds a row of MultiOutputClassifier, on a few rows: it takes long."""
    model = MultiOutputClassifier(GaussianNB() if shape.density is None else BernoulliNB())
    classes = [np.array([0, 1])] * Y.shape[1]
    run = partial(run_prequential, model, X[:rows], dense(Y[:rows]), 100, classes=classes)
    # A label that no row has yet has a prior of zero.
    with np.errstate(divide="ignore"):
        return 1e3 * seconds(run, 1) / rows


def _river(X: AnyMatrix, Y: AnyMatrix, rows: int = 20) -> float | None:
    """Return the milliseconds a row of River's classifier chain, on a few rows."""
    if find_spec("river") is None or X.shape[1] * Y.shape[1] > 100_000:
        return None
    from river.multioutput import ClassifierChain
    from river.naive_bayes import GaussianNB as RiverGaussianNB

    return 1e3 * river_seconds(ClassifierChain(RiverGaussianNB()), dense(X[:rows]), dense(Y[:rows]) > 0)


def rest() -> None:
    """Compare measures, the reader of ARFF files and the command's start with what they stand beside."""
    print()
    (_, Y), scores = SHAPES["delicious"].draw(500), RNG.normal(size=(500, 983))
    predicted = (scores > 2).astype(np.int8)
    measured = partial(evaluate, Y, predicted, scores, measures="all")
    report("all 19 measures / one argsort, 500 × 983", ratio(measured, lambda: np.argsort(scores, axis=1)))
    try:
        path = find_dataset("delicious")
    except FileNotFoundError:
        print("liac-arff / labelrace, reading delicious.arff: the file is not available")
    else:
        import arff

        def liac() -> None:
            with path.open() as file:
                arff.load(file, return_type=arff.LOD)

        report("liac-arff / labelrace, reading delicious.arff", ratio(liac, lambda: labelrace.load_dataset(path), 2))
    bare, ours = (_elapsed(code) for code in ("import numpy", "from labelrace.cli.main import app; app(['--help'])"))
    report("labelrace --help / the interpreter that imports NumPy", ours / bare)


def _elapsed(code: str) -> float:
    """Time an interpreter from start to end: the best of five."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False)
        times.append(time.perf_counter() - start)
    return min(times)
