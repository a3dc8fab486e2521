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
from benchmarks.extreme import best_labels
from benchmarks.timing import batches
from labelrace.measures import evaluate
from labelrace.streams.synthetic import SyntheticStream

app = typer.Typer(no_args_is_help=True, help="Learn in shares on Dask: speed, quality, memory.")


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
    """Seconds of a fit: elapsed, CPU of the workers, of scheduler and client, and of the busiest worker of each round.

    The last is what the workers would need at the least on processors of their own. Unlike elapsed time it means
    something on a busy machine.
    """

    wall: float
    workers: float
    engine: float
    busiest: float


def cost_of(client: Any, parts: list[Any]) -> Cost:
    """Measure a fit on a cluster, in 4 rounds of 8 shares."""
    from labelrace.distributed import fit

    engine, start = _cpu(), time.perf_counter()
    used = [client.run(_cpu)]
    model = labelrace.LabelRaceClassifier(random_state=0)
    fit(model, parts, client=client, on_progress=lambda _: used.append(client.run(_cpu)), rounds=4, shares=8)
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

    parts = parts_of(n_rows)
    with connect(workers=1) as one, connect(workers=2) as two:
        for client in (one, two):
            cost_of(client, parts[:8])
        pairs = [(cost_of(one, parts), cost_of(two, parts)) for _ in range(repeats)]
    wall, busiest = (statistics.median(getattr(a, of) / getattr(b, of) for a, b in pairs) for of in ("wall", "busiest"))
    print(f"two workers against one: {wall:.2f} times as fast, at a load of {os.getloadavg()[0]:.0f}")
    print(f"by the CPU time of the busiest worker of each round: {busiest:.2f} times")
    for name, costs in zip(("one worker", "two workers"), zip(*pairs, strict=True), strict=True):
        cost = Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))
        print(
            f"{name}: {cost.wall:.1f} s; CPU of workers {cost.workers:.1f} s, of the busiest of each round "
            f"{cost.busiest:.1f} s; of scheduler and client {cost.engine:.2f} s ({cost.engine / cost.workers:.0%})"
        )


@app.command()
def quality(
    name: Annotated[str, typer.Argument(help="A dataset, or a data file.")] = "delicious",
    rounds: Annotated[int, typer.Option(help="How often shares are merged.")] = 24,
) -> None:
    """Compare 8 and 32 shares with one pass: example F1, nDCG@5 on the last quarter, of three shuffles and the file."""
    from labelrace.distributed import fit
    from labelrace.distributed.cluster import connect

    data = labelrace.load_dataset(name)
    X, Y = scipy.sparse.csr_array(data.X), scipy.sparse.csr_array(data.Y)
    orders = {f"shuffle {seed}": np.random.default_rng(seed).permutation(X.shape[0]) for seed in range(3)}
    with connect() as client:
        for order, rows in {**orders, "the order of the file": np.arange(X.shape[0])}.items():
            train, test = np.split(rows, [X.shape[0] * 3 // 4])
            one_pass: list[float] = []
            for shares in (1, 8, 32):
                model = labelrace.LabelRaceClassifier(random_state=0)
                if shares == 1:
                    for x, y in batches(X[train], Y[train]):
                        model.partial_fit(x, y)
                else:
                    parts = [(X[part], Y[part]) for part in np.array_split(train, shares * rounds)]
                    fit(model, parts, client=client, shares=shares, rounds=rounds)
                found = evaluate(Y[test], model.predict(X[test]), measures="example_f1")
                found |= evaluate(Y[test], top=best_labels(model, X[test]), measures="ndcg_at_5")
                one_pass = one_pass or list(found.values())
                what = "one pass" if shares == 1 else f"{shares} shares"
                values = (f"{v:.4f}, {v / of - 1:+.1%}" for v, of in zip(found.values(), one_pass, strict=True))
                print(f"{name}, {order}, {what}: {'; '.join(values)}", flush=True)


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
