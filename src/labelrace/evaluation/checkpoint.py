"""One batch of an evaluation: its test, its time and memory; what is counted over all tests, means and curves."""

from __future__ import annotations

import math
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from labelrace.base import missing_labels
from labelrace.measures import default_zero_division, evaluate, measure_names, needs_scores, needs_top
from labelrace.measures.calibration import Reliability, add, empty
from labelrace.measures.example import Counts, confusion, f1
from labelrace.measures.inputs import are_label_sets, as_labels, as_labels_with_missing, sorted_names
from labelrace.typing import AnyMatrix, FloatArray, IntArray

if sys.platform != "win32":
    import resource

Observer: TypeAlias = Callable[[Any, Any], object]

# Above this number of labels, `predict_top` is called where it is enough, instead of scoring all labels.
MANY_LABELS = 1000

_PARTS = ("predict", "learn", "measure")


@dataclass(frozen=True)
class Checkpoint:
    """One batch of an evaluation: what was measured, how long it took, how much memory it needed.

    Parameters
    ----------
    batch : int
        Number of the batch; 0 is the first.
    start, end : int
        Its rows, `end` excluded, counted from the start of the stream.
    measures : dict of str to float
        Measured on this batch alone; NaN where a measure is not defined on it.
    seconds : dict of str to float
        Time to "predict" (label sets, and scores if a measure needs them), to "learn" and to "measure".
    memory : int or None, default=None
        Peak memory in bytes, as `memory_meter` gives it; None where the system does not provide it.
    whole : bool, default=True
        Whether the batch counts in `averages`. A last batch with fewer rows is tested and learned, but does not.
    tested : bool, default=True
        Whether the batch was tested. The first is only learned.

    Examples
    --------
    >>> seconds = {"predict": 0.1, "learn": 0.2, "measure": 0.0}
    >>> checkpoint = Checkpoint(1, 500, 1000, {"micro_f1": 0.5, "macro_auc": float("nan")}, seconds)
    >>> checkpoint.rows
    500
    >>> checkpoint.to_record()["measures"]
    {'micro_f1': 0.5, 'macro_auc': None}
    """

    batch: int
    start: int
    end: int
    measures: dict[str, float]
    seconds: dict[str, float]
    memory: int | None = None
    whole: bool = True
    tested: bool = True

    @property
    def rows(self) -> int:
        """Number of rows of the batch."""
        return self.end - self.start

    def to_record(self) -> dict[str, Any]:
        """Return what JSON can hold: NaN, which it cannot, becomes None.

        Returns
        -------
        dict
        """
        measures = {name: None if math.isnan(value) else value for name, value in self.measures.items()}
        names = ("batch", "start", "end", "whole", "measures", "seconds", "memory")
        record = {"kind": "batch"} | {name: getattr(self, name) for name in names} | {"measures": measures}
        return record if self.tested else record | {"tested": False}


def averages(checkpoints: Iterable[Checkpoint]) -> dict[str, float]:
    """Average each measure over the whole test batches, as in the paper's tables.

    A last batch with fewer rows does not count, unless no other was tested. A batch on which a measure is NaN does
    not count in that measure.

    Parameters
    ----------
    checkpoints : iterable of Checkpoint

    Returns
    -------
    dict from measure to float

    Examples
    --------
    >>> points = [
    ...     Checkpoint(1, 100, 200, {"micro_f1": 0.4}, {}),
    ...     Checkpoint(2, 200, 300, {"micro_f1": 0.6}, {}),
    ...     Checkpoint(3, 300, 302, {"micro_f1": 0.0}, {}, whole=False),
    ... ]
    >>> averages(points)
    {'micro_f1': 0.5}
    >>> averages(points[2:])
    {'micro_f1': 0.0}
    """
    tested = [checkpoint for checkpoint in checkpoints if checkpoint.tested]
    counted = [checkpoint for checkpoint in tested if checkpoint.whole] or tested
    return {name: float(running_means(line)[-1]) for name, line in _by_measure(counted).items()}


def windowed(checkpoints: Iterable[Checkpoint], window: int = 10) -> dict[str, FloatArray]:
    """Return for each measure the mean over the last `window` test batches, at each of them.

    The first values are means of as many batches as there are. A batch on which a measure is NaN does not count.

    Parameters
    ----------
    checkpoints : iterable of Checkpoint
    window : int, default=10
        How many batches.

    Returns
    -------
    dict from measure to array

    Examples
    --------
    >>> points = [Checkpoint(t, 10 * t, 10 * t + 10, {"micro_f1": t / 8}, {}) for t in range(1, 5)]
    >>> windowed(points, window=2)["micro_f1"].tolist()
    [0.125, 0.1875, 0.3125, 0.4375]
    """
    if window < 1:
        raise ValueError(f"window must be at least 1 batch, got {window!r}")
    tested = [checkpoint for checkpoint in checkpoints if checkpoint.tested]
    return {name: running_means(line, window=window) for name, line in _by_measure(tested).items()}


def cumulative(checkpoints: Iterable[Checkpoint]) -> dict[str, FloatArray]:
    """Return for each measure the mean over all test batches so far, weighted by their rows, at each of them.

    Parameters
    ----------
    checkpoints : iterable of Checkpoint

    Returns
    -------
    dict from measure to array

    Examples
    --------
    >>> points = [Checkpoint(1, 10, 20, {"micro_f1": 0.3}, {}), Checkpoint(2, 20, 25, {"micro_f1": 0.6}, {})]
    >>> cumulative(points)["micro_f1"].tolist()
    [0.3, 0.4]
    """
    tested = [checkpoint for checkpoint in checkpoints if checkpoint.tested]
    rows = np.array([checkpoint.rows for checkpoint in tested], dtype=float)
    return {name: running_means(line, rows) for name, line in _by_measure(tested).items()}


def running_means(values: FloatArray, weights: FloatArray | float = 1.0, window: int | None = None) -> FloatArray:
    """Return the weighted means of the last `window` values along the last axis, or of all values so far.

    A value that is NaN does not count; where nothing counts the mean is NaN.
    """
    defined = ~np.isnan(values)
    sums = np.cumsum(np.where(defined, values * weights, 0.0), axis=-1)
    totals = np.cumsum(np.where(defined, weights, 0.0), axis=-1)
    if window is not None and window < values.shape[-1]:
        sums[..., window:] -= sums[..., :-window].copy()
        totals[..., window:] -= totals[..., :-window].copy()
    return np.divide(sums, totals, out=np.full(values.shape, np.nan), where=totals > 0)


def _by_measure(checkpoints: Sequence[Checkpoint]) -> dict[str, FloatArray]:
    names = checkpoints[0].measures if checkpoints else ()
    return {name: np.array([checkpoint.measures[name] for checkpoint in checkpoints]) for name in names}


class Stopwatch:
    """Seconds spent on each part of a batch."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(_PARTS, 0.0)

    @contextmanager
    def timing(self, part: str) -> Iterator[None]:
        """Add the time that the block takes to a part."""
        start = time.perf_counter()
        yield
        self.seconds[part] += time.perf_counter() - start


@contextmanager
def memory_meter(trace: bool = False) -> Iterator[Callable[[], int | None]]:
    """Provide a function that returns a peak of memory, in bytes.

    Parameters
    ----------
    trace : bool, default=False
        False: the largest resident memory of the process since it began, with interpreter, libraries and data. It
        costs nothing, and it never falls; None where the system does not provide it. True: what Python and NumPy had
        allocated at most since the function was last called, counted from the meter's start. That is the method's
        own, but tracing slows it down.

    Returns
    -------
    context manager
        It gives the function.

    Examples
    --------
    >>> with memory_meter(trace=True) as peak:
    ...     _ = bytearray(1_000_000)
    ...     peak() >= 1_000_000
    True
    """
    if not trace:
        yield peak_resident
        return
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        yield _traced_peak
    finally:
        if not was_tracing:
            tracemalloc.stop()


def peak_resident() -> int | None:
    """Return the largest resident memory that the process had, in bytes."""
    if sys.platform == "win32":
        return None
    # The unit is the system's: bytes on macOS, KiB elsewhere.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _traced_peak() -> int:
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    return peak


class BatchTest:
    """Measures a model's predictions of a batch, and computes only what the measures need.

    With more than 1,000 labels, measures of the best labels only (``ndcg_at_5``) come from ``predict_top``, where the
    model has one. Where labels are sets of names, ``model.predict_labels`` is called (``predict``, if it has none), and
    the labels that count are those that the model knows by its ``label_names_``, if it has any, and those that occur in
    the batch. Rows of which labels are missing (NaN) are not tested. The observers are called with true labels, and
    predicted ones or ``predict_proba``, of each tested batch, untimed.
    """

    def __init__(
        self,
        measures: str | Iterable[str],
        observer: Observer | None = None,
        probability_observer: Observer | None = None,
        zero_division: float | None = None,
    ) -> None:
        self.measures = measure_names(measures)
        self._zero_division = default_zero_division(measures) if zero_division is None else zero_division
        self.needs_scores = needs_scores(self.measures)
        self._of_scores = [name for name in self.measures if needs_scores(name)]
        self._observer = observer
        self._probability_observer = probability_observer

    def __call__(self, model: Any, X: Any, Y: Any, watch: Stopwatch) -> dict[str, float]:
        """Predict a batch and return its measures."""
        named = are_label_sets(Y)
        missing = missing_labels.find(Y) if hasattr(Y, "dtype") else None
        if missing is not None:
            X, Y = _without(missing.rows, X, Y)
            if not Y.shape[0]:
                return dict.fromkeys(self.measures, math.nan)
        n_best = 0 if named else self._best_labels_needed(model, Y.shape[1])
        with watch.timing("predict"):
            predicted = getattr(model, "predict_labels", model.predict)(X) if named else model.predict(X)
            best = model.predict_top(X, n_best) if n_best else None
            scores = model.decision_function(X) if self.needs_scores and not n_best else None
        with watch.timing("measure"):
            names, top = None, None if best is None else _columns(model, best, n_best)
            if named:
                names, scores = _common_columns(model, Y, predicted, scores)
            absent = self._zero_division
            values = evaluate(Y, predicted, scores, self.measures, label_names=names, top=top, zero_division=absent)
        if self._observer is not None:
            self._observer(Y, predicted)
        if self._probability_observer is not None:
            self._probability_observer(Y, model.predict_proba(X))
        return values

    def _best_labels_needed(self, model: Any, n_labels: int) -> int:
        """Return how many of the best labels the measures need instead of scores, which are too many; 0 for scores."""
        needed = [needs_top(name) for name in self._of_scores]
        if n_labels <= MANY_LABELS or not hasattr(model, "predict_top") or not all(needed):
            return 0
        return max(needed, default=0)


def _without(rows: IntArray, X: Any, Y: Any) -> tuple[Any, Any]:
    """Leave out rows."""
    others = np.setdiff1d(np.arange(Y.shape[0]), rows)
    if hasattr(X, "iloc"):
        return X.iloc[others], Y[others]
    return [X[row] for row in others] if isinstance(X, list) else X[others], Y[others]


def _columns(model: Any, best: list[list[tuple[Any, float]]], width: int) -> IntArray:
    """Return the columns of the best labels, which have names where the model knows names; -1 where there are fewer."""
    names = getattr(model, "label_names_", None)
    columns = None if names is None else {name: column for column, name in enumerate(names)}
    return padded([[label if columns is None else columns[label] for label, _ in row] for row in best], width)


def padded(lists: Sequence[Sequence[int]], width: int) -> IntArray:
    """Return lists of columns as the rows of a matrix, with -1 where a list is shorter than `width`."""
    columns = np.full((len(lists), width), -1)
    for row, labels in zip(columns, lists, strict=True):
        row[: len(labels)] = labels
    return columns


def _common_columns(model: Any, Y: Any, predicted: Any, scores: Any) -> tuple[list[Any], Any]:
    """Return the labels of a batch of label sets, and scores for all of them: the lowest for those not yet known."""
    known = getattr(model, "label_names_", None)
    if known is None and scores is not None:
        raise TypeError(
            "measures of scores need label_names_, the names of the scores' columns, which "
            f"{type(model).__name__} does not have; leave these measures out"
        )
    known = [] if known is None else list(known)
    names = [*known, *sorted_names(Y, predicted, without=known)]
    if scores is not None:
        scores = np.pad(scores, ((0, 0), (0, len(names) - len(known))), constant_values=-np.inf)
    return names, scores


class LabelCounts:
    """Counts over all tests, label by label, and where each label appeared. It is an observer of the evaluations."""

    def __init__(self) -> None:
        self._counts: Counts | None = None
        self._first: dict[int, int] = {}

    def observe_stream(self, batches: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Yield the batches of a stream; note the row in which each label comes for the first time."""
        start = 0
        for X, Y in batches:
            n_rows, n_labels = np.shape(Y)
            # Most labels come early; from then on there is nothing to look for.
            if len(self._first) < n_labels:
                rows, labels = as_labels_with_missing(Y, "Y")[0].nonzero()
                first = np.full(n_labels, -1)
                first[labels[::-1]] = rows[::-1]  # of a label's rows the first is written last
                first[list(self._first)] = -1
                new = np.flatnonzero(first >= 0)
                self._first.update(zip(new.tolist(), (start + first[new]).tolist(), strict=True))
            start += n_rows
            yield X, Y

    def __call__(self, Y_true: AnyMatrix, Y_pred: AnyMatrix) -> None:
        """Count a batch."""
        truth = as_labels(Y_true, "Y_true")
        new = confusion(truth, as_labels(Y_pred, "Y_pred", truth.shape)).per_label
        old = self._counts
        self._counts = new if old is None else Counts(*(a + b for a, b in zip(old, new, strict=True)))

    def to_record(self) -> dict[str, Any]:
        """Return share of the tested rows, F1 and first row of each label; F1 is None where nothing can be measured.

        ``first`` is None for labels that were never there, and left out where no stream was observed.
        """
        if self._counts is None:
            return {"kind": "labels", "frequency": [], "f1": []}
        tp, fp, fn, tn = self._counts
        frequency = (tp + fn) / (tp + fp + fn + tn)
        values = [float(value) if seen else None for value, seen in zip(f1(self._counts), tp + fp + fn, strict=True)]
        n_rows = int(np.max(tp + fp + fn + tn, initial=0))
        record = {"kind": "labels", "frequency": np.asarray(frequency).tolist(), "f1": values, "rows": n_rows}
        return record | {"first": [self._first.get(label) for label in range(len(values))]} if self._first else record


class CalibrationCounts:
    """Counts over all tests, bin by bin of probability. It is an observer of probabilities, as `prequential` has."""

    def __init__(self) -> None:
        self.reliability = empty()

    def __call__(self, Y_true: AnyMatrix, P: AnyMatrix) -> None:
        """Count a batch."""
        self.reliability = add(self.reliability, Y_true, P)

    def to_record(self) -> dict[str, Any]:
        """Return the sums; `as_reliability` reads them."""
        return {"kind": "calibration", **{name: part.tolist() for name, part in self.reliability._asdict().items()}}


def as_reliability(record: Mapping[str, Any]) -> Reliability:
    """Return what a record of kind "calibration" holds.

    Parameters
    ----------
    record : dict

    Returns
    -------
    Reliability

    Examples
    --------
    >>> as_reliability({"entries": [3, 1], "probability": [0.3, 0.9], "present": [0, 1]}).present
    array([0, 1])
    """
    return Reliability(
        np.array(record["entries"], dtype=np.intp),
        np.array(record["probability"], dtype=np.float64),
        np.array(record["present"], dtype=np.intp),
    )
