"""Time and memory of the models, how both grow with the data, and how other libraries compare."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from labelrace import __version__
from labelrace.base.registry import model_names
from labelrace.evaluation import ModelSpec, memory_meter
from labelrace.experiments.baselines import row_dicts
from labelrace.experiments.plan import OnProgress, Step
from labelrace.report.charts import Chart, Panel, Panels, Series, panels
from labelrace.report.document import Document, Section
from labelrace.report.tables import text_table
from labelrace.report.text import as_bytes, as_significant, listing
from labelrace.streams.synthetic import SyntheticStream
from labelrace.typing import AnyMatrix

BATCH_SIZE = 250
_CARDINALITY = 3.0
# Libraries that take one row at a time get this many rows: enough to time them within acceptable time.
_ROWS_OF_RIVALS = 40
# What rivals are compared with, besides the model that is most like them.
_REFERENCE = "race-cls-fixed"


class Shape(NamedTuple):
    """Rows, features and labels of a stream, and the share of non-zeros of its binary features."""

    rows: int
    features: int
    labels: int
    density: float

    def __str__(self) -> str:
        return f"{self.rows:,} rows, {self.features} features ({self.density:.0%} non-zero), {self.labels} labels"


BASE = Shape(rows=1500, features=300, labels=100, density=0.05)
# What each size is varied over, one at a time; the base's own value is among them.
AXES: dict[str, tuple[Any, ...]] = {
    "rows": (750, 1500, 3000),
    "features": (100, 300, 900),
    "labels": (25, 100, 400),
    "density": (0.02, 0.05, 0.125, 0.3),
}


class Measurement(NamedTuple):
    """One model on one shape.

    ``first_seconds`` are those to learn the first batch, which is where models set themselves up; ``predict_ms`` and
    ``learn_ms`` milliseconds per row of each later batch; ``memory`` the peak of what it allocated meanwhile, in bytes.
    """

    first_seconds: float
    predict_ms: float
    learn_ms: float
    memory: int | None = None

    @property
    def total(self) -> float:
        """Milliseconds per row to predict and then to learn it."""
        return self.predict_ms + self.learn_ms


@dataclass(frozen=True)
class SpeedSummary:
    """The shapes of each axis, and all measurements by model or library, and shape."""

    axes: dict[str, list[Shape]]
    measured: dict[tuple[str, Shape], Measurement]
    absent: list[str]  # libraries that are not installed


def run_speed(
    models: Iterable[str] | None = None,
    *,
    rows: Sequence[int] = (),
    on_progress: OnProgress | None = None,
) -> SpeedSummary:
    """Measure online models, and other libraries that are installed, on a grid of shapes, on one thread.

    Parameters
    ----------
    models : iterable of str or None, default=None
        Names for `labelrace.make_model`; None for all that are online.
    rows : sequence of int, default=()
        Numbers of rows; the usual ones if empty.
    on_progress : callable, default=None
        Called with a `Step` before each measurement.
    """
    names = list(models) if models is not None else model_names(online=True)
    names = list(dict.fromkeys([*names, "obr", "occ", _REFERENCE]))
    shapes = grid(rows)
    absent = [package for *_, package in RIVALS.values() if package and find_spec(package) is None]
    found = {name: rival for name, rival in RIVALS.items() if rival[-1] not in absent}
    distinct = list(dict.fromkeys(shape for line in shapes.values() for shape in line))
    total = len(distinct) * len(names) + len(shapes["labels"]) * len(found)
    done: dict[tuple[str, Shape], Measurement] = {}
    with threadpool_limits(limits=1):
        for shape in distinct:
            batches, categorical = make_batches(shape)
            for name in (*names, *(found if shape in shapes["labels"] else ())):
                if on_progress is not None:
                    on_progress(Step(f"{name}, {shape}", len(done), total))
                if name in found:
                    make, _, package = found[name]
                    size = _ROWS_OF_RIVALS if package else BATCH_SIZE
                    some = [(X[:size], Y[:size]) for X, Y in batches[:2]]
                    done[name, shape] = _go_through(make(shape.labels), some)
                else:
                    spec = ModelSpec(name)
                    times = _go_through(spec.make(0, categorical), batches)
                    # Memory is traced afterwards, as that slows the model down.
                    done[name, shape] = times._replace(memory=traced_memory(spec, batches, categorical))
    return SpeedSummary(shapes, done, absent)


def grid(rows: Sequence[int] = ()) -> dict[str, list[Shape]]:
    """Return the shapes of each axis, the base's value among them.

    `rows` are what rows are varied over, if not as usual. The other axes have the first of them.
    """
    axes = AXES | ({"rows": tuple(sorted(set(rows)))} if rows else {})
    base = BASE._replace(rows=min(rows, default=BASE.rows))
    return {axis: [base._replace(**{axis: value}) for value in values] for axis, values in axes.items()}


def make_batches(shape: Shape) -> tuple[list[tuple[AnyMatrix, AnyMatrix]], AnyMatrix]:
    """Return batches of synthetic rows of a shape, and the mask of their nominal features: all of them are."""
    stream = SyntheticStream(
        n_rows=shape.rows,
        n_features=shape.features,
        n_labels=shape.labels,
        cardinality=min(_CARDINALITY, shape.labels / 4),
        density=shape.density,
    )
    return list(stream.batches(BATCH_SIZE)), stream.categorical


def traced_memory(
    spec: ModelSpec, batches: Sequence[tuple[AnyMatrix, AnyMatrix]], categorical: AnyMatrix
) -> int | None:
    """Return what a model allocates at most, in bytes, to learn a batch, and to predict and learn another."""
    with memory_meter(trace=True) as peak:
        _go_through(spec.make(0, categorical), batches[:2])
        return peak()


def slope(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return the exponent with which times grow with sizes: 0 do not grow, 1 are proportional."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(times, 1e-12)), 1)[0])


def _go_through(model: Any, batches: Sequence[tuple[AnyMatrix, AnyMatrix]]) -> Measurement:
    """Return the seconds to learn the first batch, and the milliseconds per row to predict and to learn others.

    These are medians over batches: a batch during which the machine did something else does not count.
    """
    first = seconds_of(time.perf_counter, model.partial_fit, *batches[0])
    predict, learn = [], []
    for X, Y in batches[1:]:
        predict.append(1000 * seconds_of(time.perf_counter, model.predict, X) / X.shape[0])
        learn.append(1000 * seconds_of(time.perf_counter, model.partial_fit, X, Y) / X.shape[0])
    return Measurement(first, float(np.median(predict or [np.nan])), float(np.median(learn or [np.nan])))


def seconds_of(clock: Callable[[], float], call: Callable[..., object], *arguments: Any) -> float:
    """Return how long a call takes by a clock."""
    start = clock()
    call(*arguments)
    return clock() - start


def _sklearn_relevance(n_labels: int) -> SimpleNamespace:
    """MultiOutputClassifier: one Bernoulli naive Bayes for each label."""
    model, classes = MultiOutputClassifier(BernoulliNB()), [np.arange(2)] * n_labels
    learn = partial(model.partial_fit, classes=classes)
    return SimpleNamespace(partial_fit=lambda X, Y: learn(X, Y.toarray()), predict=model.predict)


def _row_by_row(learn: Callable[[Any, Any], object], predict: Callable[[Any], object]) -> SimpleNamespace:
    """Let a library learn and predict one row at a time, from the columns of non-zeros."""

    def partial_fit(X: AnyMatrix, Y: AnyMatrix) -> None:
        for row, present in zip(row_dicts(X), row_dicts(Y), strict=True):
            learn(row, present)

    return SimpleNamespace(partial_fit=partial_fit, predict=lambda X: [predict(row) for row in row_dicts(X)])


def _river_chain(n_labels: int) -> SimpleNamespace:
    """ClassifierChain of Bernoulli naive Bayes, which learns from dicts."""
    from river.multioutput import ClassifierChain
    from river.naive_bayes import BernoulliNB as RiverBernoulliNB

    labels = range(n_labels)
    model = ClassifierChain(RiverBernoulliNB(), order=list(labels))
    return _row_by_row(
        lambda row, present: model.learn_one(dict.fromkeys(row, 1), {label: label in present for label in labels}),
        lambda row: model.predict_one(dict.fromkeys(row, 1)),
    )


def _vowpal_wabbit(n_labels: int) -> SimpleNamespace:
    """multilabel_oaa, on hashed features."""
    model = importlib.import_module("vowpalwabbit").Workspace(f"--multilabel_oaa {n_labels} --quiet")
    return _row_by_row(
        lambda row, present: model.learn(f"{','.join(map(str, sorted(present)))} | {' '.join(map(str, row))}"),
        lambda row: model.predict(f" | {' '.join(map(str, row))}"),
    )


# Other libraries: a maker that is told the number of labels, the same by us, and the package of those that take each
# row by itself.
RIVALS: dict[str, tuple[Callable[[int], Any], str, str]] = {
    "scikit-learn, binary relevance": (_sklearn_relevance, "obr", ""),
    "River, classifier chain": (_river_chain, "occ", "river"),
    "Vowpal Wabbit, one against all": (_vowpal_wabbit, "obr", "vowpalwabbit"),
}


def speed_document(summary: SpeedSummary) -> Document:
    """Return times on the base shape, how they grow, and how other libraries compare, as tables and a chart."""
    models = [name for name in dict.fromkeys(name for name, _ in summary.measured) if name not in RIVALS]
    [base] = set.intersection(*map(set, summary.axes.values()))
    labels, measured = summary.axes["labels"], summary.measured
    times, growth, others = {}, {}, {}
    for name in models:
        first, predict, learn, memory = measured[name, base]
        times[name] = [*map(as_significant, (predict, learn, first)), as_bytes(memory)]
        growth[name] = [_slope_text(summary, name, axis) for axis in summary.axes]
    for name, (_, like, package) in RIVALS.items():
        for model in (like, _REFERENCE) if package not in summary.absent else ():
            ratios = [measured[name, shape].total / measured[model, shape].total for shape in labels]
            others[f"{name} / {model}"] = [f"{r:,.0f} ×" if r >= 10 else f"{r:.1f} ×" for r in ratios]
    columns = ("Predict (ms/row)", "Learn (ms/row)", "First batch (s)", "Peak memory")
    compared = "Time per row of other libraries, as a ratio to that of a model of labelrace."
    tables = [
        text_table("times", f"Time and memory: {base}.", columns, times),
        text_table("growth", "Exponents of the growth of time per row.", [f"By {a}" for a in summary.axes], growth),
        text_table("libraries", compared, [f"{s.labels} labels" for s in labels], others, "Library / model"),
    ]
    order = [(axis, name, shape) for axis, shapes in summary.axes.items() for name in models for shape in shapes]
    order += [("labels", name, shape) for shape in labels for name in RIVALS if (name, shape) in measured]
    records = [
        {"axis": axis, "model": name, **shape._asdict(), **measured[name, shape]._asdict()}
        for axis, name, shape in order
    ]
    chart = Chart("speed", "Time and memory, one size varied at a time", _panels(summary, models))
    hint = "On one thread. An exponent of 0 means that the time does not grow, 1 that it is proportional."
    return Document(
        name="speed",
        title="Speed of the online models",
        lead=f"{len(models)} online models on synthetic streams, on one thread.",
        footer=f"Made by labelrace {__version__}.",
        sections=[Section("Time and memory", hint, tables, [chart])],
        records={"speed": records},
        notes=[f"Not installed, and so not compared: {listing(summary.absent)}."] if summary.absent else [],
    )


def _slope_text(summary: SpeedSummary, model: str, axis: str) -> str:
    shapes = summary.axes[axis]
    found = slope(
        [getattr(shape, axis) for shape in shapes], [summary.measured[model, shape].total for shape in shapes]
    )
    return f"{found:.2f}".replace("-", "−")


def _panels(summary: SpeedSummary, models: Sequence[str]) -> Panels:
    """Return time and memory along every axis, on logarithmic scales."""
    values: dict[str, Callable[[Measurement], float]] = {
        "ms per row": lambda measured: measured.total,
        "peak memory, MB": lambda measured: (measured.memory or 0) / 1e6,
    }
    shown = []
    for label, value in values.items():
        for axis, shapes in summary.axes.items():
            sizes = [getattr(shape, axis) for shape in shapes]
            series = [
                Series(name, sizes, [value(summary.measured[name, shape]) for shape in shapes], place, marker="o")
                for place, name in enumerate(models)
            ]
            shown.append(Panel("", series, axis, "" if axis != "rows" else label, "xy", x_ticks=sizes))
    return panels(shown, across=len(summary.axes), size=(2.5, 2.3))
