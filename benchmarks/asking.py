"""What asking for the most useful rows saves: the inbox's order `useful` beside random order, by the service itself.

A service learns some rows, and is sent many others, which wait. Then it is asked for a few of them again and again,
these are tagged, and after some rounds the example F1 of rows that are held out is measured. The data are a dataset, as
``enron``, whose rows become texts of the names of their features, or a CSV table with a column ``tags``, as
``cooking.csv.gz``.
"""

from __future__ import annotations

import csv
import gzip
import random
import tempfile
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse
import typer

import labelrace
from labelrace.cli.options import argument
from labelrace.serve.lessons import Lesson, Prediction
from labelrace.serve.problems import Problem
from labelrace.serve.service import Service, open_service
from labelrace.tables.state import f1

Row = dict[str, Any]
ORDERS = ("random", "useful")
_AT_ONCE, _MEASUREMENTS = 500, 8


class Sizes(NamedTuple):
    """Shares of the rows that are learned first, and held out; rows that are asked for at once, and altogether."""

    first: float
    held_out: float
    at_once: int
    asked: int


def asking(
    source: Annotated[str, argument(help="A dataset, or a CSV table with a column 'tags'.")],
    seeds: Annotated[int, typer.Option(min=1, help="Runs, each with other rows held out.")] = 5,
    first: Annotated[float, typer.Option(help="Share of the rows that is learned first.")] = 0.02,
    at_once: Annotated[int, typer.Option(min=1, help="Rows that are asked for at once.")] = 20,
    asked: Annotated[int, typer.Option(min=1, help="Rows that are asked for altogether.")] = 400,
) -> None:
    """Ask for the most useful rows, or for random ones.

    [dim]Example:[/dim] python -m benchmarks asking cooking.csv.gz --asked 1600
    """
    rows, sizes = read_rows(source), Sizes(first, 0.2, at_once, asked)
    found = {order: [asked_for(rows, order, seed, sizes) for seed in range(seeds)] for order in ORDERS}
    n_tagged = [n for n, _ in found["random"][0]]
    means = {order: np.mean([[value for _, value in run] for run in runs], axis=0) for order, runs in found.items()}
    print(f"example F1 of rows that are held out, mean of {seeds} runs, by the number of rows that were asked for")
    print(" " * 10 + "".join(f"{n:>9,}" for n in n_tagged))
    for order, values in means.items():
        print(f"{order:<10}" + "".join(f"{value:>9.4f}" for value in values))
    same = labels_for(n_tagged, means["useful"], float(means["random"][-1]))
    told = f"{same:,.0f} rows by the order useful, {1 - same / n_tagged[-1]:.0%} fewer" if same else "not reached"
    print(f"the F1 of {n_tagged[-1]:,} random rows is that of {told}")


def read_rows(source: str) -> list[Row]:
    """Return rows as the service gets them, with ``tags``."""
    if not source.endswith((".csv", ".csv.gz")):
        return _rows_of_dataset(source)
    opened = gzip.open if source.endswith(".gz") else open
    with opened(source, "rt", encoding="utf-8", newline="") as file:
        return [{**row, "tags": row["tags"].split()} for row in csv.DictReader(file)]


def _rows_of_dataset(name: str) -> list[Row]:
    """Return the rows of a dataset, each a text of the names of what it has."""
    data = labelrace.load_dataset(name)
    words, tags = (np.array(names, dtype=object) for names in (data.feature_names, data.label_names))
    X, Y = scipy.sparse.csr_array(data.X), scipy.sparse.csr_array(data.Y)
    return [
        {"words": " ".join(words[X[[row]].indices]), "tags": list(tags[Y[[row]].indices])} for row in range(X.shape[0])
    ]


def asked_for(rows: Sequence[Row], order: str, seed: int, sizes: Sizes) -> list[tuple[int, float]]:
    """Return the F1 of rows that are held out by the number of rows that were asked for."""
    draw = random.Random(seed)
    mixed = [{**row, "id": str(number)} for number, row in enumerate(draw.sample(rows, len(rows)))]
    n_held_out, n_first = int(sizes.held_out * len(rows)), int(sizes.first * len(rows))
    held_out, first, pool = mixed[:n_held_out], mixed[n_held_out : n_held_out + n_first], mixed[n_held_out + n_first :]
    tags = {row["id"]: row["tags"] for row in pool}
    n_rounds = min(sizes.asked, len(pool)) // sizes.at_once
    measured = {n_rounds * (i + 1) // _MEASUREMENTS for i in range(_MEASUREMENTS)}
    with tempfile.TemporaryDirectory() as folder:
        service = open_service(folder, new={"tags": "tags"})
        try:
            _teach(service, "learn", first)
            for start in range(0, len(pool), _AT_ONCE):
                [answer] = service.predict([Prediction([_untagged(row) for row in pool[start : start + _AT_ONCE]])])
                _check(answer)
            curve, waiting = [(0, _f1(service, held_out))], draw.sample(list(tags), len(tags))
            for number in range(1, n_rounds + 1):
                if order == "random":
                    chosen, waiting = waiting[: sizes.at_once], waiting[sizes.at_once :]
                else:
                    chosen = [row["id"] for row in service.rows(order=order, limit=sizes.at_once)["rows"]]
                _teach(service, "feedback", [{"id": id, "tags": tags[id]} for id in chosen])
                if number in measured:
                    curve.append((number * sizes.at_once, _f1(service, held_out)))
            return curve
        finally:
            service.close()


def labels_for(n_tagged: Sequence[int], values: Any, wanted: float) -> float | None:
    """Return how many rows an F1 has needed first, between measurements by a line; None if it was not reached.

    Examples
    --------
    >>> labels_for([0, 10, 20], [0.1, 0.3, 0.5], 0.4)
    15.0
    """
    for at in range(1, len(values)):
        if values[at] >= wanted:
            share = (wanted - values[at - 1]) / (values[at] - values[at - 1]) if values[at - 1] < wanted else 0.0
            return float(n_tagged[at - 1] + share * (n_tagged[at] - n_tagged[at - 1]))
    return None


def _teach(service: Service, kind: str, rows: Sequence[Row]) -> None:
    for start in range(0, len(rows), _AT_ONCE):
        [answer] = service.teach([Lesson(kind, {"rows": list(rows[start : start + _AT_ONCE])})])
        _check(answer)


def _check(answer: Any) -> None:
    if isinstance(answer, Problem):
        raise ValueError(answer.detail)


def _untagged(row: Row) -> Row:
    return {name: cell for name, cell in row.items() if name != "tags"}


def _f1(service: Service, rows: Sequence[Row]) -> float:
    """Return the mean F1 of what is predicted for rows."""
    predicted = service.folded.tagger.predict([_untagged(row) for row in rows])
    pairs = zip(rows, predicted, strict=True)
    return float(np.mean([f1(set(row["tags"]), found) for row, found in pairs]))
