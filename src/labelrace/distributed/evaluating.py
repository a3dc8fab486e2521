"""`evaluate`: models, datasets and seeds as tasks on a cluster, with the records of `labelrace run`."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from labelrace.distributed.cluster import connect
from labelrace.evaluation import run
from labelrace.evaluation.records import Record, Results
from labelrace.evaluation.workers import Task, records_of


def evaluate(
    models: Any,
    source: Any,
    *,
    out: str | os.PathLike[str],
    client: Any = None,
    workers: int | None = None,
    scheduler: str | None = None,
    **settings: Any,
) -> dict[str, Results]:
    """Evaluate models on datasets, several times each, on a cluster.

    Parameters
    ----------
    models, settings
        As for `labelrace.evaluation.run`: runs, seed, measures, protocol, resume and so on.
    source : dataset, or list of them
        As for `labelrace.evaluation.run`, each.
    out : path
        The folder; each dataset has one in it, with the records of a run, which ``resume=True`` continues.
    client, workers, scheduler
        As for `labelrace.distributed.fit`.

    Returns
    -------
    dict from dataset to (manifest, records)

    Examples
    --------
    >>> import tempfile
    >>> from distributed import Client
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> streams = [SyntheticStream(n_rows=300, n_labels=5, name=f"synthetic-{seed}", seed=seed) for seed in (1, 2)]
    >>> with tempfile.TemporaryDirectory() as folder, Client(processes=False, dashboard_address=None) as client:
    ...     found = evaluate(["majority", "obr"], streams, out=folder, client=client, batch_size=100)
    >>> {name: sum(record["kind"] == "done" for record in records) for name, (_, records) in found.items()}
    {'synthetic-1': 2, 'synthetic-2': 2}
    """
    sources = list(source) if isinstance(source, (list, tuple)) else [source]
    results = {}
    with connect(client, workers=workers, scheduler=scheduler) as connection:
        for number, data in enumerate(sources):
            name = _name(data, number)
            performer = partial(perform, connection)
            results[name] = run(data, models, out=Path(out) / name, performer=performer, **settings)
    return results


def _name(data: Any, number: int) -> str:
    if isinstance(data, (str, os.PathLike)):
        return Path(data).stem
    return str(getattr(data, "name", f"dataset-{number}"))


def perform(client: Any, tasks: Iterable[Task]) -> Generator[Record, None, None]:
    """Do tasks on a cluster and yield their records, those of a task together, as tasks end."""
    from distributed import as_completed

    futures = {client.submit(_all_records, task, pure=False): task for task in tasks}
    try:
        for future in as_completed(list(futures)):
            if future.status == "error":
                error = future.exception()
                yield {"kind": "failed", **futures[future].key, "error": f"{type(error).__name__}: {error}"}
            else:
                yield from future.result()
    finally:
        client.cancel(list(futures))


def _all_records(task: Task) -> list[Record]:
    return list(records_of(task))
