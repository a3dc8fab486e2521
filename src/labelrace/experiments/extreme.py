"""Very many labels: quality, speed, memory and latency of compressed labels and of Vowpal Wabbit's label tree.

Synthetic streams have labels that follow Zipf's law, five a row, each with words of its own among noise: 10⁵ features,
50 non-zeros a row. Datasets are those available with more than 1,000 labels. Of each batch some rows are tested first,
then it is learned; times are processor times on one thread, which other processes change less.
"""

from __future__ import annotations

import importlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from labelrace import __version__
from labelrace.base.registry import make_model
from labelrace.evaluation.checkpoint import padded
from labelrace.experiments.baselines import row_dicts, vowpal_text
from labelrace.experiments.datasets import Source, find_datasets
from labelrace.experiments.plan import OnProgress, Record, Step
from labelrace.experiments.speed import seconds_of
from labelrace.measures import evaluate
from labelrace.report.charts import Chart, Panel, Panels, Series, panels
from labelrace.report.document import Document, Section
from labelrace.report.tables import Cell, Column, Group, Row, Table
from labelrace.report.text import as_bytes, as_significant, as_value, plural
from labelrace.typing import AnyMatrix, IntArray

LABELS = (10**3, 10**4, 10**5, 10**6)
BUDGETS = ("10MB", "50MB", "250MB")
_BITS = (18, 22, 24)
_TREE = "vowpalwabbit"
_BATCH, _TESTED, _TIMED, _BEST = 500, 100, 50, 5
# Datasets with fewer labels are not part of this benchmark.
_MANY_LABELS = 1000
_N_FEATURES, _N_FILLED, _N_LABELS = 10**5, 50, 5
_MEASURES = ("precision_at_1", "precision_at_5", "ndcg_at_5")
# Columns of the table, and how their numbers are written.
_COLUMNS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "P@1": ("precision_at_1", partial(as_value, decimals=3)),
    "P@5": ("precision_at_5", partial(as_value, decimals=3)),
    "nDCG@5": ("ndcg_at_5", partial(as_value, decimals=3)),
    "Example F": ("example_f1", partial(as_value, decimals=3)),
    "Rows/s learned": ("rows_a_second", partial(as_value, decimals=0)),
    "First batch (s)": ("first_seconds", as_significant),
    "Latency (ms)": ("latency_ms", as_significant),
    "State": ("bytes", as_bytes),
}
# What quality is drawn against: name, caption, label, column and unit; 0 is not drawn.
_FRONTIERS = (
    ("memory", "memory", "state, MB", "bytes", 1e6),
    ("speed", "rows a second", "rows/s learned", "rows_a_second", 1.0),
)
# A weight of Vowpal Wabbit's adaptive, normalised updates takes four floats.
_TREE_BYTES = 16


class Stream(NamedTuple):
    """Rows to learn in order, and what they are called."""

    name: str
    X: AnyMatrix
    Y: AnyMatrix


@dataclass(frozen=True)
class ExtremeSummary:
    """A record for each stream and method, and notes on what could not be measured.

    Quality is the mean over tested batches; what a method does not have is None. ``rows_a_second`` are those learned,
    ``first_seconds`` the time of the first batch, ``latency_ms`` the time to find the five best labels of one row,
    ``bytes`` those of the state.
    """

    records: list[Record]
    notes: list[str]


def zipf_stream(n_labels: int, n_rows: int = 6000, seed: int = 0) -> Stream:
    """Make rows whose labels follow Zipf's law, each with five words of its own, among noise.

    Examples
    --------
    >>> stream = zipf_stream(1000, n_rows=200)
    >>> stream.X.shape, stream.Y.shape
    ((200, 100000), (200, 1000))
    """
    rng = np.random.default_rng(seed)
    chances = np.cumsum(1.0 / np.arange(1, n_labels + 1))
    labels = np.searchsorted(chances, rng.random((n_rows, _N_LABELS)) * chances[-1])
    words = (labels[:, :, None] * 2654435761 + np.arange(_N_LABELS) * 40503) % _N_FEATURES
    noise = rng.integers(0, _N_FEATURES, (n_rows, _N_FILLED - _N_LABELS**2))
    X = _ones(np.hstack([words.reshape(n_rows, -1), noise]), _N_FEATURES)
    return Stream(f"synthetic, {n_labels:,} labels", X, _ones(labels, n_labels))


def _ones(columns: IntArray, width: int) -> AnyMatrix:
    n, each = columns.shape
    starts, places = np.arange(n + 1, dtype=np.int32) * each, columns.ravel().astype(np.int32)
    rows = scipy.sparse.csr_array((np.ones(n * each), places, starts), shape=(n, width))
    rows.sum_duplicates()
    rows.data[:] = 1
    return rows


class _Model:
    """A model of labelrace.

    As all that is measured, it learns batches, and has the columns of the five best labels of each row, -1 where there
    are fewer; label sets, or None if there are none; and the size in bytes of what it has learned.
    """

    def __init__(self, name: str, n_labels: int, **parameters: Any) -> None:
        self._model = make_model(name, random_state=0, **parameters)

    def learn(self, X: AnyMatrix, Y: AnyMatrix) -> None:
        self._model.partial_fit(X, Y)

    def best(self, X: AnyMatrix) -> IntArray:
        return padded([[label for label, _ in row] for row in self._model.predict_top(X, _BEST)], _BEST)

    def sets(self, X: AnyMatrix) -> AnyMatrix:
        return self._model.predict(X)

    def size(self) -> float:
        with tempfile.TemporaryDirectory() as folder:
            self._model.save(Path(folder, "model"))
            return float(os.path.getsize(Path(folder, "model")))


class _MostFrequent:
    """The labels that were most frequent so far, for every row: what other methods have to beat."""

    def __init__(self, n_labels: int) -> None:
        self._counts = np.zeros(n_labels)
        self._rows = 0

    def learn(self, X: AnyMatrix, Y: AnyMatrix) -> None:
        np.add.at(self._counts, Y.indices, Y.data)
        self._rows += Y.shape[0]

    def _order(self) -> IntArray:
        return np.argsort(-self._counts, kind="stable")

    def best(self, X: AnyMatrix) -> IntArray:
        return np.tile(self._order()[:_BEST], (X.shape[0], 1))

    def sets(self, X: AnyMatrix) -> AnyMatrix:
        chosen = self._order()[: max(1, round(self._counts.sum() / self._rows))]
        each = np.tile(np.sort(chosen), (X.shape[0], 1))
        return _ones(each, len(self._counts))

    def size(self) -> float:
        return float(self._counts.nbytes)


class _LabelTree:
    """Vowpal Wabbit's probabilistic label tree."""

    def __init__(self, bits: int, n_labels: int) -> None:
        workspace = importlib.import_module(_TREE).Workspace
        self._bits = bits
        self._tree = workspace(f"--plt {n_labels} --loss_function logistic -b {bits} --top_k {_BEST} --quiet")

    def learn(self, X: AnyMatrix, Y: AnyMatrix) -> None:
        for row, labels in zip(row_dicts(X), row_dicts(Y), strict=True):
            self._tree.learn(f"{','.join(map(str, labels))} | {vowpal_text(row)}")

    def best(self, X: AnyMatrix) -> IntArray:
        # The list may begin with the prediction of another row.
        return padded([list(self._tree.predict(f"| {vowpal_text(row)}"))[-_BEST:] for row in row_dicts(X)], _BEST)

    def sets(self, X: AnyMatrix) -> None:
        return None

    def size(self) -> float:
        return float(_TREE_BYTES << self._bits)


def run_extreme(
    labels: Sequence[int] = LABELS,
    *,
    budgets: Sequence[str] = BUDGETS,
    rows: int = 6000,
    data: Iterable[Path] = (),
    datasets: Sequence[str] | None = None,
    on_progress: OnProgress | None = None,
) -> ExtremeSummary:
    """Measure compressed labels at several sizes of memory, and the label tree at several, on one thread.

    Parameters
    ----------
    labels : sequence of int, default=(1000, 10000, 100000, 1000000)
        Numbers of labels of the synthetic streams; none of these if empty.
    budgets : sequence of str, default=("10MB", "50MB", "250MB")
        What ``max_memory`` of ``race-hashed`` is.
    rows : int, default=6000
        Rows of each stream at the most.
    data : iterable of paths, default=()
        Folders with datasets, beside those of ``$LABELRACE_DATA`` and the cache.
    datasets : sequence of str or None, default=None
        Names of the datasets; None for all available that have more than 1,000 labels, none if empty.
    on_progress : callable, default=None
        Called with a `Step` before each measurement.
    """
    for count in labels:
        if count < _BEST:
            raise ValueError(f"labels must be at least {_BEST}, got {count!r}.")
    if rows < 2 * _BATCH:
        raise ValueError(f"rows must be at least {2 * _BATCH}, a batch to learn and one to test, got {rows!r}.")
    makers: dict[str, Callable[[int], Any]] = {
        "most frequent labels": _MostFrequent,
        **{f"race-hashed, {budget}": partial(_Model, "race-hashed", max_memory=budget) for budget in budgets},
    }
    notes = []
    if find_spec(_TREE) is not None:
        makers |= {f"Vowpal Wabbit --plt, 2^{bits}": partial(_LabelTree, bits) for bits in _BITS}
    else:
        notes.append("Not installed, and so not compared: vowpalwabbit.")
    sources: list[Callable[[], Stream]] = [partial(zipf_stream, count, rows) for count in sorted(set(labels))]
    if datasets is None or datasets:
        found = find_datasets(data, datasets or ())
        many = [s for s in found.sources if datasets or s.facts.labels > _MANY_LABELS]
        sources += [partial(_dataset, source, rows) for source in many]
        notes += found.unreadable
    if not sources:
        raise ValueError("datasets must be some with more than 1,000 labels, or labels some numbers: got no stream.")
    results: list[Record] = []
    with threadpool_limits(limits=1):
        for make_stream in sources:
            stream = make_stream()
            for name, make in makers.items():
                if on_progress is not None:
                    on_progress(Step(f"{name}, {stream.name}", len(results), len(sources) * len(makers)))
                results.append(_measure(stream, name, make(stream.Y.shape[1])))
    return ExtremeSummary(results, notes)


def _dataset(source: Source, rows: int) -> Stream:
    X, Y = next(source.open().batches(rows))
    return Stream(source.name, scipy.sparse.csr_array(X), scipy.sparse.csr_array(Y).astype(float))


def _measure(stream: Stream, name: str, method: Any) -> Record:
    """Test and learn batch by batch; the first is only learned, and the latency is that of the last rows."""
    n, n_labels = stream.Y.shape
    seconds = partial(seconds_of, time.process_time)
    first = seconds(method.learn, stream.X[:_BATCH], stream.Y[:_BATCH])
    spent = 0.0
    values: dict[str, list[float]] = {}
    for start in range(_BATCH, n, _BATCH):
        X, Y = stream.X[start : start + _BATCH], stream.Y[start : start + _BATCH]
        for measure, value in _quality(method, X[:_TESTED], Y[:_TESTED]).items():
            values.setdefault(measure, []).append(value)
        spent += seconds(method.learn, X, Y)
    last = [stream.X[i : i + 1] for i in range(max(n - _TIMED, 0), n)]
    method.best(last[0])
    latency = sum(seconds(method.best, row) for row in last) / len(last)
    averages = {measure: float(np.mean(of)) for measure, of in values.items()}
    # Times of a method that does not use the features are not comparable.
    timed = not isinstance(method, _MostFrequent)
    return {
        "stream": stream.name,
        "labels": n_labels,
        "rows": n,
        "method": name,
        **{measure: averages.get(measure) for measure in (*_MEASURES, "example_f1")},
        "rows_a_second": max(n - _BATCH, 0) / max(spent, 1e-9) if timed else None,
        "first_seconds": first if timed else None,
        "latency_ms": 1000 * latency if timed else None,
        "bytes": method.size(),
    }


def _quality(method: Any, X: AnyMatrix, Y: AnyMatrix) -> dict[str, float]:
    predicted = method.sets(X)
    measures = _MEASURES if predicted is None else (*_MEASURES, "example_f1")
    return evaluate(Y, predicted, top=method.best(X), measures=measures)


def extreme_document(summary: ExtremeSummary) -> Document:
    """Return a table of all measurements, and the frontier of quality against memory and speed."""
    by_stream: dict[str, list[Record]] = {}
    for record in summary.records:
        by_stream.setdefault(record["stream"], []).append(record)
    methods = list(dict.fromkeys(record["method"] for record in summary.records))
    hint = (
        f"Test then train, batches of {_BATCH}, {_TESTED} rows of each tested. Rows a second are those learned, in "
        "processor time on one thread; latency is that of the five best labels of one row. The state is "
        "the size of the model's file, and for Vowpal Wabbit 16 bytes for each weight; it has no label sets and no "
        "example F. No parameter was tuned."
    )
    charts = [
        Chart(f"frontier-{name}", f"nDCG@5 against {what}", _panels(by_stream, label, key, unit))
        for name, what, label, key, unit in _FRONTIERS
    ]
    return Document(
        name="extreme",
        title="Very many labels",
        lead=f"{plural(len(by_stream), 'stream')}, {plural(len(methods), 'method')}, one core.",
        footer=f"Made by labelrace {__version__}.",
        sections=[Section("Quality, speed and memory", hint, [_table(by_stream)], charts)],
        records={"extreme": summary.records},
        notes=summary.notes,
    )


def _table(by_stream: dict[str, list[Record]]) -> Table:
    columns = [Column(title, lower=title in ("First batch (s)", "Latency (ms)", "State")) for title in _COLUMNS]
    groups = []
    for name, of in by_stream.items():
        rows = [
            Row(record["method"], [Cell(text(record[key]), number=record[key]) for key, text in _COLUMNS.values()])
            for record in of
        ]
        groups.append(Group(rows, name, detail=plural(of[0]["rows"], "row")))
    return Table("extreme", "Very many labels.", columns, groups, first="Method")


def _panels(by_stream: dict[str, list[Record]], label: str, key: str, unit: float) -> Panels:
    """Return quality against what is in a column, a line for each family of methods; up is better."""
    families = list(dict.fromkeys(_family(record) for of in by_stream.values() for record in of))
    shown = []
    for name, of in by_stream.items():
        series = []
        for place, family in enumerate(families):
            points = sorted((r for r in of if _family(r) == family and r[key]), key=lambda record: record[key])
            if not points:
                continue
            tips = [f"{record['method']}: nDCG@5 {record['ndcg_at_5']:.3f}" for record in points]
            x, y = [record[key] / unit for record in points], [record["ndcg_at_5"] for record in points]
            series.append(Series(family, x, y, place, marker="o", tips=tips))
        shown.append(Panel(name, series, label, "nDCG@5", "x"))
    return panels(shown, across=3, size=(3.3, 2.5))


def _family(record: Record) -> str:
    """Return a method's name without its size."""
    return str(record["method"]).partition(", ")[0]
