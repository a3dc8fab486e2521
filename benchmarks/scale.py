"""How a model learns in shares: one worker against two, in alternation; quality by shares and rounds; memory.

Times mean something only where the processors are free.
"""

from __future__ import annotations

import itertools
import os
import resource
import statistics
import time
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse
import typer

import labelrace
from labelrace.measures import evaluate
from labelrace.streams.synthetic import SyntheticStream

app = typer.Typer(no_args_is_help=True, help="Learning in shares on Dask: speed, quality, memory.")


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
    indices = np.random.default_rng(seed).integers(0, 1000, size)
    return X[indices], Y[indices]


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
    """Measure a fit on a cluster."""
    from labelrace.distributed import fit

    engine, start = _cpu(), time.perf_counter()
    used = [client.run(_cpu)]
    model = labelrace.LabelRaceClassifier(random_state=0)
    fit(model, parts, client=client, on_progress=lambda _: used.append(client.run(_cpu)), **settings)
    wall, ours = time.perf_counter() - start, _cpu() - engine
    of_rounds = [[after[name] - before[name] for name in after] for before, after in itertools.pairwise(used)]
    return Cost(wall, sum(map(sum, of_rounds)), ours, sum(map(max, of_rounds)))


@app.command()
def speed(
    n_rows: Annotated[int, typer.Option("--rows", help="Rows to learn.")] = 40_000,
    repeats: Annotated[int, typer.Option(help="How often each is timed.")] = 3,
) -> None:
    """Compare two workers with one, in alternation; both wait while the other works."""
    from labelrace.distributed.cluster import connect

    parts, settings = parts_of(n_rows), {"rounds": 4, "shares": 8}
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


@app.command()
def quality(
    name: Annotated[str, typer.Argument(help="A dataset, or a data file.")] = "delicious",
    rounds: Annotated[list[int], typer.Option(help="Numbers of rounds; repeatable.")] = [1, 4, 16, 24],  # noqa: B006
) -> None:
    """Compare shares by hash, and in the order of time, with one pass: example F1 on the last quarter."""
    from labelrace.distributed import fit
    from labelrace.distributed.cluster import connect

    data = labelrace.load_dataset(name)
    X, Y = scipy.sparse.csr_array(data.X), scipy.sparse.csr_array(data.Y)

    def f1(model: Any, rows: Any) -> float:
        return evaluate(Y[rows], model.predict(X[rows]), measures=["example_f1"])["example_f1"]

    with connect() as client:
        for order in ("by hash", "by time"):
            rows = np.random.default_rng(0).permutation(X.shape[0]) if order == "by hash" else np.arange(X.shape[0])
            train, test = np.split(rows, [X.shape[0] * 3 // 4])
            alone = labelrace.LabelRaceClassifier(random_state=0)
            for first in range(0, len(train), 500):
                alone.partial_fit(X[train[first : first + 500]], Y[train[first : first + 500]])
            one_pass = f1(alone, test)
            print(f"{name}, {order}: one pass {one_pass:.4f}")
            for shares, n_rounds in itertools.product((8, 32), rounds):
                parts = [(X[part], Y[part]) for part in np.array_split(train, shares * n_rounds)]
                model = labelrace.LabelRaceClassifier(random_state=0)
                value = f1(fit(model, parts, client=client, shares=shares, rounds=n_rounds), test)
                print(f"  {shares} shares, {n_rounds} rounds: {value:.4f}, {value / one_pass - 1:+.1%}", flush=True)


@app.command()
def memory() -> None:
    """Show that a worker's memory does not grow with the rows that it has learned, under a limit that rows exceed."""
    from labelrace.distributed import Progress, fit
    from labelrace.distributed.cluster import local_cluster

    limit = 400
    with local_cluster(1, memory_limit=f"{limit}MB") as client:
        n_rows = 10 * limit * 2**20 // (200 * 8)
        print(f"{n_rows} rows of 1,600 bytes, ten times a worker's {limit} MB; rows, and MB in use after each round:")

        def note(progress: Progress) -> None:
            print(f"  {progress.rows:8d} {max(client.run(_memory).values()):4.0f}", flush=True)

        model = labelrace.LabelRaceClassifier(random_state=0)
        fit(model, parts_of(n_rows), client=client, rounds=16, shares=8, on_progress=note)
