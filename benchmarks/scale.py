"""How a model learns in shares: one worker against two, in alternation; quality by shares and rounds; the cost of it.

    python benchmarks/scale.py speed      # two workers against one, and the engine's share of the CPU time
    python benchmarks/scale.py quality delicious
    python benchmarks/scale.py memory     # the peak of a worker's memory, for streams of two lengths

Times mean something only where the processors are free.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import itertools
import resource
import statistics
import time
from typing import Any

import numpy as np
import scipy.sparse

import labelrace
from labelrace.distributed import fit
from labelrace.distributed.cluster import connected
from labelrace.measures import evaluate
from labelrace.streams.synthetic import SyntheticStream


def parts_of(n_rows: int, size: int, seed: int = 0) -> list[Any]:
    stream = SyntheticStream(n_rows=n_rows, n_features=200, n_labels=200, seed=seed)
    return [(X, scipy.sparse.csr_array(Y)) for X, Y in stream.batches(size)]


def cpu_of_workers(client: Any) -> float:
    return float(sum(client.run(_cpu).values()))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def timed(client: Any, parts: list[Any], shares: int) -> float:
    start = time.perf_counter()
    fit(labelrace.LabelRaceClassifier(random_state=0), parts, client=client, rounds=4, shares=shares)
    return time.perf_counter() - start


def speed(n_rows: int, repeats: int) -> None:
    """Compare two workers with one, in alternation; both wait while the other works."""
    parts = parts_of(n_rows, 500)
    start = time.process_time()
    alone = labelrace.LabelRaceClassifier(random_state=0)
    for X, Y in parts:
        alone.partial_fit(X, Y)
    print(f"{n_rows} rows, 200 features, 200 labels; one pass in this process: {time.process_time() - start:.1f} s CPU")
    with connected(workers=1) as one, connected(workers=2) as two:
        timed(one, parts[:40], 8), timed(two, parts[:40], 8)
        before, engine_before = cpu_of_workers(two), _cpu()
        pairs = [(timed(one, parts, 8), timed(two, parts, 8)) for _ in range(repeats)]
        workers, engine = cpu_of_workers(two) - before, _cpu() - engine_before
    ratio = statistics.median(slow / fast for slow, fast in pairs)
    print(f"one worker {pairs[0][0]:.1f} s, two workers {pairs[0][1]:.1f} s; median ratio {ratio:.2f}")
    print(f"CPU of two workers {workers:.1f} s; of scheduler and client, for both clusters, {engine:.1f} s")


def quality(name: str, rounds: list[int]) -> None:
    """Compare shares by hash, and in the order of time, with one pass: example F on the last quarter."""
    data = labelrace.load_dataset(name)
    for order in ("by hash", "by time"):
        X, Y = scipy.sparse.csr_array(data.X), scipy.sparse.csr_array(data.Y)
        if order == "by hash":
            shuffled = np.random.default_rng(0).permutation(X.shape[0])
            X, Y = X[shuffled], Y[shuffled]
        end = X.shape[0] * 3 // 4
        alone = labelrace.LabelRaceClassifier(random_state=0)
        for first in range(0, end, 500):
            alone.partial_fit(X[first : min(first + 500, end)], Y[first : min(first + 500, end)])
        print(f"{name}, {order}: one pass {_f1(alone, X[end:], Y[end:]):.4f}")
        with connected() as client:
            for shares in (8, 32):
                for n_rounds in rounds:
                    bounds = np.linspace(0, end, shares * n_rounds + 1).astype(int)
                    parts = [(X[a:b], Y[a:b]) for a, b in itertools.pairwise(bounds)]
                    model = labelrace.LabelRaceClassifier(random_state=0)
                    fit(model, parts, client=client, shares=shares, rounds=n_rounds)
                    print(f"  {shares} shares, {n_rounds} rounds: {_f1(model, X[end:], Y[end:]):.4f}", flush=True)


def _f1(model: Any, X: Any, Y: Any) -> float:
    found = model.predict(X)
    return float(evaluate(Y, found, measures=["example_f1"])["example_f1"])


def memory() -> None:
    """Show that a worker's memory does not grow with the rows that it has learned."""
    with connected(workers=1) as client:
        for n_rows in (20_000, 200_000):
            import dask

            parts = [dask.delayed(_made)(seed) for seed in range(n_rows // 1000)]
            fit(labelrace.LabelRaceClassifier(random_state=0), parts, client=client, rounds=16, shares=8)
            print(f"{n_rows} rows: peak of the worker {max(client.run(_peak).values()):.0f} MB", flush=True)


def _made(seed: int) -> Any:
    [(X, Y)] = SyntheticStream(n_rows=1000, n_features=200, n_labels=50, seed=0).batches(1000)
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, 1000, 1000)
    return X[chosen], scipy.sparse.csr_array(Y)[chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "quality", "memory"))
    parser.add_argument("dataset", nargs="?", default="delicious")
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, nargs="+", default=[1, 4, 16])
    given = parser.parse_args()
    if given.what == "speed":
        speed(given.rows, given.repeats)
    elif given.what == "quality":
        quality(given.dataset, given.rounds)
    else:
        memory()


if __name__ == "__main__":
    main()
