"""How a model learns in shares: one worker against two, in alternation; quality by shares and rounds; the cost of it.

    python benchmarks/scale.py speed      # two workers against one, and the engine's share of the CPU time
    python benchmarks/scale.py quality delicious    # or a data file, or cooking.csv.gz, which the tagger learns
    python benchmarks/scale.py memory     # of a worker, for a stream ten times as large as its limit

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
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import labelrace
from labelrace.distributed import Progress, fit
from labelrace.distributed.cluster import connect, local_cluster
from labelrace.measures import evaluate
from labelrace.streams.synthetic import SyntheticStream


def parts_of(n_rows: int, size: int = 1000) -> list[Any]:
    """List pieces of some rows that are made where they are learned."""
    import dask

    return [dask.delayed(_made)(seed, size) for seed in range(n_rows // size)]


@cache
def _stream() -> Any:
    [(X, Y)] = SyntheticStream(n_rows=1000, n_features=200, n_labels=200, seed=0).batches(1000)
    return X, scipy.sparse.csr_array(Y)


def _made(seed: int, size: int) -> Any:
    X, Y = _stream()
    chosen = np.random.default_rng(seed).integers(0, 1000, size)
    return X[chosen], Y[chosen]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _memory() -> float:
    """Return what this process uses now, in MB; its peak may be from before."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


class Cost(NamedTuple):
    """What a fit took.

    Attributes
    ----------
    wall : float
        Seconds.
    workers, engine : float
        CPU seconds of the workers, and of the scheduler and the client.
    busiest : float
        CPU seconds of the busiest worker of each round, added up: the seconds that the workers would need at the least
        on processors of their own. Unlike ``wall`` it means something on a busy machine.
    """

    wall: float
    workers: float
    engine: float
    busiest: float


def cost_of(client: Any, parts: list[Any], **settings: Any) -> Cost:
    engine, start = _cpu(), time.perf_counter()
    used = [client.run(_cpu)]
    model = labelrace.LabelRaceClassifier(random_state=0)
    fit(model, parts, client=client, on_progress=lambda _: used.append(client.run(_cpu)), **settings)
    wall, ours = time.perf_counter() - start, _cpu() - engine
    of_rounds = [[after[name] - before[name] for name in after] for before, after in itertools.pairwise(used)]
    return Cost(wall, sum(map(sum, of_rounds)), ours, sum(map(max, of_rounds)))


def speed(n_rows: int, size: int, repeats: int) -> None:
    """Compare two workers with one, in alternation; both wait while the other works."""
    parts, settings = parts_of(n_rows, size), {"rounds": 4, "shares": 8}
    start, alone = time.process_time(), labelrace.LabelRaceClassifier(random_state=0)
    for place in range(len(parts)):
        X, Y = _made(place, size)
        for first in range(0, size, 500):
            alone.partial_fit(X[first : first + 500], Y[first : first + 500])
    print(f"{n_rows} rows, 200 features, 200 labels; one pass in this process: {time.process_time() - start:.1f} s CPU")
    with connect(workers=1) as one, connect(workers=2) as two:
        for client in (one, two):
            cost_of(client, parts[:8], **settings)
        pairs = [(cost_of(one, parts, **settings), cost_of(two, parts, **settings)) for _ in range(repeats)]
    load = os.getloadavg()[0]
    ratio = statistics.median(a.wall / b.wall for a, b in pairs)
    print(f"two workers against one: {ratio:.2f} times as fast, median of {repeats}, at a load of {load:.0f}")
    ratio = statistics.median(a.busiest / b.busiest for a, b in pairs)
    print(f"by the CPU time of the busiest worker of each round: {ratio:.2f} times")
    for name, costs in zip(("one worker", "two workers"), zip(*pairs, strict=True), strict=True):
        wall, workers, engine, busiest = (statistics.median(values) for values in zip(*costs, strict=True))
        print(
            f"{name}: {wall:.1f} s; CPU of workers {workers:.1f} s, of the busiest of each round {busiest:.1f} s; "
            f"of scheduler and client {engine:.2f} s ({engine / workers:.0%})"
        )


class Rows(NamedTuple):
    """What is learned in shares: matrices, by the default, or a table with tags, by the tagger."""

    X: Any
    Y: Any
    table: Any = None

    def taken(self, rows: Any) -> Any:
        """Return some rows as a batch."""
        return self.table.iloc[rows] if self.table is not None else (self.X[rows], self.Y[rows])

    def made(self) -> Any:
        """Make a model that has learned nothing."""
        return (
            labelrace.LabelRaceClassifier(random_state=0)
            if self.table is None
            else labelrace.Tagger("tags", random_state=0)
        )

    def alone(self, rows: Any) -> Any:
        """Learn rows in one pass, in batches of 500."""
        model = self.made()
        for first in range(0, len(rows), 500):
            batch = self.taken(rows[first : first + 500])
            model.partial_fit(*batch) if self.table is None else model.partial_fit(batch)
        return model

    def f1(self, model: Any, rows: Any) -> float:
        """Compute the mean F measure of some rows."""
        if self.table is not None:
            return float(model.score(self.taken(rows)))
        return float(evaluate(self.Y[rows], model.predict(self.X[rows]), measures=["example_f1"])["example_f1"])


def rows_of(name: str) -> Rows:
    """Read a dataset of the catalog, a data file, or a table with a column ``tags``."""
    if ".csv" in Path(name).suffixes:
        import pandas as pd

        return Rows(None, None, pd.read_csv(name, dtype=str, keep_default_na=False))
    data = labelrace.load_dataset(name)
    return Rows(scipy.sparse.csr_array(data.X), scipy.sparse.csr_array(data.Y))


def quality(name: str, rounds: list[int]) -> None:
    """Compare shares by hash, and in the order of time, with one pass: example F on the last quarter."""
    data = rows_of(name)
    n_rows = len(data.table) if data.table is not None else data.X.shape[0]
    with connect() as client:
        for order in ("by hash", "by time"):
            rows = np.random.default_rng(0).permutation(n_rows) if order == "by hash" else np.arange(n_rows)
            train, test = np.split(rows, [n_rows * 3 // 4])
            one_pass = data.f1(data.alone(train), test)
            print(f"{name}, {order}: one pass {one_pass:.4f}")
            for shares, n_rounds in itertools.product((8, 32), rounds):
                parts = [data.taken(part) for part in np.array_split(train, shares * n_rounds)]
                steps = list[Progress]()
                model = fit(data.made(), parts, client=client, shares=shares, rounds=n_rounds, on_progress=steps.append)
                f1 = data.f1(model, test)
                print(f"  {shares} shares, {n_rounds} rounds: {f1:.4f}, {f1 / one_pass - 1:+.1%}", flush=True)


def memory() -> None:
    """Show that a worker's memory does not grow with the rows that it has learned, under a limit that rows exceed."""
    limit = 400
    with local_cluster(1, memory_limit=f"{limit}MB") as client:
        n_rows = 10 * limit * 2**20 // (200 * 8)
        print(f"{n_rows} rows of 1,600 bytes, ten times a worker's {limit} MB; rows, and MB in use after each round:")

        def note(progress: Progress) -> None:
            print(f"  {progress.rows:8d} {max(client.run(_memory).values()):4.0f}", flush=True)

        model = labelrace.LabelRaceClassifier(random_state=0)
        fit(model, parts_of(n_rows), client=client, rounds=16, shares=8, on_progress=note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "quality", "memory"))
    parser.add_argument("dataset", nargs="?", default="delicious")
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--piece", type=int, default=1000, help="rows of a piece")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, nargs="+", default=[1, 4, 16, 24])
    given = parser.parse_args()
    if given.what == "speed":
        speed(given.rows, given.piece, given.repeats)
    elif given.what == "quality":
        quality(given.dataset, given.rounds)
    else:
        memory()


if __name__ == "__main__":
    main()
