"""What a passing disturbance costs the default, and what a real drift does, with and without drift detection.

A *disturbance* are two batches of odd rows in the middle of a stream, which then goes on as before. With batches of 500
rows that are 1,000 odd rows; short streams have smaller batches. There are four kinds: labels of other rows, features
in another order, rows without labels, and rows of one topic, which is a label that about as many rows have. Odd rows
are drawn from those before them. Loss is that of example F1 against the same model on the undisturbed stream.

A *drift* is for good: the four kinds of synthetic streams, the tickets of the demonstration, and rcv1v2 in its order.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse

import labelrace
from benchmarks.batch import text_split
from benchmarks.bounds import DRIFTS
from benchmarks.datasets import find_datasets
from benchmarks.extreme import records_table
from benchmarks.plan import RUNS, Data, Out, Record, publish
from benchmarks.timing import batches
from labelrace.cli.options import argument
from labelrace.evaluation import averages, prequential
from labelrace.measures import evaluate
from labelrace.report.document import Document, Section
from labelrace.report.text import as_value
from labelrace.streams.demo import demo_tickets
from labelrace.streams.synthetic import SyntheticStream
from labelrace.tables import Tagger, tagged_dataset
from labelrace.typing import AnyMatrix, FloatArray

MODELS = {
    "race": partial(labelrace.LabelRaceClassifier, random_state=0),
    "detect_drift=False": partial(labelrace.LabelRaceClassifier, random_state=0, detect_drift=False),
}
KINDS = ("labels mixed up", "features of another kind", "no labels", "one topic")
MAX_ROWS, ODD_BATCHES, FEWEST_BATCHES = 16_000, 2, 16
# The batches after a disturbance that are measured together end here; the last ones with the stream.
ENDS = (0, 1, 3, 6)
_COUNTS = {title: (title.lower(), partial(as_value, decimals=0)) for title in ("Alarms", "Drifts")}


class Disturbed(NamedTuple):
    """A stream: rows in order, and how many a batch has."""

    name: str
    X: AnyMatrix
    Y: AnyMatrix
    size: int


def odd_rows(kind: str, X: AnyMatrix, Y: AnyMatrix, n: int, rng: np.random.Generator) -> tuple[AnyMatrix, AnyMatrix]:
    """Draw rows of a kind from those of a stream, with labels as a sparse matrix."""
    some = rng.permutation(X.shape[0])[:n]
    if kind == "labels mixed up":
        return X[some], Y[rng.permutation(some)]
    if kind == "features of another kind":
        return X[some][:, rng.permutation(X.shape[1])], Y[some]
    if kind == "no labels":
        return X[some], 0 * Y[some]
    topic = int(np.argmin(np.abs(np.asarray(Y.sum(axis=0)).ravel() - n)))
    some = rng.choice(np.flatnonzero(Y[:, [topic]].toarray().ravel()), n)
    return X[some], Y[some]


def f1_after(model: Any, X: AnyMatrix, Y: AnyMatrix, size: int) -> FloatArray:
    """Test then train; return the mean example F1 of the first batches, of the next, and so on."""
    values = []
    for x, y in batches(X, Y, size):
        values.append(evaluate(y, model.predict(x), measures="example_f1")["example_f1"])
        model.partial_fit(x, y)
    return np.array([np.mean(values[first:last]) for first, last in pairwise([*ENDS, len(values)])])


def disturbed(stream: Disturbed) -> Iterator[Record]:
    """Disturb a stream in its middle, in each of the ways, for each of the models."""
    X, Y, size = stream.X, scipy.sparse.csr_array(stream.Y), stream.size
    half, n_odd = X.shape[0] // (2 * size) * size, ODD_BATCHES * size
    for name, make in MODELS.items():
        start = make()
        for x, y in batches(X[:half], Y[:half], size):
            start.partial_fit(x, y)
        usual = f1_after(copy.copy(start), X[half:], Y[half:], size)
        for kind in KINDS:
            model = copy.copy(start)
            for x, y in batches(*odd_rows(kind, X[:half], Y[:half], n_odd, np.random.default_rng(1)), size):
                model.partial_fit(x, y)
            lost = 1.0 - f1_after(model, X[half:], Y[half:], size) / usual
            row = {"stream": stream.name, "rows": X.shape[0], "method": f"{kind}, {name}"}
            counts = {"alarms": model.n_alarms_ - start.n_alarms_, "drifts": model.n_drifts_ - start.n_drifts_}
            yield row | {f"lost_{number}": value for number, value in enumerate(lost)} | counts


def drifting(folders: Sequence[Path]) -> Iterator[Record]:
    """Test then train on streams that drift for good, with each of the models."""
    kinds = (SyntheticStream(n_rows=20_000, n_features=50, n_labels=40, drift=kind, seed=1) for kind in DRIFTS)
    found: dict[str, tuple[Any, int]] = {f"{kind} drift": (data, 200) for kind, data in zip(DRIFTS, kinds, strict=True)}
    found["demonstration"] = tagged_dataset(Tagger("tags"), demo_tickets())[0], 200
    for source in find_datasets(folders, needed=False).sources:
        if source.name == "rcv1v2":
            found["rcv1v2"] = labelrace.load_dataset(str(source.data), labels=source.labels), source.batch_size
    for stream, (data, size) in found.items():
        for name, make in MODELS.items():
            model = make()
            points = list(prequential(model, data, size, "example_f1"))
            counts = {"alarms": model.n_alarms_, "drifts": model.n_drifts_}
            yield {"stream": stream, "rows": points[-1].end, "method": name, **averages(points), **counts}


def disturbance(
    datasets: Annotated[
        list[str] | None,
        argument(help="Datasets, or CSV tables with title, content and tags; by default all datasets."),
    ] = None,
    data: Data = None,
    out: Out = RUNS / "disturbance",
) -> None:
    """Disturb streams for a while, or for good.

    [dim]Example:[/dim] python -m benchmarks disturbance enron delicious mediamill cooking.csv.gz
    """
    notes: list[str] = []
    odd = [record for stream in _streams(datasets or (), data or (), notes) for record in disturbed(stream)]
    lasting = list(drifting(data or ()))
    after = ("first batch", "next 2", "next 3", "later")
    columns = {title: (f"lost_{number}", _as_percent) for number, title in enumerate(after)} | _COUNTS
    lost = "Example F1 lost (%) in the batches after a disturbance."
    f1 = {"Example F1": ("example_f1", partial(as_value, decimals=4))} | _COUNTS
    tables = [
        records_table("disturbance", lost, columns, _by_stream(odd), lower=after),
        records_table("drift", "Mean example F1 through drifts for good.", f1, _by_stream(lasting), lower=()),
    ]
    document = Document(
        name="disturbance",
        title="Disturbances and drifts",
        lead="Two batches of odd rows in the middle of a stream, and drifts for good.",
        footer=f"Made by labelrace {labelrace.__version__}.",
        sections=[Section("With and without drift detection", lost, tables)],
        records={"disturbance": odd, "drift": lasting},
        notes=notes,
    )
    publish(document, out)


def _streams(names: Sequence[str], folders: Sequence[Path], notes: list[str]) -> Iterator[Disturbed]:
    """Yield streams in the order of their files; notes tell which are too short."""
    tables = [name for name in names if name.endswith((".csv", ".csv.gz"))]
    others = [name for name in names if name not in tables]
    for source in find_datasets(folders, others).sources if others or not tables else ():
        if source.facts.rows < FEWEST_BATCHES * source.batch_size:
            notes.append(f"{source.name} is left out: it has fewer than {FEWEST_BATCHES} batches.")
            continue
        loaded = labelrace.load_dataset(str(source.data), labels=source.labels)
        yield Disturbed(source.name, loaded.X[:MAX_ROWS], loaded.Y[:MAX_ROWS], source.batch_size)
    for split in map(text_split, tables):
        X, Y = (scipy.sparse.vstack(pair, "csr") for pair in ((split.X, split.X_ranked), (split.Y, split.Y_ranked)))
        yield Disturbed(split.name, X, Y, 500)


def _by_stream(records: Sequence[Record]) -> dict[str, list[Record]]:
    return {name: [each for each in records if each["stream"] == name] for name in {r["stream"]: 0 for r in records}}


def _as_percent(value: float | None) -> str:
    return as_value(None if value is None else 100.0 * value, decimals=1)
