"""Very many labels: quality, speed, memory and latency of compressed labels and of Vowpal Wabbit's label tree.

Synthetic streams have labels that follow Zipf's law, five a row, each with words of its own among noise: 10⁵ features,
50 non-zeros a row. Datasets are those available with more than 1,000 labels. Of each batch some rows are tested first,
then it is learned; times are processor times on one thread, which other processes change less.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse
import typer
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.datasets import Source, find_datasets
from benchmarks.plan import RUNS, Data, Out, Record, publish
from benchmarks.rivals import NOT_INSTALLED, vowpal_lines, vowpal_wabbit
from benchmarks.timing import batches, seconds
from labelrace import Tagger, __version__, load_dataset, make_model
from labelrace.cli.options import as_names, option
from labelrace.evaluation.checkpoint import padded
from labelrace.measures import evaluate
from labelrace.report.document import Document, Section
from labelrace.report.tables import Cell, Column, Group, Row, Table
from labelrace.report.text import as_bytes, as_significant, as_value, plural
from labelrace.typing import AnyMatrix, IntArray

_LABELS = (10**3, 10**4, 10**5, 10**6)
_BUDGETS = ("10MB", "50MB", "250MB")
_BITS = (18, 22, 24)
_BATCH, _TESTED, _TIMED, _BEST = 500, 100, 50, 5
# Datasets with fewer labels are not part of this benchmark.
_MANY_LABELS = 1000
_N_FEATURES, _N_FILLED, _N_LABELS = 10**5, 50, 5
_MEASURES = ("precision_at_1", "precision_at_5", "ndcg_at_5")
_OF_COMPRESSION = ("precision_at_1", "ndcg_at_5", "example_f1")
# Columns of the table, and how their numbers are written.
_COLUMNS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "P@1": ("precision_at_1", partial(as_value, decimals=3)),
    "P@5": ("precision_at_5", partial(as_value, decimals=3)),
    "nDCG@5": ("ndcg_at_5", partial(as_value, decimals=3)),
    "Example F1": ("example_f1", partial(as_value, decimals=3)),
    "Rows/s learned": ("rows_a_second", partial(as_value, decimals=0)),
    "First batch (s)": ("first_seconds", as_significant),
    "Latency (ms)": ("latency_ms", as_significant),
    "100 rows (ms)": ("hundred_ms", as_significant),
    "State": ("bytes", as_bytes),
}
# A weight of Vowpal Wabbit's adaptive, normalised updates takes four floats.
_TREE_BYTES = 16


class Stream(NamedTuple):
    """Rows to learn in order, and what they are called."""

    name: str
    X: AnyMatrix
    Y: AnyMatrix


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
    starts, indices = np.arange(n + 1, dtype=np.int32) * each, columns.ravel().astype(np.int32)
    rows = scipy.sparse.csr_array((np.ones(n * each), indices, starts), shape=(n, width))
    rows.sum_duplicates()
    rows.data[:] = 1
    return rows


class LabelTree:
    """Vowpal Wabbit's probabilistic label tree; it has the best labels of a row, and no label sets."""

    def __init__(self, bits: int, n_labels: int) -> None:
        self.n_bytes = _TREE_BYTES << bits
        self._tree = vowpal_wabbit(f"--plt {n_labels} --loss_function logistic -b {bits} --top_k {_BEST}")

    def partial_fit(self, X: AnyMatrix, Y: AnyMatrix) -> None:
        """Learn row by row."""
        for line in vowpal_lines(X, Y):
            self._tree.learn(line)

    def predict_top(self, X: AnyMatrix, k: int) -> list[list[tuple[int, float]]]:
        """List the best labels of each row, without their probabilities."""
        # The list may begin with the prediction of another row.
        return [[(label, np.nan) for label in self._tree.predict(line)[-k:]] for line in vowpal_lines(X)]


def best_labels(model: Any, X: AnyMatrix) -> IntArray:
    """Return the columns of the five best labels of each row, -1 where there are fewer."""
    return padded([[label for label, _ in row] for row in model.predict_top(X, _BEST)], _BEST)


def size_of(model: Any) -> float:
    """Return the bytes of what a model has learned: those of its file."""
    if isinstance(model, LabelTree):
        return float(model.n_bytes)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        return float(Path(folder, "model").stat().st_size)


def extreme(
    labels: Annotated[
        list[int] | None, option(help="Labels of a synthetic stream; repeatable. By default 1,000 to 1,000,000.")
    ] = None,
    synthetic: Annotated[bool, typer.Option(help="Measure synthetic streams, besides datasets.")] = True,
    budget: Annotated[list[str] | None, option(help="Memory of race-hashed, such as 100MB; repeatable.")] = None,
    rows: Annotated[int, typer.Option(help="The largest number of rows of a stream.")] = 6000,
    data: Data = None,
    datasets: Annotated[
        str | None,
        option(help="Which datasets, separated by commas; by default all with more than 1,000 labels; '' for none."),
    ] = None,
    out: Out = RUNS / "extreme",
) -> None:
    """Measure quality, speed and memory with very many labels.

    Vowpal Wabbit's label tree is measured, too, where `python -m benchmarks rivals` has installed it.

    [dim]Examples:[/dim]

    python -m benchmarks extreme

    python -m benchmarks extreme --labels 1000000 --budget 100MB --budget 450MB --rows 50500 --datasets ''

    python -m benchmarks extreme --no-synthetic --datasets debian-depends --rows 60000 --budget 100MB
    """
    if rows < 2 * _BATCH:
        raise ValueError(f"--rows must be at least {2 * _BATCH}, a batch to learn and one to test, got {rows}")
    counts = sorted(set(labels or _LABELS)) if synthetic else []
    if min(counts, default=_BEST) < _BEST:
        raise ValueError(f"--labels must be at least {_BEST}, got {counts[0]}")
    notes = [] if find_spec("vowpalwabbit") else [NOT_INSTALLED]
    streams: list[Callable[[], Stream]] = [partial(zipf_stream, count, rows) for count in counts]
    if datasets is None or datasets:
        found = find_datasets(data or (), as_names(datasets or ""), needed=False)
        many = [source for source in found.sources if datasets or source.facts.labels > _MANY_LABELS]
        streams += [partial(_dataset, source, rows) for source in many]
        notes += found.unreadable
    if not streams:
        raise ValueError("no stream to measure: name datasets that are available, or leave out --no-synthetic")
    records: list[Record] = []
    with threadpool_limits(limits=1):
        for stream in (make_stream() for make_stream in streams):
            for name, make in _methods(budget or _BUDGETS, stream.Y.shape[1]).items():
                print(f"{stream.name}: {name}", file=sys.stderr)
                records.append(_measure(stream, name, make()))
    publish(extreme_document(records, notes), out)


def _methods(budgets: Sequence[str], n_labels: int) -> dict[str, Callable[[], Any]]:
    """Return what makes each of the models that are compared."""
    hashed = {f"race-hashed, {size}": partial(make_model, "race-hashed", max_memory=size) for size in budgets}
    ours = {name: partial(make, random_state=0) for name, make in hashed.items()}
    trees = _BITS if find_spec("vowpalwabbit") else ()
    tree = {f"Vowpal Wabbit --plt, 2^{bits}": partial(LabelTree, bits, n_labels) for bits in trees}
    return {"most frequent labels": partial(make_model, "majority"), **ours, **tree}


def _dataset(source: Source, rows: int) -> Stream:
    X, Y = next(source.open().batches(rows))
    return Stream(source.name, scipy.sparse.csr_array(X), scipy.sparse.csr_array(Y).astype(float))


def _measure(stream: Stream, name: str, model: Any) -> Record:
    """Test and learn batch by batch; the first is only learned, and the latency is that of the last rows."""
    first, *later = batches(stream.X, stream.Y, _BATCH)
    first_seconds = seconds(partial(model.partial_fit, *first), 1)
    spent, values = 0.0, dict[str, list[float]]()
    for X, Y in later:
        tested = X[:_TESTED]
        predicted = model.predict(tested) if hasattr(model, "predict") else None
        measures = _MEASURES if predicted is None else (*_MEASURES, "example_f1")
        for measure, value in evaluate(
            Y[:_TESTED], predicted, top=best_labels(model, tested), measures=measures
        ).items():
            values.setdefault(measure, []).append(value)
        spent += seconds(partial(model.partial_fit, X, Y), 1)
    # Rows as they come: cutting them out of a matrix takes as long as the label tree needs for all.
    n = stream.X.shape[0]
    last = [stream.X[i : i + 1] for i in range(max(n - _TIMED, 0), n)]
    best_labels(model, last[0])
    latency = seconds(lambda: [best_labels(model, row) for row in last], 1) / len(last)
    return {
        "stream": stream.name,
        "labels": stream.Y.shape[1],
        "rows": n,
        "method": name,
        **{key: float(np.mean(values[key])) if key in values else None for key in (*_MEASURES, "example_f1")},
        "rows_a_second": (n - first[0].shape[0]) / max(spent, 1e-9),
        "first_seconds": first_seconds,
        "latency_ms": 1000 * latency,
        "hundred_ms": 1000 * seconds(lambda: best_labels(model, stream.X[-100:]), 1),
        "bytes": size_of(model),
    }


def extreme_document(records: list[Record], notes: list[str]) -> Document:
    """Return a table of all measurements."""
    by_stream: dict[str, list[Record]] = {}
    for record in records:
        by_stream.setdefault(record["stream"], []).append(record)
    methods = list(dict.fromkeys(record["method"] for record in records))
    hint = (
        f"Test then train, batches of {_BATCH}, {_TESTED} rows of each tested. Rows a second are those learned, in "
        "processor time on one thread; latency is that of the five best labels of one row. The state is "
        "the size of the model's file, and for Vowpal Wabbit 16 bytes for each weight; it has no label sets and no "
        "example F1. No parameter was tuned."
    )
    lower = ("First batch (s)", "Latency (ms)", "100 rows (ms)", "State")
    table = records_table("extreme", "Very many labels.", _COLUMNS, by_stream, lower)
    return Document(
        name="extreme",
        title="Very many labels",
        lead=f"{plural(len(by_stream), 'stream')}, {plural(len(methods), 'method')}, one core.",
        footer=f"Made by labelrace {__version__}.",
        sections=[Section("Quality, speed and memory", hint, [table])],
        records={"extreme": records},
        notes=notes,
    )


def records_table(
    name: str,
    caption: str,
    shown: Mapping[str, tuple[str, Callable[[float | None], str]]],
    by_stream: Mapping[str, list[Record]],
    lower: Sequence[str],
) -> Table:
    """Return records as a table, a group for each stream; `lower` are the columns where less is better."""
    columns = [Column(title, lower=title in lower) for title in shown]
    groups = []
    for stream, of in by_stream.items():
        rows = [
            Row(record["method"], [Cell(text(record[key]), number=record[key]) for key, text in shown.values()])
            for record in of
        ]
        groups.append(Group(rows, stream, detail=plural(of[0]["rows"], "row")))
    return Table(name, caption, columns, groups, first="Method")


def compression(
    source: Annotated[str, typer.Argument(help="A dataset, or a CSV table of text with a column 'tags'.")],
    memory: Annotated[
        str | None, option(help="What max_memory is, such as 19MB; by default a tenth of the uncompressed size.")
    ] = None,
    batches_too: Annotated[
        bool, typer.Option("--batches", help="Print nDCG@5 and seconds of learning of every batch, too.")
    ] = False,
) -> None:
    """Compare the default uncompressed and compressed.

    It is compressed on the way, or, as `race-hashed`, from the start. Test then train in batches of 500. The
    uncompressed size is four bytes for each label and each column in use.

    [dim]Examples:[/dim]

    python -m benchmarks compression delicious

    python -m benchmarks compression cooking.csv.gz --memory 19MB --batches
    """
    # Compiles the loops of compressed labels, or loads them, so that no model's time includes it.
    make_model("race-hashed")
    whole, values = _run(source, make_model("race", max_memory="100GB", random_state=0))
    weights = whole._fitted.state.learners
    size: Any = memory or 0.4 * weights.n_used_columns * len(weights.intercepts)
    runs = {"uncompressed": values}
    for kind in ("race", "race-hashed"):
        runs[kind] = _run(source, make_model(kind, max_memory=size, random_state=0))[1]
    print(f"{source}: {len(weights.intercepts)} labels, max_memory {size if memory else f'{size / 1e6:.3g} MB'}")
    for kind, of in runs.items():
        precision, gain, f1, _ = np.mean(of, axis=0)
        share = gain / np.mean(values, axis=0)[1]
        print(f"  {kind:14}P@1 {precision:.3f}, nDCG@5 {gain:.3f}, example F1 {f1:.3f}; nDCG@5 {share:.1%}")
    for number in range(len(values)) if batches_too else ():
        cells = (f"{kind} {of[number][1]:.3f} {of[number][3]:6.2f} s" for kind, of in runs.items())
        print(f"  batch {number + 1:3}  " + "    ".join(cells))


def _run(source: str, model: Any) -> tuple[Any, list[list[float]]]:
    """Let a model, or a tagger with it, go through a stream; return it, and P@1, nDCG@5, F1, seconds of batches."""
    is_table = source.endswith((".csv", ".csv.gz"))
    learner = Tagger(tags="tags", model=model, random_state=0) if is_table else model
    measured = []
    for number, (batch, truth) in enumerate(_tables(source) if is_table else _batches(source)):
        tops = learner.predict_top(batch[0], _BEST) if number else []
        sets = (learner.predict if is_table else learner.predict_labels)(batch[0]) if number else []
        spent = seconds(partial(learner.partial_fit, *batch), 1)
        if number:
            # By names, as labels come late; all that are among the best or in a set count.
            names = sorted({*chain(*truth, *sets), *(label for row in tops for label, _ in row)})
            columns = {name: column for column, name in enumerate(names)}
            top = padded([[columns[label] for label, _ in row] for row in tops], _BEST)
            values = evaluate(truth, sets, top=top, label_names=names, measures=_OF_COMPRESSION)
            measured.append([*values.values(), spent])
    return learner.model_ if is_table else learner, measured


def _tables(path: str) -> Iterator[tuple[tuple[Any, ...], list[set[Any]]]]:
    import pandas as pd

    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    for start in range(0, len(table), _BATCH):
        part = table.iloc[start : start + _BATCH]
        yield (part,), [set(tags.split()) for tags in part["tags"]]


def _batches(name: str) -> Iterator[tuple[tuple[Any, ...], list[set[Any]]]]:
    for X, Y in load_dataset(name).batches(_BATCH):
        labels = scipy.sparse.csr_array(Y)
        yield (X, labels), [set(row.tolist()) for row in np.split(labels.indices, labels.indptr[1:-1])]
