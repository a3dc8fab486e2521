"""A million labels, as ratios in one run: hashed RACE beside a bare product and Vowpal Wabbit's label tree.

A synthetic stream whose labels follow Zipf's law, each with words of its own among noise: 10⁵ features, 50 non-zeros
and five labels a row. Printed for 10⁴ and 10⁶ labels: rows learned a second, the first batch, the five best labels of
one row and of 100, the product of 100 rows of codes with all labels, and the bytes of the file. With the package
``vowpalwabbit`` installed, the same of ``--plt``. Usage:

    python benchmarks/extreme.py
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import labelrace
from labelrace.experiments.extreme import zipf_stream

BATCH, ROWS = 500, 6000


def stream(n_labels: int) -> tuple[Any, Any]:
    _, X, Y = zipf_stream(n_labels, ROWS)
    return X, Y


def seconds(task: Callable[[], Any]) -> float:
    """Measure processor time, which other processes change less."""
    start = time.process_time()
    task()
    return time.process_time() - start


def hashed(n_labels: int) -> dict[str, float]:
    X, Y = stream(n_labels)
    model = labelrace.make_model("race-hashed", max_memory="450MB", random_state=0)
    first = seconds(lambda: model.partial_fit(X[:BATCH], Y[:BATCH]))
    places = range(BATCH, ROWS - BATCH, BATCH)
    learned = seconds(lambda: [model.partial_fit(X[s : s + BATCH], Y[s : s + BATCH]) for s in places])
    test = X[-BATCH:]
    model.predict_top(test[:1], 5)
    one = seconds(lambda: [model.predict_top(test[i : i + 1], 5) for i in range(100)]) / 100
    many = seconds(lambda: model.predict_top(test[:100], 5))
    rng = np.random.default_rng(0)
    codes, sums = (rng.random((n, model.n_components_), dtype=np.float32) for n in (100, n_labels))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        size = Path(folder, "model").stat().st_size
    return {
        "first batch, s": first,
        "rows learned a second": len(places) * BATCH / learned,
        "best of one row, ms": 1e3 * one,
        "best of 100 rows, ms": 1e3 * many,
        "product of 100 rows, ms": 1e3 * seconds(lambda: codes @ sums.T),
        "megabytes": size / 1e6,
    }


def label_tree(n_labels: int) -> dict[str, float]:
    import vowpalwabbit

    X, Y = stream(n_labels)
    texts = [" ".join(map(str, X.indices[X.indptr[i] : X.indptr[i + 1]].tolist())) for i in range(ROWS)]
    tags = [",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist())) for i in range(ROWS)]
    tree = vowpalwabbit.Workspace(f"--plt {n_labels} --loss_function logistic -b 24 --top_k 5 --quiet")
    learned = seconds(lambda: [tree.learn(f"{tags[i]} | {texts[i]}") for i in range(ROWS - BATCH)])
    one = seconds(lambda: [tree.predict(f"| {texts[i]}") for i in range(ROWS - BATCH, ROWS)]) / BATCH
    return {"rows learned a second": (ROWS - BATCH) / learned, "best of one row, ms": 1e3 * one}


def main() -> None:
    few, many = hashed(10**4), hashed(10**6)
    for title, found in (("10⁴ labels", few), ("10⁶ labels", many)):
        print(title, *(f"{name}: {value:.3g}" for name, value in found.items()), sep="\n  ")
    print(f"learning, 10⁶ against 10⁴ labels: {few['rows learned a second'] / many['rows learned a second']:.2f} times")
    print(f"best of 100 rows: 1/{many['product of 100 rows, ms'] / many['best of 100 rows, ms']:.1f} of the product")
    try:
        tree = label_tree(10**6)
    except ImportError:
        print("Vowpal Wabbit is not installed")
        return
    print("Vowpal Wabbit --plt, 10⁶ labels", *(f"{name}: {value:.3g}" for name, value in tree.items()), sep="\n  ")
    print(f"learning: {many['rows learned a second'] / tree['rows learned a second']:.2f} times its rows")
    print(f"one row: {many['best of one row, ms'] / tree['best of one row, ms']:.1f} times its time")


if __name__ == "__main__":
    main()
