"""What the default costs: its time as a ratio to that of the fast form of race-cls-fixed, on one thread.

Both test and train on synthetic streams with the shapes of public datasets, by turns; CPU time, the best of some runs.
Usage: ``python benchmarks/default.py [name …]``.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import sys
import time
from typing import Any

from shapes import SHAPES, Shape

from labelrace import LabelRaceClassifier, RACEClassifier
from labelrace.streams.dataset import Batch
from labelrace.streams.synthetic import SyntheticStream

REPEATS = 6
# Rows up to which batches have 100 rows, and rows of a stream at the most.
SHORT, MOST_ROWS = 4000, 10_000


def stream_of(shape: Shape) -> SyntheticStream:
    return SyntheticStream(**shape._replace(n_rows=min(shape.n_rows, MOST_ROWS))._asdict())


def seconds(model: Any, batches: list[Batch]) -> float:
    """Time testing and training."""
    start = time.process_time()
    for number, (X, Y) in enumerate(batches):
        if number:
            model.predict(X)
        model.partial_fit(X, Y)
    return time.process_time() - start


def main(names: list[str]) -> None:
    print(f"{'':<12}{'features':>10}{'labels':>8}{'fast form':>15}{'race':>15}")
    for name in names or SHAPES:
        shape = SHAPES[name]
        stream = stream_of(shape)
        batches = list(stream.batches(100 if shape.n_rows <= SHORT else 500))
        best = [float("inf")] * 2
        # By turns, so that a machine that is slow for a while is so for both.
        for _ in range(REPEATS):
            for place, kind in enumerate((RACEClassifier, LabelRaceClassifier)):
                model = kind(categorical_features=stream.categorical, random_state=0)
                best[place] = min(best[place], seconds(model, batches))
        fast, default = (1e3 * value / len(batches) for value in best)
        times = f"{fast:>9.2f} ms a batch{default / fast:>8.1f} ×"
        print(f"{name:<12}{shape.n_features:>10}{shape.n_labels:>8}{times}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
